/**
 * Walking over a range, one leaf at a time. A cursor knows where it is by key and by nothing else:
 * the high fence of a leaf (in reverse, the low one) leads to the next, whatever has happened in
 * between. Every leaf that it has touched is part of the read set, also one without a row in the
 * range, so a row that another transaction adds to the range is a validation failure here.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { damagedAt } from "../../memory/damage.ts";
import type { Cursor, KeyRange, OrderedCodec } from "../store.ts";
import type { Geometry } from "./geometry.ts";
import { compareKeys } from "./keys.ts";
import { INFINITE, type NodeFormat, POINTER_WORDS } from "./layout.ts";
import type { Search } from "./search.ts";

const NO_BOUND = new Int32Array(0);
/** A call that has this many rows returns, in the middle of its range. */
const ENOUGH_ROWS = 256;
/** The same for rows that are objects, which may be large: about so many bytes. */
const ENOUGH_BYTES = 256 * 1024;
const FIRST_OBJECTS = 16;

export class TreeCursor<Row, Key> implements Cursor<Row> {
  readonly #codec: OrderedCodec<Row, Key>;
  readonly #nodes: NodeFormat;
  readonly #inline: boolean;
  readonly #search: Search<Row, Key>;
  readonly #range: KeyRange;
  readonly #reverse: boolean;
  /** The next row is the first one from here on; in reverse, the last one before it. */
  #bound: Int32Array;
  #boundWords = 0;
  #done: boolean;
  /** Where the leaf that is being read ends. It becomes the bound when a call returns. */
  #fence: Int32Array;
  /** The third one: while a call goes from leaf to leaf, the bound that it began with must stay. */
  #spare: Int32Array;
  #fenceWords = 0;
  #last = false;
  /** The entries of the leaf that lie in the range. */
  #from = 0;
  #to = 0;
  #pointers = new Int32Array(0);
  /** How many row objects to read in one call, by what the last ones were like. */
  #enough: number;
  #words = 0;

