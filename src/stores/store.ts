/**
 * What every store offers to the database above: rows by key, inside a transaction or lock-free.
 * And what it asks for: a codec that knows the schema. Stores move words; only a codec knows what
 * they mean.
 *
 * Keys, rows and changes are the caller's, and reading them may run the caller's code, which may use
 * the same transaction. A store hands them to its codec first, and only then searches: what it has
 * found, and what the codec has staged, is then good until the operation ends.
 */

import type { Transaction } from "../engine/transaction.ts";
import type { Views } from "../memory/views.ts";

export interface RowCodec<Row, Key> {
  /** Words of every row if all have the same size, else 0. Always even. */
  readonly fixedWords: number;
  /** Where `encode` leaves a row. */
  readonly scratch: Views;
  /**
   * Prepares a key for `matches` and returns its hash, which is never 0. Checks its type. The seed
   * is that of the store's root (hopscotch/seed.ts). Without one it is the hash that all machines
   * agree on, which places keys in a cluster's partitions.
   */
  stageKey(key: Key, seed?: number): number;
  /** The same for the key inside a row that is our own. */
  stageKeyOf(row: Row, seed?: number): number;
  /** The same for the key of the row that `encode` has left in the scratch area. */
  stageEncoded(seed?: number): number;
  /** Whether the row at word `at` has the staged key. Bounded, whatever lies there. */
  matches(views: Views, at: number): boolean;
  /** Writes a row to the scratch area and returns its words, an even number. Checks all types. */
  encode(row: Row): number;
  /** Reads the row at word `at`; `words` is its size. Total: garbage in, some row out. */
  decode(views: Views, at: number, words: number): Row;
  /**
   * The same for a row that will be written again with some fields changed: what is costly to turn
   * into a value and back is left as it is. For `merge` only.
   */
  decodeToMerge(views: Views, at: number, words: number): Row;
  /** Changes of the caller's as an object of our own, checked. None may be part of the key. */
  takeChanges(changes: Partial<Row>): Partial<Row>;
  /** A row of `decodeToMerge` with the changes of `takeChanges`. */
  merge(row: Row, changes: Partial<Row>): Row;
  /**
   * Stages a key as `stageKey` does, and changes of fields of a row of fixed size, for `patch`.
   * Checks all types.
   */
  stageUpdate(key: Key, changes: Partial<Row>, seed?: number): number;
  /**
   * What the staged changes are. Its first word says which words of the row they lie in: the first
   * (16 bits), the one after the last (15 bits), and a bit that says that all these words are one
   * field's, and lie at their place in the scratch area.
   */
  readonly changed: Int32Array;
  /** Applies the staged changes to the row at word `at`. */
  patch(views: Views, at: number): void;
}

/**
 * The same for stores that keep their rows in the order of their keys. A key in its ordered form is
 * a sequence of words, compared as unsigned numbers one by one; of two that are the same as far as
 * the shorter one goes, the shorter one is less.
 */
export interface OrderedCodec<Row, Key> extends RowCodec<Row, Key> {
  /** Words of every key in its ordered form if all have the same number of them, else 0. */
  readonly orderedWords: number;
  /** No key has more words than this in its ordered form. */
  readonly mostOrderedWords: number;
  /** Where `stageOrdered` leaves a key. */
  readonly ordered: Int32Array;
  /** Writes a key in its ordered form to `ordered` and returns its words. Checks its type. */
  stageOrdered(key: Key): number;
  /** The same for the key inside a row that is our own. */
  stageOrderedOf(row: Row): number;
  /** The same for the key of the row that `encode` has left in the scratch area. */
  stageOrderedEncoded(): number;
  /** As `stageUpdate`, with the key in its ordered form. */
  stageOrderedUpdate(key: Key, changes: Partial<Row>): number;
}

/** Keys in their ordered form, from the first one on, up to but not including the last one. */
export interface KeyRange {
  readonly from: Int32Array | undefined;
  readonly to: Int32Array | undefined;
}

/**
 * Walks over the rows of a store, some at a time. Its place changes only when a call returns: one
 * that throws can be repeated. Between two calls the transaction may change rows, or be cleared
 * if nothing depends on it, as for a snapshot.
 */
export interface Cursor<Row> {
  /** Replaces `rows` by the next ones, `most` of them at most; false if there are no more. */
  next(tx: Transaction, rows: Row[], most: number): boolean;
  /** Passes over the next ones and says how many they were, 0 if there are no more. */
  skip(tx: Transaction): number;
}

/** One whose place is a number: another cursor over the same store can go on from there. */
export interface PlacedCursor<Row> extends Cursor<Row> {
  /** To be changed before the first rows are read. */
  place: number;
}

/** For one who wants to know what an update has made of a row. */
export interface RowCapture {
  readonly views: Views;
  /** Copies a row of so many words to `views`, and returns where it lies there. */
  take(views: Views, at: number, words: number): number;
}

/** Where a row lies that is to be written: in the data of an entry of the transaction's set. */
export interface RowPlace {
  readonly entry: number;
  /** The word of the entry's data where the row begins. */
  readonly at: number;
}

export interface Store<Row, Key> {
  /** Lock-free: one consistent read, linearizable, waits for no transaction but an installing one. */
  get(key: Key): Row | undefined;
  read(tx: Transaction, key: Key): Row | undefined;
  /** Says that the key will be read soon, so that memory can be asked for several at once. */
  touch(tx: Transaction, key: Key): void;
  has(tx: Transaction, key: Key): boolean;
  /** Adds the row; false if its key is present, and then nothing is changed. */
  insert(tx: Transaction, row: Row): boolean;
  /** Adds the row or replaces the one with its key. */
  put(tx: Transaction, row: Row): void;
  /** Changes fields of a row; false if there is none. `capture` gets the row that comes of it. */
  update(tx: Transaction, key: Key, changes: Partial<Row>, capture?: RowCapture): boolean;
  /** Removes a row; false if there is none. */
  remove(tx: Transaction, key: Key): boolean;
  /**
   * Makes an inline row part of what the transaction writes, for one who will overwrite it later, in
   * its place. Undefined if there is none. Only in stores with inline rows.
   */
  placeToWrite?(tx: Transaction, key: Key): RowPlace | undefined;
  /**
   * A cursor over the rows of a range in the order of their keys, or in reverse. A store without
   * an order has them in some order, and takes no range.
   */
  cursor(range: KeyRange, reverse: boolean): Cursor<Row>;
  /** Work that a committed transaction left for later, such as growing. */
  maintain(): void;
}

/** A store whose rows have places in a walk over all of them, whatever else the store holds. */
export interface PlacedStore<Key> {
  /** Places are below this. */
  readonly places: number;
  placeOf(key: Key): number;
}

/** A store of rows that can be encoded first and added later, if nothing was encoded in between. */
export interface RowStore<Row, Key> extends Store<Row, Key> {
  /** `insert` and `put` of the row of so many words that the codec has in its scratch area. */
  insertEncoded(tx: Transaction, words: number): boolean;
  putEncoded(tx: Transaction, words: number): void;
}
