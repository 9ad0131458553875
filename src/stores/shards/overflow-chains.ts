/**
 * Overflow chains whose blocks have a version each: those of hopscotch and of Robin Hood tables. Blocks have two
 * slots, and only the first block of a chain may have a free one. A pair that leaves, from a bucket or a block, is
 * replaced by the last one of the first block, so that chains get shorter again.
 *
 * Data words of a block:
 *   0–2   next block: region id + 1 (0: none), word, incarnation word;  3 unused
 *   4–5   tags;  6… two slots
 */

import type { Transaction } from "../../engine/transaction.ts";
import { addressOf } from "../../memory/address.ts";
import { OVERFLOW_SLOTS } from "../../runtime/limits.ts";
import { type HolderShape, OVERFLOW, TAGS } from "./layout.ts";
import { endlessChain } from "./walker.ts";

export const NEXT = 0;
export const BLOCK_ROWS = TAGS + OVERFLOW_SLOTS;

export function blockShape(slotWords: number): HolderShape {
  const words = BLOCK_ROWS + OVERFLOW_SLOTS * slotWords;
  return { words, slots: OVERFLOW_SLOTS, nextAt: NEXT, rowsAt: BLOCK_ROWS };
}

/** A slot of a bucket or block: its entry, the words of its data, and where in them tag and slot are. */
export interface HeldSlot {
  readonly holder: number;
  readonly holderWords: number;
  readonly tagAt: number;
  readonly slotAt: number;
}

export class OverflowChains {
  readonly #bucketWords: number;
  readonly #blockWords: number;
  readonly #slotWords: number;
  /** What `add` has taken: a block, already writable, tag set; the slot's data; the blocks of a chain that has grown. */
  holder = -1;
  slotAt = 0;
  chainBlocks = 0;

  constructor(bucketWords: number, slotWords: number) {
    this.#bucketWords = bucketWords;
    this.#blockWords = blockShape(slotWords).words;
    this.#slotWords = slotWords;
  }

