/**
 * Nodes whose keys have one size: the keys side by side, so that a search touches few cache lines,
 * then the payloads side by side, from an even word on as 64-bit fields need. Data words:
 *
 *   0–3  see layout.ts
 *   4…   in a leaf: low fence, high fence
 *   …    keys, for as many entries as fit
 *   …    payloads
 */

import type { AccessSet } from "../../engine/access-set.ts";
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
  type NodeFormat,
} from "./layout.ts";

const FENCES = 4;
/** Words of a cache line. */
const LINE = 16;

export class FixedNodes implements NodeFormat {
  readonly words: number;
  readonly keyWords: number;
  readonly payloadWords: number;
  readonly capacity: number;
  readonly keysAt: number;
  readonly payloadsAt: number;

  constructor(words: number, keyWords: number, payloadWords: number, fenced: boolean) {
    this.words = words;
    this.keyWords = keyWords;
    this.payloadWords = payloadWords;
    this.keysAt = FENCES + (fenced ? 2 * keyWords : 0);
    // One word may be lost where the payloads are aligned.
    this.capacity = Math.floor((words - this.keysAt - 1) / (keyWords + payloadWords));
    this.payloadsAt = (this.keysAt + this.capacity * keyWords + 1) & ~1;
  }

  /**
   * Asks for the keys of a node while its header is on the way; and for the payload of one entry,
   * which is easily guessed where keys are numbers without gaps: as far behind the first one as its
   * key is. The result means nothing.
   */
  touch(i32: Int32Array, at: number, distance: number): number {
    const touched = i32[at + LINE] ^ i32[at + 2 * LINE];
    if (distance >>> 0 >= this.capacity) return touched;
    const payload = at + this.payloadsAt + distance * this.payloadWords;
    return touched ^ i32[payload] ^ i32[payload + this.payloadWords - 1];
  }

  count(i32: Int32Array, at: number): number {
    const count = i32[at + COUNT];
    return count >>> 0 > this.capacity ? this.capacity : count;
  }

  fault(i32: Int32Array, at: number, isLeaf: boolean): string | undefined {
    const count = i32[at + COUNT];
    if (count < 0 || count > this.capacity) {
      return `it has ${count} entries, and room for ${this.capacity}`;
    }
    const isKey = (words: number): boolean => words === this.keyWords;
    return fenceFault(i32[at + LOW_WORDS], i32[at + HIGH_WORDS], isLeaf, isKey);
  }

