/**
 * A tree of elements in order of their keys (layout.ts): that of a list, or a finder. Inner elements count the edges
 * below each of their children, so a position is found without a walk.
 *
 *   - An element that is full is cut in two. The part with the lesser keys stays, the other one gets a cell of its own.
 *     Where edges come in order of time, it is the head that is cut, and what leaves it is a cell without a gap.
 *   - Other elements are allocated with a quarter of room and move to a larger cell as they grow, so that a tree is
 *     about nine tenths full also where times come in any order.
 *   - An element that is a quarter full or less takes its neighbour's entries over, or is taken over, if both are
 *     three quarters then. The first leaf always stays: it is the head, and its cell is remembered (layout.ts).
 *
 * The tree says where its root and head are now; the caller keeps that (lists.ts).
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import type { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";
import { Element, roomFor, writeKey } from "./element.ts";
import {
  CAPACITY_SHIFT,
  CHILD_WORDS,
  COUNT_MASK,
  ELEMENT_WORDS,
  KEY_WORDS,
  LENGTH_SHIFT,
  LEVEL_SHIFT,
  MAX_ENTRY_WORDS,
  numberAt,
  SPREAD,
} from "./layout.ts";

/** More levels than memory has room for. */
const MAX_LEVELS = 12;

/** One set for the thread: an operation ends before the next begins, and runs no code but Situ's own. */
const path = Array.from({ length: MAX_LEVELS + 1 }, () => new Element());
/** In each element of the path, where the entry of the next one begins. */
const childAt = new Int32Array(MAX_LEVELS + 1);
const sibling = new Element();
const rest = new Element();
const both = new Int32Array(2 * (ELEMENT_WORDS + MAX_ENTRY_WORDS));
const child = new Int32Array(CHILD_WORDS);
const oneWord = new Int32Array(1);
const walked = Array.from({ length: MAX_LEVELS + 1 }, () => new Element());

/** An edge that was found: its data lies at `at` of `views`, until the next operation. */
export interface FoundEntry {
  readonly views: Views;
  readonly at: number;
  readonly dataWords: number;
}

/** What a walk tells of each entry; false ends the walk. */
export type Visit = (views: Views, key: number, dataAt: number, dataWords: number) => boolean;

export class Tree {
  regionId = 0;
  word = 0;
  level = 0;
  /** The first leaf, if that is to be known. */
  headRegionId = -1;
  headWord = 0;
  /** Where new elements are to be. */
  near: Address;

  constructor(near: Address) {
    this.near = near;
  }

  at(regionId: number, word: number, level: number): this {
    if (level >= MAX_LEVELS) throw new SituError("SITU_CORRUPT", `a list of ${level} levels`);
    this.regionId = regionId;
    this.word = word;
    this.level = level;
    return this;
  }

  /** Adds an entry whose key is not there yet. */
  insert(tx: Transaction, first: number, second: number, entry: Int32Array, words: number): void {
    const leaf = this.#descend(tx, first, second);
    this.#count(tx, 1);
    this.#insertAt(tx, this.level, leaf.seek(first, second), entry, words);
  }

  /** Finds the entry with a key. */
  find(tx: Transaction, first: number, second: number): FoundEntry | undefined {
    const leaf = this.#descend(tx, first, second);
    const end = leaf.seek(first, second);
    if (!leaf.hasKey(end, first, second)) return undefined;
    const length = leaf.lengthBefore(end);
    return { views: leaf.views, at: end - length, dataWords: length - KEY_WORDS };
  }

  /** Replaces the data of an entry by as many words; false if it has another number of them. */
  replace(
    tx: Transaction,
    first: number,
    second: number,
    entry: Int32Array,
    words: number,
  ): boolean {
    const leaf = this.#descend(tx, first, second);
    const end = leaf.seek(first, second);
    if (!leaf.hasKey(end, first, second) || leaf.lengthBefore(end) !== words) return false;
    if (words > KEY_WORDS) leaf.write(tx, end - words, entry, words - KEY_WORDS);
    return true;
  }

