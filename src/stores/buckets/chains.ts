/**
 * Changing what hangs on a main bucket: taking a slot for a new pair, in the bucket or its chain;
 * giving one back; walking over the blocks. Works on any transaction's view of a shard, so that
 * splitting can use it as well as inserting.
 *
 * Every change of a block writes the main bucket as well: `bump`.
 */

import { WRITE } from "../../engine/access-set.ts";
import { copyWords } from "../../engine/journal.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { addressOf } from "../../memory/address.ts";
import type { Region } from "../../memory/store-memory.ts";
import { DEPTH, homeOf, TAGS } from "../shards/layout.ts";
import type { ShardSearch, ShardSlots } from "../shards/sharded-store.ts";
import { CHAIN_BLOCKS, type Geometry, NEXT } from "./layout.ts";

const NEXT_WORDS = 3;

export class Chains implements ShardSlots {
  readonly #geometry: Geometry;
  holder = -1;
  slotAt = 0;
  chainBlocks = 0;

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
  }

  /** The main bucket, as part of the read set. */
  #main(tx: Transaction, region: Region, base: number, bucket: number): number {
    const entry = tx.open(region, base + bucket * this.#geometry.stride);
    if (!tx.settle(entry)) tx.conflict(entry);
    tx.depend(entry);
    return entry;
  }

  take(tx: Transaction, region: Region, base: number, hash: number): void {
    this.chainBlocks = 0;
    const main = this.#main(tx, region, base, homeOf(hash));
    let holder = main;
    let slot = this.#emptySlot(tx, main);
    if (slot < 0) {
      holder = this.#nextOf(tx, main, main);
      slot = holder < 0 ? -1 : this.#emptySlot(tx, holder);
    }
    if (slot < 0) {
      holder = this.#addBlock(tx, main, holder);
      slot = 0;
    }
    const at = tx.writable(holder, this.#geometry.bucketWords);
    tx.set.arena.i32[at + TAGS + slot] = hash;
    tx.set.markDirty(holder, TAGS + slot, TAGS + slot + 1);
    this.holder = holder;
    this.slotAt = this.#geometry.slotAt(slot);
    this.bump(tx, main);
  }

  /** Gives the main bucket a new version, for something below it that changes. */
  bump(tx: Transaction, main: number): void {
    if ((tx.set.kindOf(main) & WRITE) !== 0) return;
    tx.writableWindow(main, DEPTH, DEPTH + 1, this.#geometry.bucketWords);
  }

  /**
   * Empties a slot: the last pair of the chain's first block moves into it, and a block that becomes
   * empty is freed. So a chain has room in its first block only, and its main bucket has none.
   */
  giveBack(tx: Transaction, { bucket: main, holder, tagAt, slotAt }: ShardSearch): void {
    const { set } = tx;
    const { bucketWords, slots, slotWords } = this.#geometry;
    const at = tx.writable(holder, bucketWords);
    set.arena.i32[at + tagAt] = 0;
    set.markDirty(holder, tagAt, tagAt + 1);
    this.bump(tx, main);
    const first = this.#nextOf(tx, main, main);
    if (first < 0) return;
    const from = tx.writable(first, bucketWords);
    const { i32 } = set.arena;
    if (first !== holder) {
      let last = slots - 1;
      while (last > 0 && i32[from + TAGS + last] === 0) last--;
      i32[at + tagAt] = i32[from + TAGS + last];
      copyWords(i32, from + this.#geometry.slotAt(last), i32, at + slotAt, slotWords);
      set.markDirty(holder, slotAt, slotAt + slotWords);
      i32[from + TAGS + last] = 0;
      set.markDirty(first, TAGS + last, TAGS + last + 1);
    }
    if (i32.subarray(from + TAGS, from + TAGS + slots).some((tag) => tag !== 0)) return;
    const mainAt = tx.writable(main, bucketWords);
    copyWords(set.arena.i32, from + NEXT, set.arena.i32, mainAt + NEXT, NEXT_WORDS);
    set.markDirty(main, NEXT, NEXT + NEXT_WORDS);
    tx.free(first);
  }

  /** The block after a bucket or block of a main bucket that is depended on; -1 if there is none. */
  #nextOf(tx: Transaction, main: number, entry: number): number {
    tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    const { i32 } = tx.views;
    const regionId = i32[tx.at + NEXT] - 1;
    const word = i32[tx.at + NEXT + 1];
    const incarnation = i32[tx.at + NEXT + 2];
    this.settle(tx, main, entry);
    if (regionId < 0) return -1;
    const block = tx.open(tx.executor.memory.region(regionId), word);
    this.settle(tx, main, block);
    if (tx.incarnationOf(block) !== incarnation) tx.conflict(main);
    return block;
  }

  /** What was read of a block is of the version of its main bucket; else the attempt ends. */
  settle(tx: Transaction, main: number, block: number): void {
    if (block !== main && !tx.settle(block)) tx.conflict(main);
    if (!tx.settle(main)) tx.conflict(main);
  }

  /** The first slot without a pair, of a bucket or block that was settled. */
  #emptySlot(tx: Transaction, entry: number): number {
    tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    const { i32 } = tx.views;
    const tags = tx.at + TAGS;
    let slot = 0;
    while (slot < this.#geometry.slots && i32[tags + slot] !== 0) slot++;
    if (!tx.settle(entry)) tx.conflict(entry);
    return slot < this.#geometry.slots ? slot : -1;
  }

  /** A new block before the first one, if there is one. */
  #addBlock(tx: Transaction, main: number, first: number): number {
    const { bucketWords } = this.#geometry;
    const { set } = tx;
    let blocks = 1;
    if (first >= 0) {
      tx.open(set.regionOf(first), set.wordOf(first));
      blocks = tx.views.i32[tx.at + CHAIN_BLOCKS] + 1;
      this.settle(tx, main, first);
    }
    const near = addressOf(set.regionIdOf(main), set.wordOf(main));
    const block = tx.allocate(bucketWords * 4, near);
    const mainAt = tx.writable(main, bucketWords);
    const blockAt = set.bufferOf(block);
    const { i32 } = set.arena;
    i32[blockAt + CHAIN_BLOCKS] = blocks;
    copyWords(i32, mainAt + NEXT, i32, blockAt + NEXT, NEXT_WORDS);
    i32[mainAt + NEXT] = set.regionIdOf(block) + 1;
    i32[mainAt + NEXT + 1] = set.wordOf(block);
    i32[mainAt + NEXT + 2] = set.incarnationOf(block);
    set.markDirty(main, NEXT, NEXT + NEXT_WORDS);
    this.chainBlocks = blocks;
    return block;
  }
}
