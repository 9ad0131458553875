/**
 * Finding a key inside a transaction: home bucket, next bucket, overflow chain. All that a caller
 * needs to go on (insert, remove) stays in the fields of the search.
 *
 * What becomes part of the read set: the one object that proves the key present (its bucket or
 * block, or its row object), or all that were searched, which together prove it absent. So a key
 * that is being moved is never missed: the move changes the versions of both places. This does
 * what FaRM's joint versions do (§3.6), with the versions that the buckets have anyway.
 *
 * A row object proves itself, so the bucket that leads to it need not be an entry of the transaction's set. It becomes
 * one (`hold`) for those who change the bucket as well: who removes the row, or gives it another object.
 */

import { VERSION_HIGH, VERSION_LOW } from "../../engine/access-set.ts";
import type { Transaction } from "../../engine/transaction.ts";
import {
  VERSION_HIGH as HEADER_VERSION_HIGH,
  VERSION_LOW as HEADER_VERSION_LOW,
  HEADER_WORDS,
  unchanged,
} from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Region } from "../../memory/store-memory.ts";
import { BUCKET_SLOTS, OVERFLOW_SLOTS, SHARD_ATTEMPTS } from "../../runtime/limits.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import { type Directory, depthIn, regionIdIn } from "../shards/directory.ts";
import { DEPTH, homeOf, OVERFLOW, TAGS, touchBucket } from "../shards/layout.ts";
import { BLOCK_ROWS, NEXT } from "../shards/overflow-chains.ts";
import type { ShardSearch } from "../shards/sharded-store.ts";
import { endlessChain } from "../shards/walker.ts";
import type { RowCodec } from "../store.ts";
import { BUCKET_ROWS, type Geometry, slotWithTag } from "./layout.ts";

const FOUND = 1;
const ABSENT = 0;
/** The shard is no longer responsible, or the chain changed on the way: start again. */
const MOVED = -1;
/** The bucket changed while it was searched. */
const BEGIN_AGAIN = -2;
/** The quick look at two buckets does not tell. */
const UNSURE = -3;

export class Search<Row, Key> implements ShardSearch {
  readonly #directory: Directory;
  readonly #codec: RowCodec<Row, Key>;
  readonly #inline: boolean;
  readonly #slotWords: number;
  readonly #stride: number;
  readonly #geometry: Geometry;
  /** The home bucket. */
  bucket = -1;
  holder = -1;
  tagAt = 0;
  slotAt = 0;
  rowEntry = -1;
  readonly row = new RowPlace();
  /** What `touchBucket` read: kept, so that the compiler keeps the loads. */
  touched = 0;
  /** The entries of the home's chain in order, as far as searched. */
  readonly #chain: number[] = [];
  /** What the bucket or block scanned last says: its depth, its pointer to an overflow block. */
  #depth = 0;
  #pointerRegion = 0;
  #pointerWord = 0;
  #pointerIncarnation = 0;
  /** The bucket that the last row was found through, without an entry, and its version then. */
  #passed: Region | undefined;
  #passedWord = 0;
  #passedHigh = 0;
  #passedLow = 0;

  constructor(directory: Directory, geometry: Geometry, codec: RowCodec<Row, Key>) {
    this.#directory = directory;
    this.#geometry = geometry;
    this.#codec = codec;
    this.#inline = geometry.inline;
    this.#slotWords = geometry.slotWords;
    this.#stride = geometry.stride;
  }

  get holderWords(): number {
    const chain = this.#chain;
    const { bucketWords, blockWords } = this.#geometry;
    return chain.length > 0 && chain.includes(this.holder) ? blockWords : bucketWords;
  }

  get reads(): number {
    return 1 + this.#chain.length;
  }

  settle(tx: Transaction): void {
    const entry = this.#inline ? this.holder : this.rowEntry;
    if (!tx.settle(entry)) tx.conflict(entry);
  }

