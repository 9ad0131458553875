/**
 * The hash table behind a table (layout.ts tells its shape). Lookups outside a transaction are
 * lock-free and read most keys with one look at one bucket; everything else goes through the
 * engine's transactions, so that locking, logging and recovery know nothing about hashing.
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { addressOf, regionIdOf, wordOf } from "../../memory/address.ts";
import {
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockMode,
  unchanged,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Region, StoreMemory } from "../../memory/region.ts";
import {
  BUCKET_SLOTS,
  OVERFLOW_SLOTS,
  SPLIT_CHAIN_BLOCKS,
  SPLIT_OCCUPANCY,
} from "../../runtime/limits.ts";
import type { RowCodec, Store } from "../store.ts";
import { Directory, depthIn, regionIdIn } from "./directory.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  DEPTH,
  Geometry,
  homeOf,
  NEXT,
  OVERFLOW,
  slotWithTag,
  touchBucket,
} from "./layout.ts";
import { Placement } from "./placement.ts";
import { createRow, freeRow, ROW_DATA, replaceRow, wordsOfSingleRow } from "./row-object.ts";
import { Search } from "./search.ts";
import { createShard, Splitter } from "./split.ts";

/** Outcomes of a lock-free look at a bucket that are not a row. */
const NOT_HERE = Symbol("not in this bucket");
const CHANGED = Symbol("the bucket changed, look again");
/** The row is in several pieces: the transactional path puts them together. */
const ASK_TRANSACTION = Symbol("needs a transaction");

export class Hopscotch<Row, Key> implements Store<Row, Key> {
  readonly #executor: Executor;
  readonly #memory: StoreMemory;
  readonly #codec: RowCodec<Row, Key>;
  readonly #geometry: Geometry;
  readonly #directory: Directory;
  readonly #search: Search<Row, Key>;
  readonly #placement: Placement;
  readonly #splitter: Splitter;
  /** For lookups that cannot be done lock-free: a chain, or a row in pieces. */
  readonly #reader: Transaction;
  readonly #inline: boolean;
  readonly #stride: number;
  readonly #slotWords: number;
  /** What `touchBucket` read: kept, so that the compiler keeps the loads. */
  touched = 0;

  constructor(
    executor: Executor,
    codec: RowCodec<Row, Key>,
    root: Address,
    splitOccupancy: number = SPLIT_OCCUPANCY,
  ) {
    this.#executor = executor;
    this.#memory = executor.memory;
    this.#codec = codec;
    this.#geometry = new Geometry(codec.fixedWords);
    this.#directory = new Directory(executor.memory, regionIdOf(root), wordOf(root));
    this.#search = new Search(this.#directory, this.#geometry, codec);
    this.#placement = new Placement(this.#geometry);
    this.#splitter = new Splitter(this.#geometry, this.#directory, this.#placement, splitOccupancy);
    this.#reader = new Transaction(executor);
    this.#inline = this.#geometry.inline;
    this.#stride = this.#geometry.stride;
    this.#slotWords = this.#geometry.slotWords;
  }

  /** Makes an empty table and returns where it is rooted. */
  static create(tx: Transaction, fixedWords: number): Address {
    return createShard(tx, new Geometry(fixedWords), 0);
  }

