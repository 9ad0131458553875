/**
 * The hash table behind a table (layout.ts tells its shape). Lookups outside a transaction are
 * lock-free (lookup.ts); everything else goes through the engine's transactions, so that locking,
 * logging and recovery know nothing about hashing.
 */

import type { Executor } from "../../engine/executor.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { addressOf, regionIdOf, wordOf } from "../../memory/address.ts";
import { assert } from "../../runtime/assert.ts";
import { OVERFLOW_SLOTS, SPLIT_CHAIN_BLOCKS, SPLIT_OCCUPANCY } from "../../runtime/limits.ts";
import { createRow, freeRow, isPatchable, patchRow, replaceRow } from "../row-object.ts";
import type { Cursor, KeyRange, RowCodec, RowPlace, RowStore } from "../store.ts";
import { Directory } from "./directory.ts";
import { Placement } from "./displacement.ts";
import { BLOCK_ROWS, BLOCK_TAGS, Geometry, NEXT, OVERFLOW } from "./layout.ts";
import { Lookup } from "./lookup.ts";
import { Search } from "./search.ts";
import { seedAt } from "./seed.ts";
import { createShard, Splitter } from "./split.ts";
import { END, Walk } from "./walk.ts";

export class Hopscotch<Row, Key> implements RowStore<Row, Key> {
  readonly #executor: Executor;
  readonly #codec: RowCodec<Row, Key>;
  readonly #geometry: Geometry;
  readonly #seed: number;
  readonly #directory: Directory;
  readonly #search: Search<Row, Key>;
  readonly #placement: Placement;
  readonly #splitter: Splitter;
  readonly #lookup: Lookup<Row, Key>;
  readonly #inline: boolean;
  readonly #slotWords: number;

  constructor(
    executor: Executor,
    codec: RowCodec<Row, Key>,
    root: Address,
    splitOccupancy: number = SPLIT_OCCUPANCY,
  ) {
    this.#executor = executor;
    this.#codec = codec;
    this.#geometry = new Geometry(codec.fixedWords);
    this.#seed = seedAt(executor, root);
    this.#directory = new Directory(executor.memory, regionIdOf(root), wordOf(root));
    this.#search = new Search(this.#directory, this.#geometry, codec);
    this.#placement = new Placement(this.#geometry);
    this.#splitter = new Splitter(this.#geometry, this.#directory, this.#placement, splitOccupancy);
    this.#lookup = new Lookup(
      executor,
      codec,
      this.#seed,
      this.#geometry,
      this.#directory,
      (tx, hash) => this.#read(tx, hash),
    );
    this.#inline = this.#geometry.inline;
    this.#slotWords = this.#geometry.slotWords;
  }

  /** Makes an empty table, with a seed for its hash, and returns where it is rooted. */
  static create(tx: Transaction, fixedWords: number, seed = 0): Address {
    return createShard(tx, new Geometry(fixedWords), 0, seed);
  }

  get(key: Key): Row | undefined {
    return this.#lookup.get(key);
  }

  read(tx: Transaction, key: Key): Row | undefined {
    return this.#read(tx, this.#codec.stageKey(key, this.#seed));
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

  update(tx: Transaction, key: Key, changes: Partial<Row>): boolean {
    if (!isPatchable(this.#codec.fixedWords)) return this.#merge(tx, key, changes);
    const hash = this.#codec.stageUpdate(key, changes, this.#seed);
    if (!this.#search.find(tx, hash)) return false;
    if (this.#inline) {
      const { holder, slotAt } = this.#search;
      const range = this.#codec.changed[0];
      const first = range >>> 16;
      const end = (range >>> 1) & 0x7fff;
      const words = this.#holderWords();
      if ((range & 1) === 0) {
        const at = tx.writableWindow(holder, slotAt + first, slotAt + end, words);
        this.#codec.patch(tx.set.arena, at + slotAt);
      } else {
        const at = tx.overwritableWindow(holder, slotAt + first, slotAt + end, words) + slotAt;
        const source = this.#codec.scratch.i32;
        for (let i = first; i < end; i++) tx.set.arena.i32[at + i] = source[i];
      }
      return true;
    }
    patchRow(tx, this.#search.rowEntry, this.#codec);
    return true;
  }

  /** Changes fields of a row whose size may change with them. */
  #merge(tx: Transaction, key: Key, changes: Partial<Row>): boolean {
    const taken = this.#codec.takeChanges(changes);
    if (!this.#search.find(tx, this.#codec.stageKey(key, this.#seed))) return false;
    const { row, rowEntry } = this.#search;
    const before = this.#codec.decodeToMerge(row.views, row.at, row.words);
    if (!tx.settle(rowEntry)) tx.conflict(rowEntry);
    const words = this.#codec.encode(this.#codec.merge(before, taken));
    try {
      this.#replace(tx, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  remove(tx: Transaction, key: Key): boolean {
    const hash = this.#codec.stageKey(key, this.#seed);
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

  placeToWrite(tx: Transaction, key: Key): RowPlace | undefined {
    assert(this.#inline, "only inline rows are written in their place");
    if (!this.#search.find(tx, this.#codec.stageKey(key, this.#seed))) return undefined;
    const { holder, slotAt } = this.#search;
    tx.writableWindow(holder, slotAt, slotAt + this.#slotWords, this.#holderWords());
    return { entry: holder, at: slotAt };
  }

  /** The entry of the row object that a lookup inside a transaction found last. */
  get foundEntry(): number {
    return this.#search.rowEntry;
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
    const walk = new Walk(this.#directory, this.#geometry, this.#codec, this.#placement);
    walk.place = place;
    walk.step(tx, rows);
    return walk.place < END ? walk.place : 0;
  }

  /** All rows, in no order: a hash table has no ranges. */
  cursor(_range: KeyRange, _reverse: boolean): Cursor<Row> {
    return new Walk(this.#directory, this.#geometry, this.#codec, this.#placement);
  }

  maintain(): void {
    this.#splitter.runPending(this.#executor);
  }

  /**
   * Contiguous reads that a lookup of this key takes: a bucket and its neighbour are one read,
   * every overflow block is one more (FaRM §3.6 counts so).
   */
  countReads(key: Key): number {
    const tx = new Transaction(this.#executor);
    this.#search.find(tx, this.#codec.stageKey(key, this.#seed));
    return 1 + this.#search.chain.length;
  }

  #isThere(tx: Transaction, hash: number): boolean {
    const search = this.#search;
    if (!search.find(tx, hash)) return false;
    const entry = this.#inline ? search.holder : search.rowEntry;
    if (!tx.settle(entry)) tx.conflict(entry);
    return true;
  }

  #read(tx: Transaction, hash: number): Row | undefined {
    const search = this.#search;
    if (!search.find(tx, hash)) return undefined;
    const { row } = search;
    const decoded = this.#codec.decode(row.views, row.at, row.words);
    const entry = this.#inline ? search.holder : search.rowEntry;
    if (!tx.settle(entry)) tx.conflict(entry);
    return decoded;
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
