/**
 * Adding an entry to a node that has no room for it. The node is split in the transaction that
 * adds the entry: the upper part goes to a new node, and an entry for that one to the parent, which
 * may have to be split in turn. Nothing else is touched, so that others who add rows elsewhere
 * meet nothing of it.
 *
 * Where keys come ascending, a leaf is not split in the middle but behind the new entry, which may
 * then be the first of the new leaf: so rows that are inserted in order fill their leaves. At the
 * lower end of the tree this holds for descending keys, too.
 *
 * Of keys of one size the upper ones are copied to the new leaf in one piece, and what stays in the old leaf stays where
 * it is: the log gets a count and a fence of it. Other nodes are written anew.
 */

import { SPLITS } from "../../engine/slot.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { assert } from "../../runtime/assert.ts";
import { MAX_TREE_LEVEL } from "../../runtime/limits.ts";
import { Entries } from "./entries.ts";
import { FixedNodes } from "./fixed-nodes.ts";
import type { Geometry } from "./geometry.ts";
import {
  COUNT,
  type Fence,
  HIGH_WORDS,
  INFINITE,
  LOW_WORDS,
  MAX_KEY_WORDS,
  NO_KEY,
  type NodeFormat,
  POINTER_WORDS,
} from "./layout.ts";
import type { Search } from "./search.ts";

/** So many entries in order inside a leaf, and more are expected there. */
const ORDERED_RUN = 4;

/** Makes an empty tree: a root with one leaf. */
export function createTree(tx: Transaction, geometry: Geometry): Address {
  const { inner, leaf, least } = geometry;
  const { set } = tx;
  const root = tx.allocate(inner.words * 4);
  const address = tx.addressOf(root);
  const first = tx.allocate(leaf.words * 4, address);
  const entries = new Entries();
  leaf.write(set.arena.i32, set.bufferOf(first), 0, entries, 0, 0, NO_KEY, undefined);
  entries.add(least, 0, least.length, pointerTo(tx, first), 0, POINTER_WORDS);
  inner.write(set.arena.i32, set.bufferOf(root), 1, entries, 0, 1, NO_KEY, undefined);
  return address;
}

/** A fat pointer to an object of this transaction. */
export function pointerTo(tx: Transaction, entry: number): Int32Array {
  const { set } = tx;
  return Int32Array.of(set.regionIdOf(entry) + 1, set.wordOf(entry), set.incarnationOf(entry));
}

/** Adds entries to nodes, where a search has looked. */
export class Splitter {
  readonly #geometry: Geometry;
  readonly #search: Search<unknown, unknown>;
  readonly #entries = new Entries();
  readonly #fence = new Int32Array(MAX_KEY_WORDS);
  /** The leaf and the place in it that got the last entry, and how many before it came in order. */
  #lastRegionId = -1;
  #lastWord = -1;
  #lastIndex = -1;
  #inOrder = 0;

  constructor(geometry: Geometry, search: Search<unknown, unknown>) {
    this.#geometry = geometry;
    this.#search = search;
  }

  /** Adds an entry where the search has looked for its key and not found it. */
  add(tx: Transaction, key: Int32Array, words: number, payload: Int32Array): void {
    const { leaf, index } = this.#search;
    const { leaf: nodes } = this.#geometry;
    const { set } = tx;
    const isNext =
      index === this.#lastIndex + 1 &&
      set.wordOf(leaf) === this.#lastWord &&
      set.regionIdOf(leaf) === this.#lastRegionId;
    this.#inOrder = isNext ? this.#inOrder + 1 : 0;
    if (set.bufferOf(leaf) < 0 && nodes.splice(tx, leaf, index, key, words, payload)) {
      this.#remember(tx, leaf, index);
      return;
    }
    const at = tx.writable(leaf, nodes.words);
    if (nodes.used(set.arena.i32, at) + nodes.costOf(words) <= nodes.capacity) {
      nodes.insert(set, leaf, index, key, words, payload);
      this.#remember(tx, leaf, index);
    } else {
      this.#splitLeaf(tx, key, words, payload);
    }
  }

