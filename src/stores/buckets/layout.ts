/**
 * FaSST's data store (§5, after MICA), as objects in shards (../shards/layout.ts): associative
 * buckets with 7 to 15 slots.
 *
 *   buckets      64; every key has one main bucket
 *   overflow     blocks of the same shape; a chain begins when its main bucket is full, and only
 *                its first block has a free slot. Word 0 of a block: how many blocks the chain has
 *                from this one on. The slots begin at an even word.
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
 * The fourth word of a slot with a pointer: words of the row.
 */

import { HEADER_WORDS } from "../../memory/object.ts";
import {
  MAX_BUCKET_SLOTS,
  MIN_BUCKET_SLOTS,
  SHARD_BUCKETS,
  SMALL_BUCKET_BYTES,
} from "../../runtime/limits.ts";
import {
  type HolderShape,
  isInline,
  OVERFLOW,
  type ShardGeometry,
  slotWordsOf,
  TAGS,
} from "../shards/layout.ts";

export const CHAIN_BLOCKS = 0;
/** Of a bucket and of a block. */
export const NEXT = OVERFLOW;

export class Geometry implements ShardGeometry {
  readonly inline: boolean;
  readonly slotWords: number;
  readonly tellsRowWords = true;
  readonly keepsOrder = false;
  readonly buckets = SHARD_BUCKETS;
  readonly bucket: HolderShape;
  readonly block: HolderShape;
  readonly slots: number;
  readonly rowsAt: number;
  /** Data words of a bucket, and of a block. */
  readonly bucketWords: number;
  readonly stride: number;

  constructor(fixedWords: number) {
    this.inline = isInline(fixedWords);
    this.slotWords = slotWordsOf(fixedWords);
    // As many as fit a small bucket; large rows get a larger one, for a chain costs more.
    const room = SMALL_BUCKET_BYTES / 4 - HEADER_WORDS - TAGS - 1;
    const fitting = Math.floor(room / (1 + this.slotWords));
    this.slots = Math.min(MAX_BUCKET_SLOTS, Math.max(MIN_BUCKET_SLOTS, fitting));
    this.rowsAt = TAGS + this.slots + (this.slots % 2);
    this.bucketWords = this.rowsAt + this.slots * this.slotWords;
    this.stride = HEADER_WORDS + this.bucketWords;
    const { slots, rowsAt, bucketWords } = this;
    this.bucket = { words: bucketWords, slots, nextAt: NEXT, rowsAt };
    this.block = this.bucket;
  }

  slotAt(slot: number): number {
    return this.rowsAt + slot * this.slotWords;
  }
}
