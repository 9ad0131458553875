/**
 * Finding a key inside a transaction: its main bucket, then the chain. All that a caller needs to
 * go on (insert, remove) stays in the fields of the search.
 *
 * Only the main bucket becomes part of the read set, whether the key is there or not (layout.ts
 * says why that is enough). Blocks and row objects are opened and settled, and after each of them
 * the main bucket is settled once more.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Views } from "../../memory/views.ts";
import { MAX_CHAIN_BLOCKS, SHARD_ATTEMPTS } from "../../runtime/limits.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import { type Directory, depthIn, regionIdIn } from "../shards/directory.ts";
import { DEPTH, homeOf, TAGS, touchBucket } from "../shards/layout.ts";
import type { ShardSearch } from "../shards/sharded-store.ts";
import { endlessChain } from "../shards/walker.ts";
import type { RowCodec } from "../store.ts";
import { type Geometry, NEXT } from "./layout.ts";

/** Verdicts of a search; those of a scan are slots, if they are not negative. */
const FOUND = 1;
const ABSENT = 0;
/** The shard is no longer responsible. */
const MOVED = -1;
/** The bucket changed while it was searched. */
const AGAIN = -2;
/** The key is not in this bucket or block. */
const NOT_HERE = -3;

export class Search<Row, Key> implements ShardSearch {
  readonly #directory: Directory;
  readonly #geometry: Geometry;
  readonly #codec: RowCodec<Row, Key>;
  readonly #inline: boolean;
  readonly #stride: number;
  /** The main bucket. */
  bucket = -1;
  holder = -1;
  readonly holderWords: number;
  tagAt = 0;
  slotAt = 0;
  rowEntry = -1;
  readonly row = new RowPlace();
  /** What `touchBucket` read: kept, so that the compiler keeps the loads. */
  touched = 0;
  /** How many blocks of the chain were searched. */
  #blocks = 0;

  constructor(directory: Directory, geometry: Geometry, codec: RowCodec<Row, Key>) {
    this.#directory = directory;
    this.#geometry = geometry;
    this.#codec = codec;
    this.#inline = geometry.inline;
    this.#stride = geometry.stride;
    this.holderWords = geometry.bucketWords;
  }

  get reads(): number {
    return 1 + this.#blocks;
  }

