/**
 * The edge lists of an object, in a transaction: layout.ts says what they are made of. Each operation begins with what
 * the object says about the list, and ends by telling the object, and the list's head, what has changed.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Views } from "../../memory/views.ts";
import { FINDER_EDGES } from "../../runtime/limits.ts";
import { Element, roomFor, writeKey } from "./element.ts";
import {
  FINDER,
  KEY_WORDS,
  LAST_TIME,
  MAX_ENTRY_WORDS,
  numberAt,
  ROOT,
  SPREAD_FIRST_ENTRY,
} from "./layout.ts";
import type { GraphObject, ObjectIndex } from "./objects.ts";
import { Tree } from "./tree.ts";

const headElement = new Element();
const entry = new Int32Array(MAX_ENTRY_WORDS);
const finderEntry = new Int32Array(KEY_WORDS);
/** What the head of a list of one element says of root and finder. */
const NOTHING_TOLD = new Int32Array(SPREAD_FIRST_ENTRY - ROOT);
/** Data of an edge that was removed. */
const removed = new Int32Array(MAX_ENTRY_WORDS);

/** An edge as it was before it was removed. */
export interface RemovedEdge {
  readonly time: number;
  readonly data: Int32Array;
  readonly dataWords: number;
}

/** What reading a list tells of each edge; false ends it. */
export type EdgeVisit = (
  id2: number,
  time: number,
  views: Views,
  at: number,
  words: number,
) => boolean;

export class EdgeList {
  readonly #object: GraphObject;
  readonly #type: number;
  readonly #tree: Tree;
  readonly #finder: Tree;
  #hasFinder = false;
  #isSpread = false;
  /** What the head says of root and finder. */
  #told = NOTHING_TOLD;
  count = 0;

  constructor(tx: Transaction, object: GraphObject, type: number) {
    this.#object = object;
    this.#type = type;
    this.#tree = new Tree(object.address);
    this.#finder = new Tree(object.address);
    const slot = object.slotOf(type);
    if (slot < 0) return;
    const { head } = object;
    const regionId = (head[slot] & 0xffff) - 1;
    const word = head[slot + 1];
    this.count = head[slot + 3];
    this.#tree.headRegionId = regionId;
    this.#tree.headWord = word;
    this.#tree.at(regionId, word, 0);
    headElement.load(tx, regionId, word);
    // The object was read before the list moved: what lies there now may be anything.
    if (tx.incarnationOf(headElement.entry) !== head[slot + 2]) tx.conflict(headElement.entry);
    if (!headElement.isSpread) return;
    const { i32 } = headElement.views;
    this.#isSpread = true;
    this.#told = i32.slice(ROOT, SPREAD_FIRST_ENTRY);
    this.#tree.at(i32[ROOT] - 1, i32[ROOT + 1], i32[ROOT + 2]);
    if (i32[FINDER] === 0) return;
    this.#hasFinder = true;
    this.#finder.at(i32[FINDER] - 1, i32[FINDER + 1], i32[FINDER + 2]);
  }