  constructor(
    codec: OrderedCodec<Row, Key>,
    geometry: Geometry,
    search: Search<Row, Key>,
    range: KeyRange,
    reverse: boolean,
  ) {
    this.#codec = codec;
    this.#nodes = geometry.leaf;
    this.#inline = geometry.inline;
    this.#search = search;
    this.#range = range;
    this.#reverse = reverse;
    this.#enough = this.#inline ? ENOUGH_ROWS : FIRST_OBJECTS;
    const { from, to } = range;
    // Short ones lie in V8's own heap, which is quicker to make and to forget.
    const most = codec.mostOrderedWords + 1;
    this.#bound = new Int32Array(most);
    this.#fence = new Int32Array(most);
    this.#spare = new Int32Array(most);
    this.#done =
      to !== undefined &&
      (to.length === 0 ||
        (from !== undefined && compareKeys(from, 0, from.length, to, to.length) >= 0));
    const start = (reverse ? to : from) ?? NO_BOUND;
    // A bound longer than every key: what is cut off cannot tell two keys apart.
    const words = Math.min(start.length, this.#bound.length);
    for (let i = 0; i < words; i++) this.#bound[i] = start[i];
    this.#boundWords = reverse && to === undefined ? INFINITE : words;
  }

  next(tx: Transaction, rows: Row[], most: number): boolean {
    if (most < 1) throw new RangeError("a cursor is asked for at least one row");
    let bound = this.#bound;
    let words = this.#boundWords;
    let done = this.#done;
    let count = 0;
    // The leaf before is still open, and its parent known.
    let follows = false;
    const enough = Math.min(most, this.#enough);
    this.#words = 0;
    while (!done && count < enough) {
      const leaf = this.#openLeaf(tx, bound, words, follows);
      // Rows in their leaf come with it; objects are read one by one.
      const cut = this.#cut(tx, (this.#inline ? most : enough) - count);
      const read = this.#inline
        ? this.#readInline(tx, leaf, rows, count)
        : this.#readObjects(tx, leaf, rows, count);
      if (!read) {
        follows = false;
        continue;
      }
      tx.doneWith(leaf);
      follows = !this.#reverse;
      count += this.#to - this.#from;
      done = this.#last && !cut;
      bound = this.#fence;
      words = this.#fenceWords;
      this.#fence = this.#spare;
      this.#spare = bound;
    }
    if (rows.length !== count) rows.length = count;
    if (!done) this.#refuseToReturn(tx, bound, words);
    this.#moveTo(bound, words, done);
    if (this.#words > 0) {
      const perRow = (4 * this.#words) / count;
      this.#enough = Math.max(1, Math.min(ENOUGH_ROWS, Math.floor(ENOUGH_BYTES / perRow)));
    }
    return count > 0;
  }

  skip(tx: Transaction): number {
    let bound = this.#bound;
    let words = this.#boundWords;
    let done = this.#done;
    let count = 0;
    let follows = false;
    while (!done && count < ENOUGH_ROWS) {
      const leaf = this.#openLeaf(tx, bound, words, follows);
      if (!tx.settle(leaf)) {
        follows = false;
        continue;
      }
      tx.doneWith(leaf);
      follows = !this.#reverse;
      count += this.#to - this.#from;
      done = this.#last;
      bound = this.#fence;
      words = this.#fenceWords;
      this.#fence = this.#spare;
      this.#spare = bound;
    }
    if (!done) this.#refuseToReturn(tx, bound, words);
    this.#moveTo(bound, words, done);
    return count;
  }

  /**
   * In a leaf whose keys are out of order, the last one that was read may lie before the first: the
   * next call would read the same rows again, and so for ever.
   */
  #refuseToReturn(tx: Transaction, bound: Int32Array, words: number): void {
    const before = this.#bound;
    const beforeWords = this.#boundWords;
    if (beforeWords === INFINITE || bound === before) return;
    const order = compareKeys(bound, 0, words, before, beforeWords);
    if (this.#reverse ? order < 0 : order > 0) return;
    const { leaf } = this.#search;
    const { set } = tx;
    throw damagedAt(set.regionOf(leaf), set.wordOf(leaf), "the keys of a leaf are out of order");
  }

  /** A call returns: only now the cursor has moved. */
  #moveTo(bound: Int32Array, words: number, done: boolean): void {
    this.#done = done;
    if (bound === this.#bound) return;
    this.#spare = this.#bound;
    this.#bound = bound;
    this.#boundWords = words;
  }

  /** Opens the next leaf and looks up which of its entries are in the range, and where it ends. */
  #openLeaf(tx: Transaction, bound: Int32Array, words: number, follows: boolean): number {
    const nodes = this.#nodes;
    let leaf = follows ? this.#search.openNextLeaf(tx, bound, words) : -1;
    if (leaf < 0) leaf = this.#search.openLeaf(tx, bound, words, this.#reverse);
    const { i32 } = tx.views;
    const { at } = tx;
    const { from, to } = this.#range;
    const fence = this.#fence;
    if (this.#reverse) {
      this.#fenceWords = nodes.copyLow(i32, at, fence);
      this.#last =
        this.#fenceWords === 0 ||
        (from !== undefined && compareKeys(fence, 0, this.#fenceWords, from, from.length) <= 0);
      this.#to =
        words === INFINITE ? nodes.count(i32, at) : nodes.lowerBound(i32, at, bound, words);
      this.#from =
        from !== undefined && this.#last ? nodes.lowerBound(i32, at, from, from.length) : 0;
    } else {
      this.#fenceWords = nodes.copyHigh(i32, at, fence);
      this.#last =
        this.#fenceWords === INFINITE ||
        (to !== undefined && compareKeys(fence, 0, this.#fenceWords, to, to.length) >= 0);
      this.#from = words === 0 ? 0 : nodes.lowerBound(i32, at, bound, words);
      this.#to =
        to !== undefined && this.#last
          ? nodes.lowerBound(i32, at, to, to.length)
          : nodes.count(i32, at);
    }
    if (this.#from > this.#to) this.#from = this.#to;
    return leaf;
  }

  /** Leaves out what is more than was asked for: the next call begins there. */
  #cut(tx: Transaction, most: number): boolean {
    if (this.#to - this.#from <= most) return false;
    const { i32 } = tx.views;
    const fence = this.#fence;
    if (this.#reverse) {
      this.#from = this.#to - most;
      this.#fenceWords = this.#nodes.copyKey(i32, tx.at, this.#from, fence);
    } else {
      this.#to = this.#from + most;
      const words = this.#nodes.copyKey(i32, tx.at, this.#to - 1, fence);
      // Nothing is between a key and the same with a zero behind it.
      fence[words] = 0;
      this.#fenceWords = words + 1;
    }
    return true;
  }

  #readInline(tx: Transaction, leaf: number, rows: Row[], before: number): boolean {
    const { views, at } = tx;
    const codec = this.#codec;
    const { payloadWords } = this.#nodes;
    const from = this.#from;
    const count = this.#to - from;
    const first = at + this.#nodes.payloadAt(from);
    const stride = this.#nodes.payloadAt(1) - this.#nodes.payloadAt(0);
    // Over the rows of the last call: the list keeps its size.
    if (this.#reverse) {
      let payload = first + (count - 1) * stride;
      for (let i = 0; i < count; i++, payload -= stride) {
        rows[before + i] = codec.decode(views, payload, payloadWords);
      }
    } else {
      let payload = first;
      for (let i = 0; i < count; i++, payload += stride) {
        rows[before + i] = codec.decode(views, payload, payloadWords);
      }
    }
    return tx.settle(leaf);
  }

  #readObjects(tx: Transaction, leaf: number, rows: Row[], before: number): boolean {
    const { i32 } = tx.views;
    const nodes = this.#nodes;
    const count = this.#to - this.#from;
    if (this.#pointers.length < count * POINTER_WORDS) {
      this.#pointers = new Int32Array(2 * count * POINTER_WORDS);
    }
    const pointers = this.#pointers;
    for (let i = 0; i < count; i++) {
      const index = this.#reverse ? this.#to - 1 - i : this.#from + i;
      const payload = tx.at + nodes.payloadAt(index);
      for (let word = 0; word < POINTER_WORDS; word++) {
        pointers[i * POINTER_WORDS + word] = i32[payload + word];
      }
    }
    if (!tx.settle(leaf)) return false;
    const search = this.#search;
    for (let i = 0; i < count; i++) {
      const at = i * POINTER_WORDS;
      const regionId = pointers[at] - 1;
      // A leaf of the read set leads to a row that has gone: the leaf has changed.
      if (!search.readRow(tx, regionId, pointers[at + 1], pointers[at + 2], true)) {
        tx.conflict(leaf);
      }
      rows[before + i] = search.row!;
      this.#words += search.rowWords;
    }
    return true;
  }
}
