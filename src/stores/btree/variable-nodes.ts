/**
 * Nodes whose keys have different sizes: slots that grow upward, and a heap of keys that grows
 * downward from the end of the node. Data words:
 *
 *   0–3  see layout.ts
 *   4    where the heap begins
 *   5    words of the heap that belong to no key any more
 *   6…   slots: the payload, padding, and as the last word where in the node the key is, with its
 *        words in the upper half
 *   …    room
 *   …    heap: the keys, in any order, then the high fence, then the low fence
 *
 * A key that is removed leaves a gap in the heap: to close it at once would change the slots of other keys, and
 * all of that would have to be logged. The gaps are closed together, when a new key needs the room.
 */

import type { AccessSet } from "../../engine/access-set.ts";
import { repack } from "../../engine/edits.ts";
import { moveWords, spliceMove, spliceWord, spliceWrite } from "../../engine/splices.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { HEADER_WORDS } from "../../memory/object.ts";
import { assert } from "../../runtime/assert.ts";
import type { Entries } from "./entries.ts";
import { compareKeys } from "./keys.ts";
import {
  COUNT,
  type Fence,
  fenceFault,
  HIGH_WORDS,
  INFINITE,
  LEVEL,
  LOW_WORDS,
  MAX_KEY_WORDS,
  type NodeFormat,
} from "./layout.ts";

const HEAP = 4;
const GAPS = 5;
const SLOTS = 6;

export class VariableNodes implements NodeFormat {
  readonly words: number;
  readonly payloadWords: number;
  readonly capacity: number;
  readonly #slotWords: number;
  readonly #mostEntries: number;

  constructor(words: number, payloadWords: number) {
    this.words = words;
    this.payloadWords = payloadWords;
    this.#slotWords = (payloadWords + 2) & ~1;
    this.capacity = words - SLOTS;
    this.#mostEntries = Math.floor(this.capacity / this.#slotWords);
  }

  count(i32: Int32Array, at: number): number {
    const count = i32[at + COUNT];
    return count >>> 0 > this.#mostEntries ? this.#mostEntries : count;
  }

  fault(i32: Int32Array, at: number, isLeaf: boolean): string | undefined {
    const count = i32[at + COUNT];
    if (count < 0 || count > this.#mostEntries) {
      return `it has ${count} entries, and room for ${this.#mostEntries}`;
    }
    const lowWords = i32[at + LOW_WORDS];
    const highWords = i32[at + HIGH_WORDS];
    const isKey = (words: number): boolean => words > 0 && words <= MAX_KEY_WORDS;
    const fences = fenceFault(lowWords, highWords, isLeaf, isKey);
    return fences ?? this.#heapFault(i32, at, count, lowWords + Math.max(highWords, 0));
  }

  /** Sorted by place, no key overlaps the next, and what lies between them is as much as the node says. */
  #heapFault(i32: Int32Array, at: number, count: number, fences: number): string | undefined {
    const heap = i32[at + HEAP];
    if (heap < this.payloadAt(count) || heap > this.words) {
      return `its keys begin at word ${heap}, its ${count} entries end at ${this.payloadAt(count)}`;
    }
    const places = Array.from(
      { length: count },
      (_, index) => i32[at + this.payloadAt(index) + this.#slotWords - 1],
    ).sort((a, b) => offsetIn(a) - offsetIn(b) || wordsIn(a) - wordsIn(b));
    let end = heap;
    let gaps = 0;
    for (const place of places) {
      if (offsetIn(place) < end || wordsIn(place) > MAX_KEY_WORDS) {
        return `a key lies at word ${offsetIn(place)}, where ${end} or more is expected`;
      }
      gaps += offsetIn(place) - end;
      end = offsetIn(place) + wordsIn(place);
    }
    const heapEnd = this.words - fences;
    if (end > heapEnd) return `its keys end at word ${end}, its fences begin at ${heapEnd}`;
    gaps += heapEnd - end;
    if (gaps === i32[at + GAPS]) return undefined;
    return `the gaps between its keys have ${gaps} words, it says ${i32[at + GAPS]}`;
  }

