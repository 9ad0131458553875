/**
 * Integers as Redis reads them from arguments and values: strictly, so that a number has one form
 * (util.c, string2ll). A 64-bit integer is a number where that is exact, and a bigint beyond. Floats
 * are in long-double.ts.
 */

const ZERO = 48;
const NINE = 57;
const MINUS = 45;
/** As many always are a safe integer. */
const SAFE_DIGITS = 15;
/** "-9223372036854775808". */
const MAX_DIGITS = 19;

export type Int64 = number | bigint;

export const MAX_INT64 = 2n ** 63n - 1n;

export const OVERFLOW = "ERR increment or decrement would overflow";

/** No sign but "-", no zero in front, no space; undefined if it is anything else. */
export function parseInt64(bytes: Uint8Array): Int64 | undefined {
  const { length } = bytes;
  if (length === 0) return undefined;
  const isNegative = bytes[0] === MINUS;
  const first = isNegative ? 1 : 0;
  const digits = length - first;
  if (digits === 0 || digits > MAX_DIGITS) return undefined;
  if (bytes[first] === ZERO) return length === 1 ? 0 : undefined;
  let value = 0;
  for (let i = first; i < length; i++) {
    const byte = bytes[i];
    if (byte < ZERO || byte > NINE) return undefined;
    value = value * 10 + (byte - ZERO);
  }
  if (digits <= SAFE_DIGITS) return isNegative ? -value : value;
  return checkInt64(BigInt(String.fromCharCode(...bytes)));
}

/** The sum of two, or undefined if it is beyond 64 bits. */
export function addInt64(a: Int64, b: Int64): Int64 | undefined {
  if (typeof a === "number" && typeof b === "number") {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return checkInt64(BigInt(a) + BigInt(b));
}

function checkInt64(value: bigint): Int64 | undefined {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
