/** Keys under another name: RENAME, RENAMENX, COPY. There is one database, number 0. */

import type { Call } from "../../call.ts";
import { copyCollection } from "../../collections/copy.ts";
import type { Command } from "../../command.ts";
import { NO_SUCH_KEY, ReplyError, SYNTAX } from "../../reply-error.ts";
import { STRING } from "../../tables.ts";
import { checkDatabase } from "../connection/select.ts";

const SAME_OBJECT = "ERR source and destination objects are the same";

function rename(call: Call): void {
  const { keys } = call;
  const from = call.arg(1);
  const to = call.arg(2);
  if (keys.typeOf(from) === 0) throw new ReplyError(NO_SUCH_KEY);
  if (!from.equals(to)) keys.move(from, to);
  call.reply.ok();
}

function renamenx(call: Call): void {
  const { keys } = call;
  const from = call.arg(1);
  const to = call.arg(2);
  if (keys.typeOf(from) === 0) throw new ReplyError(NO_SUCH_KEY);
  // The same name is taken, too.
  const isFree = keys.typeOf(to) === 0;
  if (isFree) keys.move(from, to);
  call.reply.integer(isFree ? 1 : 0);
}

function copy(call: Call): void {
  const { keys, count } = call;
  let replaces = false;
  for (let i = 3; i < count; i++) {
    if (call.is(i, "REPLACE")) replaces = true;
    else if (call.is(i, "DB") && i + 1 < count) checkDatabase(call, ++i);
    else throw new ReplyError(SYNTAX);
  }
  const from = call.arg(1);
  const to = call.arg(2);
  if (from.equals(to)) throw new ReplyError(SAME_OBJECT);
  const found = keys.find(from);
  if (found === undefined || (!replaces && keys.typeOf(to) !== 0)) {
    call.reply.integer(0);
    return;
  }
  const value = found.type === STRING ? found.value : copyCollection(keys, found);
  keys.put(to, found.type, value, found.expires);
  call.reply.integer(1);
}

export const RENAME_COMMANDS: readonly Command[] = [
  {
    name: "rename",
    arity: 3,
    flags: ["write"],
    keys: [1, 2, 1],
    group: "generic",
    since: "1.0.0",
    summary: "Rename a key",
    complexity: "O(1)",
    runs: "store",
    run: rename,
  },
  {
    name: "renamenx",
    arity: 3,
    flags: ["write", "fast"],
    keys: [1, 2, 1],
    group: "generic",
    since: "1.0.0",
    summary: "Rename a key, only if the new key does not exist",
    complexity: "O(1)",
    runs: "store",
    run: renamenx,
  },
  {
    name: "copy",
    arity: -3,
    flags: ["write", "denyoom"],
    keys: [1, 2, 1],
    group: "generic",
    since: "6.2.0",
    summary: "Copy a key",
    complexity:
      "O(N) worst case for collections, where N is the number of nested items. O(1) for string " +
      "values.",
    runs: "store",
    run: copy,
  },
];
