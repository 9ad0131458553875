/**
 * Lookups outside a transaction: lock-free, writing nothing. Most keys take one look at one bucket.
 * The two buckets of a key are read at different moments, so absence is believed only if neither
 * changed while the other was read: then nothing moved between them. What is too rare for a path
 * of its own (a chain, a row in pieces, a stale directory) is read by a small transaction.
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import {
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  lockMode,
  unchanged,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Region, StoreMemory } from "../../memory/store-memory.ts";
import { BUCKET_SLOTS, LOOKUP_ATTEMPTS } from "../../runtime/limits.ts";
import { ROW_DATA, touchRow, wordsOfSingleRow } from "../row-object.ts";
import { type Directory, depthIn, regionIdIn } from "../shards/directory.ts";
import { DEPTH, homeOf, OVERFLOW, TAGS, touchBucket } from "../shards/layout.ts";
import type { RowCodec } from "../store.ts";
import { BUCKET_ROWS, type Geometry, slotWithTag } from "./layout.ts";

/** Outcomes of a look at a bucket that are not a row. */
const NOT_HERE = Symbol("not in this bucket");
const CHANGED = Symbol("the bucket changed, look again");
/** The row is in several pieces, or another one has the same hash. */
const ASK_TRANSACTION = Symbol("needs a transaction");

/** Reads the staged key inside a transaction. */
export type Read<Row> = (tx: Transaction, hash: number) => Row | undefined;

export class Lookup<Row, Key> {
  readonly #executor: Executor;
  readonly #memory: StoreMemory;
  readonly #codec: RowCodec<Row, Key>;
  readonly #seed: number;
  readonly #directory: Directory;
  readonly #inline: boolean;
  readonly #stride: number;
  readonly #slotWords: number;
  /** Of every row, or 0 if they differ. */
  readonly #rowWords: number;
  readonly #read: Read<Row>;
  readonly #reader: Transaction;
  /** What `touchBucket` and `touchRow` read: kept, so that the compiler keeps the loads. */
  touched = 0;

  constructor(
    executor: Executor,
    codec: RowCodec<Row, Key>,
    seed: number,
    geometry: Geometry,
    directory: Directory,
    read: Read<Row>,
  ) {
    this.#executor = executor;
    this.#memory = executor.memory;
    this.#codec = codec;
    this.#seed = seed;
    this.#directory = directory;
    this.#inline = geometry.inline;
    this.#stride = geometry.stride;
    this.#slotWords = geometry.slotWords;
    this.#rowWords = codec.fixedWords;
    this.#read = read;
    this.#reader = new Transaction(executor);
  }

