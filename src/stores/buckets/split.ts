/**
 * Growing online, as hopscotch does (docs/decisions/0007): a shard whose buckets have begun to
 * chain and that is full enough is split in two by one transaction. The pairs whose next hash bit
 * is set go to a new shard, the others stay. FaSST's table has a fixed size; ours has none.
 */

import type { Executor } from "../../engine/executor.ts";
import { copyWords } from "../../engine/journal.ts";
import { SPLITS } from "../../engine/slot.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../memory/address.ts";
import type { Region } from "../../memory/store-memory.ts";
import { MAX_CHAIN_BLOCKS, MAX_SHARD_DEPTH, SHARD_BUCKETS } from "../../runtime/limits.ts";
import type { Directory } from "../hopscotch/directory.ts";
import { HEAD_BUCKETS, HEAD_DEPTH, HEAD_SIBLINGS, HEAD_WORDS } from "../hopscotch/layout.ts";
import { createEmptyShard, PendingSplits } from "../hopscotch/shards.ts";
import { type Chains, endlessChain } from "./chains.ts";
import { DEPTH, type Geometry, TAGS } from "./layout.ts";

/** Makes an empty shard and returns the address of its head. */
export function createShard(tx: Transaction, geometry: Geometry, depth: number, seed = 0): Address {
  return createEmptyShard(tx, SHARD_BUCKETS, geometry.bucketWords, depth, seed);
}

interface Shard {
  readonly region: Region;
  readonly base: number;
}

export class Splitter {
  readonly #geometry: Geometry;
  readonly #directory: Directory;
  readonly #chains: Chains;
  readonly #splitOccupancy: number;
  readonly #pending = new PendingSplits();
  /** Made once: every commit asks whether there is anything to split. */
  readonly #splitIfFull = (tx: Transaction, hash: number): void => {
    this.#directory.locate(tx, hash);
    if (this.#occupancy(tx) >= this.#splitOccupancy) this.#split(tx);
  };
  /** Tags and slots of the pairs that are being dealt out. */
  #pairs = new Int32Array(0);
  #pairsEnd = 0;

  constructor(geometry: Geometry, directory: Directory, chains: Chains, splitOccupancy: number) {
    this.#geometry = geometry;
    this.#directory = directory;
    this.#chains = chains;
    this.#splitOccupancy = splitOccupancy;
  }

  remember(hash: number): void {
    this.#pending.remember(hash);
  }

  runPending(executor: Executor): void {
    this.#pending.run(executor, this.#splitIfFull);
  }

  /** Splits the shard of a hash as part of the transaction that fills it. */
  splitWithin(tx: Transaction, hash: number): void {
    this.#directory.locate(tx, hash);
    if (this.#occupancy(tx) >= this.#splitOccupancy / 2) this.#split(tx);
  }

  /** The part of the slots in the shard's main buckets that hold a pair; may be a little off. */
  #occupancy(tx: Transaction): number {
    const { slots, stride } = this.#geometry;
    const { region, base } = this.#directory;
    let used = 0;
    for (let bucket = 0; bucket < SHARD_BUCKETS; bucket++) {
      const entry = tx.open(region!, base + bucket * stride);
      for (let slot = 0; slot < slots; slot++) {
        if (tx.views.i32[tx.at + TAGS + slot] !== 0) used++;
      }
      tx.settle(entry);
    }
    return used / (SHARD_BUCKETS * slots);
  }

  #split(tx: Transaction): void {
    const { set, executor } = tx;
    const { region, base, depth, headRegion, headWord } = this.#directory;
    if (depth >= MAX_SHARD_DEPTH) return;
    const shard: Shard = { region: region!, base };
    const head = tx.open(headRegion!, headWord);
    tx.depend(head);
    this.#empty(tx, shard, depth);

    const sibling = createShard(tx, this.#geometry, depth + 1);
    const headAt = tx.writable(head, HEAD_WORDS);
    const { i32 } = set.arena;
    i32[headAt + HEAD_DEPTH] = depth + 1;
    i32[headAt + HEAD_SIBLINGS + 2 * depth] = regionIdOf(sibling) + 1;
    i32[headAt + HEAD_SIBLINGS + 2 * depth + 1] = wordOf(sibling);
    set.markDirty(head, 0, HEAD_WORDS);

    const siblingAt = set.bufferOf(set.find(regionIdOf(sibling), wordOf(sibling)));
    const target: Shard = {
      region: executor.memory.region(i32[siblingAt + HEAD_BUCKETS] - 1),
      base: i32[siblingAt + HEAD_BUCKETS + 1],
    };
    const width = 1 + this.#geometry.slotWords;
    for (let at = 0; at < this.#pairsEnd; at += width) {
      const hash = this.#pairs[at];
      const to = ((hash >>> depth) & 1) === 1 ? target : shard;
      this.#chains.take(tx, to.region, to.base, hash);
      this.#chains.write(tx, this.#pairs, at + 1);
    }
    executor.counters[executor.counterBase + SPLITS]++;
  }

  /** Takes all pairs out of a shard, frees its chains, and makes its buckets one bit deeper. */
  #empty(tx: Transaction, { region, base }: Shard, depth: number): void {
    const { bucketWords } = this.#geometry;
    const { set } = tx;
    const chains = this.#chains;
    this.#pairsEnd = 0;
    for (let bucket = 0; bucket < SHARD_BUCKETS; bucket++) {
      const main = chains.main(tx, region, base, bucket);
      this.#gather(tx, main, main);
      let block = chains.nextOf(tx, main, main);
      for (let blocks = 1; block >= 0; blocks++) {
        if (blocks > MAX_CHAIN_BLOCKS) throw endlessChain(tx, main);
        this.#gather(tx, main, block);
        const next = chains.nextOf(tx, main, block);
        tx.free(block);
        block = next;
      }
      const at = tx.writable(main, bucketWords);
      // Split since its head was looked at: another transaction has done this already.
      if (set.arena.i32[at + DEPTH] !== depth) tx.conflict(main);
      set.arena.i32.fill(0, at, at + bucketWords);
      set.arena.i32[at + DEPTH] = depth + 1;
      set.markDirty(main, 0, bucketWords);
    }
  }

  /** Appends the pairs of a bucket or block to the list. */
  #gather(tx: Transaction, main: number, entry: number): void {
    const { slots, slotWords } = this.#geometry;
    tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    const { i32 } = tx.views;
    for (let slot = 0; slot < slots; slot++) {
      const hash = i32[tx.at + TAGS + slot];
      if (hash === 0) continue;
      const end = this.#pairsEnd;
      this.#pairsEnd = end + 1 + slotWords;
      this.#roomFor(this.#pairsEnd);
      this.#pairs[end] = hash;
      const from = tx.at + this.#geometry.slotAt(slot);
      copyWords(i32, from, this.#pairs, end + 1, slotWords);
    }
    this.#chains.settle(tx, main, entry);
  }

  #roomFor(words: number): void {
    if (words <= this.#pairs.length) return;
    const longer = new Int32Array(2 * words);
    longer.set(this.#pairs);
    this.#pairs = longer;
  }
}