  lowerBound(i32: Int32Array, at: number, key: Int32Array, words: number): number {
    const keysAt = at + this.keysAt;
    const { keyWords } = this;
    let low = 0;
    let high = this.count(i32, at);
    if (keyWords === words) {
      if (words === 1) return lowerWord(i32, keysAt, high, key[0]);
      if (words === 2) return lowerPair(i32, keysAt, high, key[0], key[1]);
      if (words === 3) return lowerTriple(i32, keysAt, high, key[0], key[1], key[2]);
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = compareKeys(i32, keysAt + middle * keyWords, keyWords, key, words);
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  upperBound(i32: Int32Array, at: number, key: Int32Array, words: number): number {
    const keysAt = at + this.keysAt;
    const { keyWords } = this;
    let low = 0;
    let high = this.count(i32, at);
    if (keyWords === words) {
      if (words === 1) return upperWord(i32, keysAt, high, key[0]);
      if (words === 2) return upperPair(i32, keysAt, high, key[0], key[1]);
      if (words === 3) return upperTriple(i32, keysAt, high, key[0], key[1], key[2]);
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = compareKeys(i32, keysAt + middle * keyWords, keyWords, key, words);
      if (order <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  holds(i32: Int32Array, at: number, index: number, key: Int32Array, words: number): boolean {
    const { keyWords } = this;
    if (index >= this.count(i32, at) || words !== keyWords) return false;
    const keyAt = at + this.keysAt + index * keyWords;
    for (let i = 0; i < keyWords; i++) if (i32[keyAt + i] !== key[i]) return false;
    return true;
  }

  covers(i32: Int32Array, at: number, key: Int32Array, words: number): boolean {
    const { keyWords } = this;
    const lowAt = at + FENCES;
    if (i32[at + LOW_WORDS] !== 0 && compareKeys(i32, lowAt, keyWords, key, words) > 0)
      return false;
    if (i32[at + HIGH_WORDS] === INFINITE) return true;
    return compareKeys(i32, lowAt + keyWords, keyWords, key, words) > 0;
  }

  coversBelow(i32: Int32Array, at: number, key: Int32Array, words: number): boolean {
    const { keyWords } = this;
    const lowAt = at + FENCES;
    const last = i32[at + HIGH_WORDS] === INFINITE;
    if (words === INFINITE) return last;
    if (!last && compareKeys(i32, lowAt + keyWords, keyWords, key, words) < 0) return false;
    return i32[at + LOW_WORDS] === 0 || compareKeys(i32, lowAt, keyWords, key, words) < 0;
  }

  payloadAt(index: number): number {
    return this.payloadsAt + index * this.payloadWords;
  }

  copyKey(i32: Int32Array, at: number, index: number, to: Int32Array): number {
    const { keyWords } = this;
    const keyAt = at + this.keysAt + index * keyWords;
    for (let i = 0; i < keyWords; i++) to[i] = i32[keyAt + i];
    return keyWords;
  }

  copyLow(i32: Int32Array, at: number, to: Int32Array): number {
    return i32[at + LOW_WORDS] === 0 ? 0 : this.#copyFence(i32, at + FENCES, to);
  }

  copyHigh(i32: Int32Array, at: number, to: Int32Array): number {
    if (i32[at + HIGH_WORDS] === INFINITE) return INFINITE;
    return this.#copyFence(i32, at + FENCES + this.keyWords, to);
  }

  #copyFence(i32: Int32Array, from: number, to: Int32Array): number {
    const { keyWords } = this;
    for (let i = 0; i < keyWords; i++) to[i] = i32[from + i];
    return keyWords;
  }

  used(i32: Int32Array, at: number): number {
    return this.count(i32, at);
  }

  costOf(_keyWords: number): number {
    return 1;
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
    const { keyWords, payloadWords } = this;
    const count = set.regionOf(leaf).i32[set.wordOf(leaf) + HEADER_WORDS + COUNT];
    if (!tx.settle(leaf)) tx.conflict(leaf);
    if (count >= this.capacity || !tx.splice(leaf, this.words)) return false;
    const moved = count - index;
    const keyAt = this.keysAt + index * keyWords;
    const payloadAt = this.payloadAt(index);
    spliceMove(set, leaf, keyAt, keyAt + keyWords, moved * keyWords);
    spliceWrite(set, leaf, keyAt, key, words);
    spliceMove(set, leaf, payloadAt, payloadAt + payloadWords, moved * payloadWords);
    spliceWrite(set, leaf, payloadAt, payload, payloadWords);
    spliceWord(set, leaf, COUNT, count + 1);
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
    const { keyWords, payloadWords } = this;
    const { i32 } = set.arena;
    const at = set.bufferOf(node);
    const count = i32[at + COUNT];
    const moved = count - index;
    const keyAt = this.keysAt + index * keyWords;
    moveWords(i32, at + keyAt, at + keyAt + keyWords, moved * keyWords);
    for (let i = 0; i < words; i++) i32[at + keyAt + i] = key[i];
    const payloadAt = this.payloadAt(index);
    moveWords(i32, at + payloadAt, at + payloadAt + payloadWords, moved * payloadWords);
    for (let i = 0; i < payloadWords; i++) i32[at + payloadAt + i] = payload[i];
    i32[at + COUNT] = count + 1;
    set.recordMove(node, keyAt, keyAt + keyWords, moved * keyWords);
    set.recordWrite(node, keyAt, keyWords);
    set.recordMove(node, payloadAt, payloadAt + payloadWords, moved * payloadWords);
    set.recordWrite(node, payloadAt, payloadWords);
    set.recordWrite(node, COUNT, 1);
  }

  /** Moves the entries from `cut` on from a leaf that is writable to a new one, which begins with this key. */
  cutOff(set: AccessSet, leaf: number, right: number, cut: number, separator: Int32Array): void {
    set.beginEdits(leaf);
    const { keyWords, payloadWords } = this;
    const { i32 } = set.arena;
    const from = set.bufferOf(leaf);
    const to = set.bufferOf(right);
    const count = i32[from + COUNT];
    const highAt = FENCES + keyWords;
    i32[to + COUNT] = count - cut;
    i32[to + LOW_WORDS] = keyWords;
    i32[to + HIGH_WORDS] = i32[from + HIGH_WORDS];
    moveWords(i32, from + highAt, to + highAt, keyWords);
    const keysAt = from + this.keysAt;
    i32.copyWithin(to + this.keysAt, keysAt + cut * keyWords, keysAt + count * keyWords);
    const payloadsAt = from + this.payloadsAt;
    const payloadsEnd = payloadsAt + count * payloadWords;
    i32.copyWithin(to + this.payloadsAt, payloadsAt + cut * payloadWords, payloadsEnd);
    i32[from + COUNT] = cut;
    i32[from + HIGH_WORDS] = keyWords;
    for (let i = 0; i < keyWords; i++) {
      i32[to + FENCES + i] = separator[i];
      i32[from + highAt + i] = separator[i];
    }
    set.recordWrite(leaf, COUNT, 1);
    set.recordWrite(leaf, HIGH_WORDS, 1);
    set.recordWrite(leaf, highAt, keyWords);
  }

  recordWritten(set: AccessSet, node: number): void {
    const count = set.arena.i32[set.bufferOf(node) + COUNT];
    set.recordWrite(node, 0, this.keysAt + count * this.keyWords);
    set.recordWrite(node, this.payloadsAt, count * this.payloadWords);
  }

  remove(set: AccessSet, node: number, index: number): void {
    set.beginEdits(node);
    const { keyWords, payloadWords } = this;
    const { i32 } = set.arena;
    const at = set.bufferOf(node);
    const count = i32[at + COUNT];
    const moved = count - index - 1;
    const keyAt = this.keysAt + index * keyWords;
    moveWords(i32, at + keyAt + keyWords, at + keyAt, moved * keyWords);
    const payloadAt = this.payloadAt(index);
    moveWords(i32, at + payloadAt + payloadWords, at + payloadAt, moved * payloadWords);
    i32[at + COUNT] = count - 1;
    set.recordMove(node, keyAt + keyWords, keyAt, moved * keyWords);
    set.recordMove(node, payloadAt + payloadWords, payloadAt, moved * payloadWords);
    set.recordWrite(node, COUNT, 1);
  }

  gather(i32: Int32Array, at: number, from: number, to: number, entries: Entries): void {
    const { keyWords, payloadWords } = this;
    for (let index = from; index < to; index++) {
      const keyAt = at + this.keysAt + index * keyWords;
      entries.add(i32, keyAt, keyWords, i32, at + this.payloadAt(index), payloadWords);
    }
  }

  separator(entries: Entries, index: number): Int32Array {
    return entries.key(index);
  }

  sizeOf(_entries: Entries, from: number, to: number): number {
    return to - from;
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
    const { keyWords, payloadWords } = this;
    assert(to - from <= this.capacity, "the entries fit their node");
    i32[at + LEVEL] = level;
    i32[at + COUNT] = to - from;
    i32[at + LOW_WORDS] = low.length;
    i32[at + HIGH_WORDS] = high === undefined ? INFINITE : high.length;
    i32.set(low, at + FENCES);
    if (high !== undefined) i32.set(high, at + FENCES + keyWords);
    for (let index = from; index < to; index++) {
      const source = entries.keyAt(index);
      const keyAt = at + this.keysAt + (index - from) * keyWords;
      for (let i = 0; i < keyWords; i++) i32[keyAt + i] = entries.words[source + i];
      const payloadAt = at + this.payloadAt(index - from);
      const payload = source + keyWords;
      for (let i = 0; i < payloadWords; i++) i32[payloadAt + i] = entries.words[payload + i];
    }
  }
}

/**
 * How many of `count` sorted words are less than `wanted`. Without branches on what is compared:
 * nobody could predict them, and a wrong guess costs more than the arithmetic.
 */
function lowerWord(i32: Int32Array, at: number, count: number, wanted: number): number {
  let from = at;
  let left = count;
  while (left > 1) {
    const half = left >> 1;
    from += half & isLess(i32[from + half - 1], wanted);
    left -= half;
  }
  return left === 1 ? from - at - isLess(i32[from], wanted) : 0;
}

/** The same for those that are not greater. */
function upperWord(i32: Int32Array, at: number, count: number, wanted: number): number {
  let from = at;
  let left = count;
  while (left > 1) {
    const half = left >> 1;
    from += half & ~isLess(wanted, i32[from + half - 1]);
    left -= half;
  }
  return left === 1 ? from - at - ~isLess(wanted, i32[from]) : 0;
}

/** The same for keys of two words: those that are less. */
function lowerPair(i32: Int32Array, at: number, count: number, a: number, b: number): number {
  let from = 0;
  let left = count;
  while (left > 1) {
    const half = left >> 1;
    from += half & isLessPair(i32, at + 2 * (from + half - 1), a, b);
    left -= half;
  }
  return left === 1 ? from - isLessPair(i32, at + 2 * from, a, b) : 0;
}

/** And those that are not greater. */
function upperPair(i32: Int32Array, at: number, count: number, a: number, b: number): number {
  let from = 0;
  let left = count;
  while (left > 1) {
    const half = left >> 1;
    from += half & ~isGreaterPair(i32, at + 2 * (from + half - 1), a, b);
    left -= half;
  }
  return left === 1 ? from - ~isGreaterPair(i32, at + 2 * from, a, b) : 0;
}

function isLessPair(i32: Int32Array, at: number, a: number, b: number): number {
  const first = i32[at];
  return isLess(first, a) | (isSame(first, a) & isLess(i32[at + 1], b));
}

function isGreaterPair(i32: Int32Array, at: number, a: number, b: number): number {
  const first = i32[at];
  return isLess(a, first) | (isSame(first, a) & isLess(b, i32[at + 1]));
}

/** The same for keys of three words. */
function lowerTriple(
  i32: Int32Array,
  at: number,
  count: number,
  a: number,
  b: number,
  c: number,
): number {
  let from = 0;
  let left = count;
  while (left > 1) {
    const half = left >> 1;
    from += half & isLessTriple(i32, at + 3 * (from + half - 1), a, b, c);
    left -= half;
  }
  return left === 1 ? from - isLessTriple(i32, at + 3 * from, a, b, c) : 0;
}

function upperTriple(
  i32: Int32Array,
  at: number,
  count: number,
  a: number,
  b: number,
  c: number,
): number {
  let from = 0;
  let left = count;
  while (left > 1) {
    const half = left >> 1;
    from += half & ~isGreaterTriple(i32, at + 3 * (from + half - 1), a, b, c);
    left -= half;
  }
  return left === 1 ? from - ~isGreaterTriple(i32, at + 3 * from, a, b, c) : 0;
}

function isLessTriple(i32: Int32Array, at: number, a: number, b: number, c: number): number {
  const first = i32[at];
  return isLess(first, a) | (isSame(first, a) & isLessPair(i32, at + 1, b, c));
}

function isGreaterTriple(i32: Int32Array, at: number, a: number, b: number, c: number): number {
  const first = i32[at];
  return isLess(a, first) | (isSame(first, a) & isGreaterPair(i32, at + 1, b, c));
}

/** All bits if both are the same, else none. */
function isSame(a: number, b: number): number {
  const difference = a ^ b;
  return ~((difference | -difference) >> 31);
}

/** All bits if a is less than b, both unsigned, else none: the borrow of their difference. */
export function isLess(a: number, b: number): number {
  return ((~a & b) | (~(a ^ b) & (a - b))) >> 31;
}
