/**
 * Where a new pair goes (FaRM §3.6): its home bucket, the next one, an empty slot brought there by
 * displacing others, or else the overflow chain of its home. Works on any transaction's view of a
 * shard, so that splitting can use it as well as inserting.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { addressOf } from "../../memory/address.ts";
import type { Region } from "../../memory/store-memory.ts";
import {
  BUCKET_SLOTS,
  OVERFLOW_SLOTS,
  PROBE_BUCKETS,
  SHARD_BUCKETS,
} from "../../runtime/limits.ts";
import { homeOf, OVERFLOW, TAGS } from "../shards/layout.ts";
import type { ShardSearch, ShardSlots } from "../shards/sharded-store.ts";
import { endlessChain } from "../shards/walker.ts";
import { BLOCK_ROWS, BUCKET_ROWS, type Geometry, NEXT } from "./layout.ts";

export class Displacement implements ShardSlots {
  readonly #geometry: Geometry;
  holder = -1;
  slotAt = 0;
  chainBlocks = 0;

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
  }

  take(tx: Transaction, region: Region, base: number, hash: number): void {
    this.chainBlocks = 0;
    const home = homeOf(hash);
    if (this.#takeIn(tx, region, base, home, hash)) return;
    if (this.#takeIn(tx, region, base, home + 1, hash)) return;
    if (this.#displace(tx, region, base, home, hash)) return;
    this.#chain(tx, region, base, home, hash);
  }

  #takeIn(tx: Transaction, region: Region, base: number, bucket: number, hash: number): boolean {
    const entry = this.#bucket(tx, region, base, bucket);
    const slot = firstEmptyIn(tx, entry, TAGS, BUCKET_SLOTS);
    if (slot < 0) return false;
    this.#occupy(tx, entry, slot, hash);
    return true;
  }

  #bucket(tx: Transaction, region: Region, base: number, bucket: number): number {
    const entry = tx.open(region, base + bucket * this.#geometry.stride);
    tx.depend(entry);
    return entry;
  }

  #occupy(tx: Transaction, entry: number, slot: number, hash: number): void {
    const { slotWords, bucketWords } = this.#geometry;
    const slotAt = BUCKET_ROWS + slot * slotWords;
    // From the tag up to the end of the slot: the rest of the bucket need not be copied.
    const at = tx.writableWindow(entry, TAGS + slot, slotAt + slotWords, bucketWords);
    tx.set.arena.i32[at + TAGS + slot] = hash;
    this.holder = entry;
    this.slotAt = slotAt;
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
      if (homeOf(i32[tx.at + TAGS + slot]) === bucket) found = slot;
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
    const hash = tx.set.arena.i32[sourceAt + TAGS + from];
    const target = this.#bucket(tx, region, base, bucket + 1);
    this.#occupy(tx, target, emptySlot(tx, target), hash);
    const { set } = tx;
    const { i32 } = set.arena;
    const [to, row] = [set.bufferOf(target), set.bufferOf(source) + BUCKET_ROWS + from * slotWords];
    for (let word = 0; word < slotWords; word++) i32[to + this.slotAt + word] = i32[row + word];
    set.markDirty(target, this.slotAt, this.slotAt + slotWords);
    i32[set.bufferOf(source) + TAGS + from] = 0;
    set.markDirty(source, TAGS + from, TAGS + from + 1);
  }

  /** Only the first block of a chain has room; if it has none, a new block goes before it. */
  #chain(tx: Transaction, region: Region, base: number, home: number, hash: number): void {
    const { blockWords, bucketWords, slotWords } = this.#geometry;
    const { set } = tx;
    const bucket = this.#bucket(tx, region, base, home);
    const blocks = this.#chainOf(tx, bucket);
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
    set.arena.i32[at + TAGS + slot] = hash;
    set.markDirty(block, TAGS + slot, TAGS + slot + 1);
    this.holder = block;
    this.slotAt = BLOCK_ROWS + slot * slotWords;
  }

  /** Every object has its own version. */
  settle(tx: Transaction, _bucket: number, entry: number): void {
    if (!tx.settle(entry)) tx.conflict(entry);
    tx.depend(entry);
  }

  /**
   * Empties a slot. The last pair of the home's chain moves into it, and a block that becomes empty
   * is freed, so that chains get shorter again.
   */
  giveBack(
    tx: Transaction,
    { bucket: home, holder, holderWords, tagAt, slotAt }: ShardSearch,
  ): void {
    const { set } = tx;
    const { blockWords, bucketWords, slotWords } = this.#geometry;
    const emptied = tx.writable(holder, holderWords);
    set.arena.i32[emptied + tagAt] = 0;
    set.markDirty(holder, tagAt, tagAt + 1);
    const [first] = this.#chainOf(tx, home);
    if (first === undefined) return;
    tx.depend(home);
    const from = tx.writable(first, blockWords);
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
    const homeAt = tx.writable(home, bucketWords);
    for (let word = 0; word < 3; word++) {
      set.arena.i32[homeAt + OVERFLOW + word] = set.arena.i32[from + NEXT + word];
    }
    set.markDirty(home, OVERFLOW, OVERFLOW + 3);
    tx.free(first);
  }

  /** The entries of a bucket's overflow blocks, in order. */
  #chainOf(tx: Transaction, bucket: number): number[] {
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

function emptySlot(tx: Transaction, entry: number): number {
  return firstEmpty(tx, entry, TAGS, BUCKET_SLOTS);
}

function emptyBlockSlot(tx: Transaction, entry: number): number {
  return firstEmpty(tx, entry, TAGS, OVERFLOW_SLOTS);
}

/** The first slot without a pair; the transaction depends on the object already. */
function firstEmpty(tx: Transaction, entry: number, tagsAt: number, slots: number): number {
  tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
  return firstEmptyIn(tx, entry, tagsAt, slots);
}

/** The same of the object that was opened last. */
function firstEmptyIn(tx: Transaction, entry: number, tagsAt: number, slots: number): number {
  const { i32 } = tx.views;
  let empty = -1;
  for (let slot = slots - 1; slot >= 0; slot--) {
    if (i32[tx.at + tagsAt + slot] === 0) empty = slot;
  }
  if (!tx.settle(entry)) tx.conflict(entry);
  return empty;
}
