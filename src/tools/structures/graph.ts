/**
 * The check of a graph's objects and lists (stores/graph/layout.ts), once the table that leads to them was found sound:
 *
 *   objects   each is where the index says, with the id and the state that it says
 *   lists     elements are in order of their keys, and hold as many edges as their parents and their object say
 *   finders   lead to each edge of their list
 */

import { regionIdOf, wordOf } from "../../memory/address.ts";
import { Views } from "../../memory/views.ts";
import { MAX_CELL_BYTES } from "../../runtime/limits.ts";
import {
  CHILD_WORDS,
  COUNT_MASK,
  FINDER,
  FIRST_ENTRY,
  KEY_WORDS,
  LENGTH_SHIFT,
  LEVEL_MASK,
  LEVEL_SHIFT,
  MARK,
  MAX_LISTS,
  numberAt,
  OBJECT_SLOTS,
  ROOT,
  SLOT_WORDS,
  SPREAD,
  SPREAD_FIRST_ENTRY,
} from "../../stores/graph/layout.ts";
import type { IndexRow } from "../../stores/graph/objects.ts";
import type { Check } from "./check.ts";
import type { ObjectReader } from "./reader.ts";

/** What was found in a graph. */
export interface GraphFigures {
  readonly objects: number;
  readonly edges: number;
  /** The cells of its objects and of their lists. */
  readonly memoryBytes: number;
}

/** More levels than a list can have. */
const MAX_LEVELS = 12;

const objectViews = new Views(new ArrayBuffer(MAX_CELL_BYTES));
const elementViews = Array.from(
  { length: MAX_LEVELS + 1 },
  () => new Views(new ArrayBuffer(MAX_CELL_BYTES)),
);

export function* checkGraph(reader: ObjectReader, rows: readonly IndexRow[]): Check<GraphFigures> {
  const graph = new GraphCheck(reader);
  for (const row of rows) {
    graph.object(row);
    yield;
  }
  return { objects: rows.length, edges: graph.edges, memoryBytes: reader.memoryBytes };
}

class GraphCheck {
  edges = 0;
  readonly #reader: ObjectReader;
  /** The key that was passed last in the tree that is walked. */
  #first = -1;
  #second = -1;
  #place = "";

  constructor(reader: ObjectReader) {
    this.#reader = reader;
  }

  /** False if its lists could not be looked at. */
  object({ id, kind, state, at }: IndexRow): boolean {
    const place = `object ${id}`;
    this.#place = place;
    if (at === null) return this.#tell("it leads nowhere");
    const expected = { sizeClass: -1, incarnation: at.incarnation };
    const [regionId, word] = [regionIdOf(at.address), wordOf(at.address)];
    if (!this.#reader.readCell(place, regionId, word, expected, -1, objectViews)) {
      return false;
    }
    const { i32 } = objectViews;
    const header = i32[0];
    if (header >>> 24 !== MARK) return this.#tell("what lies there is no object of a graph");
    if (numberAt(i32, 2) !== id) return this.#tell(`object ${numberAt(i32, 2)} lies there`);
    if ((header & 0xff) !== kind || ((header >>> 16) & 0xff) !== state) {
      this.#tell(`its kind and state are not ${kind} and ${state}, as its row says`);
    }
    const lists = (header >>> 8) & 0xff;
    const words = OBJECT_SLOTS + lists * SLOT_WORDS + i32[1];
    if (lists > MAX_LISTS || i32[1] < 0 || words > i32[4] || i32[4] * 4 > MAX_CELL_BYTES) {
      return this.#tell(`its ${lists} lists and ${i32[1]} words of data do not fit it`);
    }
    const slots = i32.slice(OBJECT_SLOTS, OBJECT_SLOTS + lists * SLOT_WORDS);
    for (let slot = 0; slot < slots.length; slot += SLOT_WORDS) {
      this.#place = `${place}, list ${slots[slot] >>> 16}`;
      this.#list(slots, slot);
    }
    return true;
  }

  #list(slots: Int32Array, slot: number): void {
    const regionId = (slots[slot] & 0xffff) - 1;
    const word = slots[slot + 1];
    const count = slots[slot + 3];
    const [{ i32 }] = elementViews;
    // Read as what it is below: here, to know where the rest of the list is.
    const expected = { sizeClass: -1, incarnation: slots[slot + 2] };
    if (!this.#reader.readCell(this.#place, regionId, word, expected, -1, elementViews[0])) return;
    const head = i32.slice(0, SPREAD_FIRST_ENTRY);
    this.#first = -1;
    let found: number;
    if ((head[0] & SPREAD) === 0) found = this.#entries(0);
    else {
      this.#head = { regionId, word };
      found = this.#element(head[ROOT] - 1, head[ROOT + 1], head[ROOT + 2]);
      if (head[FINDER] !== 0) {
        this.#first = -1;
        const led = this.#element(head[FINDER] - 1, head[FINDER + 1], head[FINDER + 2]);
        if (led !== count) this.#tell(`its finder leads to ${led} edges of ${count}`);
      }
    }
    this.edges += found;
    if (found !== count) this.#tell(`it has ${found} edges, and its object says ${count}`);
  }

  /** The head of the list, which was reached already when its object was read. */
  #head = { regionId: -1, word: 0 };

  #element(regionId: number, word: number, level: number): number {
    if (level < 0 || level > MAX_LEVELS) {
      this.#tell(`an element has level ${level}`);
      return 0;
    }
    const views = elementViews[level];
    if (regionId === this.#head.regionId && word === this.#head.word) {
      // Elements of other levels, and the finder, are read in between; this one is the first leaf.
      return this.#entries(level);
    }
    const expected = { sizeClass: -1, incarnation: undefined };
    if (!this.#reader.readCell(this.#place, regionId, word, expected, -1, views)) return 0;
    const found = (views.i32[0] >>> LEVEL_SHIFT) & LEVEL_MASK;
    if (found === level) return this.#entries(level);
    this.#tell(`an element of level ${level} says that it is of level ${found}`);
    return 0;
  }

  /** The edges in an element that was read, and below it. */
  #entries(level: number): number {
    const { i32 } = elementViews[level];
    const used = i32[1] & 0xffff;
    const least = (i32[0] & SPREAD) !== 0 ? SPREAD_FIRST_ENTRY : FIRST_ENTRY;
    let edges = 0;
    let entries = 0;
    for (let end = used; end > least; entries++) {
      const key = end - KEY_WORDS;
      const length = i32[key] >>> LENGTH_SHIFT;
      if (length < KEY_WORDS || end - length < least) {
        this.#tell("an entry of an element does not fit it");
        return edges;
      }
      if (level === 0) {
        this.#passed(numberAt(i32, key), numberAt(i32, key + 2));
        edges++;
      } else {
        const at = end - CHILD_WORDS;
        const below = this.#element(i32[at] - 1, i32[at + 1], level - 1);
        if (below !== i32[at + 2]) this.#tell(`${below} edges are counted as ${i32[at + 2]}`);
        edges += below;
      }
      end -= length;
    }
    if (entries !== (i32[0] & COUNT_MASK)) this.#tell("an element counts its entries wrongly");
    return edges;
  }

  #passed(first: number, second: number): void {
    if (first < this.#first || (first === this.#first && second <= this.#second)) {
      this.#tell("its edges are out of order");
    }
    this.#first = first;
    this.#second = second;
  }

  #tell(what: string): false {
    this.#reader.problems.add(this.#place, what);
    return false;
  }
}
