/**
 * Chained associative hopscotch hashing (FaRM §3.6), as objects.
 *
 *   shard head   an object: depth, where the buckets are, and the shards split off from this one
 *   buckets      an array of 64 + 1 objects; a key's home is one of the first 64, and it lies in
 *                its home, or in the next bucket, or in the home's overflow chain
 *   overflow     objects with room for two pairs, linked by fat pointers; only the first block of
 *                a chain may have a free place
 *
 * Data words of a bucket:
 *   0     depth of the shard: says whether this bucket is still responsible for a hash
 *   1–3   first overflow block: region id + 1 (0: none), word, incarnation word
 *   4–7   tags: the hash of the pair in each slot, 0 if the slot is empty
 *   8…    four slots
 *
 * Data words of an overflow block:
 *   0–2   next block, as above;  3 unused;  4–5 tags;  6… two slots
 *
 * A slot holds the row itself if rows have a fixed size of at most 128 bytes, else a fat pointer to
 * a row object: region id + 1, word, incarnation word, unused.
 *
 * Data words of a shard head:
 *   0     depth: how many low bits of the hash all keys of this shard share
 *   1     in the first shard: the seed of the hash (seed.ts)
 *   2–3   the first bucket: region id + 1, word
 *   4…    for each depth, the head of the shard that was split off there: region id + 1, word
 *
 * The hash: the upper six bits choose the home bucket, the low ones the shard.
 */

import { HEADER_WORDS } from "../../memory/object.ts";
import {
  BUCKET_SLOTS,
  MAX_INLINE_ROW_BYTES,
  MAX_SHARD_DEPTH,
  OVERFLOW_SLOTS,
} from "../../runtime/limits.ts";

export const DEPTH = 0;
export const OVERFLOW = 1;
export const BUCKET_TAGS = 4;
export const BUCKET_ROWS = BUCKET_TAGS + BUCKET_SLOTS;

export const NEXT = 0;
export const BLOCK_TAGS = 4;
export const BLOCK_ROWS = BLOCK_TAGS + OVERFLOW_SLOTS;

export const HEAD_DEPTH = 0;
export const HEAD_SEED = 1;
export const HEAD_BUCKETS = 2;
export const HEAD_SIBLINGS = 4;
export const HEAD_WORDS = HEAD_SIBLINGS + 2 * MAX_SHARD_DEPTH;

const POINTER_WORDS = 4;

export function homeOf(hash: number): number {
  return hash >>> MAX_SHARD_DEPTH;
}

/**
 * The slot of a bucket whose tag is `hash`, some other slot if there is none or more than one.
 * Without branches: which slot it is cannot be predicted, and a wrong guess costs more than the
 * arithmetic.
 */
export function slotWithTag(i32: Int32Array, tags: number, hash: number): number {
  const one = isZero(i32[tags + 1] ^ hash);
  const two = isZero(i32[tags + 2] ^ hash);
  const three = isZero(i32[tags + 3] ^ hash);
  return (one + 2 * two + 3 * three) & (BUCKET_SLOTS - 1);
}

/** 1 for 0, and 0 for any other number. */
function isZero(word: number): number {
  return ((word | -word) >>> 31) ^ 1;
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

/** The sizes that follow from a table's rows. */
export class Geometry {
  /** Rows lie in their slots, not in objects of their own. */
  readonly inline: boolean;
  readonly slotWords: number;
  readonly bucketWords: number;
  /** From one bucket's header to the next one's. */
  readonly stride: number;
  readonly blockWords: number;

  constructor(fixedWords: number) {
    this.inline = fixedWords > 0 && fixedWords * 4 <= MAX_INLINE_ROW_BYTES;
    this.slotWords = this.inline ? fixedWords : POINTER_WORDS;
    this.bucketWords = BUCKET_ROWS + BUCKET_SLOTS * this.slotWords;
    this.stride = HEADER_WORDS + this.bucketWords;
    this.blockWords = BLOCK_ROWS + OVERFLOW_SLOTS * this.slotWords;
  }
}
