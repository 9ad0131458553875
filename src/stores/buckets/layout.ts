/**
 * FaSST's data store (§5, after MICA), as objects: associative buckets with 7 to 15 slots.
 *
 *   shard head   as hopscotch has it (../hopscotch/layout.ts), and so is the directory
 *   buckets      an array of 64 objects; every key has one main bucket
 *   overflow     objects of the same shape, linked by fat pointers; a chain begins when its main
 *                bucket is full, and only its first block has a free slot
 *
 * **One header for all keys of a bucket and its chain.** The version of the main bucket stands for
 * all that hangs on it: its own slots, the blocks of its chain, and the row objects that any of
 * their slots point to. Whoever changes one of these writes the main bucket, too, be it only its
 * version. So a transaction depends on the main bucket alone, whatever it has read below it; and a
 * read of something below is one of the version `v` of the main bucket, if
 *
 *   1. the main bucket was seen at `v`, not being installed, before the pointer was followed;
 *   2. what lies below was read through its own seqlock. A commit turns all its locks to
 *      INSTALLING before it writes any version, so after `v` was seen, what belongs to `v` is in
 *      its place, or cannot be read yet;
 *   3. the main bucket is still at `v`, not being installed, afterwards: then nothing newer was read.
 *
 * Data words of a bucket, and of a block:
 *   0     bucket: depth of the shard. Block: how many blocks the chain has from this one on
 *   1–3   next overflow block: region id + 1 (0: none), word, incarnation word
 *   4…    tags: the hash of the pair in each slot, 0 if the slot is empty
 *   …     the slots, from the next even word on
 *
 * A slot holds the row itself if rows have a fixed size of at most 128 bytes, else a fat pointer to
 * a row object: region id + 1, word, incarnation word, words of the row.
 */

import { HEADER_WORDS } from "../../memory/object.ts";
import {
  MAX_BUCKET_SLOTS,
  MAX_INLINE_ROW_BYTES,
  MIN_BUCKET_SLOTS,
  SMALL_BUCKET_BYTES,
} from "../../runtime/limits.ts";

export const DEPTH = 0;
export const CHAIN_BLOCKS = 0;
export const NEXT = 1;
export const TAGS = 4;

export const POINTER_WORDS = 4;
/** In the slot of a pointer: the words of the row behind it. */
export const POINTER_ROW_WORDS = 3;

/** The sizes that follow from a table's rows. */
export class Geometry {
  /** Rows lie in their slots, not in objects of their own. */
  readonly inline: boolean;
  readonly slots: number;
  readonly slotWords: number;
  /** Where the first slot begins. */
  readonly rowsAt: number;
  /** Data words of a bucket, and of a block. */
  readonly bucketWords: number;
  /** From one bucket's header to the next one's. */
  readonly stride: number;

  constructor(fixedWords: number) {
    this.inline = fixedWords > 0 && fixedWords * 4 <= MAX_INLINE_ROW_BYTES;
    this.slotWords = this.inline ? fixedWords : POINTER_WORDS;
    // As many as fit a small bucket; large rows get a larger one, for a chain costs more.
    const room = SMALL_BUCKET_BYTES / 4 - HEADER_WORDS - TAGS - 1;
    const fitting = Math.floor(room / (1 + this.slotWords));
    this.slots = Math.min(MAX_BUCKET_SLOTS, Math.max(MIN_BUCKET_SLOTS, fitting));
    this.rowsAt = TAGS + this.slots + (this.slots % 2);
    this.bucketWords = this.rowsAt + this.slots * this.slotWords;
    this.stride = HEADER_WORDS + this.bucketWords;
  }

  slotAt(slot: number): number {
    return this.rowsAt + slot * this.slotWords;
  }
}
