/**
 * Shards: what the hashed layouts (../hopscotch, ../buckets, ../robinhood) have in common. A table is a growing
 * number of shards. Each has a head and an array of buckets, and is split in two when it is full.
 *
 *   shard head   an object: depth, where the buckets are, and the shards split off from this one
 *   buckets      an array of objects; a key's home is one of the first 64
 *   blocks       objects with room for more pairs, linked by fat pointers: a bucket's overflow chain
 *
 * Data words of a shard head:
 *   0     depth: how many low bits of the hash all keys of this shard share
 *   1     in the first shard: the seed of the hash (seed.ts)
 *   2–3   the first bucket: region id + 1, word
 *   4…    for each depth, the head of the shard that was split off there: region id + 1, word
 *
 * Data words of a bucket:
 *   0     depth of the shard: says whether this bucket is still responsible for a hash
 *   1–3   first overflow block: region id + 1 (0: none), word, incarnation word
 *   4…    tags: the hash of the pair in each slot, 0 if the slot is empty; then the slots
 *
 * Blocks have their tags at the same place; each layout says where the pointer to the next one is.
 *
 * A slot holds the row itself if rows have a fixed size of at most 128 bytes, else a fat pointer to
 * a row object: region id + 1, word, incarnation word, and a word that the layout may use.
 *
 * The hash: the upper six bits choose the home bucket, the low ones the shard.
 */

import { MAX_INLINE_ROW_BYTES, MAX_SHARD_DEPTH } from "../../runtime/limits.ts";

export const HEAD_DEPTH = 0;
export const HEAD_SEED = 1;
export const HEAD_BUCKETS = 2;
export const HEAD_SIBLINGS = 4;
export const HEAD_WORDS = HEAD_SIBLINGS + 2 * MAX_SHARD_DEPTH;

export const DEPTH = 0;
export const OVERFLOW = 1;
export const TAGS = 4;

const POINTER_WORDS = 4;
/** In the slot of a pointer, where the layout keeps them: the words of the row behind it. */
export const POINTER_ROW_WORDS = 3;

/** What a bucket, or a block, looks like. */
export interface HolderShape {
  readonly words: number;
  readonly slots: number;
  /** Where the pointer to the next block is. */
  readonly nextAt: number;
  /** Where the first slot begins. */
  readonly rowsAt: number;
}

/** The sizes that follow from a table's rows. */
export interface ShardGeometry {
  /** Rows lie in their slots, not in objects of their own. */
  readonly inline: boolean;
  readonly slotWords: number;
  /** Whether a pointer in a slot tells the words of its row. */
  readonly tellsRowWords: boolean;
  /** Whether pairs lie in an order, so that a split has to place all of them anew. */
  readonly keepsOrder: boolean;
  /** Buckets in the array of a shard. */
  readonly buckets: number;
  readonly bucket: HolderShape;
  readonly block: HolderShape;
  /** From one bucket's header to the next one's. */
  readonly stride: number;
}

export function isInline(fixedWords: number): boolean {
  return fixedWords > 0 && fixedWords * 4 <= MAX_INLINE_ROW_BYTES;
}

export function slotWordsOf(fixedWords: number): number {
  return isInline(fixedWords) ? fixedWords : POINTER_WORDS;
}

export function homeOf(hash: number): number {
  return hash >>> MAX_SHARD_DEPTH;
}

/** Words of a cache line. */
const LINE = 16;

/**
 * Asks for all cache lines of a bucket at once. Without this the line of a row is asked for only
 * when the tags have arrived and named it, and a lookup waits for memory twice, one after the
 * other (docs/decisions/0005). The result means nothing.
 */
export function touchBucket(i32: Int32Array, word: number, stride: number): number {
  // Unrolled: the largest bucket, with rows of 128 bytes, has nine lines; the first few suffice.
  let touched = i32[word + LINE];
  if (stride > 2 * LINE) touched ^= i32[word + 2 * LINE];
  if (stride > 3 * LINE) touched ^= i32[word + 3 * LINE];
  if (stride > 4 * LINE) touched ^= i32[word + 4 * LINE];
  return touched;
}
