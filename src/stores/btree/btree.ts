/**
 * The B+-tree behind an ordered table (layout.ts tells its shape). Lookups outside a transaction
 * are lock-free (lookup.ts); everything else goes through the engine's transactions, so that
 * locking, logging, snapshots and recovery know nothing about trees.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { createRow, freeRow, isPatchable, patchRow, ROW_DATA, replaceRow } from "../row-object.ts";
import type { Cursor, KeyRange, OrderedCodec, RowCapture, RowStore } from "../store.ts";
import { TreeCursor } from "./cursor.ts";
import { Geometry, type TreeSizes } from "./geometry.ts";
import { Lookup } from "./lookup.ts";
import { Merger } from "./merge.ts";
import { Search } from "./search.ts";
import { createTree, pointerTo, Splitter } from "./split.ts";

/** A window that begins further behind in its object than this would begin before the arena. */
const MAX_WINDOWED_WORDS = 512;

export class BTree<Row, Key> implements RowStore<Row, Key> {
  readonly #executor: Executor;
  readonly #codec: OrderedCodec<Row, Key>;
  readonly #geometry: Geometry;
  readonly #search: Search<Row, Key>;
  /** Gives rows in the form that they are merged with changes in. */
  readonly #mergeSearch: Search<Row, Key>;
  readonly #splitter: Splitter;
  readonly #merger: Merger;
  readonly #lookup: Lookup<Row, Key>;

  constructor(executor: Executor, codec: OrderedCodec<Row, Key>, root: Address) {
    this.#executor = executor;
    this.#codec = codec;
    this.#geometry = new Geometry(codec);
    const search = new Search(codec, this.#geometry, root);
    this.#search = search;
    const toMerge = { ...codec, decode: codec.decodeToMerge };
    this.#mergeSearch = new Search(toMerge, this.#geometry, root);
    this.#splitter = new Splitter(this.#geometry, search);
    this.#merger = new Merger(this.#geometry, search);
    this.#lookup = new Lookup(executor, codec, this.#geometry, root, (tx, words) =>
      search.find(tx, words, true) ? search.row : undefined,
    );
  }

  /** Makes an empty tree and returns where it is rooted. */
  static create(tx: Transaction, sizes: TreeSizes): Address {
    return createTree(tx, new Geometry(sizes));
  }

  get(key: Key): Row | undefined {
    return this.#lookup.get(key);
  }

  read(tx: Transaction, key: Key): Row | undefined {
    return this.#search.find(tx, this.#codec.stageOrdered(key), true)
      ? this.#search.row
      : undefined;
  }

  touch(_tx: Transaction, key: Key): void {
    this.#lookup.touch(key);
  }

  has(tx: Transaction, key: Key): boolean {
    return this.#search.find(tx, this.#codec.stageOrdered(key), false);
  }