  #remember(tx: Transaction, leaf: number, index: number): void {
    this.#lastRegionId = tx.set.regionIdOf(leaf);
    this.#lastWord = tx.set.wordOf(leaf);
    this.#lastIndex = index;
  }

  #splitLeaf(tx: Transaction, key: Int32Array, words: number, payload: Int32Array): void {
    const { leaf: nodes } = this.#geometry;
    const { executor } = tx;
    executor.counters[executor.counterBase + SPLITS]++;
    this.#search.retrace(tx, key, words);
    if (nodes instanceof FixedNodes) this.#splitFixedLeaf(tx, nodes, key, payload);
    else this.#splitVariableLeaf(tx, nodes, key, words, payload);
  }

  #splitFixedLeaf(tx: Transaction, nodes: FixedNodes, key: Int32Array, payload: Int32Array): void {
    const { leaf, index } = this.#search;
    const { set } = tx;
    const { keyWords } = nodes;
    const right = tx.allocate(nodes.words * 4, tx.addressOf(leaf));
    const { i32 } = set.arena;
    const at = set.bufferOf(leaf);
    // With the new entry.
    const count = i32[at + COUNT] + 1;
    const atEnd = this.#isAtEnd(index, count, i32[at + HIGH_WORDS] === INFINITE);
    const behind = this.#splitBehind(index, count, atEnd, i32[at + LOW_WORDS] === 0);
    const middle = behind > 0 ? behind : (count + 1) >> 1;
    const cut = index < middle ? middle - 1 : middle;
    if (index !== middle) nodes.copyKey(i32, at, cut, this.#fence);
    const separator = (index === middle ? key : this.#fence).slice(0, keyWords);
    nodes.cutOff(set, leaf, right, cut, separator);
    const isRight = index >= middle;
    const [node, place] = isRight ? [right, index - middle] : [leaf, index];
    nodes.insert(set, node, place, key, keyWords, payload);
    this.#remember(tx, node, place);
    this.#addChild(tx, 1, separator, pointerTo(tx, right), atEnd);
  }

  /** Keys come ascending at the end of a leaf: the new one goes to a leaf of its own. */
  #isAtEnd(index: number, count: number, isLast: boolean): boolean {
    return index === count - 1 && (this.#inOrder > 0 || isLast);
  }

  /** Behind which entry a leaf is to be split, whose keys come in order; 0 if they do not. */
  #splitBehind(index: number, count: number, atEnd: boolean, isFirst: boolean): number {
    if (atEnd) return index;
    if (index === 0 && isFirst) return 1;
    return this.#inOrder >= ORDERED_RUN && index < count - 1 ? index + 1 : 0;
  }

  #splitVariableLeaf(
    tx: Transaction,
    nodes: NodeFormat,
    key: Int32Array,
    words: number,
    payload: Int32Array,
  ): void {
    const { leaf, index } = this.#search;
    const { set } = tx;
    const right = tx.allocate(nodes.words * 4, tx.addressOf(leaf));
    const { i32 } = set.arena;
    const at = set.bufferOf(leaf);
    const low = this.#fence.slice(0, nodes.copyLow(i32, at, this.#fence));
    const highWords = nodes.copyHigh(i32, at, this.#fence);
    const high = highWords === INFINITE ? undefined : this.#fence.slice(0, highWords);
    const entries = this.#gather(i32, at, nodes, index, key, words, payload);
    const { count } = entries;

    const atEnd = this.#isAtEnd(index, count, high === undefined);
    const behind = this.#splitBehind(index, count, atEnd, low.length === 0);
    const fits = behind > 0 && fitsSplit(nodes, entries, behind, low, high);
    const middle = fits ? behind : middleOf(nodes, entries);
    const separator = nodes.separator(entries, middle);
    set.beginEdits(leaf);
    nodes.write(i32, at, 0, entries, 0, middle, low, separator);
    nodes.write(i32, set.bufferOf(right), 0, entries, middle, count, separator, high);
    nodes.recordWritten(set, leaf);
    if (index < middle) this.#remember(tx, leaf, index);
    else this.#remember(tx, right, index - middle);
    this.#addChild(tx, 1, separator, pointerTo(tx, right), fits && atEnd);
  }

  /** Adds a child behind the one that the search has taken. */
  #addChild(
    tx: Transaction,
    level: number,
    key: Int32Array,
    pointer: Int32Array,
    atEnd: boolean,
  ): void {
    const { inner: nodes } = this.#geometry;
    const { set } = tx;
    const parent = this.#search.path[level];
    const index = this.#search.taken[level] + 1;
    const at = tx.writable(parent, nodes.words);
    if (nodes.used(set.arena.i32, at) + nodes.costOf(key.length) <= nodes.capacity) {
      nodes.insert(set, parent, index, key, key.length, pointer);
      return;
    }
    const isRoot = level === this.#search.rootLevel;
    const near = tx.addressOf(parent);
    const right = tx.allocate(nodes.words * 4, near);
    const left = isRoot ? tx.allocate(nodes.words * 4, near) : parent;
    const { i32 } = set.arena;
    const parentAt = set.bufferOf(parent);
    const entries = this.#gather(i32, parentAt, nodes, index, key, key.length, pointer);
    const { count } = entries;
    const middle = atEnd && index === count - 1 ? count - 1 : middleOf(nodes, entries);
    const separator = entries.key(middle);
    set.beginEdits(left);
    nodes.write(i32, set.bufferOf(left), level, entries, 0, middle, NO_KEY, undefined);
    nodes.write(i32, set.bufferOf(right), level, entries, middle, count, NO_KEY, undefined);
    nodes.recordWritten(set, left);
    if (!isRoot) {
      this.#addChild(tx, level + 1, separator, pointerTo(tx, right), atEnd);
      return;
    }
    assert(level < MAX_TREE_LEVEL, "a tree is not that high");
    const { least } = this.#geometry;
    entries.clear();
    entries.add(least, 0, least.length, pointerTo(tx, left), 0, POINTER_WORDS);
    entries.add(separator, 0, separator.length, pointerTo(tx, right), 0, POINTER_WORDS);
    nodes.write(i32, parentAt, level + 1, entries, 0, 2, NO_KEY, undefined);
    set.markDirty(parent, 0, nodes.words);
  }

  /** The entries of a node with a new one among them. */
  #gather(
    i32: Int32Array,
    at: number,
    nodes: NodeFormat,
    index: number,
    key: Int32Array,
    words: number,
    payload: Int32Array,
  ): Entries {
    const entries = this.#entries;
    entries.clear();
    nodes.gather(i32, at, 0, index, entries);
    entries.add(key, 0, words, payload, 0, nodes.payloadWords);
    nodes.gather(i32, at, index, i32[at + COUNT], entries);
    return entries;
  }
}

/** Where two halves are about equally full. */
export function middleOf(nodes: NodeFormat, entries: Entries): number {
  let total = 0;
  for (let i = 0; i < entries.count; i++) total += nodes.costOf(entries.keyWords(i));
  let left = 0;
  let middle = 0;
  while (2 * left < total) left += nodes.costOf(entries.keyWords(middle++));
  return Math.min(Math.max(middle, 1), entries.count - 1);
}

function fitsSplit(
  nodes: NodeFormat,
  entries: Entries,
  middle: number,
  low: Int32Array,
  high: Fence,
): boolean {
  const separator = nodes.separator(entries, middle);
  return (
    nodes.sizeOf(entries, 0, middle, low, separator) <= nodes.capacity &&
    nodes.sizeOf(entries, middle, entries.count, separator, high) <= nodes.capacity
  );
}
