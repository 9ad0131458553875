/**
 * Finding a key inside a transaction: from the root down to the leaf that is responsible for it.
 * All that a caller needs to go on (insert, remove, split) stays in the fields of the search.
 *
 * What becomes part of the read set is one object: the leaf, which proves a key present or absent,
 * or the row object, which proves it present. Inner nodes are read in one version each, and then
 * forgotten: should one be out of date, the leaf it leads to says so, by its fences or because its
 * cell has another incarnation. So any way to a leaf will do, as long as the fences hold the key:
 *
 *   known    a leaf that this attempt has come to before
 *   quick    down the tree as others see it, without a trace in the transaction's set
 *   full     down the tree as this transaction sees it. Takes note of the nodes, for one who splits or merges them
 *
 * If one of the first two ends at the wrong leaf, or meets one who is installing, the last one is taken.
 */

import { SPLICED, WINDOW } from "../../engine/access-set.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../memory/address.ts";
import { damagedAt } from "../../memory/damage.ts";
import {
  INCARNATION as HEADER_INCARNATION,
  VERSION_HIGH as HEADER_VERSION_HIGH,
  VERSION_LOW as HEADER_VERSION_LOW,
  HEADER_WORDS,
  unchanged,
} from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { SituError } from "../../runtime/errors.ts";
import { MAX_DESCENTS, MAX_TREE_LEVEL } from "../../runtime/limits.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import type { OrderedCodec } from "../store.ts";
import { FixedNodes } from "./fixed-nodes.ts";
import type { Geometry } from "./geometry.ts";
import { INFINITE, LEVEL, type NodeFormat } from "./layout.ts";

/** Leaves that are remembered: those of as many keys, if their bits differ. */
const KNOWN_LEAVES = 16;
const KNOWN_MASK = KNOWN_LEAVES - 1;

export class Search<Row, Key> {
  readonly #codec: OrderedCodec<Row, Key>;
  readonly #leafNodes: NodeFormat;
  readonly #innerNodes: NodeFormat;
  readonly #inline: boolean;
  /** The leaves of a tree with keys of one word, which can be asked for early. */
  readonly #dense: FixedNodes | undefined;
  readonly #innerKeys: number = 0;
  readonly #rootRegionId: number;
  readonly #rootWord: number;
  /** The inner nodes of the last full descent and the child taken in each, by level. */
  readonly path = new Int32Array(MAX_TREE_LEVEL + 1);
  readonly taken = new Int32Array(MAX_TREE_LEVEL + 1);
  rootLevel = 0;
  /** The leaf, and the incarnation that its parent knows it by. */
  leaf = -1;
  #incarnation = 0;
  /** The entry in the leaf that has the key, or before which it belongs. */
  index = 0;
  /** The row object, if rows are objects, and where the row can be read. */
  rowEntry = -1;
  readonly #row = new RowPlace();
  /** What was read only to ask for it: kept, so that the compiler keeps the loads. */
  touched = 0;
  /** The row, if it was asked for. */
  row: Row | undefined;

  /** Leaves that the attempt with this number has come to, by some bits of the key. */
  readonly #knownLives = new Float64Array(KNOWN_LEAVES);
  readonly #knownLeaves = new Int32Array(KNOWN_LEAVES);
  readonly #knownIncarnations = new Int32Array(KNOWN_LEAVES);

  /** Words of the row object that was read last. */
  get rowWords(): number {
    return this.#row.words;
  }

  constructor(codec: OrderedCodec<Row, Key>, geometry: Geometry, root: Address) {
    this.#codec = codec;
    this.#leafNodes = geometry.leaf;
    this.#innerNodes = geometry.inner;
    this.#inline = geometry.inline;
    const { leaf, inner } = geometry;
    if (leaf instanceof FixedNodes && inner instanceof FixedNodes && leaf.keyWords === 1) {
      this.#dense = leaf;
      this.#innerKeys = inner.keysAt;
    }
    this.#rootRegionId = regionIdOf(root);
    this.#rootWord = wordOf(root);
  }

