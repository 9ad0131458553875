/** The options that SET and GETEX share, and the times in them. */

import type { Call } from "../../call.ts";
import { type Int64, MAX_INT64, parseInt64 } from "../../numbers.ts";
import { NOT_AN_INTEGER, ReplyError, SYNTAX } from "../../reply-error.ts";

/** Bits of what `optionsOf` returns. */
export const NX = 1;
export const XX = 2;
export const GET = 4;
export const KEEPTTL = 8;
export const PERSIST = 16;
export const EX = 32;
export const PX = 64;
export const EXAT = 128;
export const PXAT = 256;
const TIMES = EX | PX | EXAT | PXAT;
/** Above these bits is which argument says the time. */
const ARGUMENT_SHIFT = 9;

const OF_SET = NX | XX | GET | KEEPTTL;
const OF_GETEX = PERSIST;

const MAX_SECONDS = MAX_INT64 / 1000n;

/** The options from argument `from` on, as bits: one number, since SET runs very often. */
export function optionsOf(call: Call, from: number, isSet: boolean): number {
  const allowed = isSet ? OF_SET : OF_GETEX;
  const { count } = call;
  let options = 0;
  let timeAt = 0;
  for (let i = from; i < count; i++) {
    const option = optionAt(call, i);
    if ((option & (allowed | TIMES)) === 0 || isExcluded(option, options)) {
      throw new ReplyError(SYNTAX);
    }
    options |= option;
    if ((option & TIMES) !== 0) {
      timeAt = ++i;
      if (timeAt === count) throw new ReplyError(SYNTAX);
    }
  }
  return options | (timeAt << ARGUMENT_SHIFT);
}

/** When the key expires, by the options: milliseconds of the wall clock, or 0. */
export function expiryOf(call: Call, options: number, name: string): number {
  if ((options & TIMES) === 0) return 0;
  const isSeconds = (options & (EX | EXAT)) !== 0;
  const isRelative = (options & (EX | PX)) !== 0;
  return expiryAt(call, options >> ARGUMENT_SHIFT, isSeconds, isRelative, name);
}

/** The same for one argument: seconds or milliseconds, from now on or from 1970 on. */
export function expiryAt(
  call: Call,
  index: number,
  isSeconds: boolean,
  isRelative: boolean,
  name: string,
): number {
  const time = parseInt64(call.arg(index));
  if (time === undefined) throw new ReplyError(NOT_AN_INTEGER);
  if (time <= 0) throw invalidExpiry(name);
  return timeOf(time, isSeconds, isRelative ? call.keys.nowMs : 0, name);
}

/**
 * A time in milliseconds of the wall clock, also one in the past. Redis's own limit, 64 bits, is beyond
 * what is exact here; a table keeps the nearest number.
 */
export function timeOf(time: Int64, isSeconds: boolean, base: number, name: string): number {
  if (typeof time === "number") {
    const at = (isSeconds ? time * 1000 : time) + base;
    if (Number.isSafeInteger(at)) return at;
  }
  const value = BigInt(time);
  if (isSeconds && (value > MAX_SECONDS || value < -MAX_SECONDS)) throw invalidExpiry(name);
  const at = (isSeconds ? value * 1000n : value) + BigInt(base);
  if (at > MAX_INT64) throw invalidExpiry(name);
  return Number(at);
}

function invalidExpiry(name: string): ReplyError {
  return new ReplyError(`ERR invalid expire time in '${name}' command`);
}

function optionAt(call: Call, index: number): number {
  if (call.is(index, "NX")) return NX;
  if (call.is(index, "XX")) return XX;
  if (call.is(index, "EX")) return EX;
  if (call.is(index, "PX")) return PX;
  if (call.is(index, "GET")) return GET;
  if (call.is(index, "KEEPTTL")) return KEEPTTL;
  if (call.is(index, "EXAT")) return EXAT;
  if (call.is(index, "PXAT")) return PXAT;
  if (call.is(index, "PERSIST")) return PERSIST;
  return 0;
}

/** An option may come twice, but not with those that say something else about the same. */
function isExcluded(option: number, before: number): boolean {
  if (option === NX) return (before & XX) !== 0;
  if (option === XX) return (before & NX) !== 0;
  if (option === GET) return false;
  return (before & (TIMES | KEEPTTL | PERSIST) & ~option) !== 0;
}
