/**
 * The decimal numbers in front of arrays and bulk strings, read from bytes.
 *
 * `shortNumber` is for the usual ones and gives up on anything else; `wholeNumber` has the rules of
 * Redis (util.c, string2ll): no sign but "-", no leading zero, no space, 64 bits.
 */

const ZERO = 48;
const MINUS = 45;
const CARRIAGE_RETURN = 13;

/** Digits that fit beside their number in 31 bits. */
const SHORT_DIGITS = 8;
export const DIGITS_BITS = 4;
export const DIGITS_MASK = 15;

/**
 * A number of one to eight digits that ends with "\r" and one more byte, all before `end`: its
 * value, shifted by DIGITS_BITS, and how many digits it has. −1 is anything else.
 */
export function shortNumber(bytes: Uint8Array, at: number, end: number): number {
  // The last place at which "\r" leaves room for the byte behind it.
  let last = at + SHORT_DIGITS;
  if (last > end - 2) last = end - 2;
  if (at >= last) return -1;
  let value = bytes[at] - ZERO;
  if (value < 0 || value > 9) return -1;
  let next = at + 1;
  for (;;) {
    const byte = bytes[next];
    if (byte === CARRIAGE_RETURN) return (value << DIGITS_BITS) | (next - at);
    const digit = byte - ZERO;
    // A zero in front is not Redis's way to write a number.
    if (digit < 0 || digit > 9 || value === 0 || next === last) return -1;
    value = value * 10 + digit;
    next++;
  }
}

/** The number that is all of [start, end), or NaN. Beyond 2^53 it is not exact: limits are below. */
export function wholeNumber(bytes: Buffer, start: number, end: number): number {
  // "-9223372036854775808" is the longest.
  if (end <= start || end - start > 20) return Number.NaN;
  if (end - start === 1 && bytes[start] === ZERO) return 0;
  const first = bytes[start] === MINUS ? start + 1 : start;
  if (first === end || bytes[first] === ZERO) return Number.NaN;
  for (let i = first; i < end; i++) {
    if (bytes[i] < ZERO || bytes[i] > ZERO + 9) return Number.NaN;
  }
  const value = BigInt(bytes.toString("latin1", start, end));
  return value === BigInt.asIntN(64, value) ? Number(value) : Number.NaN;
}
