/** Commands that look at hashes. */

import type { Call } from "../../call.ts";
import { anyPosition } from "../../collections/choose.ts";
import { readHash } from "../../collections/collection.ts";
import type { Form } from "../../collections/form.ts";
import { countIn, OUT_OF_RANGE, replyRandom } from "../../collections/random-reply.ts";
import { parseCursor, scan } from "../../collections/scan.ts";
import type { Command } from "../../command.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";

/** With WITHVALUES there are twice as many elements, which must be a number for C, too. */
const MAX_PAIRS = (2n ** 63n - 1n) / 2n;

function hget(call: Call): void {
  replyValueOf(call, readHash(call, 1), 2);
}

function hmget(call: Call): void {
  const hash = readHash(call, 1);
  call.reply.array(call.count - 2);
  for (let i = 2; i < call.count; i++) replyValueOf(call, hash, i);
}

function replyValueOf(call: Call, hash: Form | undefined, index: number): void {
  if (hash?.find(call.arg(index))) hash.replyValue(call.reply);
  else call.reply.nil();
}

function hlen(call: Call): void {
  call.reply.integer(readHash(call, 1)?.size ?? 0);
}

function hstrlen(call: Call): void {
  const hash = readHash(call, 1);
  call.reply.integer(hash?.find(call.arg(2)) ? hash.value.length : 0);
}

function hexists(call: Call): void {
  call.reply.integer(readHash(call, 1)?.find(call.arg(2)) ? 1 : 0);
}

function hgetall(call: Call): void {
  replyAll(call, true, true);
}

function hkeys(call: Call): void {
  replyAll(call, true, false);
}

function hvals(call: Call): void {
  replyAll(call, false, true);
}

/** All of a hash: a map of both, or a list of its fields or values. */
function replyAll(call: Call, withFields: boolean, withValues: boolean): void {
  const { reply } = call;
  const hash = readHash(call, 1);
  const size = hash?.size ?? 0;
  if (withFields && withValues) reply.map(size);
  else reply.array(size);
  for (let i = 0; i < size; i++) {
    hash!.go(i);
    if (withFields) hash!.replyMember(reply);
    if (withValues) hash!.replyValue(reply);
  }
}

function hrandfield(call: Call): void {
  if (call.count === 2) {
    const hash = readHash(call, 1);
    if (hash === undefined) {
      call.reply.nil();
      return;
    }
    hash.go(anyPosition(hash.size));
    hash.replyMember(call.reply);
    return;
  }
  const count = countIn(call, 2);
  const withValues = call.count === 4;
  if (call.count > 4 || (withValues && !call.is(3, "WITHVALUES"))) throw new ReplyError(SYNTAX);
  if (withValues && (count > MAX_PAIRS || count < -MAX_PAIRS)) throw new ReplyError(OUT_OF_RANGE);
  replyRandom(call, readHash(call, 1), count, withValues);
}

function hscan(call: Call): void {
  const cursor = parseCursor(call.text(2));
  scan(call, readHash(call, 1), cursor, true);
}

const HASH_READ = {
  keys: [1, 1, 1],
  group: "hash",
  runs: "store",
} as const;

export const HASH_READS: readonly Command[] = [
  {
    ...HASH_READ,
    name: "hget",
    arity: 3,
    flags: ["readonly", "fast"],
    since: "2.0.0",
    summary: "Get the value of a hash field",
    complexity: "O(1)",
    run: hget,
  },
  {
    ...HASH_READ,
    name: "hmget",
    arity: -3,
    flags: ["readonly", "fast"],
    since: "2.0.0",
    summary: "Get the values of all the given hash fields",
    complexity: "O(N) where N is the number of fields being requested.",
    run: hmget,
  },
  {
    ...HASH_READ,
    name: "hlen",
    arity: 2,
    flags: ["readonly", "fast"],
    since: "2.0.0",
    summary: "Get the number of fields in a hash",
    complexity: "O(1)",
    run: hlen,
  },
  {
    ...HASH_READ,
    name: "hstrlen",
    arity: 3,
    flags: ["readonly", "fast"],
    since: "3.2.0",
    summary: "Get the length of the value of a hash field",
    complexity: "O(1)",
    run: hstrlen,
  },
  {
    ...HASH_READ,
    name: "hexists",
    arity: 3,
    flags: ["readonly", "fast"],
    since: "2.0.0",
    summary: "Determine if a hash field exists",
    complexity: "O(1)",
    run: hexists,
  },
  {
    ...HASH_READ,
    name: "hgetall",
    arity: 2,
    flags: ["readonly"],
    since: "2.0.0",
    summary: "Get all the fields and values in a hash",
    complexity: "O(N) where N is the size of the hash.",
    run: hgetall,
  },
  {
    ...HASH_READ,
    name: "hkeys",
    arity: 2,
    flags: ["readonly"],
    since: "2.0.0",
    summary: "Get all the fields in a hash",
    complexity: "O(N) where N is the size of the hash.",
    run: hkeys,
  },
  {
    ...HASH_READ,
    name: "hvals",
    arity: 2,
    flags: ["readonly"],
    since: "2.0.0",
    summary: "Get all the values in a hash",
    complexity: "O(N) where N is the size of the hash.",
    run: hvals,
  },
  {
    ...HASH_READ,
    name: "hrandfield",
    arity: -2,
    flags: ["readonly"],
    since: "6.2.0",
    summary: "Get one or multiple random fields from a hash",
    complexity: "O(N) where N is the number of fields returned",
    run: hrandfield,
  },
  {
    ...HASH_READ,
    name: "hscan",
    arity: -3,
    flags: ["readonly"],
    since: "2.8.0",
    summary: "Incrementally iterate hash fields and associated values",
    complexity:
      "O(1) for every call. O(N) for a complete iteration, including enough command calls for " +
      "the cursor to return back to 0. N is the number of elements inside the collection..",
    run: hscan,
  },
];
