/**
 * Shrinking online, after the caller's transaction has committed. A leaf that a removal left less
 * than a quarter full is merged with a neighbour under the same parent, if together they fill at
 * most three quarters of a node, or if one of them is empty; inner nodes likewise. An inner node
 * with a single child whose neighbours are full gets half of one's children. A root with one inner
 * child takes over its entries. So an emptied tree becomes a root with one leaf again.
 */

import type { Executor } from "../../engine/executor.ts";
import { tryRun } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MERGE_BELOW, MERGED_AT_MOST } from "../../runtime/limits.ts";
import { Entries } from "./entries.ts";
import type { Geometry } from "./geometry.ts";
import {
  COUNT,
  type Fence,
  INFINITE,
  LEVEL,
  MAX_KEY_WORDS,
  NO_KEY,
  type NodeFormat,
  POINTER_WORDS,
} from "./layout.ts";
import type { Search } from "./search.ts";
import { middleOf } from "./split.ts";

/** A merge that keeps meeting others is left to the next one who removes a row there. */
const MERGE_ATTEMPTS = 8;
/** As many leaves as one transaction can have in its arena, about. */
const MAX_PENDING = 4096;

/** Two neighbours under one parent: the place of the left one, and their entries. */
interface Pair {
  readonly place: number;
  readonly left: number;
  readonly right: number;
  /** Where the entries of the right one begin in the list. */
  readonly split: number;
  readonly low: Int32Array;
  readonly high: Fence;
}

export class Merger {
  readonly #geometry: Geometry;
  readonly #search: Search<unknown, unknown>;
  readonly #entries = new Entries();
  readonly #fence = new Int32Array(MAX_KEY_WORDS);
  /** By leaf, a key that the leaf is responsible for. */
  readonly #pending = new Map<Address, Int32Array>();
  #tx: Transaction | undefined;

  constructor(geometry: Geometry, search: Search<unknown, unknown>) {
    this.#geometry = geometry;
    this.#search = search;
  }

  /** A row with this key was removed from the leaf of the search: is a merge due? */
  look(tx: Transaction, key: Int32Array, words: number): void {
    const { leaf: nodes } = this.#geometry;
    const { leaf } = this.#search;
    const used = nodes.used(tx.set.arena.i32, tx.set.bufferOf(leaf));
    if (used >= nodes.capacity * MERGE_BELOW || this.#pending.size >= MAX_PENDING) return;
    this.#pending.set(tx.addressOf(leaf), key.slice(0, words));
  }

  runPending(executor: Executor): void {
    if (this.#pending.size === 0) return;
    const pending = [...this.#pending];
    this.#pending.clear();
    this.#tx ??= new Transaction(executor);
    const untilMs = executor.maintenanceEndMs();
    for (const [leaf, key] of pending) {
      // One who is hurried leaves some of them to the next.
      if (nowMs() > untilMs) {
        this.#pending.set(leaf, key);
        continue;
      }
      try {
        // A merged leaf may be nearly empty still: its next neighbour is looked at, too.
        for (let merged = true; merged; ) {
          merged = false;
          const done = tryRun(executor, this.#tx, MERGE_ATTEMPTS, (tx) => {
            merged = this.#mergeLeaf(tx, key);
          });
          if (!done) break;
        }
      } catch (error) {
        // A stopped process in the way: emptier nodes do no harm until somebody can merge them.
        if (error instanceof SituError) return;
        throw error;
      }
    }
  }

  #mergeLeaf(tx: Transaction, key: Int32Array): boolean {
    const { leaf: nodes } = this.#geometry;
    const leaf = this.#search.openLeaf(tx, key, key.length, false);
    const used = nodes.used(tx.views.i32, tx.at);
    if (!tx.settle(leaf)) tx.conflict(leaf);
    return used < nodes.capacity * MERGE_BELOW && this.#merge(tx, 0);
  }

  /** Merges the node that the search has passed on this level with a neighbour. */
  #merge(tx: Transaction, level: number): boolean {
    const { path, taken, rootLevel } = this.#search;
    const { inner } = this.#geometry;
    const parent = path[level + 1];
    const place = taken[level + 1];
    const children = countOf(tx, parent, inner);
    if (children === 1) return level + 1 < rootLevel && this.#merge(tx, level + 1);
    for (const left of [place, place - 1]) {
      if (left < 0 || left + 1 >= children) continue;
      if (this.#join(tx, level, parent, left)) {
        this.#mergeParent(tx, level + 1);
        return true;
      }
    }
    return false;
  }

