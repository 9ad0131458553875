/**
 * Xenic's host table (§4.1.2), as objects in shards (../shards/layout.ts): Robin Hood hashing, closed and linear.
 *
 *   slots        one row of them in a shard. A key has a home slot, one of the first 512; its pair lies there or up to
 *                MAX_DISPLACEMENT - 1 slots behind it
 *   segments     objects of eight slots. A shard has 64 with homes, and behind them as many as the last homes need
 *   overflow     a chain of blocks (../shards/overflow-chains.ts) of the *home* segment, for pairs that would reach
 *                the limit
 *
 * **The order.** Pairs lie in the order of their homes, without a gap between a home and its pair:
 *
 *   slot     5    6    7 ‖  8    9   10   11
 *   home     5    5    6 ‖  6    8    8   free        ‖ ends a segment
 *
 * So a search walks from the home slot on, and ends at the pair, at a free slot, at a pair whose home is behind its own,
 * or at the limit; then it looks into the chain, if there is one. A new pair goes behind all that have its home or an
 * earlier one; those behind it move up by one, into the first free slot. (That is what "take from the rich" comes to: the
 * pair that is swapped out is one whose home is behind.) If no slot below the limit is free, the new pair goes to the
 * chain: an insertion touches the slots up to the limit, and no pair ever reaches it.
 *
 * **Removal** leaves no tombstone. A pair of the home segment's chain takes the place if it fits the order; otherwise the
 * pairs behind move back by one, up to a free slot or to one that is at home.
 *
 * **Readers.** All that moves moves in one transaction, which changes the versions of all segments concerned. A pair that
 * was found is proved by its segment alone. Absence is proved by all segments that were walked over, and the chain:
 * a pair that moved from one to another meanwhile has changed both. This is what the paper needs a copy list and hardware
 * transactions for.
 *
 * A slot holds the row itself if rows have a fixed size of at most 128 bytes (256 in the paper), else a fat pointer.
 */

import { HEADER_WORDS } from "../../memory/object.ts";
import { MAX_DISPLACEMENT, SEGMENT_SLOTS, SHARD_BUCKETS } from "../../runtime/limits.ts";
import {
  type HolderShape,
  homeOf,
  isInline,
  OVERFLOW,
  type ShardGeometry,
  slotWordsOf,
  TAGS,
} from "../shards/layout.ts";
import { blockShape } from "../shards/overflow-chains.ts";

export const SEGMENT_ROWS = TAGS + SEGMENT_SLOTS;
/** Segments that a walk from a home slot up to the limit can touch. */
export const WALKED_SEGMENTS = 1 + MAX_DISPLACEMENT / SEGMENT_SLOTS;
/** Slots of a shard. */
export const SHARD_SLOTS = SHARD_BUCKETS * SEGMENT_SLOTS + MAX_DISPLACEMENT;

const SLOT_SHIFT = 3;
/** The golden ratio: its product's upper bits depend on all bits of the hash, also where the low ones are the shard's. */
const SPREAD = 0x9e3779b1;

/** The home slot in a shard: the upper six bits choose the segment, as in all shards, others the slot in it. */
export function homeSlotOf(hash: number): number {
  return (homeOf(hash) << SLOT_SHIFT) | (Math.imul(hash, SPREAD) >>> (32 - SLOT_SHIFT));
}

export function segmentOf(slot: number): number {
  return slot >>> SLOT_SHIFT;
}

/** The place of a slot in its segment. */
export function placeInSegment(slot: number): number {
  return slot & (SEGMENT_SLOTS - 1);
}

export class Geometry implements ShardGeometry {
  readonly inline: boolean;
  readonly slotWords: number;
  readonly tellsRowWords = false;
  readonly keepsOrder = true;
  readonly buckets = SHARD_SLOTS / SEGMENT_SLOTS;
  readonly bucket: HolderShape;
  readonly block: HolderShape;
  readonly segmentWords: number;
  readonly blockWords: number;
  readonly stride: number;

  constructor(fixedWords: number) {
    this.inline = isInline(fixedWords);
    this.slotWords = slotWordsOf(fixedWords);
    this.segmentWords = SEGMENT_ROWS + SEGMENT_SLOTS * this.slotWords;
    this.stride = HEADER_WORDS + this.segmentWords;
    this.bucket = {
      words: this.segmentWords,
      slots: SEGMENT_SLOTS,
      nextAt: OVERFLOW,
      rowsAt: SEGMENT_ROWS,
    };
    this.block = blockShape(this.slotWords);
    this.blockWords = this.block.words;
  }

  /** Where a slot lies in the data of its segment. */
  slotAt(slot: number): number {
    return SEGMENT_ROWS + placeInSegment(slot) * this.slotWords;
  }
}
