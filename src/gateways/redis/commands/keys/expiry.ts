/** When keys expire: the EXPIRE and TTL families, and PERSIST. */

import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { MAX_INT64, parseInt64 } from "../../numbers.ts";
import { NOT_AN_INTEGER, ReplyError } from "../../reply-error.ts";
import { timeOf } from "../strings/set-options.ts";

const NX = 1;
const XX = 2;
const GT = 4;
const LT = 8;

const NX_AND_OTHERS = "ERR NX and XX, GT or LT options at the same time are not compatible";
const GT_AND_LT = "ERR GT and LT options at the same time are not compatible";

function expire(call: Call): void {
  expireAt(call, true, true, "expire");
}

function pexpire(call: Call): void {
  expireAt(call, false, true, "pexpire");
}

function expireat(call: Call): void {
  expireAt(call, true, false, "expireat");
}

function pexpireat(call: Call): void {
  expireAt(call, false, false, "pexpireat");
}

function expireAt(call: Call, isSeconds: boolean, isRelative: boolean, name: string): void {
  const { keys, reply } = call;
  const conditions = conditionsOf(call);
  const time = parseInt64(call.arg(2));
  if (time === undefined) throw new ReplyError(NOT_AN_INTEGER);
  const expires = timeOf(time, isSeconds, isRelative ? keys.nowMs : 0, name);
  const key = call.arg(1);
  const found = keys.find(key);
  if (found === undefined || !holds(conditions, found.expires, expires)) {
    reply.integer(0);
    return;
  }
  if (expires <= keys.nowMs) keys.remove(key);
  else keys.expire(key, found, expires);
  reply.integer(1);
}

function conditionsOf(call: Call): number {
  let conditions = 0;
  for (let i = 3; i < call.count; i++) {
    if (call.is(i, "NX")) conditions |= NX;
    else if (call.is(i, "XX")) conditions |= XX;
    else if (call.is(i, "GT")) conditions |= GT;
    else if (call.is(i, "LT")) conditions |= LT;
    else throw new ReplyError(`ERR Unsupported option ${call.text(i)}`);
  }
  if (conditions & NX && conditions !== NX) throw new ReplyError(NX_AND_OTHERS);
  if (conditions & GT && conditions & LT) throw new ReplyError(GT_AND_LT);
  return conditions;
}

/** A key that does not expire counts as one that does so after all others. */
function holds(conditions: number, before: number, after: number): boolean {
  if (conditions & NX && before !== 0) return false;
  if (conditions & XX && before === 0) return false;
  if (conditions & GT && (before === 0 || after <= before)) return false;
  return !(conditions & LT && before !== 0 && after >= before);
}

function ttl(call: Call): void {
  replyTime(call, true, true);
}

function pttl(call: Call): void {
  replyTime(call, false, true);
}

function expiretime(call: Call): void {
  replyTime(call, true, false);
}

function pexpiretime(call: Call): void {
  replyTime(call, false, false);
}

function replyTime(call: Call, isSeconds: boolean, isRelative: boolean): void {
  const { keys, reply } = call;
  const found = keys.find(call.arg(1));
  if (found === undefined || found.expires === 0) {
    reply.integer(found === undefined ? -2 : -1);
    return;
  }
  const time = isRelative ? found.expires - keys.nowMs : found.expires;
  reply.integer(exact(isSeconds ? Math.floor((time + 500) / 1000) : time));
}

/** Times beyond 2^53 are the nearest number that a row can have, which may be beyond 64 bits. */
function exact(time: number): number | bigint {
  if (Number.isSafeInteger(time)) return time;
  const value = BigInt(time);
  return BigInt.asIntN(64, value) === value ? value : MAX_INT64;
}

function persist(call: Call): void {
  const { keys, reply } = call;
  const key = call.arg(1);
  const found = keys.find(key);
  const expired = found !== undefined && found.expires !== 0;
  if (expired) keys.expire(key, found, 0);
  reply.integer(expired ? 1 : 0);
}

export const EXPIRY_COMMANDS: readonly Command[] = [
  {
    name: "expire",
    arity: -3,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "1.0.0",
    summary: "Set a key's time to live in seconds",
    complexity: "O(1)",
    runs: "store",
    run: expire,
  },
  {
    name: "pexpire",
    arity: -3,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "2.6.0",
    summary: "Set a key's time to live in milliseconds",
    complexity: "O(1)",
    runs: "store",
    run: pexpire,
  },
  {
    name: "expireat",
    arity: -3,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "1.2.0",
    summary: "Set the expiration for a key as a UNIX timestamp",
    complexity: "O(1)",
    runs: "store",
    run: expireat,
  },
  {
    name: "pexpireat",
    arity: -3,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "2.6.0",
    summary: "Set the expiration for a key as a UNIX timestamp specified in milliseconds",
    complexity: "O(1)",
    runs: "store",
    run: pexpireat,
  },
  {
    name: "ttl",
    arity: 2,
    flags: ["readonly", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "1.0.0",
    summary: "Get the time to live for a key in seconds",
    complexity: "O(1)",
    runs: "store",
    run: ttl,
  },
  {
    name: "pttl",
    arity: 2,
    flags: ["readonly", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "2.6.0",
    summary: "Get the time to live for a key in milliseconds",
    complexity: "O(1)",
    runs: "store",
    run: pttl,
  },
  {
    name: "expiretime",
    arity: 2,
    flags: ["readonly", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "7.0.0",
    summary: "Get the expiration Unix timestamp for a key",
    complexity: "O(1)",
    runs: "store",
    run: expiretime,
  },
  {
    name: "pexpiretime",
    arity: 2,
    flags: ["readonly", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "7.0.0",
    summary: "Get the expiration Unix timestamp for a key in milliseconds",
    complexity: "O(1)",
    runs: "store",
    run: pexpiretime,
  },
  {
    name: "persist",
    arity: 2,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "generic",
    since: "2.2.0",
    summary: "Remove the expiration from a key",
    complexity: "O(1)",
    runs: "store",
    run: persist,
  },
];
