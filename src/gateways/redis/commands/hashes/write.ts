/** Commands that change hashes. All arguments are checked before the first change. */

import type { Call } from "../../call.ts";
import { checkMember, checkValue, writeHash } from "../../collections/collection.ts";
import type { Command } from "../../command.ts";
import { isInfinite, parseLongDouble, sumOf } from "../../long-double.ts";
import { addInt64, OVERFLOW, parseInt64 } from "../../numbers.ts";
import { NOT_A_FLOAT, NOT_AN_INTEGER, ReplyError } from "../../reply-error.ts";

const NOT_AN_INTEGER_HERE = "ERR hash value is not an integer";
const NOT_A_FLOAT_HERE = "ERR hash value is not a float";
const NOT_FINITE = "ERR value is NaN or Infinity";
const SUM_NOT_FINITE = "ERR increment would produce NaN or Infinity";

function hset(call: Call): void {
  call.reply.integer(setAll(call, "hset"));
}

function hmset(call: Call): void {
  setAll(call, "hmset");
  call.reply.ok();
}

/** How many fields are new. */
function setAll(call: Call, name: string): number {
  const { count } = call;
  if (count % 2 !== 0) throw call.wrongArity(name);
  const hash = writeHash(call, 1);
  for (let i = 2; i < count; i += 2) {
    checkMember(call, i);
    checkValue(call, i + 1);
  }
  let created = 0;
  for (let i = 2; i < count; i += 2) if (hash.set(call.arg(i), call.arg(i + 1))) created++;
  hash.save();
  return created;
}

function hsetnx(call: Call): void {
  const hash = writeHash(call, 1);
  const field = call.arg(2);
  const value = call.arg(3);
  checkMember(call, 2);
  checkValue(call, 3);
  if (hash.form.find(field)) {
    call.reply.integer(0);
    return;
  }
  hash.set(field, value);
  hash.save();
  call.reply.integer(1);
}

function hincrby(call: Call): void {
  const increment = parseInt64(call.arg(3));
  if (increment === undefined) throw new ReplyError(NOT_AN_INTEGER);
  const hash = writeHash(call, 1);
  const field = call.arg(2);
  checkMember(call, 2);
  const before = hash.form.find(field) ? parseInt64(hash.form.value) : 0;
  if (before === undefined) throw new ReplyError(NOT_AN_INTEGER_HERE);
  const after = addInt64(before, increment);
  if (after === undefined) throw new ReplyError(OVERFLOW);
  hash.set(field, Buffer.from(after.toString(), "latin1"));
  hash.save();
  call.reply.integer(after);
}

const ZERO = Buffer.from("0");

function hincrbyfloat(call: Call): void {
  const increment = parseLongDouble(call.arg(3));
  if (increment === undefined) throw new ReplyError(NOT_A_FLOAT);
  if (isInfinite(increment)) throw new ReplyError(NOT_FINITE);
  const hash = writeHash(call, 1);
  const field = call.arg(2);
  checkMember(call, 2);
  const before = parseLongDouble(hash.form.find(field) ? hash.form.value : ZERO);
  if (before === undefined) throw new ReplyError(NOT_A_FLOAT_HERE);
  const after = sumOf(before, increment);
  if (after === undefined) throw new ReplyError(SUM_NOT_FINITE);
  hash.set(field, Buffer.from(after, "latin1"));
  hash.save();
  call.reply.text(after);
}

function hdel(call: Call): void {
  const hash = writeHash(call, 1);
  let removed = 0;
  for (let i = 2; i < call.count; i++) if (hash.remove(call.arg(i))) removed++;
  hash.save();
  call.reply.integer(removed);
}

const HASH_WRITE = {
  flags: ["write", "denyoom", "fast"],
  keys: [1, 1, 1],
  group: "hash",
  runs: "store",
} as const;

export const HASH_WRITES: readonly Command[] = [
  {
    ...HASH_WRITE,
    name: "hset",
    arity: -4,
    since: "2.0.0",
    summary: "Set the string value of a hash field",
    complexity:
      "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command " +
      "is called with multiple field/value pairs.",
    run: hset,
  },
  {
    ...HASH_WRITE,
    name: "hmset",
    arity: -4,
    since: "2.0.0",
    summary: "Set multiple hash fields to multiple values",
    complexity: "O(N) where N is the number of fields being set.",
    run: hmset,
  },
  {
    ...HASH_WRITE,
    name: "hsetnx",
    arity: 4,
    since: "2.0.0",
    summary: "Set the value of a hash field, only if the field does not exist",
    complexity: "O(1)",
    run: hsetnx,
  },
  {
    ...HASH_WRITE,
    name: "hincrby",
    arity: 4,
    since: "2.0.0",
    summary: "Increment the integer value of a hash field by the given number",
    complexity: "O(1)",
    run: hincrby,
  },
  {
    ...HASH_WRITE,
    name: "hincrbyfloat",
    arity: 4,
    since: "2.6.0",
    summary: "Increment the float value of a hash field by the given amount",
    complexity: "O(1)",
    run: hincrbyfloat,
  },
  {
    ...HASH_WRITE,
    name: "hdel",
    arity: -3,
    flags: ["write", "fast"],
    since: "2.0.0",
    summary: "Delete one or more hash fields",
    complexity: "O(N) where N is the number of fields to be removed.",
    run: hdel,
  },
];
