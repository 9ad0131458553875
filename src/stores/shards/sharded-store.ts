/**
 * A table of shards, in whatever layout: the layout brings the parts that differ (how a key is
 * found, where a new pair goes, how a slot is given back, which version stands for what), and this
 * is the store that they make. Lookups outside a transaction are lock-free; everything else goes
 * through the engine's transactions, so that locking, logging and recovery know nothing about
 * hashing.
 */

import type { Executor } from "../../engine/executor.ts";
import { Transaction } from "../../engine/transaction.ts";
import { addressOf } from "../../memory/address.ts";
import { assert } from "../../runtime/assert.ts";
import {
  createRow,
  freeRow,
  isPatchable,
  patchRow,
  type RowPlace as RowObjectPlace,
  replaceRow,
} from "../row-object.ts";
import type { KeyRange, PlacedCursor, RowCapture, RowCodec, RowPlace, RowStore } from "../store.ts";
import { END, placeOfHash, ShardCursor } from "./cursor.ts";
import type { Directory } from "./directory.ts";
import { POINTER_ROW_WORDS, type ShardGeometry } from "./layout.ts";
import { type SlotFinder, Splitter } from "./split.ts";
import type { ShardVersions } from "./walker.ts";

/** Finds keys inside a transaction. What it has found stays in its fields. */
export interface ShardSearch {
  /** The entries of the key's home bucket, and of the bucket or block that holds the pair; -1 if they are not held. */
  readonly bucket: number;
  readonly holder: number;
  /** Data words of the holder. */
  readonly holderWords: number;
  /** Where in the holder's data the tag and the slot are. */
  readonly tagAt: number;
  readonly slotAt: number;
  /** The entry of the row object, if rows are objects. */
  readonly rowEntry: number;
  /** Where the row can be read. */
  readonly row: RowObjectPlace;
  /** Contiguous reads that the last search took: FaRM §3.6 counts a bucket and its neighbour as one. */
  readonly reads: number;
  /** Searches for the staged key. What it finds is part of the read set, but not settled yet. */
  find(tx: Transaction, hash: number): boolean;
  /** Makes the home bucket and the holder of a row object entries, if the search has left them out. */
  hold?(tx: Transaction): void;
  /** After the row that was found has been read: it was one, of the version depended on. */
  settle(tx: Transaction): void;
  /** Asks memory for the bucket of a key that will be looked for soon. */
  touch(tx: Transaction, hash: number): void;
}

export interface ShardSlots extends SlotFinder, ShardVersions {
  /** Empties the slot that was found, and keeps the bucket's chain as short as it can be. */
  giveBack(tx: Transaction, found: ShardSearch): void;
  /** Where a bucket's version stands for all that hangs on it: something of that has changed. */
  bump?(tx: Transaction, bucket: number): void;
}

export interface ShardParts<Row, Key> {
  readonly seed: number;
  readonly geometry: ShardGeometry;
  readonly directory: Directory;
  readonly search: ShardSearch;
  readonly slots: ShardSlots;
  readonly lookup: { get(key: Key): Row | undefined };
  readonly splitOccupancy: number;
  /** A chain of so many blocks has its shard split at once, if that is half as full. */
  readonly splitChainBlocks: number;
}

/** Reads the staged key inside a transaction. */
export function readStaged<Row, Key>(
  tx: Transaction,
  hash: number,
  search: ShardSearch,
  codec: RowCodec<Row, Key>,
): Row | undefined {
  if (!search.find(tx, hash)) return undefined;
  const { row } = search;
  const decoded = codec.decode(row.views, row.at, row.words);
  search.settle(tx);
  return decoded;
}

export class ShardedStore<Row, Key> implements RowStore<Row, Key> {
  readonly #executor: Executor;
  readonly #codec: RowCodec<Row, Key>;
  readonly #geometry: ShardGeometry;
  readonly #seed: number;
  readonly #directory: Directory;
  readonly #search: ShardSearch;
  readonly #slots: ShardSlots;
  readonly #splitter: Splitter;
  readonly #splitChainBlocks: number;
  readonly #lookup: { get(key: Key): Row | undefined };
  readonly #inline: boolean;
  readonly #slotWords: number;
  /** Whether the layout has `bump`: asked on every change. */
  readonly #bumps: boolean;