  /** Only the first block of a chain has room; if it has none, a new block goes before it. */
  add(tx: Transaction, bucket: number, hash: number): void {
    const { set } = tx;
    this.chainBlocks = 0;
    const blocks = this.blocksOf(tx, bucket);
    let block = blocks[0] ?? -1;
    let slot = block < 0 ? -1 : emptyBlockSlot(tx, block);
    if (slot < 0) {
      this.chainBlocks = blocks.length + 1;
      const near = addressOf(set.regionIdOf(bucket), set.wordOf(bucket));
      block = tx.allocate(this.#blockWords * 4, near);
      slot = 0;
      const bucketAt = tx.writable(bucket, this.#bucketWords);
      const { i32 } = set.arena;
      const blockAt = set.bufferOf(block);
      for (let word = 0; word < 3; word++) {
        i32[blockAt + NEXT + word] = i32[bucketAt + OVERFLOW + word];
      }
      i32[bucketAt + OVERFLOW] = set.regionIdOf(block) + 1;
      i32[bucketAt + OVERFLOW + 1] = set.wordOf(block);
      i32[bucketAt + OVERFLOW + 2] = set.incarnationOf(block);
      set.markDirty(bucket, OVERFLOW, OVERFLOW + 3);
    }
    const at = tx.writable(block, this.#blockWords);
    set.arena.i32[at + TAGS + slot] = hash;
    set.markDirty(block, TAGS + slot, TAGS + slot + 1);
    this.holder = block;
    this.slotAt = BLOCK_ROWS + slot * this.#slotWords;
  }

  /**
   * Empties a slot. The last pair of the home's chain moves into it, and a block that becomes empty is freed.
   */
  giveBack(tx: Transaction, home: number, { holder, holderWords, tagAt, slotAt }: HeldSlot): void {
    const { set } = tx;
    const slotWords = this.#slotWords;
    const emptied = tx.writable(holder, holderWords);
    set.arena.i32[emptied + tagAt] = 0;
    set.markDirty(holder, tagAt, tagAt + 1);
    const [first] = this.blocksOf(tx, home);
    if (first === undefined) return;
    tx.depend(home);
    const from = tx.writable(first, this.#blockWords);
    const { i32 } = set.arena;
    let last = OVERFLOW_SLOTS - 1;
    while (last >= 0 && i32[from + TAGS + last] === 0) last--;
    const movedAt = BLOCK_ROWS + last * slotWords;
    if (last >= 0 && !(first === holder && movedAt === slotAt)) {
      const to = set.bufferOf(holder);
      i32[to + tagAt] = i32[from + TAGS + last];
      for (let word = 0; word < slotWords; word++)
        i32[to + slotAt + word] = i32[from + movedAt + word];
      set.markDirty(holder, slotAt, slotAt + slotWords);
      i32[from + TAGS + last] = 0;
      set.markDirty(first, TAGS, TAGS + OVERFLOW_SLOTS);
    }
    for (let slot = 0; slot < OVERFLOW_SLOTS; slot++) {
      if (i32[from + TAGS + slot] !== 0) return;
    }
    const homeAt = tx.writable(home, this.#bucketWords);
    for (let word = 0; word < 3; word++) {
      set.arena.i32[homeAt + OVERFLOW + word] = set.arena.i32[from + NEXT + word];
    }
    set.markDirty(home, OVERFLOW, OVERFLOW + 3);
    tx.free(first);
  }

  /** The first pair of a bucket's chain whose tag is as wanted. */
  find(tx: Transaction, bucket: number, isWanted: (tag: number) => boolean): HeldSlot | undefined {
    for (const holder of this.blocksOf(tx, bucket)) {
      tx.open(tx.set.regionOf(holder), tx.set.wordOf(holder));
      const tags = tx.views.i32.slice(tx.at + TAGS, tx.at + TAGS + OVERFLOW_SLOTS);
      if (!tx.settle(holder)) tx.conflict(holder);
      // Who is asked may open other objects.
      const found = tags.findIndex((tag) => tag !== 0 && isWanted(tag));
      if (found < 0) continue;
      const slotAt = BLOCK_ROWS + found * this.#slotWords;
      return { holder, holderWords: this.#blockWords, tagAt: TAGS + found, slotAt };
    }
    return undefined;
  }

  /** The entries of a bucket's overflow blocks, in order. */
  blocksOf(tx: Transaction, bucket: number): number[] {
    const blocks: number[] = [];
    let entry = bucket;
    let pointerAt = OVERFLOW;
    for (;;) {
      tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
      const { i32 } = tx.views;
      const regionId = i32[tx.at + pointerAt] - 1;
      const word = i32[tx.at + pointerAt + 1];
      const incarnation = i32[tx.at + pointerAt + 2];
      if (!tx.settle(entry)) tx.conflict(entry);
      if (regionId < 0) return blocks;
      entry = tx.open(tx.executor.memory.region(regionId), word);
      if (tx.incarnationOf(entry) !== incarnation) tx.conflict(bucket);
      if (blocks.includes(entry)) throw endlessChain(tx, bucket);
      tx.depend(entry);
      blocks.push(entry);
      pointerAt = NEXT;
    }
  }
}

function emptyBlockSlot(tx: Transaction, entry: number): number {
  tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
  return firstEmptyIn(tx, entry, TAGS, OVERFLOW_SLOTS);
}

/** The first slot without a pair, of the object that was opened last; the transaction depends on it already. */
export function firstEmptyIn(
  tx: Transaction,
  entry: number,
  tagsAt: number,
  slots: number,
): number {
  const { i32 } = tx.views;
  let empty = -1;
  for (let slot = slots - 1; slot >= 0; slot--) {
    if (i32[tx.at + tagsAt + slot] === 0) empty = slot;
  }
  if (!tx.settle(entry)) tx.conflict(entry);
  return empty;
}
