/** Random commands of the group "set": sets of integers, whose order is known, and others. */

import { type Dice, type Step, step } from "./against-redis.ts";
import type { Argument } from "./raw-client.ts";

const KEYS = ["a", "b", "c", "d", "text"];
const INTEGERS = [
  ...Array.from({ length: 30 }, (_, i) => String(i - 10)),
  ...["32767", "32768", "-32769", "2147483648", "-2147483649"],
  ...["9223372036854775807", "-9223372036854775808", "9007199254740993"],
];
const WORDS = ["", "x", "member", "\0\r\n\xff", "007", "+1", "9223372036854775808", "-0"];
const LONG = ["z".repeat(64), "z".repeat(65), "z".repeat(300)];
const COUNTS = ["0", "-0", "abc", "-9223372036854775808", "9223372036854775807", "1.5", "", "5000"];
const CURSORS = ["0", "0", "0", "abc", "-", "", "18446744073709551616", " 0"];
const NUMBERS = ["1", "2", "3", "0", "-1", "abc", "9", "9223372036854775807"];

/** With `large`, not only integers, and more of them than are packed. */
export function setSteps(large: boolean): (dice: Dice) => Step {
  const more = Array.from({ length: 300 }, (_, i) => `more${i}`);
  const many = Array.from({ length: 900 }, (_, i) => String(i * 3));
  const members = large ? [...INTEGERS, ...WORDS, ...LONG, ...more, ...many] : INTEGERS;
  const all = (...args: Argument[]): Step => ({ args, comparison: large ? "unordered" : "exact" });
  const few = (dice: Dice): Argument[] => dice.some(members, dice.rarely(10) ? 80 : 4);
  return (dice) => {
    const key = dice.one(KEYS);
    switch (dice.below(25)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return step(dice.word("SADD"), key, ...few(dice));
      case 4:
        return step("srem", key, ...few(dice));
      case 5:
        return step("smove", key, dice.one(KEYS), dice.one(members));
      case 6:
        return step("sismember", key, dice.one(members));
      case 7:
        return step("smismember", key, ...few(dice));
      case 8:
        return step("scard", key);
      case 9:
      case 10:
        return all("smembers", key);
      case 11:
        return all("sinter", ...dice.some(KEYS, 3));
      case 12:
        return all("sunion", ...dice.some(KEYS, 3));
      case 13:
        return all("sdiff", ...dice.some(KEYS, 3));
      case 14:
        return step("sinterstore", key, ...dice.some(KEYS, 3));
      case 15:
        return step("sunionstore", key, ...dice.some(KEYS, 2));
      case 16:
        return step("sdiffstore", key, ...dice.some(KEYS, 3));
      case 17:
        return step("sintercard", ...cardinality(dice));
      case 18:
        return all("spop", key, dice.one(COUNTS));
      case 19:
        return all("srandmember", key, dice.one(COUNTS));
      case 20:
        if (dice.rarely(3)) return { args: ["srandmember", key], comparison: "kind" };
        return { args: ["srandmember", key, dice.one(["1", "-1", "2", "-7"])], comparison: "kind" };
      case 21: {
        const args = ["sscan", key, dice.one(CURSORS), ...options(dice)];
        return { args, comparison: large ? "kind" : "exact" };
      }
      case 22:
        return step("object", "encoding", key);
      case 23:
        if (dice.rarely(3)) return step("set", "text", "a string");
        return step("type", key);
      default:
        if (dice.rarely(2)) return step("del", key);
        return step(dice.one(["sadd", "spop", "sscan", "smove", "srandmember"]), ...NO_ARGUMENTS);
    }
  };
}

const NO_ARGUMENTS: Argument[] = [];

function cardinality(dice: Dice): Argument[] {
  const keys = dice.some(KEYS, 3);
  const count = dice.rarely(4) ? dice.one(NUMBERS) : keys.length;
  const args: Argument[] = [count, ...keys];
  if (dice.rarely(2)) args.push(dice.word("LIMIT"), dice.one(NUMBERS));
  if (dice.rarely(20)) args.push(dice.one(["LIMIT", "foo"]));
  return args;
}

function options(dice: Dice): Argument[] {
  const found: Argument[] = [];
  if (dice.rarely(2)) found.push(dice.word("COUNT"), dice.one(["1000", "1000", "0", "x"]));
  if (dice.rarely(3)) found.push(dice.word("MATCH"), dice.one(["*", "1*", "-?", "[^1]*", "1\\1"]));
  if (dice.rarely(20)) found.push(dice.one(["MATCH", "foo"]));
  return found;
}
