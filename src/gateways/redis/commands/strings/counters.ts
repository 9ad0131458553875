/** Strings that are numbers: INCR and its relatives. */

import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { Slice } from "../../entry-codec.ts";
import { parseLongDouble, sumOf } from "../../long-double.ts";
import { addInt64, type Int64, OVERFLOW, parseInt64 } from "../../numbers.ts";
import { NOT_A_FLOAT, NOT_AN_INTEGER, ReplyError } from "../../reply-error.ts";
import { STRING } from "../../tables.ts";

const MIN_INT64 = -(2n ** 63n);
const ZERO = Buffer.from("0");

const slice = new Slice();
/** The number as text, on its way into the row. */
const digits = Buffer.alloc(24);

function incr(call: Call): void {
  increase(call, 1);
}

function decr(call: Call): void {
  increase(call, -1);
}

function incrby(call: Call): void {
  increase(call, amount(call));
}

function decrby(call: Call): void {
  const by = amount(call);
  // It has no positive counterpart in 64 bits.
  if (by === MIN_INT64) throw new ReplyError("ERR decrement would overflow");
  increase(call, typeof by === "number" ? 0 - by : -by);
}

function amount(call: Call): Int64 {
  const value = parseInt64(call.arg(2));
  if (value === undefined) throw new ReplyError(NOT_AN_INTEGER);
  return value;
}

function increase(call: Call, by: Int64): void {
  const { keys, reply, request } = call;
  const found = keys.findOf(call.arg(1), STRING);
  const value = found === undefined ? 0 : parseInt64(found.value);
  if (value === undefined) throw new ReplyError(NOT_AN_INTEGER);
  const sum = addInt64(value, by);
  if (sum === undefined) throw new ReplyError(OVERFLOW);
  slice.set(request.bytes, request.starts[1], request.ends[1]);
  keys.value.set(digits, 0, digits.write(String(sum), "latin1"));
  keys.putSlice(slice, STRING, found === undefined ? 0 : found.expires);
  reply.integer(sum);
}

function incrbyfloat(call: Call): void {
  const { keys } = call;
  const key = call.arg(1);
  const found = keys.findOf(key, STRING);
  const value = parseLongDouble(found?.value ?? ZERO);
  const by = value && parseLongDouble(call.arg(2));
  if (value === undefined || by === undefined) throw new ReplyError(NOT_A_FLOAT);
  const sum = sumOf(value, by);
  if (sum === undefined) throw new ReplyError("ERR increment would produce NaN or Infinity");
  keys.put(key, STRING, Buffer.from(sum, "latin1"), found?.expires ?? 0);
  call.reply.text(sum);
}

export const COUNTER_COMMANDS: readonly Command[] = [
  {
    name: "incr",
    arity: 2,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Increment the integer value of a key by one",
    complexity: "O(1)",
    runs: "store",
    run: incr,
  },
  {
    name: "decr",
    arity: 2,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Decrement the integer value of a key by one",
    complexity: "O(1)",
    runs: "store",
    run: decr,
  },
  {
    name: "incrby",
    arity: 3,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Increment the integer value of a key by the given amount",
    complexity: "O(1)",
    runs: "store",
    run: incrby,
  },
  {
    name: "decrby",
    arity: 3,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Decrement the integer value of a key by the given number",
    complexity: "O(1)",
    runs: "store",
    run: decrby,
  },
  {
    name: "incrbyfloat",
    arity: 3,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "2.6.0",
    summary: "Increment the float value of a key by the given amount",
    complexity: "O(1)",
    runs: "store",
    run: incrbyfloat,
  },
];
