/**
 * Growing online. A shard that had to chain and is full enough is split in two by one transaction:
 * the pairs whose next hash bit is set go to a new shard, the others stay; both then have one more
 * bit of depth. A pair of a bucket goes to the same slot of the same bucket, for its home is the same there; only those
 * of chains are placed anew, and mostly find room in a bucket. Only transactions that touch these buckets meanwhile see a conflict, and retry. There
 * is no table-wide step, ever: the directory is a cache, and learns of a split from the buckets.
 */

import { ENTRY_WORDS } from "../../engine/access-set.ts";
import type { Executor } from "../../engine/executor.ts";
import { copyWords } from "../../engine/journal.ts";
import { tryRun } from "../../engine/run.ts";
import { SPLITS } from "../../engine/slot.ts";
import { Transaction } from "../../engine/transaction.ts";
import { type Address, addressOf, regionIdOf, wordOf } from "../../memory/address.ts";
import { HEADER_WORDS } from "../../memory/object.ts";
import type { Region } from "../../memory/store-memory.ts";
import type { Views } from "../../memory/views.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_SHARD_DEPTH } from "../../runtime/limits.ts";
import type { Directory } from "./directory.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SEED,
  HEAD_SIBLINGS,
  HEAD_WORDS,
  OVERFLOW,
  type ShardGeometry,
  TAGS,
} from "./layout.ts";
import { ShardAccess, type ShardVersions, type ShardVisitor, ShardWalker } from "./walker.ts";

/** A split that keeps meeting others is left to the next one who finds the shard full. */
const SPLIT_ATTEMPTS = 8;
const MAX_PENDING = 64;

/** Makes an empty shard and returns the address of its head. */
export function createShard(
  tx: Transaction,
  { buckets, bucket }: ShardGeometry,
  depth: number,
  seed = 0,
): Address {
  const { set } = tx;
  const head = tx.allocate(HEAD_WORDS * 4);
  const near = addressOf(set.regionIdOf(head), set.wordOf(head));
  const first = tx.allocateArray(buckets, bucket.words * 4, near);
  for (let index = 0; index < buckets; index++) {
    set.arena.i32[set.bufferOf(first + index * ENTRY_WORDS) + DEPTH] = depth;
  }
  const at = set.bufferOf(head);
  set.arena.i32[at + HEAD_DEPTH] = depth;
  set.arena.i32[at + HEAD_SEED] = seed;
  set.arena.i32[at + HEAD_BUCKETS] = set.regionIdOf(first) + 1;
  set.arena.i32[at + HEAD_BUCKETS + 1] = set.wordOf(first);
  return near;
}

/** Finds slots for pairs, in the way of a layout. */
export interface SlotFinder {
  /** The place that was taken: bucket or block, already writable, tag set; and the slot's data. */
  readonly holder: number;
  readonly slotAt: number;
  /** How many blocks the chain has, if it got a new one for the pair; else 0. */
  readonly chainBlocks: number;
  /** Takes a slot for a pair with this hash in the shard whose first bucket is at `base`. */
  take(tx: Transaction, region: Region, base: number, hash: number): void;
}

export class Splitter {
  readonly #geometry: ShardGeometry;
  readonly #directory: Directory;
  readonly #slots: SlotFinder;
  readonly #splitOccupancy: number;
  readonly #pairs: PairCollector;
  readonly #walker: ShardWalker;
  /** Hashes whose shard had to chain: a look at its occupancy is due. */
  readonly #pending = new Set<number>();
  #tx: Transaction | undefined;

  constructor(
    geometry: ShardGeometry,
    directory: Directory,
    slots: SlotFinder,
    versions: ShardVersions,
    splitOccupancy: number,
  ) {
    this.#geometry = geometry;
    this.#directory = directory;
    this.#slots = slots;
    this.#splitOccupancy = splitOccupancy;
    this.#pairs = new PairCollector(geometry, versions);
    this.#walker = new ShardWalker(geometry, this.#pairs);
  }

