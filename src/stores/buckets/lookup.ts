/**
 * Lookups outside a transaction: lock-free, writing nothing. A row in its main bucket, or behind a
 * pointer in it, takes one look; so does absence, where there is no chain: one header says it all.
 * What is rarer (a chain, a row in pieces, a stale directory, a writer in the way) is read by a small
 * transaction.
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
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
import type { StoreMemory } from "../../memory/store-memory.ts";
import { ROW_DATA, wordsOfSingleRow } from "../row-object.ts";
import { type Directory, depthIn, regionIdIn } from "../shards/directory.ts";
import { DEPTH, homeOf, TAGS, touchBucket } from "../shards/layout.ts";
import type { RowCodec } from "../store.ts";
import { type Geometry, NEXT } from "./layout.ts";

/** Reads the staged key inside a transaction. */
export type Read<Row> = (tx: Transaction, hash: number) => Row | undefined;

/** The row behind a pointer could not be read like this. */
const ASK_TRANSACTION = Symbol("needs a transaction");

export class Lookup<Row, Key> {
  readonly #executor: Executor;
  readonly #memory: StoreMemory;
  readonly #codec: RowCodec<Row, Key>;
  readonly #seed: number;
  readonly #directory: Directory;
  readonly #geometry: Geometry;
  readonly #read: Read<Row>;
  readonly #reader: Transaction;
  /** What `touchBucket` read: kept, so that the compiler keeps the loads. */
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
    this.#geometry = geometry;
    this.#read = read;
    this.#reader = new Transaction(executor);
  }

  get(key: Key): Row | undefined {
    const hash = this.#codec.stageKey(key, this.#seed);
    const { places, mask } = this.#directory;
    const { slots, slotWords, rowsAt, stride, inline } = this.#geometry;
    const place = 2 * (hash & mask);
    const shard = places[place];
    if (shard === 0) return this.#getTransactionally(hash);
    const region = this.#memory.region(regionIdIn(shard));
    const { i32 } = region;
    const main = places[place + 1] + homeOf(hash) * stride;
    this.touched = touchBucket(i32, main, stride);
    const high = loadAcquire(i32, main + VERSION_HIGH);
    const low = loadAcquire(i32, main + VERSION_LOW);
    const at = main + HEADER_WORDS;
    if (i32[at + DEPTH] !== depthIn(shard)) return this.#getTransactionally(hash);
    for (let slot = 0; slot < slots; slot++) {
      if (i32[at + TAGS + slot] !== hash) continue;
      const slotAt = at + rowsAt + slot * slotWords;
      if (!inline) {
        const row = this.#lookBehind(i32, main, slotAt, high, low);
        return row === ASK_TRANSACTION ? this.#getTransactionally(hash) : (row as Row);
      }
      if (!this.#codec.matches(region, slotAt)) continue;
      const row = this.#codec.decode(region, slotAt, slotWords);
      return unchanged(i32, main, high, low) ? row : this.#getTransactionally(hash);
    }
    const isChained = i32[at + NEXT] !== 0;
    if (isChained || !unchanged(i32, main, high, low)) return this.#getTransactionally(hash);
    return undefined;
  }

  /** Follows the pointer of a slot to a row object. */
  #lookBehind(
    bucket: Int32Array,
    main: number,
    slotAt: number,
    high: number,
    low: number,
  ): unknown {
    const regionId = bucket[slotAt] - 1;
    const word = bucket[slotAt + 1];
    const incarnation = bucket[slotAt + 2];
    if (!unchanged(bucket, main, high, low)) return ASK_TRANSACTION;
    // Not mapped here yet: it may have been given back meanwhile. In a transaction it cannot be.
    const region = this.#memory.regions[regionId];
    if (region === undefined) return ASK_TRANSACTION;
    const { i32 } = region;
    if (lockMode(loadAcquire(i32, word + LOCK)) === INSTALLING) return ASK_TRANSACTION;
    const rowHigh = loadAcquire(i32, word + VERSION_HIGH);
    const rowLow = loadAcquire(i32, word + VERSION_LOW);
    if (i32[word + INCARNATION] !== incarnation) return ASK_TRANSACTION;
    const words = wordsOfSingleRow(i32, word);
    const rowAt = word + HEADER_WORDS + ROW_DATA;
    // Another key with the same hash may be in another slot: too rare for a loop here.
    if (words < 0 || !this.#codec.matches(region, rowAt)) return ASK_TRANSACTION;
    const row = this.#codec.decode(region, rowAt, words);
    if (!unchanged(i32, word, rowHigh, rowLow)) return ASK_TRANSACTION;
    // The same version of the bucket: it was its row, and this version of it, all along.
    return unchanged(bucket, main, high, low) ? row : ASK_TRANSACTION;
  }

  #getTransactionally(hash: number): Row | undefined {
    return runReadOnly(this.#executor, this.#reader, this.#read, hash);
  }
}
