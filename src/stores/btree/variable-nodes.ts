/**
 * Nodes whose keys have different sizes: slots that grow upward, and a heap of keys that grows
 * downward from the end of the node. Data words:
 *
 *   0–3  see layout.ts
 *   4    where the heap begins
 *   6…   slots: the payload, padding, and as the last word where in the node the key is, with its
 *        words in the upper half
 *   …    room
 *   …    heap: the keys, in any order but without gaps, then the high fence, then the low fence
 */

import { assert } from "../../runtime/assert.ts";
import type { Entries } from "./entries.ts";
import { compareKeys, moveWords } from "./keys.ts";
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

  /** The keys must fill the heap without gaps: sorted by place, each ends where the next begins. */
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
    for (const place of places) {
      if (offsetIn(place) !== end || wordsIn(place) > MAX_KEY_WORDS) {
        return `a key lies at word ${offsetIn(place)}, where ${end} is expected`;
      }
      end += wordsIn(place);
    }
    if (end + fences === this.words) return undefined;
    return `its keys end at word ${end}, its fences begin at ${this.words - fences}`;
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
    return this.count(i32, at) * this.#slotWords + this.words - i32[at + HEAP];
  }

  costOf(keyWords: number): number {
    return this.#slotWords + keyWords;
  }

  insert(i32: Int32Array, at: number, index: number, key: Int32Array, words: number): number {
    const count = i32[at + COUNT];
    const heap = i32[at + HEAP];
    const slotAt = at + this.payloadAt(index);
    moveWords(i32, slotAt, slotAt + this.#slotWords, (count - index) * this.#slotWords);
    const keyAt = heap - words;
    for (let i = 0; i < words; i++) i32[at + keyAt + i] = key[i];
    i32[slotAt + this.#slotWords - 1] = (words << 16) | keyAt;
    i32[at + HEAP] = keyAt;
    i32[at + COUNT] = count + 1;
    return heap;
  }

  remove(i32: Int32Array, at: number, index: number): number {
    const count = i32[at + COUNT];
    const heap = i32[at + HEAP];
    const place = this.#place(i32, at, index);
    const keyAt = offsetIn(place);
    const words = wordsIn(place);
    const slotAt = at + this.payloadAt(index);
    moveWords(i32, slotAt + this.#slotWords, slotAt, (count - index - 1) * this.#slotWords);
    // The keys below move up: the heap has no gaps.
    moveWords(i32, at + heap, at + heap + words, keyAt - heap);
    for (let each = 0; each < count - 1; each++) {
      const placeAt = at + this.payloadAt(each) + this.#slotWords - 1;
      if (offsetIn(i32[placeAt]) < keyAt) i32[placeAt] += words;
    }
    i32[at + HEAP] = heap + words;
    i32[at + COUNT] = count - 1;
    return keyAt + words;
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