  /** Searches for the key that the codec has staged; `row` is decoded only if it is wanted. */
  find(tx: Transaction, words: number, wanted: boolean): boolean {
    const key = this.#codec.ordered;
    const nodes = this.#leafNodes;
    this.row = undefined;
    for (let attempt = 0; attempt < MAX_DESCENTS; attempt++) {
      if (!this.#approach(tx, key, words, attempt === 0)) continue;
      const { views, at } = tx;
      const { leaf } = this;
      const { i32 } = views;
      const covers = nodes.covers(i32, at, key, words);
      const index = nodes.lowerBound(i32, at, key, words);
      const found = nodes.holds(i32, at, index, key, words);
      this.index = index;
      const payload = at + nodes.payloadAt(index);
      if (this.#inline) {
        if (found && wanted) this.row = this.#codec.decode(views, payload, nodes.payloadWords);
        if (!this.#isProven(tx, covers)) continue;
        tx.depend(leaf);
        return found;
      }
      const regionId = i32[payload] - 1;
      const word = i32[payload + 1];
      const incarnation = i32[payload + 2];
      if (!this.#isProven(tx, covers)) continue;
      if (!found) {
        tx.depend(leaf);
        return false;
      }
      if (this.readRow(tx, regionId, word, incarnation, wanted)) return true;
    }
    return tx.conflict(this.leaf);
  }

  /** Opens a leaf that may be the one for a key. False if the way was out of date. */
  #approach(tx: Transaction, key: Int32Array, words: number, isFirst: boolean): boolean {
    const place = (key[0] + 2 * key[words - 1]) & KNOWN_MASK;
    // A snapshot's transaction forgets what it has opened, and sees other nodes than those that are there.
    if (tx.snapshot !== undefined) return this.#descend(tx, key, words, false);
    if (isFirst) {
      if (this.#knownLives[place] === tx.lives && this.#mayBeKnown(tx, key, words, place)) {
        this.#reopen(tx, place);
        return true;
      }
      if (!this.#descendQuickly(tx, key, words) && !this.#descend(tx, key, words, false)) {
        return false;
      }
    } else if (!this.#descend(tx, key, words, false)) {
      return false;
    }
    this.#remember(tx, place);
    return true;
  }

  /** Before the leaf of the last `find` is split: takes note of the way to it. */
  retrace(tx: Transaction, key: Int32Array, words: number): void {
    const { leaf } = this;
    for (let attempt = 0; attempt < MAX_DESCENTS; attempt++) {
      if (!this.#descend(tx, key, words, false)) continue;
      // The transaction depends on the leaf: if another one is responsible now, it cannot commit.
      if (this.leaf !== leaf) break;
      return;
    }
    tx.conflict(leaf);
  }

  /** A row that was read is mostly changed afterwards. */
  #remember(tx: Transaction, place: number): void {
    this.#knownLives[place] = tx.lives;
    this.#knownLeaves[place] = this.leaf;
    this.#knownIncarnations[place] = this.#incarnation;
  }

  /**
   * Whether the fences of a leaf that this attempt has come to before hold the key, by a look that may be wrong: to open a
   * leaf that was spliced would bring all of it into the arena. Neither splices nor windows touch fences.
   */
  #mayBeKnown(tx: Transaction, key: Int32Array, words: number, place: number): boolean {
    const { set } = tx;
    const leaf = this.#knownLeaves[place];
    const buffer = set.bufferOf(leaf);
    return buffer < 0 || (set.kindOf(leaf) & (SPLICED | WINDOW)) !== 0
      ? this.#leafNodes.covers(set.regionOf(leaf).i32, set.wordOf(leaf) + HEADER_WORDS, key, words)
      : this.#leafNodes.covers(set.arena.i32, buffer, key, words);
  }

  /** Opens a leaf that this attempt has come to before. Its fences say whether it is the right one. */
  #reopen(tx: Transaction, place: number): void {
    this.leaf = this.#knownLeaves[place];
    this.#incarnation = this.#knownIncarnations[place];
    tx.reopen(this.leaf);
  }