  hold(tx: Transaction): void {
    if (this.holder >= 0) return;
    const entry = tx.open(this.#passed!, this.#passedWord);
    const { words } = tx.set;
    const isSame =
      words[entry + VERSION_HIGH] === this.#passedHigh &&
      words[entry + VERSION_LOW] === this.#passedLow;
    if (!isSame) tx.conflict(entry);
    this.bucket = entry;
    this.holder = entry;
  }

  find(tx: Transaction, hash: number): boolean {
    if (this.#chain.length > 0) this.#chain.length = 0;
    const verdict = this.#inline ? this.#findNearHome(tx, hash) : this.#findBehindHome(tx, hash);
    return verdict === UNSURE ? this.#findAnywhere(tx, hash) : verdict === FOUND;
  }

  /**
   * The common cases, without detours: an inline row in its home bucket or the next, in the shard
   * that the cache names, or none in either. Anything else, be it a change in between, is left to
   * the search below.
   */
  #findNearHome(tx: Transaction, hash: number): number {
    const directory = this.#directory;
    const place = 2 * (hash & directory.mask);
    const shard = directory.places[place];
    if (shard === 0) return UNSURE;
    const region = tx.executor.memory.region(regionIdIn(shard));
    const word = directory.places[place + 1] + homeOf(hash) * this.#stride;
    if (!tx.seesCurrent(region, word)) return UNSURE;
    this.touched = touchBucket(region.i32, word, this.#stride);
    const home = tx.open(region, word);
    if (tx.views.i32[tx.at + DEPTH] !== depthIn(shard)) return UNSURE;
    this.bucket = home;
    if (this.#isHere(tx, home, hash)) return FOUND;
    const mayBeMore = mayHold(tx, hash) || tx.views.i32[tx.at + OVERFLOW] !== 0;
    // The bucket that holds a row proves it there; its home need not be part of the read set.
    const next = tx.open(region, word + this.#stride);
    if (this.#isHere(tx, next, hash)) return FOUND;
    return mayBeMore || mayHold(tx, hash) ? UNSURE : this.#isNowhere(tx, hash, next);
  }

  /**
   * The same for rows that are objects: a pointer in the home bucket leads to the row. The bucket is read where it
   * lies, unless the transaction has it in its set, and may have changed it, or reads from a snapshot.
   */
  #findBehindHome(tx: Transaction, hash: number): number {
    const directory = this.#directory;
    const place = 2 * (hash & directory.mask);
    const shard = directory.places[place];
    if (shard === 0) return UNSURE;
    const { memory } = tx.executor;
    const region = memory.region(regionIdIn(shard));
    const word = directory.places[place + 1] + homeOf(hash) * this.#stride;
    if (tx.snapshot !== undefined || tx.set.find(region.id, word) >= 0) {
      return this.#findBehindOpened(tx, hash, shard, region, word);
    }
    const { i32 } = region;
    const high = loadAcquire(i32, word + HEADER_VERSION_HIGH);
    const low = loadAcquire(i32, word + HEADER_VERSION_LOW);
    const at = word + HEADER_WORDS;
    const slot = slotWithTag(i32, at + TAGS, hash);
    if (i32[at + DEPTH] !== depthIn(shard) || i32[at + TAGS + slot] !== hash) return UNSURE;
    const slotAt = BUCKET_ROWS + slot * this.#slotWords;
    const regionId = i32[at + slotAt] - 1;
    const rowWord = i32[at + slotAt + 1];
    const incarnation = i32[at + slotAt + 2];
    if (!unchanged(i32, word, high, low)) return UNSURE;
    const row = tx.open(memory.region(regionId), rowWord);
    const matched = placeRow(tx, row, this.row) && this.#codec.matches(this.row.views, this.row.at);
    // The bucket must still point to it: then it was this row's object all along.
    if (!tx.settle(row) || !unchanged(i32, word, high, low) || !matched) return UNSURE;
    if (tx.incarnationOf(row) !== incarnation) return UNSURE;
    this.#passed = region;
    this.#passedWord = word;
    this.#passedHigh = high;
    this.#passedLow = low;
    this.bucket = -1;
    this.holder = -1;
    this.rowEntry = row;
    this.tagAt = TAGS + slot;
    this.slotAt = slotAt;
    tx.depend(row);
    return FOUND;
  }

  /** The same by way of the transaction's set. */
  #findBehindOpened(
    tx: Transaction,
    hash: number,
    shard: number,
    region: Region,
    word: number,
  ): number {
    if (!tx.seesCurrent(region, word)) return UNSURE;
    const { memory } = tx.executor;
    const home = tx.open(region, word);
    const { i32 } = tx.views;
    const { at } = tx;
    const slot = slotWithTag(i32, at + TAGS, hash);
    if (i32[at + DEPTH] !== depthIn(shard) || i32[at + TAGS + slot] !== hash) return UNSURE;
    const slotAt = BUCKET_ROWS + slot * this.#slotWords;
    const regionId = i32[at + slotAt] - 1;
    const rowWord = i32[at + slotAt + 1];
    const incarnation = i32[at + slotAt + 2];
    const { words } = tx.set;
    const high = words[home + VERSION_HIGH];
    const low = words[home + VERSION_LOW];
    if (!tx.settle(home)) return UNSURE;
    const row = tx.open(memory.region(regionId), rowWord);
    const matched = placeRow(tx, row, this.row) && this.#codec.matches(this.row.views, this.row.at);
    if (!tx.settle(row) || !isSame(tx, home, high, low) || !matched) return UNSURE;
    if (tx.incarnationOf(row) !== incarnation) return UNSURE;
    this.bucket = home;
    this.rowEntry = row;
    this.tagAt = TAGS + slot;
    this.slotAt = slotAt;
    return this.#found(tx, home);
  }

  /** Neither bucket has the tag, and there is no chain: absent, if both were read in one version. */
  #isNowhere(tx: Transaction, hash: number, next: number): number {
    if (!tx.settle(this.bucket) || !tx.settle(next)) return UNSURE;
    tx.depend(this.bucket);
    tx.depend(next);
    // Who inserts the key goes on from the shard.
    this.#directory.recall(hash);
    return ABSENT;
  }

  /** Whether the bucket that was opened last holds the staged key, as far as a first look tells. */
  #isHere(tx: Transaction, entry: number, hash: number): boolean {
    const { views, at } = tx;
    const { i32 } = views;
    const slot = slotWithTag(i32, at + TAGS, hash);
    if (i32[at + TAGS + slot] !== hash) return false;
    const slotAt = BUCKET_ROWS + slot * this.#slotWords;
    if (!this.#codec.matches(views, at + slotAt)) return false;
    tx.depend(entry);
    this.holder = entry;
    this.tagAt = TAGS + slot;
    this.slotAt = slotAt;
    this.row.views = views;
    this.row.at = at + slotAt;
    this.row.words = this.#slotWords;
    return true;
  }

  touch(tx: Transaction, hash: number): void {
    const place = 2 * (hash & this.#directory.mask);
    const shard = this.#directory.places[place];
    if (shard === 0) return;
    const { i32 } = tx.executor.memory.region(regionIdIn(shard));
    const word = this.#directory.places[place + 1] + homeOf(hash) * this.#stride;
    this.touched ^= i32[word] ^ touchBucket(i32, word, this.#stride);
  }

  #findAnywhere(tx: Transaction, hash: number): boolean {
    let known = this.#recall(tx, hash);
    for (let attempt = 0; attempt < SHARD_ATTEMPTS; attempt++) {
      if (!known) this.#directory.locate(tx, hash);
      const verdict = this.#findInShard(tx, hash, known);
      known = false;
      if (verdict !== MOVED) return verdict === FOUND;
    }
    return tx.conflict(this.bucket);
  }

  /** A shard that is younger than the transaction's snapshot is none of its. */
  #recall(tx: Transaction, hash: number): boolean {
    const directory = this.#directory;
    if (!directory.recall(hash)) return false;
    return tx.seesCurrent(directory.region!, directory.base + homeOf(hash) * this.#stride);
  }

  #findInShard(tx: Transaction, hash: number, isRecalled: boolean): number {
    const { region, base, depth } = this.#directory;
    const homeWord = base + homeOf(hash) * this.#stride;
    if (this.#chain.length > 0) this.#chain.length = 0;

    this.bucket = tx.open(region!, homeWord);
    const inHome = this.#scan(tx, this.bucket, hash, TAGS, BUCKET_ROWS, BUCKET_SLOTS, OVERFLOW);
    if (this.#depth !== depth) {
      // Less deep than a head that was read before it: our own copy of it is too old.
      if (this.#depth < depth && !isRecalled) tx.conflict(this.bucket);
      return MOVED;
    }
    if (inHome) return this.#found(tx, this.bucket);
    let blockRegion = this.#pointerRegion;
    let blockWord = this.#pointerWord;
    let blockIncarnation = this.#pointerIncarnation;

    const next = tx.open(region!, homeWord + this.#stride);
    if (this.#scan(tx, next, hash, TAGS, BUCKET_ROWS, BUCKET_SLOTS, OVERFLOW)) {
      return this.#found(tx, next);
    }
    while (blockRegion !== 0) {
      const block = tx.open(tx.executor.memory.region(blockRegion - 1), blockWord);
      if (this.#chain.includes(block)) return this.#goesRound(tx);
      this.#chain.push(block);
      const found = this.#scan(tx, block, hash, TAGS, BLOCK_ROWS, OVERFLOW_SLOTS, NEXT);
      if (tx.incarnationOf(block) !== blockIncarnation) {
        // The home bucket still says that this is its block: then it is our own copy, and too old.
        return tx.settle(this.bucket) ? tx.conflict(this.bucket) : MOVED;
      }
      if (found) return this.#found(tx, block);
      blockRegion = this.#pointerRegion;
      blockWord = this.#pointerWord;
      blockIncarnation = this.#pointerIncarnation;
    }
    tx.depend(this.bucket);
    tx.depend(next);
    for (let i = 0; i < this.#chain.length; i++) tx.depend(this.#chain[i]);
    return ABSENT;
  }

  /** A chain that was followed leads back into itself: it changed on the way, or is damaged. */
  #goesRound(tx: Transaction): number {
    const { bucket: home } = this;
    const chain = this.#chain;
    if (!tx.settle(home) || !chain.every((block) => tx.settle(block))) return MOVED;
    // Believed only if the transaction finds all of them unchanged once more.
    tx.depend(home);
    for (const block of chain) tx.depend(block);
    throw endlessChain(tx, home);
  }

  #found(tx: Transaction, holder: number): number {
    this.holder = holder;
    tx.depend(this.#inline ? holder : this.rowEntry);
    return FOUND;
  }

  /**
   * Looks for the staged key in one bucket or block, in one version of it. Leaves the slot, and
   * the pointer to the (next) overflow block.
   */
  #scan(
    tx: Transaction,
    entry: number,
    hash: number,
    tagsAt: number,
    rowsAt: number,
    slots: number,
    pointerAt: number,
  ): boolean {
    for (;;) {
      const { i32 } = tx.views;
      const { at } = tx;
      this.#depth = i32[at + DEPTH];
      this.#pointerRegion = i32[at + pointerAt];
      this.#pointerWord = i32[at + pointerAt + 1];
      this.#pointerIncarnation = i32[at + pointerAt + 2];
      const slot = this.#inline
        ? this.#scanRows(tx, entry, hash, tagsAt, rowsAt, slots)
        : this.#scanPointers(tx, entry, hash, tagsAt, rowsAt, slots);
      if (slot === BEGIN_AGAIN) {
        tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
        continue;
      }
      this.tagAt = tagsAt + slot;
      this.slotAt = rowsAt + slot * this.#slotWords;
      return slot >= 0;
    }
  }

  /** Slots with rows: the one with the staged key, -1 if it is absent. */
  #scanRows(
    tx: Transaction,
    entry: number,
    hash: number,
    tagsAt: number,
    rowsAt: number,
    slots: number,
  ): number {
    const { views, at } = tx;
    const { row } = this;
    let found = -1;
    for (let slot = 0; slot < slots && found < 0; slot++) {
      if (views.i32[at + tagsAt + slot] !== hash) continue;
      const rowAt = at + rowsAt + slot * this.#slotWords;
      if (!this.#codec.matches(views, rowAt)) continue;
      row.views = views;
      row.at = rowAt;
      row.words = this.#slotWords;
      found = slot;
    }
    return tx.settle(entry) ? found : BEGIN_AGAIN;
  }

  /** Slots with pointers to row objects: the same. */
  #scanPointers(
    tx: Transaction,
    entry: number,
    hash: number,
    tagsAt: number,
    rowsAt: number,
    slots: number,
  ): number {
    const { set } = tx;
    const { i32 } = tx.views;
    const at = tx.at;
    const high = set.words[entry + VERSION_HIGH];
    const low = set.words[entry + VERSION_LOW];
    for (let slot = 0; slot < slots; slot++) {
      if (i32[at + tagsAt + slot] !== hash) continue;
      const pointer = at + rowsAt + slot * this.#slotWords;
      const regionId = i32[pointer] - 1;
      const word = i32[pointer + 1];
      const incarnation = i32[pointer + 2];
      if (!isSame(tx, entry, high, low)) return BEGIN_AGAIN;
      const row = tx.open(tx.executor.memory.region(regionId), word);
      const placed = placeRow(tx, row, this.row);
      const matched = placed && this.#codec.matches(this.row.views, this.row.at);
      // The bucket must still point to it: then it was this row's object all along.
      const settled = tx.settle(row) && isSame(tx, entry, high, low);
      if (!settled) return BEGIN_AGAIN;
      if (!placed || tx.incarnationOf(row) !== incarnation) tx.conflict(entry);
      if (matched) {
        this.rowEntry = row;
        return slot;
      }
    }
    return isSame(tx, entry, high, low) ? -1 : BEGIN_AGAIN;
  }
}

/** Whether an object is settled in the version in which it was opened. */
function isSame(tx: Transaction, entry: number, high: number, low: number): boolean {
  const { words } = tx.set;
  if (!tx.settle(entry)) return false;
  return words[entry + VERSION_LOW] === low && words[entry + VERSION_HIGH] === high;
}

/** Whether the bucket that was opened last has the tag in any slot. */
function mayHold({ views: { i32 }, at }: Transaction, hash: number): boolean {
  const tags = at + TAGS;
  return (
    i32[tags] === hash || i32[tags + 1] === hash || i32[tags + 2] === hash || i32[tags + 3] === hash
  );
}
