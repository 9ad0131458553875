/**
 * YCSB's hash of a number: FNV-1a of its eight octets, lowest first, as a positive 64-bit integer
 * (core/src/main/java/site/ycsb/Utils.java, fnvhash64). Keys of records are made with it, and
 * popular items are scattered with it.
 *
 * In two halves of 32 bits: BigInt would be ten times as slow, and millions are computed. The prime
 * is 2^40 + 0x1b3, so a product is a shift and a multiplication that a double holds exactly.
 */

const BASIS_HIGH = 0xcbf29ce4;
const BASIS_LOW = 0x84222325;
const PRIME_LOW = 0x1b3;

/** Products of two numbers below this, and 2^32 on top, are exact. */
const MAX_MODULUS = 2 ** 26;

const MILLION = 1_000_000;
const ZERO = 0x30;

let high = 0;
let low = 0;

/** The hash of a number, 0 to 2^53 - 1, modulo `n`. */
export function fnv64Modulo(value: number, n: number): number {
  if (n > MAX_MODULUS) throw new RangeError(`fnv64Modulo counts to ${MAX_MODULUS}, not to ${n}`);
  hash(value);
  return ((high % n) * (2 ** 32 % n) + low) % n;
}

/** Writes the hash of a number in decimal, up to 19 digits; returns where they end. */
export function writeFnv64(value: number, bytes: Uint8Array, at: number): number {
  hash(value);
  // Long division by 10^6: what is left of the upper half goes before the lower one.
  const middle = (high % MILLION) * 2 ** 32 + low;
  const upper = Math.floor(high / MILLION) * 2 ** 32 + Math.floor(middle / MILLION);
  let end = writeDigits(Math.floor(upper / MILLION), bytes, at, at);
  end = writeDigits(upper % MILLION, bytes, end, at);
  end = writeDigits(middle % MILLION, bytes, end, at);
  if (end > at) return end;
  bytes[at] = ZERO;
  return at + 1;
}

/** Up to seven digits; before the first that is not zero there is nothing. */
function writeDigits(value: number, bytes: Uint8Array, from: number, start: number): number {
  let end = from;
  for (let unit = end === start ? 10 * MILLION : MILLION / 10; unit >= 1; unit /= 10) {
    const digit = Math.floor(value / unit) % 10;
    if (digit > 0 || end > start) bytes[end++] = ZERO + digit;
  }
  return end;
}

function hash(value: number): void {
  high = BASIS_HIGH;
  low = BASIS_LOW;
  absorb(value >>> 0);
  absorb(Math.floor(value / 2 ** 32));
  if (high < 2 ** 31) return;
  // Math.abs of a negative one.
  low = -low >>> 0;
  high = (~high + (low === 0 ? 1 : 0)) >>> 0;
}

function absorb(word: number): void {
  for (let shift = 0; shift < 32; shift += 8) {
    const octets = (low ^ ((word >>> shift) & 0xff)) >>> 0;
    const product = octets * PRIME_LOW;
    high = (Math.imul(high, PRIME_LOW) + Math.floor(product / 2 ** 32) + (octets << 8)) >>> 0;
    low = product >>> 0;
  }
}