  remember(hash: number): void {
    if (this.#pending.size < MAX_PENDING) this.#pending.add(hash);
  }

  /** Splits what is due, each shard in a transaction of its own. One who is hurried leaves some. */
  runPending(executor: Executor): void {
    if (this.#pending.size === 0) return;
    const hashes = [...this.#pending];
    this.#pending.clear();
    this.#tx ??= new Transaction(executor);
    const untilMs = executor.maintenanceEndMs();
    for (const hash of hashes) {
      if (nowMs() > untilMs) {
        this.#pending.add(hash);
        continue;
      }
      try {
        tryRun(executor, this.#tx, SPLIT_ATTEMPTS, (tx) =>
          this.#splitIf(tx, hash, this.#splitOccupancy),
        );
      } catch (error) {
        // No memory, or a stopped process in the way: chains serve until somebody can split.
        if (error instanceof SituError) return;
        throw error;
      }
    }
  }

  /** Splits the shard of a hash as part of the transaction that fills it. */
  splitWithin(tx: Transaction, hash: number): void {
    this.#splitIf(tx, hash, this.#splitOccupancy / 2);
  }

  #splitIf(tx: Transaction, hash: number, occupancy: number): void {
    this.#directory.locate(tx, hash);
    if (this.#occupancy(tx) >= occupancy) this.#split(tx);
  }

  /** The part of the shard's bucket slots that hold a pair; may be a little off. */
  #occupancy(tx: Transaction): number {
    const { buckets, bucket, stride } = this.#geometry;
    const { region, base } = this.#directory;
    let used = 0;
    if (tx.set.writes === 0) {
      // Nothing of it is this transaction's own: an estimate needs no versions.
      const { i32 } = region!;
      for (let index = 0; index < buckets; index++) {
        const tagsAt = base + index * stride + HEADER_WORDS + TAGS;
        for (let slot = 0; slot < bucket.slots; slot++) if (i32[tagsAt + slot] !== 0) used++;
      }
      return used / (buckets * bucket.slots);
    }
    for (let index = 0; index < buckets; index++) {
      const entry = tx.open(region!, base + index * stride);
      for (let slot = 0; slot < bucket.slots; slot++) {
        if (tx.views.i32[tx.at + TAGS + slot] !== 0) used++;
      }
      tx.settle(entry);
    }
    return used / (buckets * bucket.slots);
  }

  #split(tx: Transaction): void {
    const { set, executor } = tx;
    const { base, depth, headRegion, headWord } = this.#directory;
    const region = this.#directory.region!;
    const { buckets, stride, slotWords } = this.#geometry;
    if (depth >= MAX_SHARD_DEPTH) return;
    const head = tx.open(headRegion!, headWord);
    tx.depend(head);
    const pairs = this.#pairs;
    pairs.begin(tx, region, depth);
    for (let bucket = 0; bucket < buckets; bucket++) {
      this.#walker.walk(bucket, base + bucket * stride);
    }

    const sibling = createShard(tx, this.#geometry, depth + 1);
    const headAt = tx.writable(head, HEAD_WORDS);
    const { i32 } = set.arena;
    i32[headAt + HEAD_DEPTH] = depth + 1;
    i32[headAt + HEAD_SIBLINGS + 2 * depth] = regionIdOf(sibling) + 1;
    i32[headAt + HEAD_SIBLINGS + 2 * depth + 1] = wordOf(sibling);
    set.markDirty(head, 0, HEAD_WORDS);

    const siblingAt = set.bufferOf(set.find(regionIdOf(sibling), wordOf(sibling)));
    const newRegion = executor.memory.region(i32[siblingAt + HEAD_BUCKETS] - 1);
    const newBase = i32[siblingAt + HEAD_BUCKETS + 1];
    const first = set.find(newRegion.id, newBase);
    for (let bucket = 0; bucket < buckets && !this.#geometry.keepsOrder; bucket++) {
      const from = set.bufferOf(set.find(region.id, base + bucket * stride));
      this.#divide(i32, from, set.bufferOf(first + bucket * ENTRY_WORDS), depth);
    }
    const slots = this.#slots;
    for (let at = 0; at < pairs.end; at += 1 + slotWords) {
      const hash = pairs.words[at];
      if (((hash >>> depth) & 1) === 1) slots.take(tx, newRegion, newBase, hash);
      else slots.take(tx, region, base, hash);
      const { holder, slotAt } = slots;
      const to = set.bufferOf(holder) + slotAt;
      copyWords(pairs.words, at + 1, set.arena.i32, to, slotWords);
      set.markDirty(holder, slotAt, slotAt + slotWords);
    }
    executor.counters[executor.counterBase + SPLITS]++;
  }

  /** Moves the pairs of a bucket whose next hash bit is set to an empty one. */
  #divide(i32: Int32Array, from: number, to: number, depth: number): void {
    const { bucket, slotWords } = this.#geometry;
    for (let slot = 0; slot < bucket.slots; slot++) {
      const hash = i32[from + TAGS + slot];
      if (hash === 0 || ((hash >>> depth) & 1) === 0) continue;
      i32[to + TAGS + slot] = hash;
      i32[from + TAGS + slot] = 0;
      const slotAt = bucket.rowsAt + slot * slotWords;
      copyWords(i32, from + slotAt, i32, to + slotAt, slotWords);
    }
  }
}

/**
 * Takes all pairs out of a shard's chains, frees these, and makes its buckets writable and one bit deeper. Where
 * pairs keep an order, it takes them out of the buckets, too.
 */
class PairCollector implements ShardVisitor {
  readonly #bucketWords: number;
  readonly #tagsEnd: number;
  readonly #slotWords: number;
  readonly #keepsOrder: boolean;
  readonly #access: ShardAccess;
  #depth = 0;
  /** Tags and slots of the pairs that were taken out, one behind the other. */
  words = new Int32Array(0);
  end = 0;

