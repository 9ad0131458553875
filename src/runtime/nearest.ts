/**
 * The right name for a wrong one: the fewest letters to change, add, drop or swap with a neighbour
 * (Damerau 1964, the restricted form). Beyond a third of its letters it would be a guess.
 */

export function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let least = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, before[j - 2] + 1);
      }
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[b.length];
}

/** Undefined if none is near enough to be meant. */
export function nearest(wrong: string, names: readonly string[]): string | undefined {
  let found: string | undefined;
  let least = Math.max(1, Math.floor(wrong.length / 3)) + 1;
  for (const name of names) {
    const far = distance(wrong.toLowerCase(), name.toLowerCase());
    if (far < least) [found, least] = [name, far];
  }
  return found ?? names.find((name) => wrong.length >= 3 && name.startsWith(wrong));
}

/** "; did you mean …?", or what else there is to say. */
export function didYouMean(wrong: string, names: readonly string[], otherwise = ""): string {
  const found = nearest(wrong, names);
  return found === undefined ? otherwise : `; did you mean ${found}?`;
}
