/**
 * Two words as one: the first is the low half. What an atomic operation of 64 bits takes and gives is a
 * BigInt to V8; these turn it into words and back without arithmetic on it.
 */

const words = new Int32Array(2);
const wide = new BigInt64Array(words.buffer);

export interface WideWords {
  low: number;
  high: number;
}

const found: WideWords = { low: 0, high: 0 };

export function wideOf(low: number, high: number): bigint {
  words[0] = low;
  words[1] = high;
  return wide[0];
}

/** What was there before; the object is used again by the next call. */
export function compareAndSwapWide(
  i64: BigInt64Array,
  index: number,
  expected: bigint,
  low: number,
  high: number,
): Readonly<WideWords> {
  const before = Atomics.compareExchange(i64, index, expected, wideOf(low, high));
  wide[0] = before;
  found.low = words[0];
  found.high = words[1];
  return found;
}