  constructor({ bucket, slotWords, keepsOrder }: ShardGeometry, versions: ShardVersions) {
    this.#keepsOrder = keepsOrder;
    this.#bucketWords = bucket.words;
    this.#tagsEnd = TAGS + bucket.slots;
    this.#slotWords = slotWords;
    this.#access = new ShardAccess(versions);
  }

  get views(): Views {
    return this.#access.views;
  }

  get at(): number {
    return this.#access.at;
  }

  begin(tx: Transaction, region: Region, depth: number): void {
    this.#access.tx = tx;
    this.#access.region = region;
    this.#depth = depth;
    this.end = 0;
  }

  openBucket(_bucket: number, word: number): boolean {
    const access = this.#access;
    access.openBucket(word);
    access.settle(access.bucket);
    access.tx.depend(access.bucket);
    return true;
  }

  openBlock(block: number, regionId: number, word: number, incarnation: number): boolean {
    this.#access.openBlock(block, regionId, word, incarnation);
    return true;
  }

  pair(tag: number, _slot: number, { i32 }: Views, at: number): void {
    const { bucket, holder } = this.#access;
    if (holder === bucket && !this.#keepsOrder) return;
    const { end } = this;
    this.end = end + 1 + this.#slotWords;
    if (this.end > this.words.length) {
      const longer = new Int32Array(2 * this.end);
      longer.set(this.words);
      this.words = longer;
    }
    this.words[end] = tag;
    copyWords(i32, at, this.words, end + 1, this.#slotWords);
  }

  close(): boolean {
    const { tx, bucket, holder } = this.#access;
    this.#access.settle(holder);
    if (holder !== bucket) tx.free(holder);
    return true;
  }

  leave(): void {
    const { tx, bucket } = this.#access;
    const { set } = tx;
    const at = tx.writable(bucket, this.#bucketWords);
    // Split since its head was looked at: another transaction has done this already.
    if (set.arena.i32[at + DEPTH] !== this.#depth) tx.conflict(bucket);
    set.arena.i32[at + DEPTH] = this.#depth + 1;
    const end = this.#keepsOrder ? this.#tagsEnd : TAGS;
    for (let word = OVERFLOW; word < end; word++) set.arena.i32[at + word] = 0;
    set.markDirty(bucket, 0, this.#tagsEnd);
  }
}
