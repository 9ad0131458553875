/** Strings as a whole: GET, SET and their relatives. */

import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { Slice } from "../../entry-codec.ts";
import { ReplyError, WRONG_TYPE } from "../../reply-error.ts";
import { STRING } from "../../tables.ts";
import {
  EXAT,
  expiryAt,
  expiryOf,
  GET,
  KEEPTTL,
  NX,
  optionsOf,
  PERSIST,
  PXAT,
  XX,
} from "./set-options.ts";

const OK = 0;
const ONE_OR_ZERO = 1;

/** The key of the command that runs. */
const slice = new Slice();

/** Replies with the string at a key, or nil; says whether it is there. */
function replyWith(call: Call, key: number): boolean {
  const { bytes, starts, ends } = call.request;
  slice.set(bytes, starts[key], ends[key]);
  const type = call.keys.replyString(slice, call.reply);
  if (type > STRING) throw new ReplyError(WRONG_TYPE);
  if (type === STRING) return true;
  call.reply.nil();
  return false;
}

function put(call: Call, key: number, value: number, expires: number): void {
  const { keys, request } = call;
  const { bytes, starts, ends } = request;
  slice.set(bytes, starts[key], ends[key]);
  keys.value.set(bytes, starts[value], ends[value]);
  keys.putSlice(slice, STRING, expires);
}

function get(call: Call): void {
  replyWith(call, 1);
}

function set(call: Call): void {
  if (call.count === 3) {
    put(call, 1, 2, 0);
    call.reply.ok();
    return;
  }
  const options = optionsOf(call, 3, true);
  setWith(call, 2, options, expiryOf(call, options, "set"), OK);
}

function setWith(
  call: Call,
  value: number,
  options: number,
  expires: number,
  replies: number,
): void {
  const { keys, reply } = call;
  const wantsOld = (options & GET) !== 0;
  if (wantsOld) replyWith(call, 1);
  if ((options & (NX | XX)) !== 0) {
    const isThere = keys.typeOf(call.arg(1)) !== 0;
    if (isThere === ((options & NX) !== 0)) {
      if (wantsOld) return;
      if (replies === ONE_OR_ZERO) reply.integer(0);
      else reply.nil();
      return;
    }
  }
  const kept = (options & KEEPTTL) === 0 ? expires : (keys.find(call.arg(1))?.expires ?? 0);
  put(call, 1, value, kept);
  if (wantsOld) return;
  if (replies === ONE_OR_ZERO) reply.integer(1);
  else reply.ok();
}

function setnx(call: Call): void {
  setWith(call, 2, NX, 0, ONE_OR_ZERO);
}

function setex(call: Call): void {
  setWith(call, 3, 0, expiryAt(call, 2, true, true, "setex"), OK);
}

function psetex(call: Call): void {
  setWith(call, 3, 0, expiryAt(call, 2, false, true, "psetex"), OK);
}

function getset(call: Call): void {
  replyWith(call, 1);
  put(call, 1, 2, 0);
}

function getdel(call: Call): void {
  if (replyWith(call, 1)) call.keys.remove(call.arg(1));
}

function getex(call: Call): void {
  const { keys, reply } = call;
  const options = optionsOf(call, 2, false);
  const key = call.arg(1);
  const found = keys.findOf(key, STRING);
  if (found === undefined) {
    reply.nil();
    return;
  }
  const expires = expiryOf(call, options, "getex");
  reply.bulk(found.value);
  const isAbsolute = (options & (EXAT | PXAT)) !== 0;
  if (isAbsolute && keys.isOver(expires)) keys.remove(key);
  else if (expires !== 0 || (options & PERSIST) !== 0) keys.expire(key, found, expires);
}

function mget(call: Call): void {
  const { keys, reply, request, count } = call;
  const { bytes, starts, ends } = request;
  reply.array(count - 1);
  for (let i = 1; i < count; i++) {
    slice.set(bytes, starts[i], ends[i]);
    if (keys.replyString(slice, reply) !== STRING) reply.nil();
  }
}

function mset(call: Call): void {
  putPairs(call, "mset");
  call.reply.ok();
}

function msetnx(call: Call): void {
  const { count, keys } = call;
  if (count % 2 === 0) throw call.wrongArity("msetnx");
  for (let i = 1; i < count; i += 2) {
    if (keys.typeOf(call.arg(i)) === 0) continue;
    call.reply.integer(0);
    return;
  }
  putPairs(call, "msetnx");
  call.reply.integer(1);
}

function putPairs(call: Call, name: string): void {
  const { count } = call;
  if (count % 2 === 0) throw call.wrongArity(name);
  for (let i = 1; i < count; i += 2) put(call, i, i + 1, 0);
}

export const GET_SET_COMMANDS: readonly Command[] = [
  {
    name: "get",
    arity: 2,
    flags: ["readonly", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Get the value of a key",
    complexity: "O(1)",
    runs: "read",
    run: get,
  },
  {
    name: "set",
    arity: -3,
    flags: ["write", "denyoom"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Set the string value of a key",
    complexity: "O(1)",
    runs: "store",
    run: set,
  },
  {
    name: "setnx",
    arity: 3,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Set the value of a key, only if the key does not exist",
    complexity: "O(1)",
    runs: "store",
    run: setnx,
  },
  {
    name: "setex",
    arity: 4,
    flags: ["write", "denyoom"],
    keys: [1, 1, 1],
    group: "string",
    since: "2.0.0",
    summary: "Set the value and expiration of a key",
    complexity: "O(1)",
    runs: "store",
    run: setex,
  },
  {
    name: "psetex",
    arity: 4,
    flags: ["write", "denyoom"],
    keys: [1, 1, 1],
    group: "string",
    since: "2.6.0",
    summary: "Set the value and expiration in milliseconds of a key",
    complexity: "O(1)",
    runs: "store",
    run: psetex,
  },
  {
    name: "getset",
    arity: 3,
    flags: ["write", "denyoom", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Set the string value of a key and return its old value",
    complexity: "O(1)",
    runs: "store",
    run: getset,
  },
  {
    name: "getdel",
    arity: 2,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "6.2.0",
    summary: "Get the value of a key and delete the key",
    complexity: "O(1)",
    runs: "store",
    run: getdel,
  },
  {
    name: "getex",
    arity: -2,
    flags: ["write", "fast"],
    keys: [1, 1, 1],
    group: "string",
    since: "6.2.0",
    summary: "Get the value of a key and optionally set its expiration",
    complexity: "O(1)",
    runs: "store",
    run: getex,
  },
  {
    name: "mget",
    arity: -2,
    flags: ["readonly", "fast"],
    keys: [1, -1, 1],
    group: "string",
    since: "1.0.0",
    summary: "Get the values of all the given keys",
    complexity: "O(N) where N is the number of keys to retrieve.",
    runs: "store",
    run: mget,
  },
  {
    name: "mset",
    arity: -3,
    flags: ["write", "denyoom"],
    keys: [1, -1, 2],
    group: "string",
    since: "1.0.1",
    summary: "Set multiple keys to multiple values",
    complexity: "O(N) where N is the number of keys to set.",
    runs: "store",
    run: mset,
  },
  {
    name: "msetnx",
    arity: -3,
    flags: ["write", "denyoom"],
    keys: [1, -1, 2],
    group: "string",
    since: "1.0.1",
    summary: "Set multiple keys to multiple values, only if none of the keys exist",
    complexity: "O(N) where N is the number of keys to set.",
    runs: "store",
    run: msetnx,
  },
];
