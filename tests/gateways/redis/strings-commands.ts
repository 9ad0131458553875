/** Random commands of the group "string", on few keys, so that they meet each other's values. */

import { type Dice, type Step, step } from "./against-redis.ts";
import type { Argument } from "./raw-client.ts";

/** Shared with the commands of other groups, so that types collide. */
export const KEYS = ["a", "b", "c", "d", "counter", "float", "", "k\r\n\0\xff"];

const NUMBERS = [
  ...["0", "1", "-1", "7", "10", "-5", "9223372036854775807", "-9223372036854775808"],
  ...["9223372036854775808", "9007199254740993", "-9007199254740992", "007", "+1", " 1", "1 ", ""],
  ...["1.5", "-0", "0x10", "4611686018427387904"],
];
const FLOATS = ["0.1", "0.2", "-1.5", "1e3", "3.0e-7", "1e20", "inf", "nan", "0x1.8p1", "abc", "5"];
const VALUES = [
  ...["", "x", "hello", "hello world", "abcdefghij".repeat(5), "\0\r\n\xff", "ohmytext"],
  ...["mynewtext", ...NUMBERS, ...FLOATS],
];
const TIMES = ["100", "1000", "0", "-1", "abc", "9223372036854775807", "9223372036854775", "50"];
/** Far from now on either side, so that no key expires between the two servers' turns. */
const MOMENTS = ["1", "4102444800", "0", "-3", "4102444800000", "9223372036854775807", "x"];

function times(dice: Dice): Argument[] {
  const option = dice.word(dice.one(["EX", "PX", "EXAT", "PXAT"]));
  const isRelative = option.length === 2;
  // Short ones would be over at different times.
  const time = isRelative ? dice.one(TIMES) : dice.one(MOMENTS);
  return [option, option.toUpperCase() === "PX" && time === "50" ? "100000" : time];
}

function setOptions(dice: Dice): Argument[] {
  const options: Argument[] = [];
  if (dice.rarely(3)) options.push(dice.word(dice.one(["NX", "XX"])));
  if (dice.rarely(3)) options.push(dice.word("GET"));
  if (dice.rarely(3)) options.push(...times(dice));
  if (dice.rarely(5)) options.push(dice.word("KEEPTTL"));
  if (dice.rarely(15)) options.push(dice.one(["NX", "EX", "foo", "PERSIST", "PX"]));
  return options;
}

function getexOptions(dice: Dice): Argument[] {
  if (dice.rarely(4)) return [dice.word("PERSIST")];
  if (dice.rarely(10)) return [dice.one(["NX", "EX", "KEEPTTL", "foo"])];
  return dice.rarely(3) ? times(dice) : [];
}

function lcsOptions(dice: Dice): Argument[] {
  const options: Argument[] = [];
  if (dice.rarely(2)) options.push(dice.word("IDX"));
  if (dice.rarely(5)) options.push(dice.word("LEN"));
  if (dice.rarely(2)) options.push(dice.word("WITHMATCHLEN"));
  if (dice.rarely(3)) options.push(dice.word("MINMATCHLEN"), dice.one(["0", "2", "4", "-1", "x"]));
  if (dice.rarely(20)) options.push("foo");
  return options;
}

const INDEXES = ["0", "1", "-1", "3", "-3", "100", "-100", "5", "abc", "9223372036854775807"];

export function stringStep(dice: Dice): Step {
  const key = dice.one(KEYS);
  const value = dice.one(VALUES);
  const number = dice.one(NUMBERS);
  const pairs = dice.some(KEYS, 3).flatMap((each) => [each, dice.one(VALUES)]);
  const choices: readonly (() => Step)[] = [
    () => step("set", key, value),
    () => step("SET", key, value, ...setOptions(dice)),
    () => step("set", key, value, ...setOptions(dice)),
    () => step("get", key),
    () => step("Get", key),
    () => step("setnx", key, value),
    () => step("setex", key, dice.one(TIMES), value),
    () => step("psetex", key, dice.one(["100000", "0", "-1", "x"]), value),
    () => step("getset", key, value),
    () => step("getdel", key),
    () => step("getex", key, ...getexOptions(dice)),
    () => step("mget", ...dice.some(KEYS, 5)),
    () => step("mset", ...pairs, ...(dice.rarely(10) ? [key] : [])),
    () => step("msetnx", ...pairs, ...(dice.rarely(10) ? [key] : [])),
    () => step("append", key, value),
    () => step("strlen", key),
    () => step("getrange", key, dice.one(INDEXES), dice.one(INDEXES)),
    () => step("substr", key, dice.one(INDEXES), dice.one(INDEXES)),
    () => step("setrange", key, dice.one([...INDEXES, "20"].slice(0, -2)), value),
    () => step("incr", key),
    () => step("decr", key),
    () => step("incrby", key, number),
    () => step("decrby", key, number),
    () => step("incrbyfloat", key, dice.one([...FLOATS, ...NUMBERS])),
    () => step("lcs", key, dice.one(KEYS), ...lcsOptions(dice)),
    // A wrong number of arguments.
    () => step(dice.one(["get", "set", "mget", "incr", "lcs", "append", "getex", "mset"])),
    () => ({ args: ["ttl", key], comparison: "near" }),
    () => step("type", key),
    () => step("del", key),
    () => step("sadd", key, "m"),
  ];
  return dice.one(choices)();
}

const SPECIAL = ["inf", "-inf", "nan", "1e5000", "1e-5000", "1e-4940", "-1e4900", "infinity"];

/** A float in one of the forms that C reads, or almost. */
function float(dice: Dice): string {
  const sign = dice.one(["", "-", "+"]);
  const choices: readonly (() => string)[] = [
    () => String(dice.below(100)),
    () => String(dice.below(100_000) / 1000),
    () => `${dice.below(1000)}e${dice.below(60) - 30}`,
    () => `0x${dice.below(65_536).toString(16)}.${dice.below(256).toString(16)}p${dice.below(9)}`,
    () => String(dice.below(2 ** 31) / 2 ** 31),
    () => String(BigInt(dice.below(2 ** 31)) * BigInt(dice.below(2 ** 31)) * 99n),
    () => dice.one([...SPECIAL, "1.", ".", " 1", "1 ", "", "0x", "1e", "e5", "--1", "0", "-0"]),
  ];
  return sign + dice.one(choices)();
}

export function floatStep(dice: Dice): Step {
  const key = dice.one(["a", "b"]);
  return dice.rarely(3) ? step("set", key, float(dice)) : step("incrbyfloat", key, float(dice));
}
