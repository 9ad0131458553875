/** Random commands about the connection and the server, as far as both answer the same. */

import { type Dice, type Step, step } from "./against-redis.ts";

const NAMES = ["", "worker-1", "a b", "x\n", "\xe9", "name"];
const WORDS = ["foo", "get", "", "3", "help"];

export function connectionStep(dice: Dice): Step {
  const word = dice.one(WORDS);
  const choices: readonly (() => Step)[] = [
    () => step("ping"),
    () => step("PING", dice.one(["", "hello", "\r\n"])),
    () => step("ping", "a", "b"),
    () => step("echo", word),
    () => step("echo"),
    () => step("select", dice.one(["0", "x", "-1", "99", "99999999999", ""])),
    () => step("client", "setname", dice.one(NAMES)),
    () => step("client", "getname"),
    () => step("client", "list", "type", dice.one(["master", "replica", "pubsub", "x"])),
    () => step("client", "list", "id", dice.one(["0", "x", "999999"])),
    () => step("client", "list", word),
    () => step("client", dice.one(["foo", "setname", "getname"]), ...dice.some(WORDS, 2)),
    () => step("client"),
    () => step("auth", dice.one(["default", "foo"]), "password"),
    () => step("auth", "password"),
    () => step("auth", ...dice.some(WORDS, 4), "a", "b", "c"),
    () => step("hello", dice.one(["1", "4", "x", "-3"])),
    () => step("hello", "3", dice.one(["foo", "setname", "auth"])),
    () => step("reset", "x"),
    () => step("nosuch", ...dice.some(WORDS, 5)),
    () => step("nosuch".repeat(40), "x".repeat(200)),
    () => step("config", "get", dice.one(["nosuch", "hash-max-zip*-value", "TIMEOUT", "save"])),
    () => step("config", "set", "timeout", dice.one(["-1", "x", "99999999999", "0"])),
    () => step("config", "set", "hash-max-listpack-value", dice.one(["64", "x", "1tb", "64b"])),
    () => step("config", "set", "timeout", "0", "nosuch", "1"),
    () => step("config", "set", "timeout", "0", "timeout", "1"),
    () => step("config", "set", "databases", "1"),
    () => step("config", "set", "save", ""),
    () => step("config", "set", "timeout", "0", "x"),
    () => step("config", dice.one(["foo", "set", "get", "resetstat"])),
    () => step("command", "foo"),
    () =>
      step(
        "command",
        "getkeys",
        ...dice.one([
          ["mset", "a", "1", "b", "2"],
          ["ping", "x"],
        ]),
      ),
    () => step("command", "getkeys", "sintercard", dice.one(["2", "9", "x"]), "a", "b"),
    () => step("command", "getkeys", "nosuch", "x"),
    () => step("command", "getkeys", "set", "x"),
    () => step("command", "info", "nosuch", "echo", "Get", "client|id", "x|y"),
    () => step("command", "docs", "nosuch"),
    () => step("command", "list", "filterby", dice.one(["foo", "module"]), "x"),
    () => step("info", "nosuch"),
    () => step("time", "x"),
    () => ({ args: ["time"], comparison: "kind" }),
    () => ({ args: ["client", "id"], comparison: "kind" }),
    () => ({ args: ["client", "info"], comparison: "kind" }),
    () => ({ args: ["info"], comparison: "kind" }),
    () => step("dbsize"),
  ];
  return dice.one(choices)();
}
