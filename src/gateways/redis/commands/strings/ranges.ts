/** Parts of strings: APPEND, STRLEN, GETRANGE, SETRANGE. */

import { MAX_VALUE_BYTES } from "../../../../runtime/limits.ts";
import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { type Int64, parseInt64 } from "../../numbers.ts";
import { NOT_AN_INTEGER, ReplyError, TOO_LONG } from "../../reply-error.ts";
import { STRING } from "../../tables.ts";

const NOTHING = Buffer.alloc(0);

function append(call: Call): void {
  const { keys } = call;
  const key = call.arg(1);
  const more = call.arg(2);
  const found = keys.findOf(key, STRING);
  if (found === undefined) {
    keys.put(key, STRING, more);
    call.reply.integer(more.length);
    return;
  }
  const length = found.value.length + more.length;
  if (length > MAX_VALUE_BYTES) throw new ReplyError(TOO_LONG);
  keys.change(key, found, Buffer.concat([found.value, more], length));
  call.reply.integer(length);
}

function strlen(call: Call): void {
  call.reply.integer(call.keys.string(call.arg(1))?.length ?? 0);
}

function getrange(call: Call): void {
  const first = index(call, 2);
  const last = index(call, 3);
  const value = call.keys.string(call.arg(1)) ?? NOTHING;
  const { length } = value;
  const isNothing = first < 0 && last < 0 && first > last;
  const start = fromFront(first, length);
  const end = Math.min(fromFront(last, length) + 1, length);
  if (isNothing || start >= end) call.reply.bulk(NOTHING);
  else call.reply.bulk(value, start, end);
}

function setrange(call: Call): void {
  const { keys, reply } = call;
  const offset = index(call, 2);
  if (offset < 0) throw new ReplyError("ERR offset is out of range");
  const key = call.arg(1);
  const part = call.arg(3);
  const found = keys.findOf(key, STRING);
  const before = found?.value ?? NOTHING;
  if (part.length === 0) {
    reply.integer(before.length);
    return;
  }
  const at = Number(offset);
  if (at + part.length > MAX_VALUE_BYTES) throw new ReplyError(TOO_LONG);
  const after = Buffer.alloc(Math.max(before.length, at + part.length));
  before.copy(after);
  part.copy(after, at);
  keys.put(key, STRING, after, found?.expires ?? 0);
  reply.integer(after.length);
}

function index(call: Call, argument: number): Int64 {
  const value = parseInt64(call.arg(argument));
  if (value === undefined) throw new ReplyError(NOT_AN_INTEGER);
  return value;
}

/** Negative ones count from the end. Beyond 2^53 all are beyond both ends. */
function fromFront(index: Int64, length: number): number {
  const value = Number(index);
  return Math.max(0, value < 0 ? length + value : value);
}

export const RANGE_COMMANDS: readonly Command[] = [
  {
    name: "append",
    arity: 3,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "2.0.0",
    summary: "Append a value to a key",
    complexity:
      "O(1). The amortized time complexity is O(1) assuming the appended value is small and the " +
      "already present value is of any size, since the dynamic string library used by Redis will " +
      "double the free space available on every reallocation.",
    runs: "store",
    run: append,
  },
  {
    name: "strlen",
    arity: 2,
    flags: ["readonly", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "2.2.0",
    summary: "Get the length of the value stored in a key",
    complexity: "O(1)",
    runs: "store",
    run: strlen,
  },
  {
    name: "getrange",
    arity: 4,
    flags: ["readonly"],
    keys: [1, 1, 1],
    group: "string",
    since: "2.4.0",
    summary: "Get a substring of the string stored at a key",
    complexity:
      "O(N) where N is the length of the returned string. The complexity is ultimately " +
      "determined by the returned length, but because creating a substring from an existing " +
      "string is very cheap, it can be considered O(1) for small strings.",
    runs: "store",
    run: getrange,
  },
  {
    name: "substr",
    arity: 4,
    flags: ["readonly"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Get a substring of the string stored at a key",
    complexity:
      "O(N) where N is the length of the returned string. The complexity is ultimately " +
      "determined by the returned length, but because creating a substring from an existing " +
      "string is very cheap, it can be considered O(1) for small strings.",
    runs: "store",
    run: getrange,
  },
  {
    name: "setrange",
    arity: 4,
    flags: ["write", "denyoom"],
    keys: [1, 1, 1],
    group: "string",
    since: "2.2.0",
    summary: "Overwrite part of a string at key starting at the specified offset",
    complexity:
      "O(1), not counting the time taken to copy the new string in place. Usually, this string " +
      "is very small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M " +
      "being the length of the value argument.",
    runs: "store",
    run: setrange,
  },
];
