/**
 * Where a new pair goes (FaRM §3.6): its home bucket, the next one, an empty slot brought there by
 * displacing others, or else the overflow chain of its home. Works on any transaction's view of a
 * shard, so that splitting can use it as well as inserting.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Region } from "../../memory/store-memory.ts";
import { BUCKET_SLOTS, PROBE_BUCKETS, SHARD_BUCKETS } from "../../runtime/limits.ts";
import { homeOf, TAGS } from "../shards/layout.ts";
import { firstEmptyIn, OverflowChains } from "../shards/overflow-chains.ts";
import type { ShardSearch, ShardSlots } from "../shards/sharded-store.ts";
import { BUCKET_ROWS, type Geometry } from "./layout.ts";

export class Displacement implements ShardSlots {
  readonly #geometry: Geometry;
  readonly #chains: OverflowChains;
  holder = -1;
  slotAt = 0;
  chainBlocks = 0;

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
    this.#chains = new OverflowChains(geometry.bucketWords, geometry.slotWords);
  }

  take(tx: Transaction, region: Region, base: number, hash: number): void {
    this.chainBlocks = 0;
    const home = homeOf(hash);
    if (this.#takeIn(tx, region, base, home, hash)) return;
    if (this.#takeIn(tx, region, base, home + 1, hash)) return;
    if (this.#displace(tx, region, base, home, hash)) return;
    const chains = this.#chains;
    chains.add(tx, this.#bucket(tx, region, base, home), hash);
    this.holder = chains.holder;
    this.slotAt = chains.slotAt;
    this.chainBlocks = chains.chainBlocks;
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

  /** Every object has its own version. */
  settle(tx: Transaction, _bucket: number, entry: number): void {
    if (!tx.settle(entry)) tx.conflict(entry);
    tx.depend(entry);
  }

  giveBack(tx: Transaction, found: ShardSearch): void {
    this.#chains.giveBack(tx, found.bucket, found);
  }
}

/** The first slot without a pair; the transaction depends on the bucket already. */
function emptySlot(tx: Transaction, entry: number): number {
  tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
  return firstEmptyIn(tx, entry, TAGS, BUCKET_SLOTS);
}