  #mergeParent(tx: Transaction, level: number): void {
    const { path, rootLevel } = this.#search;
    const { inner } = this.#geometry;
    if (level === rootLevel) {
      this.#lowerRoot(tx);
      return;
    }
    const at = tx.writable(path[level], inner.words);
    const used = inner.used(tx.set.arena.i32, at);
    if (used < inner.capacity * MERGE_BELOW) this.#merge(tx, level);
  }

  /** Puts two neighbours together if they fit; or fills one that has a single child. */
  #join(tx: Transaction, level: number, parent: number, place: number): boolean {
    const nodes = level === 0 ? this.#geometry.leaf : this.#geometry.inner;
    const entries = this.#entries;
    const pair = this.#gather(tx, level, parent, place);
    const size = nodes.sizeOf(entries, 0, entries.count, pair.low, pair.high);
    const lonely = level === 0 ? 0 : 1;
    const isLonely = pair.split <= lonely || entries.count - pair.split <= lonely;
    const { set } = tx;
    if (size <= nodes.capacity * (isLonely ? 1 : MERGED_AT_MOST)) {
      const at = tx.writable(pair.left, nodes.words);
      const { i32 } = set.arena;
      nodes.write(i32, at, level, entries, 0, entries.count, pair.low, pair.high);
      set.markDirty(pair.left, 0, nodes.words);
      tx.free(pair.right);
      removeChild(tx, this.#geometry.inner, parent, place + 1);
      return true;
    }
    return level > 0 && isLonely && this.#share(tx, level, parent, pair);
  }

  /** Deals the children of two inner nodes out evenly. */
  #share(tx: Transaction, level: number, parent: number, pair: Pair): boolean {
    const nodes = this.#geometry.inner;
    const entries = this.#entries;
    const { set } = tx;
    const middle = middleOf(nodes, entries);
    const key = entries.key(middle);
    const parentAt = tx.writable(parent, nodes.words);
    const used = nodes.used(set.arena.i32, parentAt);
    const before = nodes.copyKey(set.arena.i32, parentAt, pair.place + 1, this.#fence);
    if (used - nodes.costOf(before) + nodes.costOf(key.length) > nodes.capacity) return false;
    const leftAt = tx.writable(pair.left, nodes.words);
    const rightAt = tx.writable(pair.right, nodes.words);
    const { i32 } = set.arena;
    nodes.write(i32, leftAt, level, entries, 0, middle, NO_KEY, undefined);
    nodes.write(i32, rightAt, level, entries, middle, entries.count, NO_KEY, undefined);
    set.markDirty(pair.left, 0, nodes.words);
    set.markDirty(pair.right, 0, nodes.words);
    const at = set.bufferOf(parent);
    const payload = at + nodes.payloadAt(pair.place + 1);
    const pointer = i32.slice(payload, payload + POINTER_WORDS);
    nodes.remove(set, parent, pair.place + 1);
    nodes.insert(set, parent, pair.place + 1, key, key.length, pointer);
    return true;
  }

  /** A root whose only child is an inner node takes its place. */
  #lowerRoot(tx: Transaction): void {
    const nodes = this.#geometry.inner;
    const entries = this.#entries;
    const { set } = tx;
    const root = this.#search.path[this.#search.rootLevel];
    for (;;) {
      const at = tx.writable(root, nodes.words);
      const level = set.arena.i32[at + LEVEL];
      if (level === 1 || set.arena.i32[at + COUNT] !== 1) return;
      const child = this.#openChild(tx, root, 0, level - 1);
      entries.clear();
      nodes.gather(tx.views.i32, tx.at, 0, nodes.count(tx.views.i32, tx.at), entries);
      if (!tx.settle(child)) tx.conflict(child);
      const { i32 } = set.arena;
      nodes.write(i32, set.bufferOf(root), level - 1, entries, 0, entries.count, NO_KEY, undefined);
      set.markDirty(root, 0, nodes.words);
      tx.free(child);
    }
  }

  /** Reads two neighbours, both part of the read set, into the list of entries. */
  #gather(tx: Transaction, level: number, parent: number, place: number): Pair {
    const nodes = level === 0 ? this.#geometry.leaf : this.#geometry.inner;
    const entries = this.#entries;
    const fence = this.#fence;
    const separator = this.#childKey(tx, parent, place + 1);
    entries.clear();
    const left = this.#openChild(tx, parent, place, level);
    nodes.gather(tx.views.i32, tx.at, 0, nodes.count(tx.views.i32, tx.at), entries);
    const low = fence.slice(0, level === 0 ? nodes.copyLow(tx.views.i32, tx.at, fence) : 0);
    if (!tx.settle(left)) tx.conflict(left);
    const split = entries.count;
    const right = this.#openChild(tx, parent, place + 1, level);
    const { i32 } = tx.views;
    const { at } = tx;
    // The parent knows the lower bound of an inner node's first child.
    if (level > 0) {
      const payload = at + nodes.payloadAt(0);
      entries.add(separator, 0, separator.length, i32, payload, POINTER_WORDS);
    }
    nodes.gather(i32, at, level === 0 ? 0 : 1, nodes.count(i32, at), entries);
    const highWords = level === 0 ? nodes.copyHigh(i32, at, fence) : INFINITE;
    const high = highWords === INFINITE ? undefined : fence.slice(0, highWords);
    if (!tx.settle(right)) tx.conflict(right);
    return { place, left, right, split, low, high };
  }

  #childKey(tx: Transaction, parent: number, place: number): Int32Array {
    tx.open(tx.set.regionOf(parent), tx.set.wordOf(parent));
    const words = this.#geometry.inner.copyKey(tx.views.i32, tx.at, place, this.#fence);
    if (!tx.settle(parent)) tx.conflict(parent);
    return this.#fence.slice(0, words);
  }

  /** Opens a child of a node that is part of the read set, and makes it part of it, too. */
  #openChild(tx: Transaction, parent: number, place: number, level: number): number {
    const { set } = tx;
    tx.open(set.regionOf(parent), set.wordOf(parent));
    const { i32 } = tx.views;
    const pointer = tx.at + this.#geometry.inner.payloadAt(place);
    const regionId = i32[pointer] - 1;
    const word = i32[pointer + 1];
    const incarnation = i32[pointer + 2];
    if (!tx.settle(parent)) tx.conflict(parent);
    const child = tx.open(tx.executor.memory.region(regionId), word);
    const found = tx.views.i32[tx.at + LEVEL];
    if (!tx.settle(child)) tx.conflict(child);
    if (found !== level || tx.incarnationOf(child) !== incarnation) tx.conflict(parent);
    tx.depend(child);
    return child;
  }
}

/** The children of an inner node, which becomes part of the read set. */
function countOf(tx: Transaction, node: number, nodes: NodeFormat): number {
  tx.open(tx.set.regionOf(node), tx.set.wordOf(node));
  const count = nodes.count(tx.views.i32, tx.at);
  if (!tx.settle(node)) tx.conflict(node);
  tx.depend(node);
  return count;
}

function removeChild(tx: Transaction, nodes: NodeFormat, parent: number, place: number): void {
  tx.writable(parent, nodes.words);
  nodes.remove(tx.set, parent, place);
}
