/**
 * Rounds of two clients around one WATCH: the first watches keys, one of them changes something, or
 * seems to, and the first executes its transaction. Keys are set up anew for each round.
 */

import type { Dice } from "./against-redis.ts";
import type { Argument } from "./raw-client.ts";

export interface Turn {
  /** 0 is the client that watches. */
  readonly client: 0 | 1;
  readonly args: readonly Argument[];
}

/** There at the beginning of a round. */
const STRINGS = ["p", "q", "r"];
const THERE = [...STRINGS, "s", "h"];
/**
 * Not there. Nothing removes these again: a key that was not there, came, and went is for Redis a
 * reason to refuse EXEC, and here it is as it was.
 */
const ABSENT = ["n", "m"];
const ALL = [...THERE, ...ABSENT];

const SETUP: readonly (readonly Argument[])[] = [
  ["flushall"],
  ["mset", "p", "1", "q", "2", "r", "three"],
  ["sadd", "s", "1", "2", "3"],
  ["hset", "h", "f", "v", "n", "5"],
];

/** Commands that change a key, and some that look as if they did. */
function change(dice: Dice): readonly Argument[] {
  const key = dice.one(STRINGS);
  const absent = dice.one(ABSENT);
  return dice.one<readonly Argument[]>([
    ...[
      ["set", key, "x"],
      ["set", key, "1"],
      ["set", absent, "new"],
      ["setnx", key, "y"],
    ],
    ...[
      ["setnx", absent, "y"],
      ["msetnx", absent, "1", key, "2"],
      ["incr", key],
      ["append", key, ""],
    ],
    ...[
      ["setrange", key, "0", ""],
      ["setrange", key, "1", "z"],
      ["getex", key],
      ["getset", key, "a"],
    ],
    ...[
      ["getex", key, "persist"],
      ["getex", key, "ex", "100"],
      ["persist", key],
      ["getdel", key],
    ],
    ...[
      ["expire", key, "1000"],
      ["expire", key, "-1"],
      ["expire", key, "100", "xx"],
      ["del", key],
    ],
    ...[
      ["del", "nosuch"],
      ["unlink", key, "s"],
      ["rename", key, key],
      ["rename", key, absent],
    ],
    ...[
      ["renamenx", key, "p"],
      ["copy", key, absent],
      ["copy", key, "s"],
      ["touch", key],
    ],
    ...[
      ["sadd", "s", "1"],
      ["sadd", "s", "9"],
      ["srem", "s", "nosuch"],
      ["srem", "s", "1"],
    ],
    ...[
      ["spop", "s", "0"],
      ["smove", "s", "s", "1"],
      ["sinterstore", "s", "nosuch"],
    ],
    ...[
      ["hset", "h", "f", "v"],
      ["hsetnx", "h", "f", "w"],
      ["hdel", "h", "nosuch"],
      ["hdel", "h", "f"],
    ],
    ...[
      ["hincrby", "h", "n", "1"],
      ["hget", "h", "f"],
      ["sadd", key, "wrong type"],
      ["incr", "s"],
    ],
    ...[
      ["get", key],
      ["mget", ...ALL],
      ["type", key],
      ["exists", ...ALL],
      ["smembers", "h"],
    ],
  ]);
}

/** What goes between MULTI and EXEC: some of it is refused at once, or when it runs. */
function queued(dice: Dice): readonly Argument[] {
  if (dice.rarely(12)) {
    return dice.one<readonly Argument[]>([
      ...[["nosuch"], ["get"], ["multi"], ["watch", "p"], ["client", "nosuch"], ["incr", "a", "b"]],
      ...[["unwatch"], ["ping"], ["select", "0"], ["hello", "9"]],
    ]);
  }
  return change(dice);
}

export function round(dice: Dice): Turn[] {
  const turns: Turn[] = SETUP.map((args) => ({ client: 1, args }));
  const by = (client: 0 | 1, args: readonly Argument[]): void => {
    turns.push({ client, args });
  };
  const changes = (most: number): void => {
    for (let left = dice.below(most + 1); left > 0; left--) {
      by(dice.rarely(4) ? 0 : 1, change(dice));
    }
  };
  if (!dice.rarely(8)) by(0, ["watch", ...dice.some(ALL, 3)]);
  if (dice.rarely(4)) by(0, ["watch", dice.one(ALL)]);
  changes(dice.rarely(2) ? 0 : 2);
  if (dice.rarely(8)) by(0, ["unwatch"]);
  if (!dice.rarely(15)) by(0, ["multi"]);
  for (let left = dice.below(5); left > 0; left--) {
    by(0, queued(dice));
    if (dice.rarely(6)) by(1, change(dice));
  }
  by(0, [dice.rarely(10) ? "discard" : "exec"]);
  // Whatever it was, it is over now.
  by(0, ["discard"]);
  by(0, ["unwatch"]);
  by(1, ["mget", ...STRINGS, ...ABSENT]);
  return turns;
}
