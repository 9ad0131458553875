/**
 * Where a new pair goes (FaRM §3.6): its home bucket, the next one, an empty slot brought there by
 * displacing others, or else the overflow chain of its home. Works on any transaction's view of a
 * shard, so that splitting can use it as well as inserting.
 */

import { copyWords } from "../../engine/journal.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { addressOf } from "../../memory/address.ts";
import { damagedAt } from "../../memory/damage.ts";
import type { Region } from "../../memory/store-memory.ts";
import type { SituError } from "../../runtime/errors.ts";
import {
  BUCKET_SLOTS,
  OVERFLOW_SLOTS,
  PROBE_BUCKETS,
  SHARD_BUCKETS,
} from "../../runtime/limits.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  type Geometry,
  homeOf,
  NEXT,
  OVERFLOW,
} from "./layout.ts";

export class Placement {
  readonly #geometry: Geometry;
  /** The place that was found: bucket or block, already writable, tag set; and the slot's data. */
  holder = -1;
  slotAt = 0;
  /** How many blocks the home's chain has, if it got a new one for the pair; else 0. */
  chainBlocks = 0;

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
  }

  /** Takes a slot for a pair with this hash in the shard whose first bucket is at `base`. */
  take(tx: Transaction, region: Region, base: number, hash: number): void {
    this.chainBlocks = 0;
    const home = homeOf(hash);
    for (const bucket of [home, home + 1]) {
      const entry = this.#bucket(tx, region, base, bucket);
      const slot = emptySlot(tx, entry);
      if (slot >= 0) {
        this.#occupy(tx, entry, slot, hash);
        return;
      }
    }
    if (this.#displace(tx, region, base, home, hash)) return;
    this.#chain(tx, region, base, home, hash);
  }

  #bucket(tx: Transaction, region: Region, base: number, bucket: number): number {
    const entry = tx.open(region, base + bucket * this.#geometry.stride);
    tx.depend(entry);
    return entry;
  }

  #occupy(tx: Transaction, entry: number, slot: number, hash: number): void {
    const at = tx.writable(entry, this.#geometry.bucketWords);
    tx.set.arena.i32[at + BUCKET_TAGS + slot] = hash;
    tx.set.markDirty(entry, BUCKET_TAGS + slot, BUCKET_TAGS + slot + 1);
    this.holder = entry;
    this.slotAt = BUCKET_ROWS + slot * this.#geometry.slotWords;
  }

  /**
   * Probes forward for a bucket with an empty slot and moves the emptiness back, one bucket at a
   * time: the bucket before must have a pair that is at home there, for that one may go one on.
   */
  #displace(tx: Transaction, region: Region, base: number, home: number, hash: number): boolean {
    const last = Math.min(home + PROBE_BUCKETS, SHARD_BUCKETS);
    for (let bucket = home + 2; bucket <= last; bucket++) {
      const movable = this.#movable(tx, region, base, bucket - 1);
      if (movable < 0) return false;
      const entry = this.#bucket(tx, region, base, bucket);
      if (emptySlot(tx, entry) < 0) continue;
      for (let to = bucket; to > home + 1; to--) this.#move(tx, region, base, to - 1);
      const next = this.#bucket(tx, region, base, home + 1);
      this.#occupy(tx, next, emptySlot(tx, next), hash);
      return true;
    }
    return false;
  }

  /** A slot of the bucket whose pair is at home there, or -1. */
  #movable(tx: Transaction, region: Region, base: number, bucket: number): number {
    const entry = this.#bucket(tx, region, base, bucket);
    const { i32 } = tx.views;
    let found = -1;
    for (let slot = 0; slot < BUCKET_SLOTS && found < 0; slot++) {
      if (homeOf(i32[tx.at + BUCKET_TAGS + slot]) === bucket) found = slot;
    }
    if (!tx.settle(entry)) tx.conflict(entry);
    return found;
  }

  /** Moves one pair from its home to the next bucket, which has an empty slot. */
  #move(tx: Transaction, region: Region, base: number, bucket: number): void {
    const { slotWords, bucketWords } = this.#geometry;
    const from = this.#movable(tx, region, base, bucket);
    const source = this.#bucket(tx, region, base, bucket);
    const sourceAt = tx.writable(source, bucketWords);
    const hash = tx.set.arena.i32[sourceAt + BUCKET_TAGS + from];
    const target = this.#bucket(tx, region, base, bucket + 1);
    this.#occupy(tx, target, emptySlot(tx, target), hash);
    this.write(tx, tx.set.arena.i32, tx.set.bufferOf(source) + BUCKET_ROWS + from * slotWords);
    tx.set.arena.i32[tx.set.bufferOf(source) + BUCKET_TAGS + from] = 0;
    tx.set.markDirty(source, BUCKET_TAGS + from, BUCKET_TAGS + from + 1);
  }

  /** Copies a pair into the slot that was taken last. */
  write(tx: Transaction, from: Int32Array, at: number): void {
    const { slotWords } = this.#geometry;
    const { set } = tx;
    copyWords(from, at, set.arena.i32, set.bufferOf(this.holder) + this.slotAt, slotWords);
    set.markDirty(this.holder, this.slotAt, this.slotAt + slotWords);
  }

  /** Only the first block of a chain has room; if it has none, a new block goes before it. */
  #chain(tx: Transaction, region: Region, base: number, home: number, hash: number): void {
    const { blockWords, bucketWords, slotWords } = this.#geometry;
    const { set } = tx;
    const bucket = this.#bucket(tx, region, base, home);
    const blocks = this.chainOf(tx, bucket);
    let block = blocks[0] ?? -1;
    let slot = block < 0 ? -1 : emptyBlockSlot(tx, block);
    if (slot < 0) {
      this.chainBlocks = blocks.length + 1;
      block = tx.allocate(blockWords * 4, addressOf(set.regionIdOf(bucket), set.wordOf(bucket)));
      slot = 0;
      const bucketAt = tx.writable(bucket, bucketWords);
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
    const at = tx.writable(block, blockWords);
    set.arena.i32[at + BLOCK_TAGS + slot] = hash;
    set.markDirty(block, BLOCK_TAGS + slot, BLOCK_TAGS + slot + 1);
    this.holder = block;
    this.slotAt = BLOCK_ROWS + slot * slotWords;
  }

  /** The entries of a bucket's overflow blocks, in order. */
  chainOf(tx: Transaction, bucket: number): number[] {
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
      if (blocks.includes(entry)) throw damagedChain(tx, bucket);
      tx.depend(entry);
      blocks.push(entry);
      pointerAt = NEXT;
    }
  }
}

/** All of its pointers were read in one version each, and led to blocks that are in use. */
function damagedChain({ set }: Transaction, bucket: number): SituError {
  return damagedAt(set.regionOf(bucket), set.wordOf(bucket), "a chain of blocks goes round");
}

function emptySlot(tx: Transaction, entry: number): number {
  return firstEmpty(tx, entry, BUCKET_TAGS, BUCKET_SLOTS);
}

function emptyBlockSlot(tx: Transaction, entry: number): number {
  return firstEmpty(tx, entry, BLOCK_TAGS, OVERFLOW_SLOTS);
}

/** The first slot without a pair; the transaction depends on the object already. */
function firstEmpty(tx: Transaction, entry: number, tagsAt: number, slots: number): number {
  tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
  const { i32 } = tx.views;
  let empty = -1;
  for (let slot = slots - 1; slot >= 0; slot--) {
    if (i32[tx.at + tagsAt + slot] === 0) empty = slot;
  }
  if (!tx.settle(entry)) tx.conflict(entry);
  return empty;
}
