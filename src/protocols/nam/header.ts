/**
 * The header of a record: 64 bits that one compare-and-swap validates and locks (NAM-DB §5.1).
 *
 *   low word    commit timestamp, 32 bits
 *   high word   29 bits slot | moved | deleted | locked
 *
 * A version is (slot, timestamp): who made it, and when by that slot's own count. While a record is locked, its
 * header names the *owner* and the timestamp that the owner is about to commit with. The paper only sets the lock
 * bit there; then nobody can tell whose lock it is, and whoever settles what a dead compute server has left
 * might release the lock of a living one. The version that lies in place stands in the record's body, too,
 * so nothing is lost. 0 is the header of a cell that was never used.
 */

import type { NumberOf } from "../../runtime/number-kinds.ts";

/** A place in the vector of timestamps: of an execution thread, or of a compute server. */
export type VectorSlot = NumberOf<"vector slot">;

export const LOCKED_BIT = 1;
export const DELETED_BIT = 2;
export const MOVED_BIT = 4;
const FLAG_BITS = 3;
const FLAGS = (1 << FLAG_BITS) - 1;

/** 29 bits. */
export const MAX_SLOT: VectorSlot = 2 ** 29 - 1;
/** 32 bits; a slot that has come so far is used up. */
export const MAX_TIMESTAMP = 2 ** 32 - 1;

/** The high word of a version without flags. */
export function highOf(slot: VectorSlot): number {
  return slot << FLAG_BITS;
}

export function slotOfHigh(high: number): VectorSlot {
  return high >>> FLAG_BITS;
}

export function isLockedHigh(high: number): boolean {
  return (high & LOCKED_BIT) !== 0;
}

export function isDeletedHigh(high: number): boolean {
  return (high & DELETED_BIT) !== 0;
}

export function isMovedHigh(high: number): boolean {
  return (high & MOVED_BIT) !== 0;
}

/** Of two high words: whether they name the same slot, whatever the flags. */
export function isSameSlot(a: number, b: number): boolean {
  return (a & ~FLAGS) === (b & ~FLAGS);
}

/** The low word as the number that it is. */
export function timestampOf(low: number): number {
  return low >>> 0;
}
