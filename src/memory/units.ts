/** The state word of a unit, as far as others than the block table (blocks.ts) must know it. */

/** A later unit of a block; or, with distance 0, a unit that some slot has to itself. */
export const CONTINUED = 1 << 24;

/** The state of a unit that a slot has to itself: nobody else takes it, and its death frees it. */
export function unmadeUnit(slot: number): number {
  return CONTINUED | (slot + 1);
}
