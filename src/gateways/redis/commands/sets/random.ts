/** Members at random: looked at, or taken out. */

import type { Call } from "../../call.ts";
import { anyPosition, anyPositions } from "../../collections/choose.ts";
import { readSet, writeSet } from "../../collections/collection.ts";
import { countIn, replyRandom } from "../../collections/random-reply.ts";
import type { Command } from "../../command.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";

const MUST_BE_POSITIVE = "ERR value is out of range, must be positive";

function srandmember(call: Call): void {
  if (call.count > 3) throw new ReplyError(SYNTAX);
  if (call.count === 3) {
    const count = countIn(call, 2);
    replyRandom(call, readSet(call, 1), count, false);
    return;
  }
  const set = readSet(call, 1);
  if (set === undefined) {
    call.reply.nil();
    return;
  }
  set.go(anyPosition(set.size));
  set.replyMember(call.reply);
}

function spop(call: Call): void {
  if (call.count > 3) throw new ReplyError(SYNTAX);
  if (call.count === 3) {
    popMany(call);
    return;
  }
  const { reply } = call;
  const set = writeSet(call, 1);
  if (set.size === 0) {
    reply.nil();
    return;
  }
  set.form.go(anyPosition(set.size));
  set.form.replyMember(reply);
  set.removeCurrent();
  set.save();
}

function popMany(call: Call): void {
  const { reply, keys } = call;
  const wanted = call.bigInteger(2, MUST_BE_POSITIVE);
  if (wanted < 0n) throw new ReplyError(MUST_BE_POSITIVE);
  const set = writeSet(call, 1);
  const { size } = set;
  if (wanted >= BigInt(size)) {
    reply.set(size);
    for (let i = 0; i < size; i++) {
      set.form.go(i);
      set.form.replyMember(reply);
    }
    // With all that it has: the members need not be taken out one by one.
    if (size > 0) keys.remove(call.arg(1));
    return;
  }
  const count = Number(wanted);
  reply.set(count);
  // From the highest position down: what takes the place of one that is removed was not chosen.
  for (const position of anyPositions(size, count)) {
    set.form.go(position);
    set.form.replyMember(reply);
    set.removeCurrent();
  }
  set.save();
}

export const RANDOM_MEMBER_COMMANDS: readonly Command[] = [
  {
    name: "srandmember",
    arity: -2,
    flags: ["readonly"],
    keys: [1, 1, 1],
    group: "set",
    since: "1.0.0",
    summary: "Get one or multiple random members from a set",
    complexity:
      "Without the count argument O(1), otherwise O(N) where N is the absolute value of the " +
      "passed count.",
    runs: "store",
    run: srandmember,
  },
  {
    name: "spop",
    arity: -2,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "set",
    since: "1.0.0",
    summary: "Remove and return one or multiple random members from a set",
    complexity:
      "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
    runs: "store",
    run: spop,
  },
];
