/**
 * Everything in a store is an object: a header of four words, then data.
 *
 *   word 0  lock         0, or owner's slot + 1 in the upper bits and a mode in the lowest two
 *   word 1  version      TID, upper 32 bits (engine/tid.ts)
 *   word 2  version      TID, lower 32 bits
 *   word 3  incarnation  counts the times this cell was freed; below it two bits: ARRAY, ALLOCATED
 *   word 4… data
 *
 * An array's cell has two words of data of its own, and then its elements, which are objects with
 * headers of their own, side by side:
 *
 *   word 4  data words of one element
 *   word 5  number of elements
 *   word 6… elements
 *
 * They are written by the commit that allocates the array, so that one who copies memory without
 * knowing what is in it (log/checkpoint/) finds all headers.
 *
 * Two lock modes, as in FaRM §3.4. PREPARED: readers may still read the old value. INSTALLING:
 * they may not, data and version are changing.
 *
 * A consistent read is a seqlock: look at the version, read the data, look again, at the lock and
 * the version. The first look need not see the lock: installing writes data, then version, then
 * unlocks, so whoever reads the new version reads the new data after it. What this needs of the
 * memory (memory/ordering.ts has the functions, docs/decisions/0027 the argument):
 *
 *   reader   both words of the version are acquired before any data is read, and the second look
 *            begins with a `loadAfterLoads` of the lock, after all data was read
 *   writer   INSTALLING is in the lock before any data is written: between the two, a commit stores
 *            the epoch that it announces, and loads the global one. Both words of the version are
 *            released after the data, and the lock after them
 *
 * On x64 plain accesses are ordered so. Elsewhere these are `Atomics`.
 */

import { loadAfterLoads, storeReleaseQuietly } from "./ordering.ts";

export const HEADER_WORDS = 4;
export const HEADER_BYTES = 4 * HEADER_WORDS;

/** The header of an array's cell, up to its first element. */
export const ARRAY_HEADER_WORDS = HEADER_WORDS + 2;
export const ARRAY_HEADER_BYTES = 4 * ARRAY_HEADER_WORDS;

export const LOCK = 0;
export const VERSION_HIGH = 1;
export const VERSION_LOW = 2;
export const INCARNATION = 3;

/** In the cell of an array. */
export const ELEMENT_WORDS = 4;
export const ELEMENT_COUNT = 5;

export const PREPARED = 1;
export const INSTALLING = 2;
const MODE_MASK = 3;

/** The lowest bits of the incarnation word. An array's cell holds objects with headers of their own. */
export const ALLOCATED = 1;
export const ARRAY = 2;
export const INCARNATION_STEP = 4;

/** What the incarnation word of an object becomes when the object is freed. */
export function freedWord(incarnationWord: number): number {
  return ((incarnationWord & ~ALLOCATED) + INCARNATION_STEP) | 0;
}

export function lockWord(slot: number, mode: number): number {
  return ((slot + 1) << 2) | mode;
}

export function lockOwner(lock: number): number {
  return (lock >>> 2) - 1;
}

export function lockMode(lock: number): number {
  return lock & MODE_MASK;
}

/** The second look of a consistent read: is the object still at the version seen before? */
export function unchanged(i32: Int32Array, at: number, high: number, low: number): boolean {
  return (
    (loadAfterLoads(i32, at + LOCK) & MODE_MASK) !== INSTALLING &&
    i32[at + VERSION_LOW] === low &&
    i32[at + VERSION_HIGH] === high
  );
}

/** Publishes the version of data that was written before this: the last step but the unlocking. */
export function storeVersion(i32: Int32Array, at: number, high: number, low: number): void {
  storeReleaseQuietly(i32, at + VERSION_HIGH, high);
  storeReleaseQuietly(i32, at + VERSION_LOW, low);
}
