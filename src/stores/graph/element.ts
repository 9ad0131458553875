/**
 * One element of a list (layout.ts) in a transaction: a copy to search in, and changes that are made to the copy and
 * to the object alike. An element that is changed once is not brought into the transaction's arena: it is spliced
 * (engine/splices.ts), so that the log gets the edge and not the element.
 */

import { dataCapacity } from "../../engine/cells.ts";
import { moveWords, spliceMove, spliceWord, spliceWrite } from "../../engine/splices.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { Views } from "../../memory/views.ts";
import {
  CAPACITY_SHIFT,
  CHILD_WORDS,
  COUNT_MASK,
  ELEMENT_WORDS,
  FIRST_ENTRY,
  KEY_WORDS,
  LENGTH_SHIFT,
  LEVEL_MASK,
  LEVEL_SHIFT,
  lowerHalf,
  MAX_ENTRY_WORDS,
  numberAt,
  SPREAD,
  SPREAD_FIRST_ENTRY,
  upperHalf,
} from "./layout.ts";

/** An element with one entry more than fits, for a moment. */
const BUFFER_WORDS = ELEMENT_WORDS + MAX_ENTRY_WORDS;

/** Words that an element of so many is allocated with: some room to grow, or none. */
export function roomFor(words: number, grows: boolean): number {
  const wanted = grows ? Math.min(ELEMENT_WORDS, words + (words >>> 2)) : words;
  return Math.min(0xffff, dataCapacity(wanted * 4) / 4);
}

export class Element {
  readonly views = new Views(new ArrayBuffer(4 * BUFFER_WORDS));
  regionId = 0;
  word = 0;
  /** Of the transaction. */
  entry = -1;

  /** Reads the element at a place that something consistent has told. */
  load(tx: Transaction, regionId: number, word: number): this {
    const region = tx.executor.memory.region(regionId);
    const { i32 } = this.views;
    this.regionId = regionId;
    this.word = word;
    for (;;) {
      const entry = tx.open(region, word);
      const from = tx.views.i32;
      const { at } = tx;
      const used = Math.min(from[at + 1] & 0xffff, BUFFER_WORDS);
      if (used > 32) i32.set(from.subarray(at, at + used), 0);
      else for (let i = 0; i < used; i++) i32[i] = from[at + i];
      if (!tx.settle(entry)) continue;
      tx.depend(entry);
      tx.doneWith(entry);
      this.entry = entry;
      return this;
    }
  }

  get used(): number {
    return Math.min(this.views.i32[1] & 0xffff, BUFFER_WORDS);
  }

  get capacity(): number {
    return this.views.i32[1] >>> CAPACITY_SHIFT;
  }

  get count(): number {
    return this.views.i32[0] & COUNT_MASK;
  }

  get level(): number {
    return (this.views.i32[0] >>> LEVEL_SHIFT) & LEVEL_MASK;
  }

  get isSpread(): boolean {
    return (this.views.i32[0] & SPREAD) !== 0;
  }

  /** Where entries begin: the last one of the list does. */
  get first(): number {
    return this.isSpread ? SPREAD_FIRST_ENTRY : FIRST_ENTRY;
  }

  /** Edges in the element and below it. */
  get edges(): number {
    if (this.level === 0) return this.count;
    const { i32 } = this.views;
    let sum = 0;
    for (let at = this.first; at < this.used; at += CHILD_WORDS) sum += i32[at + 2];
    return sum;
  }

  /** Words of the entry that ends at `end`. */
  lengthBefore(end: number): number {
    const length = this.views.i32[end - KEY_WORDS] >>> LENGTH_SHIFT;
    // Whatever lies there: a walk goes on, and ends.
    return Math.max(length, KEY_WORDS);
  }

  /** The end of the first entry whose key is not less, in the order of keys; `first` if all are. */
  seek(first: number, second: number): number {
    const { i32 } = this.views;
    const least = this.first;
    let end = this.used;
    while (end - KEY_WORDS >= least) {
      const key = end - KEY_WORDS;
      const own = numberAt(i32, key);
      if (own > first || (own === first && numberAt(i32, key + 2) >= second)) return end;
      end -= this.lengthBefore(end);
    }
    return least;
  }

  /** Whether the entry that ends there has this key. */
  hasKey(end: number, first: number, second: number): boolean {
    if (end - KEY_WORDS < this.first) return false;
    const { i32 } = this.views;
    const key = end - KEY_WORDS;
    return numberAt(i32, key) === first && numberAt(i32, key + 2) === second;
  }

  /** The end of the child's entry that a key belongs to: the last one whose key is not greater, or the first. */
  seekChild(first: number, second: number): number {
    const { i32 } = this.views;
    let found = this.used;
    for (let end = this.used - CHILD_WORDS; end > this.first; end -= CHILD_WORDS) {
      const key = end - KEY_WORDS;
      const own = numberAt(i32, key);
      if (own > first || (own === first && numberAt(i32, key + 2) > second)) break;
      found = end;
    }
    return found;
  }

  /** Puts an entry of `length` words in, so that it begins at `at`. It must fit. */
  insert(tx: Transaction, at: number, source: Int32Array, length: number): void {
    const { used } = this;
    this.#change(tx, at, source, length, used - at, at + length);
    this.#setSize(tx, used + length, this.count + 1);
  }