  /**
   * Opens the leaf that is responsible for a key, or for what comes just before it, which is then
   * part of the read set. Tells its version as of now: settle it after reading.
   */
  openLeaf(tx: Transaction, key: Int32Array, words: number, below: boolean): number {
    const nodes = this.#leafNodes;
    for (let attempt = 0; attempt < MAX_DESCENTS; attempt++) {
      if (!this.#descend(tx, key, words, below)) continue;
      const { i32 } = tx.views;
      const covers = below
        ? nodes.coversBelow(i32, tx.at, key, words)
        : nodes.covers(i32, tx.at, key, words);
      if (!this.#isProven(tx, covers)) continue;
      tx.depend(this.leaf);
      return this.leaf;
    }
    return tx.conflict(this.leaf);
  }

  /**
   * The leaf after the one that was opened last, for a key that comes right after that one's: their
   * parent mostly knows it, and a descent is saved. -1 if not. Only while the transaction goes on.
   */
  openNextLeaf(tx: Transaction, key: Int32Array, words: number): number {
    const { set } = tx;
    const nodes = this.#innerNodes;
    const parent = this.path[1];
    const taken = this.taken[1] + 1;
    tx.open(set.regionOf(parent), set.wordOf(parent));
    const { i32 } = tx.views;
    const { at } = tx;
    const there = i32[at + LEVEL] === 1 && taken < nodes.count(i32, at);
    const pointer = at + nodes.payloadAt(taken);
    const regionId = i32[pointer] - 1;
    const word = i32[pointer + 1];
    const incarnation = i32[pointer + 2];
    if (!tx.settle(parent) || !there) return -1;
    const leaf = tx.open(tx.executor.memory.region(regionId), word);
    this.leaf = leaf;
    this.#incarnation = incarnation;
    const covers = this.#leafNodes.covers(tx.views.i32, tx.at, key, words);
    if (!this.#isProven(tx, covers)) return -1;
    this.taken[1] = taken;
    tx.depend(leaf);
    return leaf;
  }

  /**
   * Reads a row object that a leaf points to, in one version. False if the pointer is out of date.
   * An object that still has its incarnation is the row of its key, whichever leaf that is in now.
   */
  readRow(
    tx: Transaction,
    regionId: number,
    word: number,
    incarnation: number,
    wanted: boolean,
  ): boolean {
    const region = tx.executor.memory.region(regionId);
    for (let attempt = 0; attempt < MAX_DESCENTS; attempt++) {
      const entry = tx.open(region, word);
      const place = this.#row;
      const placed = placeRow(tx, entry, place);
      if (placed && wanted) this.row = this.#codec.decode(place.views, place.at, place.words);
      if (!tx.settle(entry)) continue;
      if (!placed || tx.incarnationOf(entry) !== incarnation) return false;
      tx.depend(entry);
      tx.doneWith(entry);
      this.rowEntry = entry;
      return true;
    }
    return false;
  }

  /**
   * Opens a leaf by the way of a key, or of what comes just before it, which may be INFINITE; false
   * if the way was out of date.
   */
  #descend(tx: Transaction, key: Int32Array, words: number, below: boolean): boolean {
    const nodes = this.#innerNodes;
    const dense = this.#dense;
    let region = tx.executor.memory.region(this.#rootRegionId);
    let word = this.#rootWord;
    let incarnation = 0;
    let expected = -1;
    for (;;) {
      const entry = tx.open(region, word);
      if (expected === 0) {
        this.leaf = entry;
        this.#incarnation = incarnation;
        return true;
      }
      const { i32 } = tx.views;
      const { at } = tx;
      const level = i32[at + LEVEL];
      const taken = this.#childOf(i32, at, key, words, below);
      const pointer = at + nodes.payloadAt(taken);
      const regionId = i32[pointer] - 1;
      const childWord = i32[pointer + 1];
      const childIncarnation = i32[pointer + 2];
      const first = dense === undefined ? 0 : i32[at + this.#innerKeys + taken];
      if (!tx.settle(entry)) continue;
      if (expected < 0) {
        if (level < 1 || level > MAX_TREE_LEVEL) throw damagedRoot(tx, entry, level);
        this.rootLevel = level;
      } else if (level !== expected || tx.incarnationOf(entry) !== incarnation) return false;
      this.path[level] = entry;
      this.taken[level] = taken;
      region = tx.executor.memory.region(regionId);
      word = childWord;
      if (level === 1 && dense !== undefined) {
        this.touched = dense.touch(region.i32, word + HEADER_WORDS, key[0] - first);
      }
      incarnation = childIncarnation;
      expected = level - 1;
    }
  }

  /** The same without a trace: down the nodes as they are, not as this transaction will leave them. */
  #descendQuickly(tx: Transaction, key: Int32Array, words: number): boolean {
    const nodes = this.#innerNodes;
    const dense = this.#dense;
    const { regions } = tx.executor.memory;
    let region = regions[this.#rootRegionId];
    let word = this.#rootWord;
    let incarnation = 0;
    let expected = -1;
    while (region !== undefined) {
      const { i32 } = region;
      const high = loadAcquire(i32, word + HEADER_VERSION_HIGH);
      const low = loadAcquire(i32, word + HEADER_VERSION_LOW);
      const at = word + HEADER_WORDS;
      const level = i32[at + LEVEL];
      const isChild = i32[word + HEADER_INCARNATION] === incarnation && level === expected;
      const taken = Math.max(nodes.upperBound(i32, at, key, words) - 1, 0);
      const pointer = at + nodes.payloadAt(taken);
      const regionId = i32[pointer] - 1;
      const childWord = i32[pointer + 1];
      incarnation = i32[pointer + 2];
      const first = dense === undefined ? 0 : i32[at + this.#innerKeys + taken];
      if (!unchanged(i32, word, high, low)) return false;
      if (!isChild && (expected >= 0 || level < 1 || level > MAX_TREE_LEVEL)) return false;
      region = regions[regionId];
      word = childWord;
      expected = level - 1;
      if (expected > 0) continue;
      if (region === undefined) return false;
      if (dense !== undefined) {
        this.touched = dense.touch(region.i32, word + HEADER_WORDS, key[0] - first);
      }
      this.leaf = tx.open(region, word);
      this.#incarnation = incarnation;
      return true;
    }
    return false;
  }

  /** The child of an inner node to go on with. */
  #childOf(i32: Int32Array, at: number, key: Int32Array, words: number, below: boolean): number {
    const nodes = this.#innerNodes;
    if (!below) return Math.max(nodes.upperBound(i32, at, key, words) - 1, 0);
    const bound = words === INFINITE ? nodes.count(i32, at) : nodes.lowerBound(i32, at, key, words);
    return Math.max(bound - 1, 0);
  }

  /** Whether the leaf was read in one version, is a leaf of this tree, and the right one. */
  #isProven(tx: Transaction, covers: boolean): boolean {
    const { leaf } = this;
    return tx.settle(leaf) && covers && tx.incarnationOf(leaf) === this.#incarnation;
  }
}

/** The root is always an inner node. */
function damagedRoot(tx: Transaction, root: number, level: number): SituError {
  tx.depend(root);
  const { set } = tx;
  return damagedAt(set.regionOf(root), set.wordOf(root), `the root of a tree says level ${level}`);
}
