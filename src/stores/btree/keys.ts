/** Comparing keys in their ordered form. */

/** Below 0, 0 or above 0, as the key at a place is less than, the same as, or above another. */
export function compareKeys(
  i32: Int32Array,
  at: number,
  words: number,
  key: Int32Array,
  keyWords: number,
): number {
  const shorter = Math.min(words, keyWords);
  for (let i = 0; i < shorter; i++) {
    const a = i32[at + i];
    const b = key[i];
    if (a !== b) return a >>> 0 < b >>> 0 ? -1 : 1;
  }
  return words - keyWords;
}
