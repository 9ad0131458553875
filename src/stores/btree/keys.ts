/** Comparing keys in their ordered form, and moving words. */

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

/** Where a native move beats a loop over words. */
const LONG_MOVE_WORDS = 32;

/** Moves words inside an array; the places may overlap. */
export function moveWords(i32: Int32Array, from: number, to: number, words: number): void {
  if (words > LONG_MOVE_WORDS) i32.copyWithin(to, from, from + words);
  else if (from < to) for (let i = words - 1; i >= 0; i--) i32[to + i] = i32[from + i];
  else for (let i = 0; i < words; i++) i32[to + i] = i32[from + i];
}
