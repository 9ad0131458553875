/**
 * Lookups outside a transaction: lock-free, writing nothing. The walk goes over the segments as they are in memory, and
 * is believed if the versions are the same afterwards: that of the one segment which has the pair, or, for a key that is
 * absent, those of all that were walked over, for a pair may have moved from one to another meanwhile. What is rarer (a
 * chain, a row in pieces, a stale directory, a writer in the way) is read by a small transaction.
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
import type { Region, StoreMemory } from "../../memory/store-memory.ts";
import { MAX_DISPLACEMENT, SEGMENT_SLOTS } from "../../runtime/limits.ts";
import { ROW_DATA, wordsOfSingleRow } from "../row-object.ts";
import { type Directory, depthIn, regionIdIn } from "../shards/directory.ts";
import { DEPTH, OVERFLOW, TAGS, touchBucket } from "../shards/layout.ts";
import type { RowCodec } from "../store.ts";
import {
  type Geometry,
  homeSlotOf,
  placeInSegment,
  SEGMENT_ROWS,
  segmentOf,
  WALKED_SEGMENTS,
} from "./layout.ts";

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
  readonly #inline: boolean;
  readonly #stride: number;
  readonly #slotWords: number;
  readonly #read: Read<Row>;
  readonly #reader: Transaction;
  /** The versions of the segments that were walked over, two words each. */
  readonly #versions = new Int32Array(2 * WALKED_SEGMENTS);
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
    this.#inline = geometry.inline;
    this.#stride = geometry.stride;
    this.#slotWords = geometry.slotWords;
    this.#read = read;
    this.#reader = new Transaction(executor);
  }

  get(key: Key): Row | undefined {
    const hash = this.#codec.stageKey(key, this.#seed);
    const { places, mask } = this.#directory;
    const place = 2 * (hash & mask);
    const shard = places[place];
    if (shard === 0) return this.#getTransactionally(hash);
    const region = this.#memory.region(regionIdIn(shard));
    const { i32 } = region;
    const home = homeSlotOf(hash);
    const first = places[place + 1] + segmentOf(home) * this.#stride;
    this.touched = touchBucket(i32, first, this.#stride);
    const end = home + MAX_DISPLACEMENT;
    const versions = this.#versions;
    let walked = 0;
    let slot = home;
    while (slot < end) {
      const word = first + walked * this.#stride;
      const high = loadAcquire(i32, word + VERSION_HIGH);
      const low = loadAcquire(i32, word + VERSION_LOW);
      const at = word + HEADER_WORDS;
      if (walked === 0 && i32[at + DEPTH] !== depthIn(shard)) return this.#getTransactionally(hash);
      versions[2 * walked] = high;
      versions[2 * walked + 1] = low;
      walked++;
      const last = Math.min(end, slot - placeInSegment(slot) + SEGMENT_SLOTS);
      let isOver = false;
      for (; slot < last; slot++) {
        const inSegment = placeInSegment(slot);
        const tag = i32[at + TAGS + inSegment];
        if (tag === hash) {
          const slotAt = at + SEGMENT_ROWS + inSegment * this.#slotWords;
          if (!this.#inline) {
            const row = this.#lookBehind(i32, word, slotAt, high, low);
            return row === ASK_TRANSACTION ? this.#getTransactionally(hash) : (row as Row);
          }
          if (!this.#codec.matches(region, slotAt)) continue;
          const row = this.#codec.decode(region, slotAt, this.#slotWords);
          return unchanged(i32, word, high, low) ? row : this.#getTransactionally(hash);
        }
        if (tag === 0 || homeSlotOf(tag) > home) {
          isOver = true;
          break;
        }
      }
      if (isOver) break;
    }
    const isChained = i32[first + HEADER_WORDS + OVERFLOW] !== 0;
    if (isChained || !this.#isUnchanged(region, first, walked)) {
      return this.#getTransactionally(hash);
    }
    return undefined;
  }

  #isUnchanged({ i32 }: Region, first: number, walked: number): boolean {
    const versions = this.#versions;
    for (let i = 0; i < walked; i++) {
      const word = first + i * this.#stride;
      if (!unchanged(i32, word, versions[2 * i], versions[2 * i + 1])) return false;
    }
    return true;
  }

  /** Follows the pointer of a slot to a row object. */
  #lookBehind(
    segment: Int32Array,
    word: number,
    slotAt: number,
    high: number,
    low: number,
  ): unknown {
    const regionId = segment[slotAt] - 1;
    const rowWord = segment[slotAt + 1];
    const incarnation = segment[slotAt + 2];
    if (!unchanged(segment, word, high, low)) return ASK_TRANSACTION;
    // Not mapped here yet: it may have been given back meanwhile. In a transaction it cannot be.
    const region = this.#memory.regions[regionId];
    if (region === undefined) return ASK_TRANSACTION;
    const { i32 } = region;
    if (lockMode(loadAcquire(i32, rowWord + LOCK)) === INSTALLING) return ASK_TRANSACTION;
    const rowHigh = loadAcquire(i32, rowWord + VERSION_HIGH);
    const rowLow = loadAcquire(i32, rowWord + VERSION_LOW);
    if (i32[rowWord + INCARNATION] !== incarnation) return ASK_TRANSACTION;
    const words = wordsOfSingleRow(i32, rowWord);
    const rowAt = rowWord + HEADER_WORDS + ROW_DATA;
    // Another key with the same hash may be in another slot: too rare for a loop here.
    if (words < 0 || !this.#codec.matches(region, rowAt)) return ASK_TRANSACTION;
    const row = this.#codec.decode(region, rowAt, words);
    if (!unchanged(i32, rowWord, rowHigh, rowLow)) return ASK_TRANSACTION;
    // The segment still points to the row: its memory cannot have been given to something else.
    return unchanged(segment, word, high, low) ? row : ASK_TRANSACTION;
  }

  #getTransactionally(hash: number): Row | undefined {
    return runReadOnly(this.#executor, this.#reader, this.#read, hash);
  }
}
