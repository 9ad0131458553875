/**
 * What a store should hold, epoch by epoch: every commit is noted with its epoch and with what it
 * left of each object, in the test's own words. What a recovery brings back must be the state after
 * some epoch, object for object and word for word, and with it every commit up to that epoch.
 *
 * In these tests all executors run in one thread, so commits come in the order of their epochs.
 */

import { epochOf } from "../../src/engine/tid.ts";
import { BLOCK_CELLS, BlockTable, SPAN } from "../../src/memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  HEADER_WORDS,
  INCARNATION,
  LOCK,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../src/memory/object.ts";
import { CELL_BYTES } from "../../src/memory/size-classes.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";

/** The place of a header. */
export interface Place {
  readonly regionId: number;
  readonly word: number;
}

/** An object; or the cell of an array, whose data are the shape of its elements. */
export interface Held extends Place {
  readonly data: Int32Array;
  readonly incarnation: number;
  readonly high: number;
  readonly low: number;
}

/** What a transaction has done to an object: its data afterwards, undefined if it was freed. */
export interface Change extends Place {
  readonly data: Int32Array | undefined;
}

interface Commit {
  readonly epoch: number;
  readonly changes: readonly (Held | Place)[];
}

export type State = Map<string, Held>;

export function keyOf({ regionId, word }: Place): string {
  return `${regionId}:${word}`;
}

export class Model {
  /** The state after all commits. */
  now: State;
  readonly #base: State;
  /** The last epoch of what was there from the start. */
  readonly #baseEpoch: number;
  readonly #commits: Commit[] = [];

  constructor(base: State = new Map(), baseEpoch = 0) {
    this.#base = base;
    this.#baseEpoch = baseEpoch;
    this.now = new Map(base);
  }

  get commits(): number {
    return this.#commits.length;
  }

  /** Notes a commit that is installed: its TID and the incarnations are those in memory. */
  note(memory: StoreMemory, changes: readonly Change[]): void {
    const noted = changes.map((change): Held | Place => {
      const { regionId, word, data } = change;
      if (data === undefined) return { regionId, word };
      const { i32 } = memory.region(regionId);
      const [high, low] = [i32[word + VERSION_HIGH], i32[word + VERSION_LOW]];
      return { regionId, word, data, incarnation: i32[word + INCARNATION], high, low };
    });
    const [{ regionId, word }] = changes;
    const { i32 } = memory.region(regionId);
    const epoch = epochOf(i32[word + VERSION_HIGH], i32[word + VERSION_LOW]);
    const last = this.#commits.at(-1)?.epoch ?? this.#baseEpoch;
    if (epoch < last) throw new Error(`a commit at epoch ${epoch} after one at ${last}`);
    this.#commits.push({ epoch, changes: noted });
    apply(this.now, noted);
  }

  /** The state after an epoch. */
  after(epoch: number): State {
    const state = new Map(this.#base);
    for (const commit of this.#commits) if (commit.epoch <= epoch) apply(state, commit.changes);
    return state;
  }

  /** The last epoch up to this one in which anything was committed. */
  lastCommit(upTo = Number.POSITIVE_INFINITY): number {
    return this.#commits.findLast(({ epoch }) => epoch <= upTo)?.epoch ?? this.#baseEpoch;
  }
}

function apply(state: State, changes: readonly (Held | Place)[]): void {
  for (const change of changes) {
    if ("data" in change) state.set(keyOf(change), change);
    else state.delete(keyOf(change));
  }
}

/** Throws unless memory holds just these objects, all of them unlocked. */
export function expectState(memory: StoreMemory, state: State): void {
  const left = new Set(state.keys());
  const compare = (place: Place, words: number, what: string): void => {
    const key = keyOf(place);
    const held = state.get(key);
    if (held === undefined) throw new Error(`there is ${what} at ${key} that should not be`);
    left.delete(key);
    const { i32 } = memory.region(place.regionId);
    const at = place.word;
    if (i32[at + LOCK] !== 0) throw new Error(`${what} at ${key} is locked`);
    const version = i32[at + VERSION_HIGH] === held.high && i32[at + VERSION_LOW] === held.low;
    if (!version || i32[at + INCARNATION] !== held.incarnation) {
      const epoch = epochOf(i32[at + VERSION_HIGH], i32[at + VERSION_LOW]);
      const expected = epochOf(held.high, held.low);
      throw new Error(`${what} at ${key} is of epoch ${epoch} and should be of ${expected}`);
    }
    if (words >= 0 && words !== held.data.length) {
      throw new Error(`${what} at ${key} has ${words} words and should have ${held.data.length}`);
    }
    for (let word = 0; word < held.data.length; word++) {
      if (i32[at + HEADER_WORDS + word] === held.data[word]) continue;
      const found = i32[at + HEADER_WORDS + word];
      throw new Error(`word ${word} of ${what} at ${key}: ${found}, not ${held.data[word]}`);
    }
  };
  forEachAllocated(memory, (place, state) => {
    if ((state & ARRAY) === 0) {
      compare(place, -1, "an object");
      return;
    }
    compare(place, ARRAY_HEADER_WORDS - HEADER_WORDS, "an array");
    const { i32 } = memory.region(place.regionId);
    const words = i32[place.word + ELEMENT_WORDS];
    for (let index = 0; index < i32[place.word + ELEMENT_COUNT]; index++) {
      const word = place.word + ARRAY_HEADER_WORDS + index * (HEADER_WORDS + words);
      compare({ regionId: place.regionId, word }, words, `element ${index}`);
    }
  });
  if (left.size > 0) throw new Error(`not there: ${[...left].slice(0, 5).join(", ")}`);
}

function forEachAllocated(memory: StoreMemory, visit: (place: Place, state: number) => void): void {
  const blocks = new BlockTable(memory);
  for (let unit = 0; unit < blocks.count; ) {
    const sizeClass = blocks.classOf(unit);
    if (sizeClass < 0) {
      unit++;
      continue;
    }
    const regionId = blocks.regionIdOf(unit);
    const { i32 } = memory.region(regionId);
    const first = blocks.firstWordOf(unit);
    const words = CELL_BYTES[sizeClass] / 4;
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      const word = first + index * words;
      const state = i32[word + INCARNATION];
      if ((state & ALLOCATED) !== 0) visit({ regionId, word }, state);
    }
    unit += SPAN[sizeClass];
  }
}
