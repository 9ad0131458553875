/** PING, ECHO, SELECT, QUIT and RESET. */

import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { checkDatabase } from "./select.ts";

function ping(call: Call): void {
  const { count, reply } = call;
  if (count > 2) throw call.wrongArity("ping");
  if (count === 1) reply.simple("PONG");
  else reply.bulk(call.arg(1));
}

function echo(call: Call): void {
  call.reply.bulk(call.arg(1));
}

function select(call: Call): void {
  checkDatabase(call, 1);
  call.reply.ok();
}

function quit({ reply, session }: Call): void {
  reply.ok();
  session.closeAfterReply();
}

function reset({ reply, session }: Call): void {
  session.reset();
  reply.simple("RESET");
}

export const CONNECTION_BASIC_COMMANDS: readonly Command[] = [
  {
    name: "ping",
    arity: -1,
    flags: ["fast"],
    group: "connection",
    since: "1.0.0",
    summary: "Ping the server",
    complexity: "O(1)",
    runs: "session",
    run: ping,
  },
  {
    name: "echo",
    arity: 2,
    flags: ["loading", "stale", "fast"],
    group: "connection",
    since: "1.0.0",
    summary: "Echo the given string",
    complexity: "O(1)",
    runs: "session",
    run: echo,
  },
  {
    name: "select",
    arity: 2,
    flags: ["loading", "stale", "fast"],
    group: "connection",
    since: "1.0.0",
    summary: "Change the selected database for the current connection",
    complexity: "O(1)",
    runs: "session",
    run: select,
  },
  {
    name: "quit",
    arity: -1,
    flags: ["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    since: "1.0.0",
    summary: "Close the connection",
    complexity: "O(1)",
    runs: "session",
    run: quit,
  },
  {
    name: "reset",
    arity: 1,
    flags: ["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    since: "6.2.0",
    summary: "Reset the connection",
    complexity: "O(1)",
    runs: "session",
    run: reset,
  },
];
