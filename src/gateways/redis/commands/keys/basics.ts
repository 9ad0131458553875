/** Whether keys are there, of which type, and taking them away. */

import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { TYPE_NAMES } from "../../tables.ts";

function del(call: Call): void {
  const { count, keys } = call;
  let removed = 0;
  for (let i = 1; i < count; i++) if (keys.remove(call.arg(i))) removed++;
  call.reply.integer(removed);
}

/** TOUCH is the same: nobody is told when a key was used last. */
function exists(call: Call): void {
  const { count, keys } = call;
  let found = 0;
  for (let i = 1; i < count; i++) if (keys.typeOf(call.arg(i)) !== 0) found++;
  call.reply.integer(found);
}

function type(call: Call): void {
  call.reply.simple(TYPE_NAMES[call.keys.typeOf(call.arg(1))]);
}

export const BASIC_COMMANDS: readonly Command[] = [
  {
    name: "del",
    arity: -2,
    flags: ["write"],
    keys: [1, -1, 1],
    group: "generic",
    since: "1.0.0",
    summary: "Delete a key",
    complexity:
      "O(N) where N is the number of keys that will be removed. When a key to remove holds a " +
      "value other than a string, the individual complexity for this key is O(M) where M is the " +
      "number of elements in the list, set, sorted set or hash. Removing a single key that holds " +
      "a string value is O(1).",
    runs: "store",
    run: del,
  },
  {
    name: "unlink",
    arity: -2,
    flags: ["write", "fast"],
    keys: [1, -1, 1],
    group: "generic",
    since: "4.0.0",
    summary:
      "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non " +
      "blocking.",
    complexity:
      "O(1) for each key removed regardless of its size. Then the command does O(N) work in a " +
      "different thread in order to reclaim memory, where N is the number of allocations the " +
      "deleted objects where composed of.",
    runs: "store",
    run: del,
  },
  {
    name: "exists",
    arity: -2,
    flags: ["readonly", "fast"],
    keys: [1, -1, 1],
    group: "generic",
    since: "1.0.0",
    summary: "Determine if a key exists",
    complexity: "O(N) where N is the number of keys to check.",
    runs: "store",
    run: exists,
  },
  {
    name: "touch",
    arity: -2,
    flags: ["readonly", "fast"],
    keys: [1, -1, 1],
    group: "generic",
    since: "3.2.1",
    summary:
      "Alters the last access time of a key(s). Returns the number of existing keys specified.",
    complexity: "O(N) where N is the number of keys that will be touched.",
    runs: "store",
    run: exists,
  },
  {
    name: "type",
    arity: 2,
    flags: ["readonly", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "1.0.0",
    summary: "Determine the type stored at key",
    complexity: "O(1)",
    runs: "store",
    run: type,
  },
];