  find(tx: Transaction, hash: number): boolean {
    this.#blocks = 0;
    if (this.#inline && this.#findInMain(tx, hash)) return true;
    let isKnown = this.#recall(tx, hash);
    for (let attempt = 0; attempt < SHARD_ATTEMPTS; attempt++) {
      if (!isKnown) this.#directory.locate(tx, hash);
      const verdict = this.#findInShard(tx, hash, isKnown);
      if (verdict === FOUND || verdict === ABSENT) return verdict === FOUND;
      isKnown = verdict === AGAIN;
    }
    return tx.conflict(this.bucket);
  }

  settle(tx: Transaction): void {
    const { bucket: main, holder } = this;
    if (!this.#inline && !tx.settle(this.rowEntry)) tx.conflict(this.rowEntry);
    if (holder !== main && !tx.settle(holder)) tx.conflict(holder);
    if (!tx.settle(main)) tx.conflict(main);
  }

  touch(tx: Transaction, hash: number): void {
    const { places, mask } = this.#directory;
    const place = 2 * (hash & mask);
    const shard = places[place];
    if (shard === 0) return;
    const { i32 } = tx.executor.memory.region(regionIdIn(shard));
    const word = places[place + 1] + homeOf(hash) * this.#stride;
    this.touched ^= i32[word] ^ touchBucket(i32, word, this.#stride);
  }

  /**
   * The common case, without detours: an inline row in its main bucket, in the shard that the cache
   * names. Anything else, be it a change in between, is left to the search above.
   */
  #findInMain(tx: Transaction, hash: number): boolean {
    const { places, mask } = this.#directory;
    const place = 2 * (hash & mask);
    const shard = places[place];
    if (shard === 0) return false;
    const region = tx.executor.memory.region(regionIdIn(shard));
    const word = places[place + 1] + homeOf(hash) * this.#stride;
    if (!tx.seesCurrent(region, word)) return false;
    this.touched = touchBucket(region.i32, word, this.#stride);
    const main = tx.open(region, word);
    const { views, at } = tx;
    if (views.i32[at + DEPTH] !== depthIn(shard)) return false;
    const slot = this.#slotWithKey(views, at, hash);
    if (slot < 0) return false;
    this.bucket = main;
    this.#foundIn(main, slot);
    tx.depend(main);
    return true;
  }

  /** A shard that is younger than the transaction's snapshot is none of its. */
  #recall(tx: Transaction, hash: number): boolean {
    const directory = this.#directory;
    if (!directory.recall(hash)) return false;
    return tx.seesCurrent(directory.region!, directory.base + homeOf(hash) * this.#stride);
  }

  #findInShard(tx: Transaction, hash: number, isRecalled: boolean): number {
    const { region, base, depth } = this.#directory;
    const { memory } = tx.executor;
    this.#blocks = 0;
    const main = tx.open(region!, base + homeOf(hash) * this.#stride);
    this.bucket = main;
    const itsDepth = tx.views.i32[tx.at + DEPTH];
    let holder = main;
    let expected = 0;
    for (;;) {
      const { views, at } = tx;
      const next = views.i32[at + NEXT] - 1;
      const word = views.i32[at + NEXT + 1];
      const incarnation = views.i32[at + NEXT + 2];
      const slot = this.#inline
        ? this.#slotWithKey(views, at, hash)
        : this.#slotWithPointer(tx, holder, hash);
      if (slot === AGAIN || !this.#isSettled(tx, holder)) return AGAIN;
      if (holder === main && itsDepth !== depth) {
        // Less deep than a head that was read before it: our own copy of it is too old.
        if (itsDepth < depth && !isRecalled) tx.conflict(main);
        return MOVED;
      }
      // The main bucket says that this is its block: then only our own view of it is too old.
      if (holder !== main && tx.incarnationOf(holder) !== expected) tx.conflict(main);
      if (slot !== NOT_HERE) this.#foundIn(holder, slot);
      if (slot !== NOT_HERE || next < 0) {
        tx.depend(main);
        return slot === NOT_HERE ? ABSENT : FOUND;
      }
      if (++this.#blocks > MAX_CHAIN_BLOCKS) {
        tx.depend(main);
        throw endlessChain(tx, main);
      }
      holder = tx.open(memory.region(next), word);
      expected = incarnation;
    }
  }

  /** Whether all that was read of a bucket or block is of one version of the main bucket. */
  #isSettled(tx: Transaction, holder: number): boolean {
    const { bucket: main } = this;
    return (holder === main || tx.settle(holder)) && tx.settle(main);
  }

  #foundIn(holder: number, slot: number): void {
    this.holder = holder;
    this.tagAt = TAGS + slot;
    this.slotAt = this.#geometry.slotAt(slot);
  }

  /** Slots with rows: the one with the staged key, as far as a first look tells. */
  #slotWithKey(views: Views, at: number, hash: number): number {
    const { slots, slotWords, rowsAt } = this.#geometry;
    const { row } = this;
    const tags = at + TAGS;
    for (let slot = 0; slot < slots; slot++) {
      if (views.i32[tags + slot] !== hash) continue;
      const rowAt = at + rowsAt + slot * slotWords;
      if (!this.#codec.matches(views, rowAt)) continue;
      row.views = views;
      row.at = rowAt;
      row.words = slotWords;
      return slot;
    }
    return NOT_HERE;
  }

  /** Slots with pointers to row objects: the same. */
  #slotWithPointer(tx: Transaction, holder: number, hash: number): number {
    const geometry = this.#geometry;
    const { views, at } = tx;
    for (let slot = 0; slot < geometry.slots; slot++) {
      if (views.i32[at + TAGS + slot] !== hash) continue;
      const pointer = at + geometry.slotAt(slot);
      const regionId = views.i32[pointer] - 1;
      const word = views.i32[pointer + 1];
      const incarnation = views.i32[pointer + 2];
      if (!this.#isSettled(tx, holder)) return AGAIN;
      const entry = tx.open(tx.executor.memory.region(regionId), word);
      const isPlaced = placeRow(tx, entry, this.row);
      const isMatch = isPlaced && this.#codec.matches(this.row.views, this.row.at);
      if (!tx.settle(entry) || !this.#isSettled(tx, holder)) return AGAIN;
      if (!isPlaced || tx.incarnationOf(entry) !== incarnation) tx.conflict(this.bucket);
      if (!isMatch) continue;
      this.rowEntry = entry;
      return slot;
    }
    return NOT_HERE;
  }
}
