/** Intersections, unions and differences of sets, as a reply, as a number, or stored in a key. */

import type { Call } from "../../call.ts";
import { Collection, readSet } from "../../collections/collection.ts";
import type { Form } from "../../collections/form.ts";
import { Integers } from "../../collections/integers.ts";
import type { Command } from "../../command.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";
import { SET } from "../../tables.ts";

const TOO_FEW_KEYS = "ERR numkeys should be greater than 0";
const TOO_MANY_KEYS = "ERR Number of keys can't be greater than number of args";
const NEGATIVE_LIMIT = "ERR LIMIT can't be negative";

type Members = readonly Uint8Array[];
/** The sets of some arguments, from the first one up to, not including, the last. */
type Operation = (call: Call, first: number, end: number) => Members;

function readSets(call: Call, first: number, end: number): (Form | undefined)[] {
  const sets: (Form | undefined)[] = [];
  for (let i = first; i < end; i++) sets.push(readSet(call, i));
  return sets;
}

const intersection: Operation = (call, first, end) =>
  common(readSets(call, first, end), Number.POSITIVE_INFINITY);

/** Members that all sets have, `most` of them at most. */
function common(sets: readonly (Form | undefined)[], most: number): Members {
  const found: Uint8Array[] = [];
  const present = sets.filter((set) => set !== undefined);
  if (present.length < sets.length) return found;
  present.sort((a, b) => a.size - b.size);
  const [smallest, ...others] = present;
  for (let i = 0; i < smallest.size && found.length < most; i++) {
    smallest.go(i);
    const { member } = smallest;
    if (isInAll(others, member)) found.push(member);
  }
  return found;
}

function isInAll(sets: readonly Form[], member: Uint8Array): boolean {
  for (let i = 0; i < sets.length; i++) if (!sets[i].find(member)) return false;
  return true;
}

const union: Operation = (call, first, end) => {
  const all = new Map<string, Uint8Array>();
  let areIntegers = true;
  for (const set of readSets(call, first, end)) {
    if (set === undefined) continue;
    areIntegers &&= set instanceof Integers;
    for (let i = 0; i < set.size; i++) {
      set.go(i);
      const { member } = set;
      all.set(nameOf(member), member);
    }
  }
  // Sets of integers alone are in order; of those of two, each by itself was.
  return areIntegers
    ? [...all].sort(compareIntegers).map(([, member]) => member)
    : [...all.values()];
};

function compareIntegers([a]: [string, unknown], [b]: [string, unknown]): number {
  const difference = Number(a) - Number(b);
  if (difference !== 0) return difference;
  return BigInt(a) < BigInt(b) ? -1 : 1;
}

const difference: Operation = (call, first, end) => {
  const [from, ...others] = readSets(call, first, end);
  const found: Uint8Array[] = [];
  if (from === undefined) return found;
  const present = others.filter((set) => set !== undefined);
  // Those that have most are most likely to have one.
  present.sort((a, b) => b.size - a.size);
  for (let i = 0; i < from.size; i++) {
    from.go(i);
    const { member } = from;
    if (!isInAny(present, member)) found.push(member);
  }
  return found;
};

function isInAny(sets: readonly Form[], member: Uint8Array): boolean {
  for (let i = 0; i < sets.length; i++) if (sets[i].find(member)) return true;
  return false;
}

/** The same bytes are the same text, whatever they mean. */
function nameOf(member: Uint8Array): string {
  const { buffer, byteOffset, length } = member;
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

const replyWith =
  (operation: Operation) =>
  (call: Call): void => {
    const members = operation(call, 1, call.count);
    call.reply.set(members.length);
    for (let i = 0; i < members.length; i++) call.reply.bulk(members[i]);
  };

const storeWith =
  (operation: Operation) =>
  (call: Call): void => {
    const members = operation(call, 2, call.count);
    const key = call.arg(1);
    if (members.length === 0) {
      call.keys.remove(key);
    } else {
      const set = new Collection(call, key, SET, undefined);
      for (let i = 0; i < members.length; i++) set.add(members[i]);
      set.save();
    }
    call.reply.integer(members.length);
  };

function sintercard(call: Call): void {
  const keys = call.bigInteger(1, TOO_FEW_KEYS);
  if (keys < 1n) throw new ReplyError(TOO_FEW_KEYS);
  if (keys > BigInt(call.count - 2)) throw new ReplyError(TOO_MANY_KEYS);
  const end = 2 + Number(keys);
  let limit = 0n;
  for (let i = end; i < call.count; i += 2) {
    if (!call.is(i, "LIMIT") || i + 1 === call.count) throw new ReplyError(SYNTAX);
    limit = call.bigInteger(i + 1, NEGATIVE_LIMIT);
    if (limit < 0n) throw new ReplyError(NEGATIVE_LIMIT);
  }
  const most = limit === 0n ? Number.POSITIVE_INFINITY : Number(limit);
  call.reply.integer(common(readSets(call, 2, end), most).length);
}

const BY_SMALLEST =
  "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.";
const BY_ALL = "O(N) where N is the total number of elements in all given sets.";

const ANSWERED = {
  arity: -2,
  flags: ["readonly"],
  keys: [1, -1, 1],
  group: "set",
  since: "1.0.0",
  runs: "store",
} as const;
const STORED = { ...ANSWERED, arity: -3, flags: ["write", "denyoom"] } as const;

export const SEVERAL_SET_COMMANDS: readonly Command[] = [
  {
    ...ANSWERED,
    name: "sinter",
    summary: "Intersect multiple sets",
    complexity: BY_SMALLEST,
    run: replyWith(intersection),
  },
  {
    name: "sintercard",
    arity: -3,
    flags: ["readonly", "movablekeys"],
    group: "set",
    since: "7.0.0",
    summary: "Intersect multiple sets and return the cardinality of the result",
    complexity: BY_SMALLEST,
    runs: "store",
    run: sintercard,
  },
  {
    ...STORED,
    name: "sinterstore",
    summary: "Intersect multiple sets and store the resulting set in a key",
    complexity: BY_SMALLEST,
    run: storeWith(intersection),
  },
  {
    ...ANSWERED,
    name: "sunion",
    summary: "Add multiple sets",
    complexity: BY_ALL,
    run: replyWith(union),
  },
  {
    ...STORED,
    name: "sunionstore",
    summary: "Add multiple sets and store the resulting set in a key",
    complexity: BY_ALL,
    run: storeWith(union),
  },
  {
    ...ANSWERED,
    name: "sdiff",
    summary: "Subtract multiple sets",
    complexity: BY_ALL,
    run: replyWith(difference),
  },
  {
    ...STORED,
    name: "sdiffstore",
    summary: "Subtract multiple sets and store the resulting set in a key",
    complexity: BY_ALL,
    run: storeWith(difference),
  },
];