  /**
   * The common case first, in as few instructions as possible, so that the processor can be at
   * the next lookup while this one waits for memory: an inline row in its home bucket.
   */
  get(key: Key): Row | undefined {
    const hash = this.#codec.stageKey(key, this.#seed);
    const directory = this.#directory;
    const place = 2 * (hash & directory.mask);
    const shard = directory.places[place];
    if (shard === 0) return this.#getAnywhere(hash);
    if (!this.#inline) return this.#getBehind(hash, shard, directory.places[place + 1]);
    const region = this.#memory.region(regionIdIn(shard));
    const { i32 } = region;
    const home = directory.places[place + 1] + homeOf(hash) * this.#stride;
    this.touched = touchBucket(i32, home, this.#stride);
    const high = loadAcquire(i32, home + VERSION_HIGH);
    const low = loadAcquire(i32, home + VERSION_LOW);
    const tags = home + HEADER_WORDS + TAGS;
    const slot = slotWithTag(i32, tags, hash);
    if (i32[home + HEADER_WORDS + DEPTH] !== depthIn(shard)) return this.#getAnywhere(hash);
    if (i32[tags + slot] !== hash) return this.#getNext(region, home + this.#stride, hash);
    const at = home + HEADER_WORDS + BUCKET_ROWS + slot * this.#slotWords;
    if (!this.#codec.matches(region, at)) return this.#getAnywhere(hash);
    const row = this.#codec.decode(region, at, this.#slotWords);
    return unchanged(i32, home, high, low) ? row : this.#getAnywhere(hash);
  }

  /** The next common case: the row is in the bucket after its home, which alone proves it there. */
  #getNext(region: Region, next: number, hash: number): Row | undefined {
    const { i32 } = region;
    const high = loadAcquire(i32, next + VERSION_HIGH);
    const low = loadAcquire(i32, next + VERSION_LOW);
    const tags = next + HEADER_WORDS + TAGS;
    const slot = slotWithTag(i32, tags, hash);
    const at = next + HEADER_WORDS + BUCKET_ROWS + slot * this.#slotWords;
    if (i32[tags + slot] !== hash || !this.#codec.matches(region, at)) {
      return this.#getAnywhere(hash);
    }
    const row = this.#codec.decode(region, at, this.#slotWords);
    return unchanged(i32, next, high, low) ? row : this.#getAnywhere(hash);
  }

  /** The common case of a row that does not fit a slot: a pointer in the home bucket leads to it. */
  #getBehind(hash: number, shard: number, base: number): Row | undefined {
    const region = this.#memory.region(regionIdIn(shard));
    const { i32 } = region;
    const home = base + homeOf(hash) * this.#stride;
    const high = loadAcquire(i32, home + VERSION_HIGH);
    const low = loadAcquire(i32, home + VERSION_LOW);
    const tags = home + HEADER_WORDS + TAGS;
    const slot = slotWithTag(i32, tags, hash);
    if (i32[home + HEADER_WORDS + DEPTH] !== depthIn(shard) || i32[tags + slot] !== hash) {
      return this.#getAnywhere(hash);
    }
    const at = home + HEADER_WORDS + BUCKET_ROWS + slot * this.#slotWords;
    const row = this.#lookBehind(region, home, at, high, low);
    if (row === CHANGED || row === ASK_TRANSACTION) return this.#getAnywhere(hash);
    return row as Row;
  }

  #getAnywhere(hash: number): Row | undefined {
    const directory = this.#directory;
    for (let attempt = 0; ; attempt++) {
      // What keeps changing, or is damaged and never fits, is left to a transaction: that has an end.
      if (attempt >= LOOKUP_ATTEMPTS || !directory.recall(hash)) {
        return this.#getTransactionally(hash);
      }
      const { depth } = directory;
      const region = directory.region!;
      const home = directory.base + homeOf(hash) * this.#stride;
      const { i32 } = region;
      if (lockMode(loadAcquire(i32, home)) === INSTALLING) {
        this.#executor.awaitReadable(region, home);
        continue;
      }
      const high = loadAcquire(i32, home + VERSION_HIGH);
      const low = loadAcquire(i32, home + VERSION_LOW);
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
      const nextHigh = loadAcquire(i32, next + VERSION_HIGH);
      const nextLow = loadAcquire(i32, next + VERSION_LOW);
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

  #lookInto(region: Region, word: number, hash: number, high: number, low: number): unknown {
    const { i32 } = region;
    const tags = word + HEADER_WORDS + TAGS;
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
    // Not mapped here yet: it may have been given back meanwhile. In a transaction it cannot be.
    const region = this.#memory.regions[regionId];
    if (region === undefined) return ASK_TRANSACTION;
    const { i32 } = region;
    if (this.#rowWords > 0) this.touched = touchRow(i32, rowWord, this.#rowWords);
    // Not waited for here: if the row was freed meanwhile, this need not be a lock.
    if (lockMode(loadAcquire(i32, rowWord)) === INSTALLING) return ASK_TRANSACTION;
    const rowHigh = loadAcquire(i32, rowWord + VERSION_HIGH);
    const rowLow = loadAcquire(i32, rowWord + VERSION_LOW);
    if (i32[rowWord + INCARNATION] !== incarnation) return CHANGED;
    const words = wordsOfSingleRow(i32, rowWord);
    if (words < 0) return ASK_TRANSACTION;
    if (this.#rowWords === 0) this.touched = touchRow(i32, rowWord, words);
    const rowAt = rowWord + HEADER_WORDS + ROW_DATA;
    // Another key with the same hash may be in another slot: too rare for a loop here.
    if (!this.#codec.matches(region, rowAt)) return ASK_TRANSACTION;
    const row = this.#codec.decode(region, rowAt, words);
    if (!unchanged(i32, rowWord, rowHigh, rowLow)) return CHANGED;
    // The bucket still points to the row: its memory cannot have been given to something else.
    return unchanged(bucket.i32, word, high, low) ? row : CHANGED;
  }

  #getTransactionally(hash: number): Row | undefined {
    return runReadOnly(this.#executor, this.#reader, this.#read, hash);
  }
}
