/**
 * MULTI, EXEC, DISCARD, WATCH and UNWATCH. Only what COMMAND tells of them is here: they are about
 * the client's own state, and its session carries them out.
 */

import type { Command, Flag } from "../command.ts";

const FLAGS: readonly Flag[] = ["noscript", "loading", "stale", "fast"];

/** The session never calls it. */
const run = (): void => {
  throw new Error("transaction commands are carried out by their session");
};

function command(
  name: string,
  arity: number,
  since: string,
  summary: string,
  complexity: string,
  more: Partial<Command> = {},
): Command {
  return {
    name,
    arity,
    flags: FLAGS,
    group: "transactions",
    since,
    summary,
    complexity,
    runs: "session",
    run,
    ...more,
  };
}

export const TRANSACTION_COMMANDS: readonly Command[] = [
  command("multi", 1, "1.2.0", "Mark the start of a transaction block", "O(1)", {
    flags: ["noscript", "loading", "stale", "fast", "allow_busy"],
  }),
  command(
    "exec",
    1,
    "1.2.0",
    "Execute all commands issued after MULTI",
    "Depends on commands in the transaction",
    {
      flags: ["noscript", "loading", "stale", "skip_slowlog"],
    },
  ),
  command(
    "discard",
    1,
    "2.0.0",
    "Discard all commands issued after MULTI",
    "O(N), when N is the number of queued commands",
    {
      flags: ["noscript", "loading", "stale", "fast", "allow_busy"],
    },
  ),
  command(
    "watch",
    -2,
    "2.2.0",
    "Watch the given keys to determine execution of the MULTI/EXEC block",
    "O(1) for every key.",
    { keys: [1, -1, 1], flags: ["noscript", "loading", "stale", "fast", "allow_busy"] },
  ),
  command("unwatch", 1, "2.2.0", "Forget about all watched keys", "O(1)", {
    flags: ["noscript", "loading", "stale", "fast", "allow_busy"],
    // Queued by MULTI: EXEC itself forgets them.
    run: ({ reply }) => reply.ok(),
  }),
];