  lowerBound(i32: Int32Array, at: number, key: Int32Array, words: number): number {
    let low = 0;
    let high = this.count(i32, at);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(i32, at, middle, key, words) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  upperBound(i32: Int32Array, at: number, key: Int32Array, words: number): number {
    let low = 0;
    let high = this.count(i32, at);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(i32, at, middle, key, words) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  holds(i32: Int32Array, at: number, index: number, key: Int32Array, words: number): boolean {
    return index < this.count(i32, at) && this.#compare(i32, at, index, key, words) === 0;
  }

  covers(i32: Int32Array, at: number, key: Int32Array, words: number): boolean {
    if (this.#compareLow(i32, at, key, words) > 0) return false;
    return i32[at + HIGH_WORDS] === INFINITE || this.#compareHigh(i32, at, key, words) > 0;
  }

  coversBelow(i32: Int32Array, at: number, key: Int32Array, words: number): boolean {
    const last = i32[at + HIGH_WORDS] === INFINITE;
    if (words === INFINITE) return last;
    if (!last && this.#compareHigh(i32, at, key, words) < 0) return false;
    return this.#compareLow(i32, at, key, words) < 0;
  }

  payloadAt(index: number): number {
    return SLOTS + index * this.#slotWords;
  }

  copyKey(i32: Int32Array, at: number, index: number, to: Int32Array): number {
    const place = this.#place(i32, at, index);
    const words = wordsIn(place);
    copy(i32, at + offsetIn(place), to, words);
    return words;
  }

  copyLow(i32: Int32Array, at: number, to: Int32Array): number {
    const words = boundedWords(i32[at + LOW_WORDS]);
    copy(i32, at + this.words - words, to, words);
    return words;
  }

  copyHigh(i32: Int32Array, at: number, to: Int32Array): number {
    if (i32[at + HIGH_WORDS] === INFINITE) return INFINITE;
    const words = boundedWords(i32[at + HIGH_WORDS]);
    copy(i32, this.#highAt(i32, at, words), to, words);
    return words;
  }

  used(i32: Int32Array, at: number): number {
    return this.count(i32, at) * this.#slotWords + this.words - i32[at + HEAP] - i32[at + GAPS];
  }

  costOf(keyWords: number): number {
    return this.#slotWords + keyWords;
  }

  splice(
    tx: Transaction,
    leaf: number,
    index: number,
    key: Int32Array,
    words: number,
    payload: Int32Array,
  ): boolean {
    const { set } = tx;
    const slotWords = this.#slotWords;
    const { i32 } = set.regionOf(leaf);
    const at = set.wordOf(leaf) + HEADER_WORDS;
    const count = i32[at + COUNT];
    const keyAt = i32[at + HEAP] - words;
    if (!tx.settle(leaf)) tx.conflict(leaf);
    if (keyAt < this.payloadAt(count + 1) || !tx.splice(leaf, this.words)) return false;
    const slotAt = this.payloadAt(index);
    const place = (words << 16) | keyAt;
    spliceMove(set, leaf, slotAt, slotAt + slotWords, (count - index) * slotWords);
    spliceWrite(set, leaf, slotAt, payload, this.payloadWords);
    spliceWord(set, leaf, slotAt + slotWords - 1, place);
    spliceWrite(set, leaf, keyAt, key, words);
    spliceWord(set, leaf, COUNT, count + 1);
    spliceWord(set, leaf, HEAP, keyAt);
    return true;
  }

  insert(
    set: AccessSet,
    node: number,
    index: number,
    key: Int32Array,
    words: number,
    payload: Int32Array,
  ): void {
    set.beginEdits(node);
    const slotWords = this.#slotWords;
    const { i32 } = set.arena;
    const at = set.bufferOf(node);
    const count = i32[at + COUNT];
    if (i32[at + HEAP] - words < this.payloadAt(count + 1)) this.#closeGaps(set, node);
    const keyAt = i32[at + HEAP] - words;
    const slotAt = this.payloadAt(index);
    const moved = (count - index) * slotWords;
    moveWords(i32, at + slotAt, at + slotAt + slotWords, moved);
    for (let i = 0; i < words; i++) i32[at + keyAt + i] = key[i];
    for (let i = 0; i < this.payloadWords; i++) i32[at + slotAt + i] = payload[i];
    i32[at + slotAt + slotWords - 1] = (words << 16) | keyAt;
    i32[at + HEAP] = keyAt;
    i32[at + COUNT] = count + 1;
    set.recordMove(node, slotAt, slotAt + slotWords, moved);
    set.recordWrite(node, slotAt, slotWords);
    set.recordWrite(node, keyAt, words);
    set.recordWrite(node, COUNT, 1);
    set.recordWrite(node, HEAP, 1);
  }

  recordWritten(set: AccessSet, node: number): void {
    const { i32 } = set.arena;
    const at = set.bufferOf(node);
    set.recordWrite(node, 0, this.payloadAt(i32[at + COUNT]));
    set.recordWrite(node, i32[at + HEAP], this.words - i32[at + HEAP]);
  }

  remove(set: AccessSet, node: number, index: number): void {
    set.beginEdits(node);
    const slotWords = this.#slotWords;
    const { i32 } = set.arena;
    const at = set.bufferOf(node);
    const count = i32[at + COUNT];
    const words = wordsIn(this.#place(i32, at, index));
    const slotAt = this.payloadAt(index);
    const moved = (count - index - 1) * slotWords;
    moveWords(i32, at + slotAt + slotWords, at + slotAt, moved);
    i32[at + GAPS] += words;
    i32[at + COUNT] = count - 1;
    set.recordMove(node, slotAt + slotWords, slotAt, moved);
    set.recordWrite(node, COUNT, 1);
    set.recordWrite(node, GAPS, 1);
  }

  #closeGaps(set: AccessSet, node: number): void {
    const { i32 } = set.arena;
    const at = set.bufferOf(node);
    const count = i32[at + COUNT];
    const fences = boundedWords(i32[at + LOW_WORDS]) + Math.max(i32[at + HIGH_WORDS], 0);
    const end = this.words - fences;
    const begin = i32[at + HEAP];
    i32[at + HEAP] = repack(i32, at, SLOTS, count, this.#slotWords, end);
    i32[at + GAPS] = 0;
    set.recordRepack(node, SLOTS, count, this.#slotWords, begin, end);
    set.recordWrite(node, HEAP, 2);
  }

  gather(i32: Int32Array, at: number, from: number, to: number, entries: Entries): void {
    for (let index = from; index < to; index++) {
      const place = this.#place(i32, at, index);
      const payloadAt = at + this.payloadAt(index);
      entries.add(i32, at + offsetIn(place), wordsIn(place), i32, payloadAt, this.payloadWords);
    }
  }

  separator(entries: Entries, index: number): Int32Array {
    return entries.separator(index);
  }

  sizeOf(entries: Entries, from: number, to: number, low: Int32Array, high: Fence): number {
    let size = low.length + (high?.length ?? 0);
    for (let index = from; index < to; index++) size += this.costOf(entries.keyWords(index));
    return size;
  }

  write(
    i32: Int32Array,
    at: number,
    level: number,
    entries: Entries,
    from: number,
    to: number,
    low: Int32Array,
    high: Fence,
  ): void {
    i32[at + LEVEL] = level;
    i32[at + LOW_WORDS] = low.length;
    i32[at + HIGH_WORDS] = high === undefined ? INFINITE : high.length;
    let heap = this.words - low.length;
    i32.set(low, at + heap);
    if (high !== undefined) {
      heap -= high.length;
      i32.set(high, at + heap);
    }
    for (let index = from; index < to; index++) {
      const words = entries.keyWords(index);
      const keyAt = entries.keyAt(index);
      const slotAt = at + this.payloadAt(index - from);
      heap -= words;
      for (let i = 0; i < words; i++) i32[at + heap + i] = entries.words[keyAt + i];
      const payload = keyAt + words;
      for (let i = 0; i < this.payloadWords; i++) i32[slotAt + i] = entries.words[payload + i];
      i32[slotAt + this.#slotWords - 1] = (words << 16) | heap;
    }
    assert(heap >= this.payloadAt(to - from), "the entries fit their node");
    i32[at + HEAP] = heap;
    i32[at + GAPS] = 0;
    i32[at + COUNT] = to - from;
  }

  /** Where the key of an entry is, and its words above it. */
  #place(i32: Int32Array, at: number, index: number): number {
    const place = i32[at + this.payloadAt(index) + this.#slotWords - 1];
    const isSane =
      wordsIn(place) <= MAX_KEY_WORDS && offsetIn(place) + wordsIn(place) <= this.words;
    return isSane ? place : 0;
  }

  #compare(i32: Int32Array, at: number, index: number, key: Int32Array, words: number): number {
    const place = this.#place(i32, at, index);
    return compareKeys(i32, at + offsetIn(place), wordsIn(place), key, words);
  }

  #compareLow(i32: Int32Array, at: number, key: Int32Array, words: number): number {
    const lowWords = boundedWords(i32[at + LOW_WORDS]);
    return compareKeys(i32, at + this.words - lowWords, lowWords, key, words);
  }

  #compareHigh(i32: Int32Array, at: number, key: Int32Array, words: number): number {
    const highWords = boundedWords(i32[at + HIGH_WORDS]);
    return compareKeys(i32, this.#highAt(i32, at, highWords), highWords, key, words);
  }

  #highAt(i32: Int32Array, at: number, highWords: number): number {
    return at + this.words - boundedWords(i32[at + LOW_WORDS]) - highWords;
  }
}

function offsetIn(place: number): number {
  return place & 0xffff;
}

function wordsIn(place: number): number {
  return place >>> 16;
}

function boundedWords(words: number): number {
  return words >>> 0 > MAX_KEY_WORDS ? 0 : words;
}

function copy(from: Int32Array, at: number, to: Int32Array, words: number): void {
  for (let i = 0; i < words; i++) to[i] = from[at + i];
}
