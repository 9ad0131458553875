/**
 * FaSST's bucket store behind a table (layout.ts tells its shape, and why one header is enough).
 * Against hopscotch: a lookup reads one bucket and depends on one version, however long its chain
 * is, and there are fewer and larger objects; but all keys of a bucket conflict with each other.
 */

import type { Executor } from "../../engine/executor.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { addressOf, regionIdOf, wordOf } from "../../memory/address.ts";
import { assert } from "../../runtime/assert.ts";
import { BUCKETS_SPLIT_CHAIN_BLOCKS, BUCKETS_SPLIT_OCCUPANCY } from "../../runtime/limits.ts";
import { Directory } from "../hopscotch/directory.ts";
import { seedAt } from "../hopscotch/seed.ts";
import { createRow, freeRow, isPatchable, patchRow, replaceRow } from "../row-object.ts";
import type { KeyRange, PlacedCursor, RowCodec, RowPlace, RowStore } from "../store.ts";
import { Chains } from "./chains.ts";
import { Geometry, POINTER_ROW_WORDS } from "./layout.ts";
import { Lookup } from "./lookup.ts";
import { Search } from "./search.ts";
import { createShard, Splitter } from "./split.ts";
import { Walk } from "./walk.ts";

export class Buckets<Row, Key> implements RowStore<Row, Key> {
  readonly #executor: Executor;
  readonly #codec: RowCodec<Row, Key>;
  readonly #geometry: Geometry;
  readonly #seed: number;
  readonly #directory: Directory;
  readonly #search: Search<Row, Key>;
  readonly #chains: Chains;
  readonly #splitter: Splitter;
  readonly #lookup: Lookup<Row, Key>;

  constructor(
    executor: Executor,
    codec: RowCodec<Row, Key>,
    root: Address,
    splitOccupancy: number = BUCKETS_SPLIT_OCCUPANCY,
  ) {
    this.#executor = executor;
    this.#codec = codec;
    this.#geometry = new Geometry(codec.fixedWords);
    this.#seed = seedAt(executor, root);
    this.#directory = new Directory(executor.memory, regionIdOf(root), wordOf(root));
    this.#search = new Search(this.#directory, this.#geometry, codec);
    this.#chains = new Chains(this.#geometry);
    this.#splitter = new Splitter(this.#geometry, this.#directory, this.#chains, splitOccupancy);
    this.#lookup = new Lookup(
      executor,
      codec,
      this.#seed,
      this.#geometry,
      this.#directory,
      (tx, hash) => this.#read(tx, hash),
    );
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
    if (this.#geometry.inline) {
      this.#patch(tx);
      return true;
    }
    const { main, rowEntry } = this.#search;
    patchRow(tx, rowEntry, this.#codec);
    this.#chains.bump(tx, main);
    return true;
  }

  /** Changes fields of a row whose size may change with them. */
  #merge(tx: Transaction, key: Key, changes: Partial<Row>): boolean {
    const taken = this.#codec.takeChanges(changes);
    if (!this.#search.find(tx, this.#codec.stageKey(key, this.#seed))) return false;
    const { row } = this.#search;
    const before = this.#codec.decodeToMerge(row.views, row.at, row.words);
    this.#search.settle(tx);
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
    const { main, holder, tagAt, slotAt } = search;
    try {
      if (!this.#geometry.inline) freeRow(tx, search.rowEntry);
      this.#chains.giveBack(tx, main, holder, tagAt, slotAt);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  placeToWrite(tx: Transaction, key: Key): RowPlace | undefined {
    const { inline, slotWords, bucketWords } = this.#geometry;
    assert(inline, "only inline rows are written in their place");
    if (!this.#search.find(tx, this.#codec.stageKey(key, this.#seed))) return undefined;
    const { main, holder, slotAt } = this.#search;
    tx.writableWindow(holder, slotAt, slotAt + slotWords, bucketWords);
    this.#chains.bump(tx, main);
    return { entry: holder, at: slotAt };
  }

  /** All rows, in no order: a hash table has no ranges. */
  cursor(_range: KeyRange, _reverse: boolean): PlacedCursor<Row> {
    return new Walk(this.#directory, this.#geometry, this.#codec, this.#chains);
  }

  maintain(): void {
    this.#splitter.runPending(this.#executor);
  }

  /** Contiguous reads that a lookup of this key takes: its bucket, and blocks of the chain. */
  countReads(key: Key): number {
    const tx = new Transaction(this.#executor);
    this.#search.find(tx, this.#codec.stageKey(key, this.#seed));
    return 1 + this.#search.blocks;
  }

  #isThere(tx: Transaction, hash: number): boolean {
    if (!this.#search.find(tx, hash)) return false;
    this.#search.settle(tx);
    return true;
  }

  #read(tx: Transaction, hash: number): Row | undefined {
    const search = this.#search;
    if (!search.find(tx, hash)) return undefined;
    const { row } = search;
    const decoded = this.#codec.decode(row.views, row.at, row.words);
    search.settle(tx);
    return decoded;
  }

  /** Changes fields of the inline row that was found. */
  #patch(tx: Transaction): void {
    const { main, holder, slotAt } = this.#search;
    const { bucketWords } = this.#geometry;
    const range = this.#codec.changed[0];
    const first = range >>> 16;
    const end = (range >>> 1) & 0x7fff;
    if ((range & 1) === 0) {
      const at = tx.writableWindow(holder, slotAt + first, slotAt + end, bucketWords);
      this.#codec.patch(tx.set.arena, at + slotAt);
    } else {
      const at = tx.overwritableWindow(holder, slotAt + first, slotAt + end, bucketWords) + slotAt;
      const source = this.#codec.scratch.i32;
      for (let i = first; i < end; i++) tx.set.arena.i32[at + i] = source[i];
    }
    this.#chains.bump(tx, main);
  }

  /** Puts the encoded row in the place of the one that was found. */
  #replace(tx: Transaction, words: number): void {
    const { main, holder, slotAt, rowEntry } = this.#search;
    const { inline, slotWords, bucketWords } = this.#geometry;
    const { set } = tx;
    const source = this.#codec.scratch.i32;
    if (!inline && replaceRow(tx, rowEntry, source, words)) {
      const at = slotAt + POINTER_ROW_WORDS;
      const buffer = tx.writableWindow(holder, at, at + 1, bucketWords);
      set.arena.i32[buffer + at] = words;
    } else {
      if (!inline) freeRow(tx, rowEntry);
      tx.writableWindow(holder, slotAt, slotAt + slotWords, bucketWords);
      this.#fill(tx, holder, slotAt, words);
    }
    this.#chains.bump(tx, main);
  }

  #add(tx: Transaction, hash: number, words: number): void {
    const chains = this.#chains;
    chains.take(tx, this.#directory.region!, this.#directory.base, hash);
    this.#fill(tx, chains.holder, chains.slotAt, words);
    if (chains.chainBlocks === 0) return;
    // A transaction that fills its shard all by itself does not wait for its commit to split it.
    if (chains.chainBlocks >= BUCKETS_SPLIT_CHAIN_BLOCKS) this.#splitter.splitWithin(tx, hash);
    else this.#splitter.remember(hash);
  }

  /** Writes the encoded row, or a pointer to a new object with it, into a writable slot. */
  #fill(tx: Transaction, holder: number, slotAt: number, words: number): void {
    const { set } = tx;
    const source = this.#codec.scratch.i32;
    if (this.#geometry.inline) {
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
      i32[at + POINTER_ROW_WORDS] = words;
    }
    set.markDirty(holder, slotAt, slotAt + this.#geometry.slotWords);
  }
}