  /**
   * The common case first, in as few instructions as possible, so that the processor can be at
   * the next lookup while this one waits for memory: an inline row in its home bucket.
   */
  get(key: Key): Row | undefined {
    const hash = this.#codec.stageKey(key);
    const directory = this.#directory;
    const place = 2 * (hash & directory.mask);
    const shard = directory.places[place];
    if (shard === 0 || !this.#inline) return this.#getAnywhere(hash);
    const region = this.#memory.region(regionIdIn(shard));
    const { i32 } = region;
    const home = directory.places[place + 1] + homeOf(hash) * this.#stride;
    this.touched = touchBucket(i32, home, this.#stride);
    loadAcquire(i32, home + LOCK);
    const high = i32[home + VERSION_HIGH];
    const low = i32[home + VERSION_LOW];
    const tags = home + HEADER_WORDS + BUCKET_TAGS;
    const slot = slotWithTag(i32, tags, hash);
    if (i32[tags + slot] !== hash || i32[home + HEADER_WORDS + DEPTH] !== depthIn(shard)) {
      return this.#getAnywhere(hash);
    }
    const at = home + HEADER_WORDS + BUCKET_ROWS + slot * this.#slotWords;
    if (!this.#codec.matches(region, at)) return this.#getAnywhere(hash);
    const row = this.#codec.decode(region, at, this.#slotWords);
    return unchanged(i32, home, high, low) ? row : this.#getAnywhere(hash);
  }

  #getAnywhere(hash: number): Row | undefined {
    const directory = this.#directory;
    for (;;) {
      if (!directory.recall(hash)) return this.#getTransactionally(hash);
      const { depth } = directory;
      const region = directory.region!;
      const home = directory.base + homeOf(hash) * this.#stride;
      const { i32 } = region;
      if (lockMode(loadAcquire(i32, home)) === INSTALLING) {
        this.#executor.awaitReadable(region, home);
        continue;
      }
      const high = i32[home + VERSION_HIGH];
      const low = i32[home + VERSION_LOW];
      if (i32[home + HEADER_WORDS + DEPTH] !== depth) {
        return this.#getTransactionally(hash);
      }
      const inHome = this.#lookInto(region, home, hash, high, low);
      if (inHome === CHANGED) continue;
      if (inHome === ASK_TRANSACTION) return this.#getTransactionally(hash);
      if (inHome !== NOT_HERE) return inHome as Row;

      const next = home + this.#stride;
      if (lockMode(loadAcquire(i32, next)) === INSTALLING) {
        this.#executor.awaitReadable(region, next);
        continue;
      }
      const nextHigh = i32[next + VERSION_HIGH];
      const nextLow = i32[next + VERSION_LOW];
      const inNext = this.#lookInto(region, next, hash, nextHigh, nextLow);
      if (inNext === CHANGED) continue;
      if (inNext === ASK_TRANSACTION) return this.#getTransactionally(hash);
      if (inNext !== NOT_HERE) return inNext as Row;

      const chained = i32[home + HEADER_WORDS + OVERFLOW] !== 0;
      // Absent, if neither bucket changed while the other was read: nothing moved between them.
      if (!unchanged(i32, next, nextHigh, nextLow) || !unchanged(i32, home, high, low)) continue;
      if (chained) return this.#getTransactionally(hash);
      return undefined;
    }
  }

  read(tx: Transaction, key: Key): Row | undefined {
    return this.#read(tx, this.#codec.stageKey(key));
  }

  has(tx: Transaction, key: Key): boolean {
    return this.#isThere(tx, this.#codec.stageKey(key));
  }

  insert(tx: Transaction, row: Row): boolean {
    const words = this.#codec.encode(row);
    const hash = this.#codec.stageKeyOf(row);
    if (this.#isThere(tx, hash)) return false;
    try {
      this.#add(tx, hash, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  put(tx: Transaction, row: Row): void {
    const words = this.#codec.encode(row);
    const hash = this.#codec.stageKeyOf(row);
    const found = this.#search.find(tx, hash);
    try {
      if (found) this.#replace(tx, words);
      else this.#add(tx, hash, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
  }

  update(tx: Transaction, key: Key, changes: Partial<Row>): boolean {
    const hash = this.#codec.stageKey(key);
    if (!this.#search.find(tx, hash)) return false;
    if (this.#inline) {
      const { holder, slotAt } = this.#search;
      const range = this.#codec.patchRange(changes);
      const from = slotAt + (range >>> 16);
      const to = slotAt + (range & 0xffff);
      const at = tx.writableWindow(holder, from, to, this.#holderWords());
      this.#codec.patch(tx.set.arena, at + slotAt, changes);
      return true;
    }
    const { row, rowEntry } = this.#search;
    const before = this.#codec.decode(row.views, row.at, row.words);
    if (!tx.settle(rowEntry)) tx.conflict(rowEntry);
    const words = this.#codec.encode(this.#codec.merge(before, changes));
    try {
      this.#replace(tx, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  remove(tx: Transaction, key: Key): boolean {
    const hash = this.#codec.stageKey(key);
    const search = this.#search;
    if (!search.find(tx, hash)) return false;
    const { holder, tagAt, slotAt } = search;
    try {
      if (!this.#inline) freeRow(tx, search.rowEntry);
      const at = tx.writable(holder, this.#holderWords());
      tx.set.arena.i32[at + tagAt] = 0;
      tx.set.markDirty(holder, tagAt, tagAt + 1);
      this.#collapse(tx, holder, tagAt, slotAt);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  maintain(): void {
    this.#splitter.runPending(this.#executor);
  }

  /**
   * Contiguous reads that a lookup of this key takes: a bucket and its neighbour are one read,
   * every overflow block is one more (FaRM §3.6 counts so).
   */
  countReads(key: Key): number {
    this.#reader.clear();
    const hash = this.#codec.stageKey(key);
    this.#search.find(this.#reader, hash);
    return 1 + this.#search.chain.length;
  }

  #isThere(tx: Transaction, hash: number): boolean {
    const search = this.#search;
    if (!search.find(tx, hash)) return false;
    const entry = this.#inline ? search.holder : search.rowEntry;
    if (!tx.settle(entry)) tx.conflict(entry);
    return true;
  }

  readonly #readHash = (tx: Transaction, hash: number): Row | undefined => this.#read(tx, hash);

  #read(tx: Transaction, hash: number): Row | undefined {
    const search = this.#search;
    if (!search.find(tx, hash)) return undefined;
    const { row } = search;
    const decoded = this.#codec.decode(row.views, row.at, row.words);
    const entry = this.#inline ? search.holder : search.rowEntry;
    if (!tx.settle(entry)) tx.conflict(entry);
    return decoded;
  }

  /** A lookup as a read-only transaction of its own, for what is too rare for a path of its own. */
  #getTransactionally(hash: number): Row | undefined {
    return runReadOnly(this.#executor, this.#reader, this.#readHash, hash);
  }

  #lookInto(region: Region, word: number, hash: number, high: number, low: number): unknown {
    const { i32 } = region;
    const tags = word + HEADER_WORDS + BUCKET_TAGS;
    const rows = word + HEADER_WORDS + BUCKET_ROWS;
    for (let slot = 0; slot < BUCKET_SLOTS; slot++) {
      if (i32[tags + slot] !== hash) continue;
      const at = rows + slot * this.#slotWords;
      if (!this.#inline) return this.#lookBehind(region, word, at, high, low);
      if (!this.#codec.matches(region, at)) continue;
      const row = this.#codec.decode(region, at, this.#slotWords);
      return unchanged(i32, word, high, low) ? row : CHANGED;
    }
    return NOT_HERE;
  }

  /** Follows the pointer of a slot to a row object. */
  #lookBehind(bucket: Region, word: number, at: number, high: number, low: number): unknown {
    const regionId = bucket.i32[at] - 1;
    const rowWord = bucket.i32[at + 1];
    const incarnation = bucket.i32[at + 2];
    if (!unchanged(bucket.i32, word, high, low)) return CHANGED;
    const region = this.#executor.memory.region(regionId);
    const { i32 } = region;
    if (lockMode(loadAcquire(i32, rowWord)) === INSTALLING) {
      this.#executor.awaitReadable(region, rowWord);
    }
    const rowHigh = i32[rowWord + VERSION_HIGH];
    const rowLow = i32[rowWord + VERSION_LOW];
    if (i32[rowWord + INCARNATION] !== incarnation) return CHANGED;
    const words = wordsOfSingleRow(i32, rowWord);
    if (words < 0) return ASK_TRANSACTION;
    const rowAt = rowWord + HEADER_WORDS + ROW_DATA;
    // Another key with the same hash may be in another slot: too rare for a loop here.
    if (!this.#codec.matches(region, rowAt)) return ASK_TRANSACTION;
    const row = this.#codec.decode(region, rowAt, words);
    if (!unchanged(i32, rowWord, rowHigh, rowLow)) return CHANGED;
    // The bucket still points to the row: its memory cannot have been given to something else.
    return unchanged(bucket.i32, word, high, low) ? row : CHANGED;
  }

  #holderWords(): number {
    const { holder, chain } = this.#search;
    return chain.length > 0 && chain.includes(holder)
      ? this.#geometry.blockWords
      : this.#geometry.bucketWords;
  }

  /** Puts the encoded row in the place of the one that was found. */
  #replace(tx: Transaction, words: number): void {
    const { holder, slotAt, rowEntry } = this.#search;
    const source = this.#codec.scratch.i32;
    if (!this.#inline) {
      if (replaceRow(tx, rowEntry, source, words)) return;
      freeRow(tx, rowEntry);
    }
    tx.writableWindow(holder, slotAt, slotAt + this.#slotWords, this.#holderWords());
    this.#fill(tx, holder, slotAt, words);
  }

  #add(tx: Transaction, hash: number, words: number): void {
    const placement = this.#placement;
    placement.take(tx, this.#directory.region!, this.#directory.base, hash);
    this.#fill(tx, placement.holder, placement.slotAt, words);
    if (placement.chainBlocks === 0) return;
    // A transaction that fills its shard all by itself does not wait for its commit to split it.
    if (placement.chainBlocks >= SPLIT_CHAIN_BLOCKS) this.#splitter.splitWithin(tx, hash);
    else this.#splitter.remember(hash);
  }

  /** Writes the encoded row, or a pointer to a new object with it, into a writable slot. */
  #fill(tx: Transaction, holder: number, slotAt: number, words: number): void {
    const { set } = tx;
    const source = this.#codec.scratch.i32;
    if (this.#inline) {
      const at = set.bufferOf(holder) + slotAt;
      for (let word = 0; word < words; word++) set.arena.i32[at + word] = source[word];
    } else {
      const near = addressOf(set.regionIdOf(holder), set.wordOf(holder));
      const row = createRow(tx, source, words, near);
      const at = set.bufferOf(holder) + slotAt;
      set.arena.i32[at] = set.regionIdOf(row) + 1;
      set.arena.i32[at + 1] = set.wordOf(row);
      set.arena.i32[at + 2] = set.incarnationOf(row);
    }
    set.markDirty(holder, slotAt, slotAt + this.#slotWords);
  }

  /**
   * After a removal: the last pair of the home's chain moves into the empty slot, and a block that
   * becomes empty is freed, so that chains get shorter again.
   */
  #collapse(tx: Transaction, holder: number, tagAt: number, slotAt: number): void {
    const { home } = this.#search;
    const { set } = tx;
    const { blockWords, bucketWords } = this.#geometry;
    const [first] = this.#placement.chainOf(tx, home);
    if (first === undefined) return;
    tx.depend(home);
    const from = tx.writable(first, blockWords);
    const { i32 } = set.arena;
    let last = OVERFLOW_SLOTS - 1;
    while (last >= 0 && i32[from + BLOCK_TAGS + last] === 0) last--;
    const movedAt = BLOCK_ROWS + last * this.#slotWords;
    if (last >= 0 && !(first === holder && movedAt === slotAt)) {
      const to = set.bufferOf(holder);
      i32[to + tagAt] = i32[from + BLOCK_TAGS + last];
      for (let word = 0; word < this.#slotWords; word++) {
        i32[to + slotAt + word] = i32[from + movedAt + word];
      }
      set.markDirty(holder, slotAt, slotAt + this.#slotWords);
      i32[from + BLOCK_TAGS + last] = 0;
      set.markDirty(first, BLOCK_TAGS, BLOCK_TAGS + OVERFLOW_SLOTS);
    }
    for (let slot = 0; slot < OVERFLOW_SLOTS; slot++) {
      if (i32[from + BLOCK_TAGS + slot] !== 0) return;
    }
    const homeAt = tx.writable(home, bucketWords);
    for (let word = 0; word < 3; word++) {
      set.arena.i32[homeAt + OVERFLOW + word] = set.arena.i32[from + NEXT + word];
    }
    set.markDirty(home, OVERFLOW, OVERFLOW + 3);
    tx.free(first);
  }
}
