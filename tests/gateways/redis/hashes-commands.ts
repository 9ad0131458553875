/** Random commands of the group "hash", on few keys and fields, so that all forms are met. */

import { type Dice, type Step, step } from "./against-redis.ts";
import type { Argument } from "./raw-client.ts";

const KEYS = ["a", "b", "c", "text"];
const FIELDS = [
  ...["", "f", "field", "\0\r\n\xff", "count", "amount", "x".repeat(63), "x".repeat(64)],
  ...Array.from({ length: 12 }, (_, i) => `f${i}`),
];
const INCREMENTS = [
  ...["0", "1", "-1", "100", "-17", "9223372036854775807", "-9223372036854775808"],
  ...["9223372036854775808", "1.5", "abc", "", " 1", "007"],
];
const FLOATS = ["0.1", "-0.2", "1e3", "5", "3.14159265358979", "1e-7", "inf", "nan", "abc", " 1"];
const VALUES = ["", "v", "value", "\0\r\n\xff", ...INCREMENTS, ...FLOATS, "y".repeat(64)];
/** Longer than a listpack takes: with these a hash becomes a hash table, and loses its order. */
const LONG = ["z".repeat(65), "z".repeat(254), "z".repeat(255), "z".repeat(1_000)];
const COUNTS = ["0", "5000", "-0", "abc", "-9223372036854775808", "9223372036854775807", "1.5", ""];
const CURSORS = ["0", "0", "0", "abc", "-", "", "18446744073709551616", " 0", "+0"];

function options(dice: Dice): Argument[] {
  const found: Argument[] = [];
  if (dice.rarely(2)) found.push(dice.word("COUNT"), dice.one(["1000", "1000", "0", "x"]));
  if (dice.rarely(3)) found.push(dice.word("MATCH"), dice.one(["*", "f*", "f?", "[^f]*", "f1\\1"]));
  if (dice.rarely(20)) found.push(dice.one(["MATCH", "foo"]));
  return found;
}

function pairs(dice: Dice, fields: readonly string[], values: readonly string[]): Argument[] {
  return dice
    .some(fields, dice.rarely(20) ? 60 : 3)
    .flatMap((field) => [field, dice.one(values)])
    .slice(dice.rarely(40) ? 1 : 0);
}

/** With `large`, also hashes that have no order: then order is not compared. */
export function hashSteps(large: boolean): (dice: Dice) => Step {
  const more = Array.from({ length: 200 }, (_, i) => `more${i}`);
  const fields = large ? [...FIELDS, ...more] : FIELDS;
  const values = large ? [...VALUES, ...LONG] : VALUES;
  const all = (...args: Argument[]): Step => ({ args, comparison: large ? "unordered" : "exact" });
  return (dice) => {
    const key = dice.one(KEYS);
    const field = dice.one(fields);
    switch (dice.below(large ? 24 : 22)) {
      case 0:
      case 1:
      case 2:
        return step(dice.word("HSET"), key, ...pairs(dice, fields, values));
      case 3:
        return step("hmset", key, ...pairs(dice, fields, values));
      case 4:
        return step("hsetnx", key, field, dice.one(values));
      case 5:
      case 6:
        return step("hget", key, field);
      case 7:
        return step("hmget", key, ...dice.some(fields, 5));
      case 8:
      case 9:
        return step("hincrby", key, field, dice.one(INCREMENTS));
      case 10:
        return step("hincrbyfloat", key, field, dice.one(FLOATS));
      case 11:
        return step("hdel", key, ...dice.some(fields, 6));
      case 12:
        return step("hlen", key);
      case 13:
        return step("hstrlen", key, field);
      case 14:
        return step("hexists", key, field);
      case 15:
        return all("hgetall", key);
      case 16:
        return all("hkeys", key);
      case 17:
        return all("hvals", key);
      case 18:
        return random(dice, key, all);
      case 19: {
        const args = ["hscan", key, dice.one(CURSORS), ...options(dice)];
        return { args, comparison: large ? "kind" : "exact" };
      }
      case 20:
        if (dice.rarely(3)) return step("set", "text", "a string");
        return step("type", key);
      case 21:
        if (dice.rarely(4)) return step("del", key);
        return step(dice.one(["hget", "hset", "hdel", "hscan", "hlen"]), key);
      default:
        return step("object", "encoding", key);
    }
  };
}

function random(dice: Dice, key: string, all: (...args: Argument[]) => Step): Step {
  if (dice.rarely(4)) return { args: ["hrandfield", key], comparison: "kind" };
  if (dice.rarely(4)) {
    const few: Argument[] = ["hrandfield", key, dice.one(["1", "-1", "2", "-3", "-200"])];
    if (dice.rarely(2)) few.push(dice.word("WITHVALUES"));
    return { args: few, comparison: "kind" };
  }
  const many: Argument[] = ["hrandfield", key, dice.one(COUNTS)];
  if (dice.rarely(2)) many.push(dice.word("WITHVALUES"));
  if (dice.rarely(20)) many.push("foo");
  return all(...many);
}
