/**
 * Chained associative hopscotch hashing (FaRM §3.6), as objects in shards (../shards/layout.ts).
 *
 *   buckets      64 + 1: a key's home is one of the first 64, and it lies in its home, or in the
 *                next bucket, or in the home's overflow chain; four slots each
 *   overflow     chains of blocks with two slots (../shards/overflow-chains.ts)
 *
 * Every object has a version of its own, and a transaction depends on those that it has read.
 */

import { HEADER_WORDS } from "../../memory/object.ts";
import { BUCKET_SLOTS, SHARD_BUCKETS } from "../../runtime/limits.ts";
import {
  type HolderShape,
  isInline,
  OVERFLOW,
  type ShardGeometry,
  slotWordsOf,
  TAGS,
} from "../shards/layout.ts";
import { blockShape } from "../shards/overflow-chains.ts";

export const BUCKET_ROWS = TAGS + BUCKET_SLOTS;

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

export class Geometry implements ShardGeometry {
  readonly inline: boolean;
  readonly slotWords: number;
  readonly tellsRowWords = false;
  readonly keepsOrder = false;
  /** One more than there are homes: the last one is only a neighbour. */
  readonly buckets = SHARD_BUCKETS + 1;
  readonly bucket: HolderShape;
  readonly block: HolderShape;
  readonly bucketWords: number;
  readonly blockWords: number;
  readonly stride: number;

  constructor(fixedWords: number) {
    this.inline = isInline(fixedWords);
    this.slotWords = slotWordsOf(fixedWords);
    this.bucketWords = BUCKET_ROWS + BUCKET_SLOTS * this.slotWords;
    this.block = blockShape(this.slotWords);
    this.blockWords = this.block.words;
    this.stride = HEADER_WORDS + this.bucketWords;
    this.bucket = {
      words: this.bucketWords,
      slots: BUCKET_SLOTS,
      nextAt: OVERFLOW,
      rowsAt: BUCKET_ROWS,
    };
  }
}
