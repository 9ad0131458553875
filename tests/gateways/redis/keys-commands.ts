/** Random commands about keys of all types, and random patterns over names that look like them. */

import { type Dice, type Step, step } from "./against-redis.ts";
import type { Argument } from "./raw-client.ts";
import { KEYS } from "./strings-commands.ts";

const SECONDS = ["100", "1000", "100000", "0", "-1", "abc", "1.5", "9223372036854775807"];
const MOMENTS = ["4102444800", "4102444801", "5102444800", "1", "-1", "x", "9223372036854776"];
const CONDITIONS = ["NX", "XX", "GT", "LT"];

function conditions(dice: Dice): Argument[] {
  const options: Argument[] = [];
  if (dice.rarely(2)) options.push(dice.word(dice.one(CONDITIONS)));
  if (dice.rarely(5)) options.push(dice.word(dice.one(CONDITIONS)));
  if (dice.rarely(30)) options.push("foo");
  return options;
}

function copyOptions(dice: Dice): Argument[] {
  const options: Argument[] = [];
  if (dice.rarely(2)) options.push(dice.word("REPLACE"));
  if (dice.rarely(8)) options.push(dice.word("DB"), dice.one(["0", "1", "x", "99999999999"]));
  if (dice.rarely(20)) options.push(dice.one(["DB", "foo"]));
  return options;
}

function members(dice: Dice): string[] {
  return dice.some(["1", "2", "3", "x", "y", "z"], 4);
}

/** Gives a key a value of some type. */
function fill(dice: Dice, key: string): Step {
  const pairs = members(dice).flatMap((member) => [member, dice.one(["", "v", "17"])]);
  const choices: readonly Step[] = [
    step("set", key, dice.one(["1", "value", "x".repeat(50), ""])),
    step("hset", key, ...pairs),
    step("sadd", key, ...members(dice)),
    step("sadd", key, "1", "2", "3"),
  ];
  return dice.one(choices);
}

export function keyStep(dice: Dice): Step {
  const key = dice.one(KEYS);
  const other = dice.one(KEYS);
  const choices: readonly (() => Step)[] = [
    () => fill(dice, key),
    () => fill(dice, key),
    () => fill(dice, key),
    () => step("del", ...dice.some(KEYS, 3)),
    () => step("unlink", key),
    () => step("exists", ...dice.some(KEYS, 4)),
    () => step("touch", ...dice.some(KEYS, 4)),
    () => step("type", key),
    () => step("rename", key, other),
    () => step("renamenx", key, other),
    () => step("copy", key, other, ...copyOptions(dice)),
    () => step("expire", key, dice.one(SECONDS), ...conditions(dice)),
    () => step("pexpire", key, dice.one(["100000", "0", "-5", "x"]), ...conditions(dice)),
    () => step("expireat", key, dice.one(MOMENTS), ...conditions(dice)),
    () => step("pexpireat", key, dice.one(["4102444800000", "1", "x"]), ...conditions(dice)),
    () => step("expiretime", dice.one(["nosuch"])),
    () => step("persist", key),
    () => step("object", "encoding", key),
    () => step("object", dice.one(["refcount", "freq", "encoding"]), dice.one(["nosuch", key])),
    () => step("object", dice.one(["foo", "help", "encoding"])),
    () => step("dbsize"),
    () => step(dice.one(["flushall", "flushdb"]), ...(dice.rarely(3) ? ["foo"] : [])),
    () => step(dice.one(["rename", "copy", "expire", "ttl", "del", "type", "scan", "keys"])),
    () => ({ args: [dice.one(["ttl", "pttl"]), key], comparison: "near" }),
    () => ({ args: [dice.one(["expiretime", "pexpiretime"]), key], comparison: "near" }),
    () => ({
      args: ["keys", dice.one(["*", "?", "[a-c]", "*o*", "nosuch"])],
      comparison: "unordered",
    }),
    () => ({ args: ["randomkey"], comparison: "kind" }),
    () => ({ args: ["hgetall", key], comparison: "unordered" }),
    () => ({ args: ["smembers", key], comparison: "unordered" }),
    () => step("get", key),
  ];
  const chosen = dice.one(choices)();
  // All keys at once only now and then: else there would never be many.
  const isFlush = String(chosen.args[0]).startsWith("flush");
  return isFlush && !dice.rarely(4) ? fill(dice, key) : chosen;
}

const NAME_LETTERS = ["a", "b", "c", "-", "]", "[", "\\", "^", "\xe9"];
const PATTERN_LETTERS = [...NAME_LETTERS, "*", "*", "?", "[a-c]", "[^a]", "[b-", "[", "\\"];

function word(dice: Dice, letters: readonly string[], most: number): string {
  return Array.from({ length: dice.below(most + 1) }, () => dice.one(letters)).join("");
}

export function patternStep(dice: Dice): Step {
  if (dice.rarely(3)) return step("set", word(dice, NAME_LETTERS, 3), "1");
  return { args: ["keys", word(dice, PATTERN_LETTERS, 6)], comparison: "unordered" };
}
