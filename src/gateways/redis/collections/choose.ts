/** Members at random, for HRANDFIELD, SRANDMEMBER and SPOP. */

import { Random } from "../../../runtime/random.ts";

const random = new Random();

/** A position from 0 up to, not including, `size`. */
export function anyPosition(size: number): number {
  return random.below(size);
}

/**
 * So many different positions, all selections equally likely; in descending order. Floyd's
 * algorithm (Bentley and Floyd, A sample of brilliance, CACM 1987): one draw for each.
 */
export function anyPositions(size: number, count: number): number[] {
  const chosen = new Set<number>();
  for (let last = size - count; last < size; last++) {
    const position = random.below(last + 1);
    chosen.add(chosen.has(position) ? last : position);
  }
  return [...chosen].sort((a, b) => b - a);
}