  /** Takes the entry out that begins at `at`. */
  remove(tx: Transaction, at: number, length: number): void {
    const { used, count } = this;
    const { i32 } = this.views;
    const rest = used - at - length;
    if (tx.splice(this.entry, this.capacity)) {
      spliceMove(tx.set, this.entry, at + length, at, rest);
    } else {
      const to = tx.writable(this.entry, this.capacity);
      moveWords(tx.set.arena.i32, to + at + length, to + at, rest);
      tx.set.markDirty(this.entry, at, at + rest);
    }
    moveWords(i32, at + length, at, rest);
    this.#setSize(tx, used - length, count - 1);
  }

  /** Overwrites words. */
  write(tx: Transaction, at: number, source: Int32Array, length: number): void {
    this.#change(tx, at, source, length, 0, 0);
  }

  /** Moves `moved` words behind `at` to `to`, then writes the words at `at`. */
  #change(
    tx: Transaction,
    at: number,
    source: Int32Array,
    length: number,
    moved: number,
    to: number,
  ): void {
    const { set } = tx;
    const { i32 } = this.views;
    if (tx.splice(this.entry, this.capacity)) {
      spliceMove(set, this.entry, at, to, moved);
      spliceWrite(set, this.entry, at, source, length);
    } else {
      const base = tx.writable(this.entry, this.capacity);
      const arena = set.arena.i32;
      moveWords(arena, base + at, base + to, moved);
      for (let i = 0; i < length; i++) arena[base + at + i] = source[i];
      set.markDirty(this.entry, at, Math.max(at + length, to + moved));
    }
    moveWords(i32, at, to, moved);
    for (let i = 0; i < length; i++) i32[at + i] = source[i];
  }

  /** Right after another change: the object is spliced, or in the arena. */
  #setSize(tx: Transaction, used: number, count: number): void {
    const { i32 } = this.views;
    i32[0] = (i32[0] & ~COUNT_MASK) | count;
    i32[1] = (this.capacity << CAPACITY_SHIFT) | used;
    const { set } = tx;
    if (set.isSpliced(this.entry)) {
      spliceWord(set, this.entry, 0, i32[0]);
      spliceWord(set, this.entry, 1, i32[1]);
      return;
    }
    const base = set.bufferOf(this.entry);
    set.arena.i32[base] = i32[0];
    set.arena.i32[base + 1] = i32[1];
    set.markDirty(this.entry, 0, 2);
  }

  /** Writes the copy over the whole object: it fits. */
  overwrite(tx: Transaction): void {
    const { used, capacity } = this;
    const base = tx.writable(this.entry, capacity);
    tx.set.arena.i32.set(this.views.i32.subarray(0, used), base);
    tx.set.markDirty(this.entry, 0, used);
  }

  /** Makes an object of the copy, with room for so many words. */
  create(tx: Transaction, capacity: number, near: Address): void {
    const { i32 } = this.views;
    const { used } = this;
    i32[1] = (capacity << CAPACITY_SHIFT) | used;
    const entry = tx.allocate(capacity * 4, near);
    const { set } = tx;
    set.arena.i32.set(i32.subarray(0, used), set.bufferOf(entry));
    set.markDirty(entry, 0, used);
    this.entry = entry;
    this.regionId = set.regionIdOf(entry);
    this.word = set.wordOf(entry);
  }

  /** Frees the object; the copy stays. */
  free(tx: Transaction): void {
    tx.free(this.entry);
  }

  /** Makes another one stand for the same object. */
  copyTo(other: Element): Element {
    other.views.i32.set(this.views.i32.subarray(0, this.used), 0);
    other.regionId = this.regionId;
    other.word = this.word;
    other.entry = this.entry;
    return other;
  }

  /** Makes the copy that of an element without entries. */
  begin(level: number): this {
    const { i32 } = this.views;
    i32[0] = level << LEVEL_SHIFT;
    i32[1] = FIRST_ENTRY;
    return this;
  }

  /** Adds an entry to the copy, behind all others: its key must be less than theirs. */
  append(source: Int32Array, from: number, length: number): void {
    const { i32 } = this.views;
    const { used } = this;
    for (let i = 0; i < length; i++) i32[used + i] = source[from + i];
    i32[0]++;
    i32[1] += length;
  }

  /** Makes the copy that of a head of several elements, or of one. */
  setSpread(isSpread: boolean): void {
    if (this.isSpread === isSpread) return;
    const { i32 } = this.views;
    const { used, first } = this;
    const to = isSpread ? SPREAD_FIRST_ENTRY : FIRST_ENTRY;
    i32.copyWithin(to, first, used);
    i32[0] = isSpread ? i32[0] | SPREAD : i32[0] & ~SPREAD;
    i32[1] += to - first;
    if (isSpread) i32.fill(0, FIRST_ENTRY, SPREAD_FIRST_ENTRY);
  }
}

/** Writes the key of an entry of so many words. */
export function writeKey(
  i32: Int32Array,
  at: number,
  first: number,
  second: number,
  entryWords: number,
): void {
  i32[at] = (entryWords << LENGTH_SHIFT) | upperHalf(first);
  i32[at + 1] = lowerHalf(first);
  i32[at + 2] = upperHalf(second);
  i32[at + 3] = lowerHalf(second);
}
