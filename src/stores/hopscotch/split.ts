/**
 * Growing online. A shard that is full is split in two by one transaction: the pairs whose next
 * hash bit is set go to a new shard, the others stay; both then have one more bit of depth. Only
 * transactions that touch these 65 buckets meanwhile see a conflict, and retry. There is no
 * table-wide step, ever: the directory is a cache, and learns of a split from the buckets.
 */

import type { Executor } from "../../engine/executor.ts";
import { SPLITS } from "../../engine/slot.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { type Address, wordOf } from "../../memory/address.ts";
import type { Region } from "../../memory/store-memory.ts";
import {
  BUCKET_SLOTS,
  MAX_SHARD_DEPTH,
  OVERFLOW_SLOTS,
  SHARD_BUCKETS,
} from "../../runtime/limits.ts";
import type { Directory } from "./directory.ts";
import type { Placement } from "./displacement.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  DEPTH,
  type Geometry,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SIBLINGS,
  HEAD_WORDS,
} from "./layout.ts";

/** Buckets of a shard's array: the last one is nobody's home, only a neighbour. */
const BUCKETS = SHARD_BUCKETS + 1;

import { createEmptyShard, PendingSplits } from "./shards.ts";

/** Makes an empty shard and returns the address of its head. */
export function createShard(tx: Transaction, geometry: Geometry, depth: number, seed = 0): Address {
  return createEmptyShard(tx, BUCKETS, geometry.bucketWords, depth, seed);
}

interface Shard {
  readonly region: Region;
  readonly base: number;
}

export class Splitter {
  readonly #geometry: Geometry;
  readonly #directory: Directory;
  readonly #placement: Placement;
  readonly #splitOccupancy: number;
  readonly #pending = new PendingSplits();
  /** Made once: every commit asks whether there is anything to split. */
  readonly #splitIfFull = (tx: Transaction, hash: number): void => {
    this.#directory.locate(tx, hash);
    if (this.#occupancy(tx) >= this.#splitOccupancy) this.#split(tx);
  };
  /** Tags and slots of the pairs that are being dealt out. */
  #pairs = new Int32Array(0);

  constructor(
    geometry: Geometry,
    directory: Directory,
    placement: Placement,
    splitOccupancy: number,
  ) {
    this.#splitOccupancy = splitOccupancy;
    this.#geometry = geometry;
    this.#directory = directory;
    this.#placement = placement;
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

  #bucketEntry(tx: Transaction, shard: Shard, bucket: number): number {
    const entry = tx.open(shard.region, shard.base + bucket * this.#geometry.stride);
    tx.depend(entry);
    return entry;
  }

  #located(): Shard {
    return { region: this.#directory.region!, base: this.#directory.base };
  }

  /** The part of the shard's bucket slots that hold a pair. */
  #occupancy(tx: Transaction): number {
    const shard = this.#located();
    let used = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const word = shard.base + bucket * this.#geometry.stride;
      const entry = tx.open(shard.region, word);
      for (let slot = 0; slot < BUCKET_SLOTS; slot++) {
        if (tx.views.i32[tx.at + BUCKET_TAGS + slot] !== 0) used++;
      }
      tx.settle(entry);
    }
    return used / (BUCKETS * BUCKET_SLOTS);
  }

  #split(tx: Transaction): void {
    const { set, executor } = tx;
    const { depth, headRegion, headWord } = this.#directory;
    if (depth >= MAX_SHARD_DEPTH) return;
    const shard = this.#located();
    const head = tx.open(headRegion!, headWord);
    tx.depend(head);
    const sibling = createShard(tx, this.#geometry, depth + 1);

    const pairs = this.#empty(tx, shard, depth + 1);
    const headAt = tx.writable(head, HEAD_WORDS);
    const siblingEntry = this.#entryOf(tx, sibling);
    const { i32 } = set.arena;
    i32[headAt + HEAD_DEPTH] = depth + 1;
    i32[headAt + HEAD_SIBLINGS + 2 * depth] = set.regionIdOf(siblingEntry) + 1;
    i32[headAt + HEAD_SIBLINGS + 2 * depth + 1] = set.wordOf(siblingEntry);
    set.markDirty(head, 0, HEAD_WORDS);

    const siblingAt = set.bufferOf(siblingEntry);
    const target: Shard = {
      region: executor.memory.region(i32[siblingAt + HEAD_BUCKETS] - 1),
      base: i32[siblingAt + HEAD_BUCKETS + 1],
    };
    const width = 1 + this.#geometry.slotWords;
    for (let at = 0; at < pairs; at += width) {
      const hash = this.#pairs[at];
      const to = ((hash >>> depth) & 1) === 1 ? target : shard;
      this.#placement.take(tx, to.region, to.base, hash);
      this.#placement.write(tx, this.#pairs, at + 1);
    }
    executor.counters[executor.counterBase + SPLITS]++;
  }

  #entryOf(tx: Transaction, address: Address): number {
    const region = tx.executor.memory.regionOf(address);
    return tx.set.find(region.id, wordOf(address));
  }

  /** Takes all pairs out of a shard, frees its chains, and sets its buckets to the new depth. */
  #empty(tx: Transaction, shard: Shard, depth: number): number {
    const { bucketWords } = this.#geometry;
    const { set } = tx;
    let pairs = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const entry = this.#bucketEntry(tx, shard, bucket);
      for (const block of this.#placement.chainOf(tx, entry)) {
        pairs = this.#gather(tx, block, pairs, BLOCK_TAGS, BLOCK_ROWS, OVERFLOW_SLOTS);
        tx.free(block);
      }
      pairs = this.#gather(tx, entry, pairs, BUCKET_TAGS, BUCKET_ROWS, BUCKET_SLOTS);
      const at = tx.writable(entry, bucketWords);
      set.arena.i32.fill(0, at, at + bucketWords);
      set.arena.i32[at + DEPTH] = depth;
      set.markDirty(entry, 0, bucketWords);
    }
    return pairs;
  }

  #gather(
    tx: Transaction,
    entry: number,
    pairs: number,
    tagsAt: number,
    rowsAt: number,
    slots: number,
  ): number {
    const { slotWords } = this.#geometry;
    tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    const { i32 } = tx.views;
    let end = pairs;
    for (let slot = 0; slot < slots; slot++) {
      const hash = i32[tx.at + tagsAt + slot];
      if (hash === 0) continue;
      this.#roomFor(end + 1 + slotWords);
      this.#pairs[end] = hash;
      const from = tx.at + rowsAt + slot * slotWords;
      for (let word = 0; word < slotWords; word++) this.#pairs[end + 1 + word] = i32[from + word];
      end += 1 + slotWords;
    }
    if (!tx.settle(entry)) tx.conflict(entry);
    return end;
  }

  #roomFor(words: number): void {
    if (words <= this.#pairs.length) return;
    const longer = new Int32Array(2 * words);
    longer.set(this.#pairs);
    this.#pairs = longer;
  }
}