  /** The time of the edge to a target, or -1. Without a finder the list is short, and looked through. */
  timeOf(tx: Transaction, id2: number): number {
    if (this.count === 0) return -1;
    let found = -1;
    if (this.#hasFinder) found = this.#finder.second(tx, id2);
    else {
      this.#tree.walk(tx, 0, 0, ({ i32 }, key) => {
        if (numberAt(i32, key + 2) !== id2) return true;
        found = numberAt(i32, key);
        return false;
      });
    }
    return found < 0 ? -1 : LAST_TIME - found;
  }

  /** Visits the edge to a target, if there is one. */
  visit(tx: Transaction, id2: number, visit: EdgeVisit): void {
    const time = this.timeOf(tx, id2);
    if (time < 0) return;
    const found = this.#tree.find(tx, LAST_TIME - time, id2);
    if (found === undefined) tx.conflict(-1);
    visit(id2, time, found.views, found.at, found.dataWords);
  }

  /** Visits edges, newest first, from a position on. */
  range(tx: Transaction, position: number, visit: EdgeVisit): void {
    if (position >= this.count) return;
    this.#tree.walk(tx, 0, position, (views, key, at, words) =>
      visit(numberAt(views.i32, key + 2), LAST_TIME - numberAt(views.i32, key), views, at, words),
    );
  }

  /** The same, from a time on. */
  timeRange(tx: Transaction, high: number, visit: EdgeVisit): void {
    if (this.count === 0) return;
    this.#tree.walk(tx, LAST_TIME - high, 0, (views, key, at, words) =>
      visit(numberAt(views.i32, key + 2), LAST_TIME - numberAt(views.i32, key), views, at, words),
    );
  }

  /** Adds an edge, or replaces the one to the same target. Whether it is new. */
  add(
    tx: Transaction,
    index: ObjectIndex,
    id2: number,
    time: number,
    data: Int32Array,
    dataWords: number,
  ): boolean {
    const words = dataWords + KEY_WORDS;
    for (let i = 0; i < dataWords; i++) entry[i] = data[i];
    writeKey(entry, dataWords, LAST_TIME - time, id2, words);
    const before = this.timeOf(tx, id2);
    if (before === time && this.#tree.replace(tx, LAST_TIME - time, id2, entry, words)) {
      return false;
    }
    if (before >= 0) this.#take(tx, id2, before);
    if (this.count === 0) this.#begin(tx, words);
    else {
      this.#tree.insert(tx, LAST_TIME - time, id2, entry, words);
      this.count++;
      if (this.#hasFinder) this.#insertToFinder(tx, id2, time);
      else if (this.count > FINDER_EDGES && this.#tree.level > 0) this.#makeFinder(tx);
    }
    this.#tell(tx, index);
    return before < 0;
  }

  /** Removes the edge to a target and says what it was. Its data is there until the next one is removed. */
  remove(tx: Transaction, index: ObjectIndex, id2: number): RemovedEdge | undefined {
    const time = this.timeOf(tx, id2);
    if (time < 0) return undefined;
    const found = this.#tree.find(tx, LAST_TIME - time, id2);
    if (found === undefined) tx.conflict(-1);
    const { views, at, dataWords } = found;
    for (let i = 0; i < dataWords; i++) removed[i] = views.i32[at + i];
    this.#take(tx, id2, time);
    if (this.count === 0) this.#end(tx);
    this.#tell(tx, index);
    return { time, data: removed, dataWords };
  }

  /** Frees all elements, whatever they hold, and forgets the list. */
  dismantle(tx: Transaction, index: ObjectIndex): void {
    if (this.count === 0) return;
    this.count = 0;
    this.#end(tx);
    this.#tell(tx, index);
  }

  /** Moves the head to another cell, so that those who remember it have to ask the object. */
  moveHead(tx: Transaction, index: ObjectIndex): void {
    if (this.count === 0) return;
    this.#tree.moveHead(tx);
    this.#tell(tx, index);
  }

  #begin(tx: Transaction, words: number): void {
    const element = headElement.begin(0);
    element.append(entry, 0, words);
    element.create(tx, roomFor(element.used, false), this.#object.address);
    this.#tree.headRegionId = element.regionId;
    this.#tree.headWord = element.word;
    this.#tree.at(element.regionId, element.word, 0);
    this.#isSpread = false;
    this.#hasFinder = false;
    this.count = 1;
  }

  #take(tx: Transaction, id2: number, time: number): void {
    if (!this.#tree.remove(tx, LAST_TIME - time, id2)) tx.conflict(-1);
    if (this.#hasFinder && !this.#finder.remove(tx, id2, LAST_TIME - time)) tx.conflict(-1);
    this.count--;
    if (this.count === 0) this.#end(tx);
  }

  /** The list has no edges any more. */
  #end(tx: Transaction): void {
    if (this.#tree.headRegionId < 0) return;
    this.#tree.dismantle(tx);
    if (this.#hasFinder) this.#finder.dismantle(tx);
    this.#hasFinder = false;
    this.#isSpread = false;
    this.#tree.headRegionId = -1;
  }

  #insertToFinder(tx: Transaction, id2: number, time: number): void {
    writeKey(finderEntry, 0, id2, LAST_TIME - time, KEY_WORDS);
    this.#finder.insert(tx, id2, LAST_TIME - time, finderEntry, KEY_WORDS);
  }

  #makeFinder(tx: Transaction): void {
    const edges: number[] = [];
    this.#tree.walk(tx, 0, 0, ({ i32 }, key) => {
      edges.push(numberAt(i32, key + 2), LAST_TIME - numberAt(i32, key));
      return true;
    });
    const root = headElement.begin(0);
    writeKey(finderEntry, 0, edges[0], LAST_TIME - edges[1], KEY_WORDS);
    root.append(finderEntry, 0, KEY_WORDS);
    root.create(tx, roomFor(root.used, true), this.#object.address);
    this.#finder.at(root.regionId, root.word, 0);
    this.#hasFinder = true;
    for (let i = 2; i < edges.length; i += 2) this.#insertToFinder(tx, edges[i], edges[i + 1]);
  }

  /** Tells the head where root and finder are, and the object where the head is. */
  #tell(tx: Transaction, index: ObjectIndex): void {
    const tree = this.#tree;
    if (this.count > 0 && (this.#isSpread || tree.level > 0)) this.#tellHead(tx);
    let incarnation = 0;
    if (this.count > 0) {
      const at = tx.set.find(tree.headRegionId, tree.headWord);
      incarnation = tx.incarnationOf(at);
    }
    this.#object.setSlot(
      tx,
      index,
      this.#type,
      tree.headRegionId,
      tree.headWord,
      incarnation,
      this.count,
    );
  }

  #tellHead(tx: Transaction): void {
    const tree = this.#tree;
    const finder = this.#finder;
    if (tree.level === 0) {
      const head = headElement.load(tx, tree.headRegionId, tree.headWord);
      head.setSpread(false);
      head.overwrite(tx);
      if (this.#hasFinder) finder.dismantle(tx);
      this.#hasFinder = false;
      this.#isSpread = false;
      return;
    }
    const words = new Int32Array(SPREAD_FIRST_ENTRY - ROOT);
    words[0] = tree.regionId + 1;
    words[1] = tree.word;
    words[2] = tree.level;
    if (this.#hasFinder) {
      words[3] = finder.regionId + 1;
      words[4] = finder.word;
      words[5] = finder.level;
    }
    if (this.#isSpread && words.every((word, i) => word === this.#told[i])) return;
    const head = headElement.load(tx, tree.headRegionId, tree.headWord);
    head.write(tx, ROOT, words, words.length);
    this.#isSpread = true;
    this.#told = words;
  }
}