  constructor(executor: Executor, codec: RowCodec<Row, Key>, parts: ShardParts<Row, Key>) {
    const { geometry, directory, slots } = parts;
    this.#executor = executor;
    this.#codec = codec;
    this.#geometry = geometry;
    this.#seed = parts.seed;
    this.#directory = directory;
    this.#search = parts.search;
    this.#slots = slots;
    this.#splitter = new Splitter(geometry, directory, slots, slots, parts.splitOccupancy);
    this.#splitChainBlocks = parts.splitChainBlocks;
    this.#lookup = parts.lookup;
    this.#inline = geometry.inline;
    this.#slotWords = geometry.slotWords;
    this.#bumps = slots.bump !== undefined;
  }

  get(key: Key): Row | undefined {
    return this.#lookup.get(key);
  }

  read(tx: Transaction, key: Key): Row | undefined {
    const hash = this.#codec.stageKey(key, this.#seed);
    return readStaged(tx, hash, this.#search, this.#codec);
  }

  touch(tx: Transaction, key: Key): void {
    this.#search.touch(tx, this.#codec.stageKey(key, this.#seed));
  }

  has(tx: Transaction, key: Key): boolean {
    return this.#isThere(tx, this.#codec.stageKey(key, this.#seed));
  }

  insert(tx: Transaction, row: Row): boolean {
    return this.insertEncoded(tx, this.#codec.encode(row));
  }

  put(tx: Transaction, row: Row): void {
    this.putEncoded(tx, this.#codec.encode(row));
  }

  insertEncoded(tx: Transaction, words: number): boolean {
    const hash = this.#codec.stageEncoded(this.#seed);
    if (this.#isThere(tx, hash)) return false;
    try {
      this.#add(tx, hash, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  putEncoded(tx: Transaction, words: number): void {
    const hash = this.#codec.stageEncoded(this.#seed);
    const found = this.#search.find(tx, hash);
    try {
      if (found) this.#replace(tx, words);
      else this.#add(tx, hash, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
  }

  update(tx: Transaction, key: Key, changes: Partial<Row>, capture?: RowCapture): boolean {
    if (!isPatchable(this.#codec.fixedWords)) return this.#merge(tx, key, changes, capture);
    const hash = this.#codec.stageUpdate(key, changes, this.#seed);
    const search = this.#search;
    if (!search.find(tx, hash)) return false;
    if (capture !== undefined) {
      // It may be torn; then the version has changed as well, and the commit fails.
      const { row } = search;
      const at = capture.take(row.views, row.at, row.words);
      this.#codec.patch(capture.views, at);
    }
    if (this.#inline) {
      const { holder, slotAt, holderWords } = search;
      const range = this.#codec.changed[0];
      const first = range >>> 16;
      const end = (range >>> 1) & 0x7fff;
      if ((range & 1) === 0) {
        const at = tx.writableWindow(holder, slotAt + first, slotAt + end, holderWords);
        this.#codec.patch(tx.set.arena, at + slotAt);
      } else {
        const at =
          tx.overwritableWindow(holder, slotAt + first, slotAt + end, holderWords) + slotAt;
        const source = this.#codec.scratch.i32;
        for (let i = first; i < end; i++) tx.set.arena.i32[at + i] = source[i];
      }
    } else {
      patchRow(tx, search.rowEntry, this.#codec);
    }
    if (this.#bumps) this.#slots.bump?.(tx, search.bucket);
    return true;
  }

  /** Changes fields of a row whose size may change with them. */
  #merge(tx: Transaction, key: Key, changes: Partial<Row>, capture?: RowCapture): boolean {
    const taken = this.#codec.takeChanges(changes);
    const search = this.#search;
    if (!search.find(tx, this.#codec.stageKey(key, this.#seed))) return false;
    const { row } = search;
    const before = this.#codec.decodeToMerge(row.views, row.at, row.words);
    search.settle(tx);
    const words = this.#codec.encode(this.#codec.merge(before, taken));
    capture?.take(this.#codec.scratch, 0, words);
    try {
      this.#replace(tx, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  remove(tx: Transaction, key: Key): boolean {
    const search = this.#search;
    if (!search.find(tx, this.#codec.stageKey(key, this.#seed))) return false;
    try {
      search.hold?.(tx);
      if (!this.#inline) freeRow(tx, search.rowEntry);
      this.#slots.giveBack(tx, search);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  placeToWrite(tx: Transaction, key: Key): RowPlace | undefined {
    assert(this.#inline, "only inline rows are written in their place");
    const search = this.#search;
    if (!search.find(tx, this.#codec.stageKey(key, this.#seed))) return undefined;
    const { holder, slotAt, holderWords } = search;
    tx.writableWindow(holder, slotAt, slotAt + this.#slotWords, holderWords);
    if (this.#bumps) this.#slots.bump?.(tx, search.bucket);
    return { entry: holder, at: slotAt };
  }

  /** The entry of the row object that a lookup inside a transaction found last. */
  get foundEntry(): number {
    return this.#search.rowEntry;
  }

  placeOf(key: Key): number {
    return placeOfHash(this.#codec.stageKey(key, this.#seed));
  }

  /** Places of `step`: from 0 up to, not including, this one. */
  get places(): number {
    return END;
  }

  /**
   * Replaces `rows` by some of the table's, those at a place, and returns the place after them, 0 at
   * the end. Steps in different transactions make a walk that meets every row that stays, though the
   * table grows meanwhile.
   */
  step(tx: Transaction, place: number, rows: Row[]): number {
    const cursor = this.#cursor();
    cursor.place = place;
    cursor.step(tx, rows);
    return cursor.place < END ? cursor.place : 0;
  }

  /** All rows, in no order: a hash table has no ranges. */
  cursor(_range: KeyRange, _reverse: boolean): PlacedCursor<Row> {
    return this.#cursor();
  }

  #cursor(): ShardCursor<Row, Key> {
    return new ShardCursor(this.#directory, this.#geometry, this.#codec, this.#slots);
  }

  maintain(): void {
    this.#splitter.runPending(this.#executor);
  }

  /** Contiguous reads that a lookup of this key takes: its bucket, and blocks of the chain. */
  countReads(key: Key): number {
    const tx = new Transaction(this.#executor);
    this.#search.find(tx, this.#codec.stageKey(key, this.#seed));
    return this.#search.reads;
  }

  #isThere(tx: Transaction, hash: number): boolean {
    if (!this.#search.find(tx, hash)) return false;
    this.#search.settle(tx);
    return true;
  }

  /** Puts the encoded row in the place of the one that was found. */
  #replace(tx: Transaction, words: number): void {
    const search = this.#search;
    if (this.#inline || !this.#replaceObject(tx, words)) {
      search.hold?.(tx);
      const { holder, slotAt, holderWords } = search;
      if (!this.#inline) freeRow(tx, search.rowEntry);
      const end = slotAt + this.#slotWords;
      // A row that fills its slot leaves nothing of the one before it.
      if (this.#inline && words === this.#slotWords) {
        tx.overwritableWindow(holder, slotAt, end, holderWords);
      } else {
        tx.writableWindow(holder, slotAt, end, holderWords);
      }
      this.#fill(tx, holder, slotAt, words);
    }
    if (this.#bumps) this.#slots.bump?.(tx, search.bucket);
  }

  /** The same within the row's object, if it fits there. */
  #replaceObject(tx: Transaction, words: number): boolean {
    const { holder, slotAt, holderWords, rowEntry } = this.#search;
    if (!replaceRow(tx, rowEntry, this.#codec.scratch.i32, words)) return false;
    if (this.#geometry.tellsRowWords) {
      const at = slotAt + POINTER_ROW_WORDS;
      const buffer = tx.writableWindow(holder, at, at + 1, holderWords);
      tx.set.arena.i32[buffer + at] = words;
    }
    return true;
  }

  #add(tx: Transaction, hash: number, words: number): void {
    const slots = this.#slots;
    slots.take(tx, this.#directory.region!, this.#directory.base, hash);
    this.#fill(tx, slots.holder, slots.slotAt, words);
    if (slots.chainBlocks === 0) return;
    // A transaction that fills its shard all by itself does not wait for its commit to split it.
    if (slots.chainBlocks >= this.#splitChainBlocks) this.#splitter.splitWithin(tx, hash);
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
      const { i32 } = set.arena;
      i32[at] = set.regionIdOf(row) + 1;
      i32[at + 1] = set.wordOf(row);
      i32[at + 2] = set.incarnationOf(row);
      if (this.#geometry.tellsRowWords) i32[at + POINTER_ROW_WORDS] = words;
    }
    set.markDirty(holder, slotAt, slotAt + this.#slotWords);
  }
}
