/** Commands on the members of one set, or of two for SMOVE. */

import type { Call } from "../../call.ts";
import { checkMember, readSet, writeSet } from "../../collections/collection.ts";
import { parseCursor, scan } from "../../collections/scan.ts";
import type { Command } from "../../command.ts";

function sadd(call: Call): void {
  const { count } = call;
  const set = writeSet(call, 1);
  for (let i = 2; i < count; i++) checkMember(call, i);
  let added = 0;
  for (let i = 2; i < count; i++) if (set.add(call.arg(i))) added++;
  set.save();
  call.reply.integer(added);
}

function srem(call: Call): void {
  const set = writeSet(call, 1);
  let removed = 0;
  for (let i = 2; i < call.count; i++) if (set.remove(call.arg(i))) removed++;
  set.save();
  call.reply.integer(removed);
}

function smove(call: Call): void {
  const { keys, reply } = call;
  const member = call.arg(3);
  if (keys.typeOf(call.arg(1)) === 0) {
    reply.integer(0);
    return;
  }
  const from = writeSet(call, 1);
  const to = writeSet(call, 2);
  if (call.arg(1).equals(call.arg(2))) {
    reply.integer(from.form.find(member) ? 1 : 0);
    return;
  }
  if (!from.remove(member)) {
    reply.integer(0);
    return;
  }
  from.save();
  to.add(member);
  to.save();
  reply.integer(1);
}

function sismember(call: Call): void {
  call.reply.integer(readSet(call, 1)?.find(call.arg(2)) ? 1 : 0);
}

function smismember(call: Call): void {
  const set = readSet(call, 1);
  call.reply.array(call.count - 2);
  for (let i = 2; i < call.count; i++) call.reply.integer(set?.find(call.arg(i)) ? 1 : 0);
}

function scard(call: Call): void {
  call.reply.integer(readSet(call, 1)?.size ?? 0);
}

function smembers(call: Call): void {
  const { reply } = call;
  const set = readSet(call, 1);
  const size = set?.size ?? 0;
  reply.set(size);
  for (let i = 0; i < size; i++) {
    set!.go(i);
    set!.replyMember(reply);
  }
}

function sscan(call: Call): void {
  const cursor = parseCursor(call.text(2));
  scan(call, readSet(call, 1), cursor, false);
}

const OF_ONE_SET = {
  keys: [1, 1, 1],
  group: "set",
  runs: "store",
} as const;

export const MEMBER_COMMANDS: readonly Command[] = [
  {
    ...OF_ONE_SET,
    name: "sadd",
    arity: -3,
    flags: ["write", "denyoom", "fast"],
    since: "1.0.0",
    summary: "Add one or more members to a set",
    complexity:
      "O(1) for each element added, so O(N) to add N elements when the command is called with " +
      "multiple arguments.",
    run: sadd,
  },
  {
    ...OF_ONE_SET,
    name: "srem",
    arity: -3,
    flags: ["write", "fast"],
    since: "1.0.0",
    summary: "Remove one or more members from a set",
    complexity: "O(N) where N is the number of members to be removed.",
    run: srem,
  },
  {
    ...OF_ONE_SET,
    name: "smove",
    arity: 4,
    flags: ["write", "fast"],
    keys: [1, 2, 1],
    since: "1.0.0",
    summary: "Move a member from one set to another",
    complexity: "O(1)",
    run: smove,
  },
  {
    ...OF_ONE_SET,
    name: "sismember",
    arity: 3,
    flags: ["readonly", "fast"],
    since: "1.0.0",
    summary: "Determine if a given value is a member of a set",
    complexity: "O(1)",
    run: sismember,
  },
  {
    ...OF_ONE_SET,
    name: "smismember",
    arity: -3,
    flags: ["readonly", "fast"],
    since: "6.2.0",
    summary: "Returns the membership associated with the given elements for a set",
    complexity: "O(N) where N is the number of elements being checked for membership",
    run: smismember,
  },
  {
    ...OF_ONE_SET,
    name: "scard",
    arity: 2,
    flags: ["readonly", "fast"],
    since: "1.0.0",
    summary: "Get the number of members in a set",
    complexity: "O(1)",
    run: scard,
  },
  {
    ...OF_ONE_SET,
    name: "smembers",
    arity: 2,
    flags: ["readonly"],
    since: "1.0.0",
    summary: "Get all the members in a set",
    complexity: "O(N) where N is the set cardinality.",
    run: smembers,
  },
  {
    ...OF_ONE_SET,
    name: "sscan",
    arity: -3,
    flags: ["readonly"],
    since: "2.8.0",
    summary: "Incrementally iterate Set elements",
    complexity:
      "O(1) for every call. O(N) for a complete iteration, including enough command calls for " +
      "the cursor to return back to 0. N is the number of elements inside the collection..",
    run: sscan,
  },
];