  /** Removes an entry; false if there is none. */
  remove(tx: Transaction, first: number, second: number): boolean {
    const leaf = this.#descend(tx, first, second);
    const end = leaf.seek(first, second);
    if (!leaf.hasKey(end, first, second)) return false;
    const length = leaf.lengthBefore(end);
    this.#count(tx, -1);
    leaf.remove(tx, end - length, length);
    this.#mend(tx, this.level);
    return true;
  }

  /** The second number of the first entry with this first one, or -1. */
  second(tx: Transaction, first: number): number {
    let found = -1;
    this.walk(tx, first, 0, (views, key) => {
      if (numberAt(views.i32, key) === first) found = numberAt(views.i32, key + 2);
      return false;
    });
    return found;
  }

  /** Visits entries in order: from this first number on, or after so many of them. */
  walk(tx: Transaction, from: number, skip: number, visit: Visit): void {
    this.#walk(tx, this.regionId, this.word, this.level, from, { skip, visit });
  }

  #walk(
    tx: Transaction,
    regionId: number,
    word: number,
    level: number,
    from: number,
    way: { skip: number; readonly visit: Visit },
  ): boolean {
    const element = walked[level].load(tx, regionId, word);
    const { i32 } = element.views;
    const least = element.first;
    if (level === 0) {
      let end = from === 0 ? element.used : element.seek(from, 0);
      while (end - KEY_WORDS >= least) {
        const length = element.lengthBefore(end);
        if (way.skip > 0) way.skip--;
        else if (!way.visit(element.views, end - KEY_WORDS, end - length, length - KEY_WORDS)) {
          return false;
        }
        end -= length;
      }
      return true;
    }
    let end = from === 0 ? element.used : element.seekChild(from, 0);
    for (let isFirst = true; end - CHILD_WORDS >= least; end -= CHILD_WORDS, isFirst = false) {
      const at = end - CHILD_WORDS;
      if (way.skip >= i32[at + 2] && way.skip > 0) {
        way.skip -= i32[at + 2];
        continue;
      }
      const start = isFirst ? from : 0;
      if (!this.#walk(tx, i32[at] - 1, i32[at + 1], level - 1, start, way)) return false;
    }
    return true;
  }

  /** Frees all elements of the tree. */
  dismantle(tx: Transaction): void {
    this.#dismantle(tx, this.regionId, this.word, this.level);
  }

  #dismantle(tx: Transaction, regionId: number, word: number, level: number): void {
    const element = walked[level].load(tx, regionId, word);
    if (level > 0) {
      const { i32 } = element.views;
      for (let at = element.first; at < element.used; at += CHILD_WORDS) {
        this.#dismantle(tx, i32[at] - 1, i32[at + 1], level - 1);
      }
    }
    element.free(tx);
  }

  /** Moves the head to another cell. */
  moveHead(tx: Transaction): void {
    const head = this.#descend(tx, 0, 0);
    this.#moved(tx, this.level, head.capacity);
  }

  /** Leaves the way to the leaf for a key in `path`. */
  #descend(tx: Transaction, first: number, second: number): Element {
    let element = path[0].load(tx, this.regionId, this.word);
    for (let depth = 0; depth < this.level; depth++) {
      const at = element.seekChild(first, second) - CHILD_WORDS;
      childAt[depth] = at;
      const { i32 } = element.views;
      element = path[depth + 1].load(tx, i32[at] - 1, i32[at + 1]);
    }
    return element;
  }

  /** All inner elements of the path have so many edges more. */
  #count(tx: Transaction, change: number): void {
    for (let depth = 0; depth < this.level; depth++) {
      const element = path[depth];
      oneWord[0] = element.views.i32[childAt[depth] + 2] + change;
      element.write(tx, childAt[depth] + 2, oneWord, 1);
    }
  }

  #insertAt(tx: Transaction, depth: number, at: number, entry: Int32Array, words: number): void {
    const element = path[depth];
    const needed = element.used + words;
    if (needed <= element.capacity && needed <= ELEMENT_WORDS) {
      element.insert(tx, at, entry, words);
    } else if (needed <= ELEMENT_WORDS) {
      const { i32 } = element.views;
      i32.copyWithin(at + words, at, element.used);
      for (let i = 0; i < words; i++) i32[at + i] = entry[i];
      i32[0]++;
      i32[1] += words;
      this.#moved(tx, depth, roomFor(needed, true));
    } else {
      this.#cut(tx, depth, at, entry, words);
    }
  }

  /** An element gets another cell, with room for so many words. */
  #moved(tx: Transaction, depth: number, capacity: number): void {
    const element = path[depth];
    const isHead = element.regionId === this.headRegionId && element.word === this.headWord;
    element.free(tx);
    element.create(tx, capacity, this.near);
    if (isHead) {
      this.headRegionId = element.regionId;
      this.headWord = element.word;
    }
    if (depth === 0) {
      this.regionId = element.regionId;
      this.word = element.word;
      return;
    }
    child[0] = element.regionId + 1;
    child[1] = element.word;
    path[depth - 1].write(tx, childAt[depth - 1], child, 2);
  }

  /** Cuts a full element in two, with the entry that did not fit. */
  #cut(tx: Transaction, depth: number, at: number, entry: Int32Array, words: number): void {
    const element = path[depth];
    const { i32 } = element.views;
    const { first, used, level } = element;
    const isHead = element.regionId === this.headRegionId && element.word === this.headWord;
    // Entries that come in falling order fill one element after the other.
    const isLast = at === first && !isHead;
    const total = used - first + words;
    both.set(i32.subarray(first, at), 0);
    both.set(entry.subarray(0, words), at - first);
    both.set(i32.subarray(at, used), at - first + words);
    const cut = isLast ? words : middle(total);
    rest.begin(level);
    copyEntries(rest, 0, cut);
    if (!isLast) {
      i32[0] = (i32[0] & SPREAD) | (level << LEVEL_SHIFT);
      i32[1] = (element.capacity << CAPACITY_SHIFT) | first;
      copyEntries(element, cut, total);
      if (isHead) element.setSpread(true);
      const staysInPlace = isHead || depth < this.level;
      if (staysInPlace && element.used <= element.capacity) element.overwrite(tx);
      else this.#moved(tx, depth, roomFor(isHead ? ELEMENT_WORDS : element.used, !isHead));
    }
    rest.create(tx, roomFor(rest.used, !(isHead || isLast)), this.near);
    this.#addSibling(tx, depth, element.edges);
  }

  /** The part that `#cut` has made becomes the next child of the parent, or a new root has both. */
  #addSibling(tx: Transaction, depth: number, edges: number): void {
    const entry = new Int32Array(CHILD_WORDS);
    const { i32 } = rest.views;
    const key = rest.used - KEY_WORDS;
    entry[0] = rest.regionId + 1;
    entry[1] = rest.word;
    entry[2] = rest.edges;
    writeKey(entry, KEY_WORDS, numberAt(i32, key), numberAt(i32, key + 2), CHILD_WORDS);
    if (depth > 0) {
      oneWord[0] = edges;
      path[depth - 1].write(tx, childAt[depth - 1] + 2, oneWord, 1);
      this.#insertAt(tx, depth - 1, childAt[depth - 1], entry, CHILD_WORDS);
      return;
    }
    const element = path[0];
    const root = rest.begin(this.level + 1);
    root.append(entry, 0, CHILD_WORDS);
    child[0] = element.regionId + 1;
    child[1] = element.word;
    child[2] = edges;
    writeKey(child, KEY_WORDS, 0, 0, CHILD_WORDS);
    root.append(child, 0, CHILD_WORDS);
    root.create(tx, roomFor(8 * CHILD_WORDS, false), this.near);
    this.at(root.regionId, root.word, this.level + 1);
  }

  /** After an entry was removed: an element with few entries is joined with a neighbour. */
  #mend(tx: Transaction, depth: number): void {
    const element = path[depth];
    if (depth === 0) {
      if (this.level > 0) this.#lower(tx);
      else if (element.count > 0 && element.used < element.capacity / 4) {
        this.#moved(tx, depth, roomFor(element.used, true));
      }
      return;
    }
    if (element.used - element.first > ELEMENT_WORDS / 4) return;
    const parent = path[depth - 1];
    const at = childAt[depth - 1];
    if (at > parent.first) {
      if (this.#takeOver(tx, depth, at, at - CHILD_WORDS)) return;
    } else if (at + CHILD_WORDS < parent.used) {
      // The last one joins the one before it, which takes its place in the path.
      if (this.#joinPrevious(tx, depth, at)) return;
    }
    const isHead = element.regionId === this.headRegionId && element.word === this.headWord;
    if (element.count > 0 || isHead || parent.count === 1) return;
    element.free(tx);
    parent.remove(tx, at, CHILD_WORDS);
    this.#mend(tx, depth - 1);
  }

  /** The element takes the entries of the next one over, whose entry in the parent is at `nextAt`. */
  #takeOver(tx: Transaction, depth: number, at: number, nextAt: number): boolean {
    const element = path[depth];
    const parent = path[depth - 1];
    const words = parent.views.i32;
    sibling.load(tx, words[nextAt] - 1, words[nextAt + 1]);
    return this.#join(tx, depth, element, sibling, at, nextAt);
  }

  #joinPrevious(tx: Transaction, depth: number, at: number): boolean {
    const parent = path[depth - 1];
    const words = parent.views.i32;
    const previousAt = at + CHILD_WORDS;
    sibling.load(tx, words[previousAt] - 1, words[previousAt + 1]);
    const own = path[depth];
    // The one that stays is the one in the path.
    const previous = sibling.copyTo(rest);
    if (previous.used - previous.first + own.used - own.first > (3 * ELEMENT_WORDS) / 4) {
      return false;
    }
    own.copyTo(sibling);
    previous.copyTo(own);
    childAt[depth - 1] = previousAt;
    return this.#join(tx, depth, own, sibling, previousAt, at);
  }

  #join(
    tx: Transaction,
    depth: number,
    element: Element,
    next: Element,
    at: number,
    nextAt: number,
  ): boolean {
    const { first, level } = element;
    const own = element.used - first;
    const others = next.used - next.first;
    if (own + others > (3 * ELEMENT_WORDS) / 4) return false;
    const { i32 } = element.views;
    const parent = path[depth - 1];
    both.set(next.views.i32.subarray(next.first, next.used), 0);
    both.set(i32.subarray(first, element.used), others);
    i32[0] = (i32[0] & SPREAD) | (level << LEVEL_SHIFT);
    i32[1] = (element.capacity << CAPACITY_SHIFT) | first;
    copyEntries(element, 0, own + others);
    if (element.used <= element.capacity) element.overwrite(tx);
    else this.#moved(tx, depth, roomFor(element.used, true));
    next.free(tx);
    oneWord[0] = element.edges;
    parent.write(tx, at + 2, oneWord, 1);
    parent.remove(tx, nextAt, CHILD_WORDS);
    this.#mend(tx, depth - 1);
    return true;
  }

  /** A root with one child gives way to it. */
  #lower(tx: Transaction): void {
    let element = path[0];
    while (this.level > 0 && element.count === 1) {
      const { i32 } = element.views;
      const at = element.first;
      element.free(tx);
      this.at(i32[at] - 1, i32[at + 1], this.level - 1);
      if (this.level > 0) element = path[0].load(tx, this.regionId, this.word);
    }
  }
}

/** Words of the entry that ends there; some, whatever a zombie has read. */
function lengthIn(end: number): number {
  return Math.max(KEY_WORDS, both[end - KEY_WORDS] >>> LENGTH_SHIFT);
}

/** The boundary of entries that is nearest to the middle. */
function middle(total: number): number {
  let best = total;
  for (let at = total; at > 0; ) {
    at -= lengthIn(at);
    if (at > 0 && Math.abs(2 * at - total) < Math.abs(2 * best - total)) best = at;
  }
  return best;
}

/** Puts the entries between two places of `both` into an element that has none. */
function copyEntries(element: Element, from: number, to: number): void {
  const { i32 } = element.views;
  i32.set(both.subarray(from, to), element.used);
  let count = 0;
  for (let end = to; end > from; end -= lengthIn(end)) count++;
  i32[0] = (i32[0] & ~COUNT_MASK) | count;
  i32[1] += to - from;
}
