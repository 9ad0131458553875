/**
 * Commands at random, for a gateway: names from its own list, arguments that mean something more
 * often than not, and sometimes too few, too many, too long, or not even a command.
 */

import type { Command } from "../../../src/gateways/redis/command.ts";
import type { Random } from "../../../src/runtime/random.ts";

export function pick<T>(random: Random, values: readonly T[]): T {
  return values[random.below(values.length)];
}

const KEYS = ["a", "b", "c", "d", "e", "f", "g", "h", "{tag}1", "{tag}2", "\0\r\n\xff", ""];
const FIELDS = ["f1", "f2", "f3", "", "\xff\0", "10", "-7"];
const NUMBERS = [
  ..."0 1 2 3 5 10 100 -1 -2 -100 1000 2000000000 4294967296 9007199254740993".split(" "),
  ..."9223372036854775807 -9223372036854775808 9223372036854775808 1.5 -0.25 1e3 3.0e10".split(" "),
  ..."inf -inf nan 0x10 00 +1 1e400 1e-400 -0".split(" "),
  " 1",
  "1 ",
  "",
];
const VALUES = [
  "",
  "value",
  "hello world",
  "foobar",
  "\r\n",
  "\0",
  "\xff\xfe",
  "$5",
  "*1",
  "7",
  "3.25",
];
const OPTIONS = [
  ..."NX XX GT LT CH EX PX EXAT PXAT KEEPTTL GET PERSIST MATCH COUNT TYPE WITHVALUES LIMIT".split(
    " ",
  ),
  ..."REPLACE DB ASYNC SYNC LEN IDX MINMATCHLEN WITHMATCHLEN HELP LIST ID INFO string hash".split(
    " ",
  ),
];
const PATTERNS = ["*", "?", "[a-c]", "[^a]*", "a*", "\\*", "[", "*****", "{tag}*", ""];

const LONG_BYTES = [64, 500, 1_024, 1_025, 5_000, 40_000, 200_000];

export function anyKey(random: Random): string {
  if (random.below(60) === 0) return "k".repeat(pick(random, LONG_BYTES));
  return pick(random, KEYS);
}

export function anyValue(random: Random): string {
  const kind = random.below(10);
  if (kind < 4) return pick(random, VALUES);
  if (kind < 9) return pick(random, NUMBERS);
  return random.below(12) === 0
    ? "v".repeat(pick(random, LONG_BYTES))
    : "x".repeat(random.below(90));
}

function anyArgument(random: Random): string {
  const kind = random.below(20);
  if (kind < 5) return anyKey(random);
  if (kind < 9) return anyValue(random);
  if (kind < 12) return pick(random, FIELDS);
  if (kind < 16) return pick(random, NUMBERS);
  if (kind < 19) return pick(random, OPTIONS);
  return pick(random, PATTERNS);
}

/** One command of the list, with arguments that its table of keys makes plausible. */
export function commandOf(random: Random, command: Command): string[] {
  const least = Math.abs(command.arity);
  let count = least;
  if (command.arity < 0) count += random.below(4) === 0 ? random.below(12) : random.below(3);
  if (random.below(40) === 0) count = Math.max(1, least - 1);
  const args = [command.name];
  if (command.subcommands !== undefined && random.below(10) > 0) {
    args.push(pick(random, command.subcommands).name);
  }
  const [first = 0, last = 0] = command.keys ?? [];
  while (args.length < count) {
    const at = args.length;
    const isKey = first > 0 && at >= first && (last < 0 || at <= last);
    args.push(isKey && random.below(20) > 0 ? anyKey(random) : anyArgument(random));
  }
  if (random.below(8) === 0) args[0] = args[0].toUpperCase();
  return args;
}

/** What would end the conversation, or change the rules for others, is not for this. */
function isHarmless([name, sub = "", what = ""]: readonly string[]): boolean {
  const lower = name.toLowerCase();
  if (lower === "quit" || lower === "shutdown" || lower === "reset") return false;
  if (lower === "hello" || lower === "auth") return false;
  return !(lower === "config" && sub.toLowerCase() === "set" && what !== "");
}

export function anyCommand(random: Random, commands: readonly Command[]): string[] {
  for (;;) {
    const kind = random.below(30);
    if (kind === 0) return [pick(random, ["NOSUCH", "geT ", "", "\0", "*1", "sub\r\nscribe"]), "a"];
    const command = commandOf(random, pick(random, commands));
    if (isHarmless(command)) return command;
  }
}
