/**
 * A B+-tree made of objects. Leaves are on level 0; the root is an inner node, and stays where it
 * is for ever: a root that is full moves its entries into two new nodes below it.
 *
 * Every node is a sorted list of entries, a key (in its ordered form) and a payload:
 *
 *   leaf    the row itself if rows have a fixed size of at most 128 bytes, else a fat pointer to a
 *           row object: region id + 1, word, incarnation word
 *   inner   a fat pointer to a child; the key is a lower bound of all keys below that child, and
 *           the first one of a node is never looked at
 *
 * A leaf also holds its fences: it is responsible for the keys from the low fence on, up to but
 * not including the high one. So a leaf proves alone that it is the right one for a key. Inner
 * nodes are only a way to get there, possibly an old one; they are in no read set, and a descent
 * that ends in the wrong leaf, or in a cell that has been freed, begins again. There are no links
 * between leaves: the high fence of one is the key to find the next.
 *
 * The first data words of every node:
 *   0  level
 *   1  entries
 *   2  words of the low fence; 0 at the lower end of the tree: the empty key is the least one
 *   3  words of the high fence; -1 at the upper end of the tree
 *
 * What follows depends on the keys: fixed-nodes.ts for keys of one size, variable-nodes.ts for
 * others. Both are a `NodeFormat`.
 */

import type { AccessSet } from "../../engine/access-set.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { MAX_ORDERED_KEY_BYTES } from "../../runtime/limits.ts";
import type { Entries } from "./entries.ts";

export const LEVEL = 0;
export const COUNT = 1;
export const LOW_WORDS = 2;
export const HIGH_WORDS = 3;

/** No fence at the upper end: greater than every key. */
export const INFINITE = -1;

export const POINTER_WORDS = 3;
export const MAX_KEY_WORDS = MAX_ORDERED_KEY_BYTES / 4;

/**
 * How the nodes of one kind are read and changed. `at` is where the data of a node begins. What is
 * read may be garbage that a version check will throw away, so every index is bounded.
 */
export interface NodeFormat {
  /** Data words of a node. */
  readonly words: number;
  readonly payloadWords: number;
  /** What `sizeOf` may be at most. */
  readonly capacity: number;
  count(i32: Int32Array, at: number): number;
  /** For checks: what makes no sense about a node, or undefined. */
  fault(i32: Int32Array, at: number, isLeaf: boolean): string | undefined;
  /** The first entry whose key is not less than this one. */
  lowerBound(i32: Int32Array, at: number, key: Int32Array, words: number): number;
  /** The first entry whose key is greater than this one. */
  upperBound(i32: Int32Array, at: number, key: Int32Array, words: number): number;
  /** Whether this entry exists and has this key. */
  holds(i32: Int32Array, at: number, index: number, key: Int32Array, words: number): boolean;
  /** Whether a leaf is responsible for a key. */
  covers(i32: Int32Array, at: number, key: Int32Array, words: number): boolean;
  /** Whether a leaf is responsible for what comes just before a key, which may be INFINITE. */
  coversBelow(i32: Int32Array, at: number, key: Int32Array, words: number): boolean;
  /** Where the payload of an entry is, from the beginning of the node. */
  payloadAt(index: number): number;
  /** Copies the key of an entry and returns its words. */
  copyKey(i32: Int32Array, at: number, index: number, to: Int32Array): number;
  copyLow(i32: Int32Array, at: number, to: Int32Array): number;
  /** Copies the high fence and returns its words, or INFINITE. */
  copyHigh(i32: Int32Array, at: number, to: Int32Array): number;
  /** How full a node is, and how much an entry with a key of so many words adds. */
  used(i32: Int32Array, at: number): number;
  costOf(keyWords: number): number;
  /**
   * Adds an entry to a leaf that this transaction has read and not changed, without a copy of it (engine/splices.ts).
   * False if there is no room, or none without moving other keys.
   */
  splice(
    tx: Transaction,
    leaf: number,
    index: number,
    key: Int32Array,
    words: number,
    payload: Int32Array,
  ): boolean;
  /** Adds an entry to a node that is writable and has room for it. */
  insert(
    set: AccessSet,
    node: number,
    index: number,
    key: Int32Array,
    words: number,
    payload: Int32Array,
  ): void;
  /** After `beginEdits` and `write`: which words of the node were written. */
  recordWritten(set: AccessSet, node: number): void;
  /** Removes an entry of a node that is writable. */
  remove(set: AccessSet, node: number, index: number): void;
  /** Appends the entries [from, to) of a node to a list. */
  gather(i32: Int32Array, at: number, from: number, to: number, entries: Entries): void;
  /** A short key that is above the entry before `index`, and not above the one at it. */
  separator(entries: Entries, index: number): Int32Array;
  /** How full a node with these entries and fences is. */
  sizeOf(entries: Entries, from: number, to: number, low: Int32Array, high: Fence): number;
  /** Writes a whole node. */
  write(
    i32: Int32Array,
    at: number,
    level: number,
    entries: Entries,
    from: number,
    to: number,
    low: Int32Array,
    high: Fence,
  ): void;
}

/** A high fence; undefined at the upper end of the tree. */
export type Fence = Int32Array | undefined;

/** For checks: what is wrong with the number of words of a node's fences, or undefined. */
export function fenceFault(
  lowWords: number,
  highWords: number,
  isLeaf: boolean,
  isKey: (words: number) => boolean,
): string | undefined {
  if (!isLeaf) {
    const none = lowWords === 0 && highWords === INFINITE;
    return none ? undefined : "it is no leaf, and has fences";
  }
  if (lowWords !== 0 && !isKey(lowWords)) return `its low fence has ${lowWords} words`;
  if (highWords !== INFINITE && !isKey(highWords)) return `its high fence has ${highWords} words`;
  return undefined;
}

/** A look without a transaction was disturbed, or what it met needs a transaction. */
export const UNSURE = Symbol("needs a transaction");

export const NO_KEY = new Int32Array(0);