  insert(tx: Transaction, row: Row): boolean {
    return this.insertEncoded(tx, this.#codec.encode(row));
  }

  put(tx: Transaction, row: Row): void {
    this.putEncoded(tx, this.#codec.encode(row));
  }

  insertEncoded(tx: Transaction, words: number): boolean {
    const keyWords = this.#codec.stageOrderedEncoded();
    if (this.#search.find(tx, keyWords, false)) return false;
    try {
      this.#add(tx, keyWords, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  putEncoded(tx: Transaction, words: number): void {
    const keyWords = this.#codec.stageOrderedEncoded();
    const found = this.#search.find(tx, keyWords, false);
    try {
      if (found) this.#replace(tx, this.#search, words);
      else this.#add(tx, keyWords, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
  }

  update(tx: Transaction, key: Key, changes: Partial<Row>, capture?: RowCapture): boolean {
    const { inline, leaf: nodes } = this.#geometry;
    const search = this.#search;
    if (!isPatchable(this.#codec.fixedWords)) return this.#merge(tx, key, changes, capture);
    if (!search.find(tx, this.#codec.stageOrderedUpdate(key, changes), false)) return false;
    if (capture !== undefined) this.#capture(tx, capture);
    if (inline) {
      const range = this.#codec.changed[0];
      const first = range >>> 16;
      const end = (range >>> 1) & 0x7fff;
      const rowAt = nodes.payloadAt(search.index);
      if ((range & 1) === 0) {
        const at = this.#writableWords(tx, search.leaf, rowAt + first, rowAt + end);
        this.#codec.patch(tx.set.arena, at + rowAt);
      } else {
        const at = this.#overwritableWords(tx, search.leaf, rowAt + first, rowAt + end) + rowAt;
        const source = this.#codec.scratch.i32;
        for (let i = first; i < end; i++) tx.set.arena.i32[at + i] = source[i];
      }
      return true;
    }
    patchRow(tx, search.rowEntry, this.#codec);
    return true;
  }

  /** Gives the row that was found to one who wants it, with the staged changes. */
  #capture(tx: Transaction, capture: RowCapture): void {
    const { inline, leaf: nodes } = this.#geometry;
    const search = this.#search;
    // A leaf or row that changes at this moment makes the commit fail.
    const entry = inline ? search.leaf : search.rowEntry;
    tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    const rowAt = tx.at + (inline ? nodes.payloadAt(search.index) : ROW_DATA);
    const at = capture.take(tx.views, rowAt, this.#codec.fixedWords);
    this.#codec.patch(capture.views, at);
  }

  /** Changes fields of a row whose size may change with them. */
  #merge(tx: Transaction, key: Key, changes: Partial<Row>, capture?: RowCapture): boolean {
    const search = this.#mergeSearch;
    const taken = this.#codec.takeChanges(changes);
    if (!search.find(tx, this.#codec.stageOrdered(key), true)) return false;
    const words = this.#codec.encode(this.#codec.merge(search.row!, taken));
    capture?.take(this.#codec.scratch, 0, words);
    try {
      this.#replace(tx, search, words);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  remove(tx: Transaction, key: Key): boolean {
    const search = this.#search;
    const keyWords = this.#codec.stageOrdered(key);
    if (!search.find(tx, keyWords, false)) return false;
    const { inline, leaf: nodes } = this.#geometry;
    const { leaf, index } = search;
    try {
      if (!inline) freeRow(tx, search.rowEntry);
      tx.writable(leaf, nodes.words);
      nodes.remove(tx.set, leaf, index);
    } catch (error) {
      tx.failHalfWay(error);
    }
    this.#merger.look(tx, this.#codec.ordered, keyWords);
    return true;
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<Row> {
    return new TreeCursor(this.#codec, this.#geometry, this.#search, range, reverse);
  }

  maintain(): void {
    this.#merger.runPending(this.#executor);
  }

  #add(tx: Transaction, keyWords: number, words: number): void {
    const { ordered, scratch } = this.#codec;
    if (this.#geometry.inline) {
      this.#splitter.add(tx, ordered, keyWords, scratch.i32);
      return;
    }
    const row = createRow(tx, scratch.i32, words, tx.addressOf(this.#search.leaf));
    this.#splitter.add(tx, ordered, keyWords, pointerTo(tx, row));
  }

  /** Puts the encoded row in the place of the one that was found. */
  #replace(tx: Transaction, search: Search<Row, Key>, words: number): void {
    const { leaf, index, rowEntry } = search;
    const { inline, leaf: nodes } = this.#geometry;
    let source = this.#codec.scratch.i32;
    if (!inline) {
      if (replaceRow(tx, rowEntry, source, words)) return;
      freeRow(tx, rowEntry);
      source = pointerTo(tx, createRow(tx, source, words, tx.addressOf(leaf)));
    }
    const rowAt = nodes.payloadAt(index);
    const at = this.#overwritableWords(tx, leaf, rowAt, rowAt + nodes.payloadWords) + rowAt;
    for (let i = 0; i < nodes.payloadWords; i++) tx.set.arena.i32[at + i] = source[i];
  }

  /** Makes some words of the leaf writable; they count as changed. */
  #writableWords(tx: Transaction, leaf: number, from: number, to: number): number {
    const { words } = this.#geometry.leaf;
    if (words <= MAX_WINDOWED_WORDS) return tx.writableWindow(leaf, from, to, words);
    const at = tx.writable(leaf, words);
    tx.set.markDirty(leaf, from, to);
    return at;
  }

  /** The same for words that will be overwritten, all of them. */
  #overwritableWords(tx: Transaction, leaf: number, from: number, to: number): number {
    const { words } = this.#geometry.leaf;
    if (words > MAX_WINDOWED_WORDS) return this.#writableWords(tx, leaf, from, to);
    return tx.overwritableWindow(leaf, from, to, words);
  }
}
