/**
 * Copies what a block holds while others go on changing it.
 *
 * Every object is copied as of one version: its header is looked at when the copy is planned, and again after its
 * words were copied. An object that has changed in between is copied again (installs.ts says how that is known, and
 * who is waited for: one who is in the middle of installing it). Different objects may be of different moments.
 * Recovery applies all records after the start epoch, in the order of their TIDs, each to those objects whose
 * version is older: so each object goes through the same versions as it did in memory, which edits rely on
 * (engine/edits.ts). Not in the log, and so to be seen to here, are the lock words: they are 0 in the copy.
 *
 * An object that is freed, or allocated, between plan and copy may have no room in the plan. It stays what it
 * was when the copy was planned: header and version of then, and words that mean nothing. Its record is in the log,
 * later than that version, and either frees the cell or fills it anew; up to then, what is applied to the words
 * stays inside of the cell. The same holds for the elements of an array that is freed meanwhile: recovery
 * takes them for elements only as long as the array's cell is older than the record.
 *
 * What has to be copied is found from the headers of the cells, and in an array's cell from the
 * headers of its elements (memory/object.ts). A free cell that was used has a version and an
 * incarnation worth keeping, but no data.
 *
 * A delta has what was changed after an epoch. For an object that is being installed this is asked
 * while its version changes, high word before low: read high, low and high again, and if both
 * highs are the same, the version is not earlier than the one before the change. So nothing that
 * has changed is left out; that too much is copied does no harm.
 */

import { copyWords } from "../../engine/journal.ts";
import { isLater, limitHigh, limitLow } from "../../engine/tid.ts";
import { BLOCK_CELLS, UNIT_WORDS } from "../../memory/blocks.ts";
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
} from "../../memory/object.ts";
import { loadAcquire, loadAfterLoads } from "../../memory/ordering.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import { MAX_BLOCK_UNITS } from "../../runtime/limits.ts";
import type { Installs } from "./installs.ts";

/** The smallest element: a header and two words. */
const MAX_OBJECTS = Math.ceil((MAX_BLOCK_UNITS * UNIT_WORDS) / (HEADER_WORDS + 2));
export const MAX_RUNS = MAX_OBJECTS;

/** Which words of a block are to be copied. Made to be used again and again: it holds large arrays. */
export class CopyPlan {
  /** Words in all runs. */
  words = 0;
  /** What cannot be, unless the block ceased to be what it was meanwhile: memory is overwritten. */
  problem: string | undefined;
  runs = 0;
  /** For each run, its first word in the region, and its words. */
  readonly #starts = new Int32Array(MAX_RUNS);
  readonly #lengths = new Int32Array(MAX_RUNS);
  /** Where the last run ends in the region. */
  #end = -1;
  /** For each object where it lies in the region and in the copy, its words, and its header in the plan. */
  readonly #ats = new Int32Array(MAX_OBJECTS);
  readonly #places = new Int32Array(MAX_OBJECTS);
  readonly #words = new Int32Array(MAX_OBJECTS);
  readonly #highs = new Int32Array(MAX_OBJECTS);
  readonly #lows = new Int32Array(MAX_OBJECTS);
  readonly #states = new Int32Array(MAX_OBJECTS);
  #objects = 0;
  readonly #installs: Installs;
  /** The array that was looked at last. */
  #count = 0;
  #stride = 0;
  /** The greatest TID of the epoch after which changes count. */
  #limitHigh = 0;
  #limitLow = 0;

  constructor(installs: Installs) {
    this.#installs = installs;
  }

  /** Plans to copy all that a block holds. */
  planWhole(i32: Int32Array, first: number, sizeClass: number): void {
    this.#clear();
    const words = CELL_BYTES[sizeClass] / 4;
    const end = first + BLOCK_CELLS[sizeClass] * words;
    for (let at = first; at < end; at += words) this.#addCell(i32, at, words);
  }

  /** Plans to copy what was changed after an epoch. */
  planChanges(i32: Int32Array, first: number, sizeClass: number, afterEpoch: number): void {
    this.#clear();
    this.#limitHigh = limitHigh(afterEpoch);
    this.#limitLow = limitLow(afterEpoch);
    const words = CELL_BYTES[sizeClass] / 4;
    const end = first + BLOCK_CELLS[sizeClass] * words;
    for (let at = first; at < end; at += words) {
      if (this.#isChanged(i32, at)) this.#addCell(i32, at, words);
      else if ((i32[at + INCARNATION] & ARRAY) !== 0) this.#addChangedElements(i32, at, words);
    }
  }

  /** Bytes of a chunk's payload: the words, and which they are. */
  get payloadBytes(): number {
    return 4 * this.words + 8 * this.runs;
  }

  /** Copies as planned: the payload of a chunk. Returns where it ends. */
  copy(i32: Int32Array, first: number, out: Int32Array, outAt: number): number {
    let at = outAt;
    for (let run = 0; run < this.runs; run++) {
      copyWords(i32, this.#starts[run], out, at, this.#lengths[run]);
      at += this.#lengths[run];
    }
    for (let object = 0; object < this.#objects; object++) this.#settle(i32, object, out, outAt);
    for (let run = 0; run < this.runs; run++) {
      out[at++] = this.#starts[run] - first;
      out[at++] = this.#lengths[run];
    }
    return at;
  }

  #clear(): void {
    this.words = 0;
    this.runs = 0;
    this.problem = undefined;
    this.#end = -1;
    this.#objects = 0;
  }

  /** Sees to it that the copy of an object is of one version. */
  #settle(i32: Int32Array, object: number, out: Int32Array, outAt: number): void {
    const at = this.#ats[object];
    const copy = outAt + this.#places[object];
    let high = this.#highs[object];
    let low = this.#lows[object];
    while (!this.#installs.isSettled(i32, at, high, low)) {
      this.#installs.await(i32, at);
      high = loadAcquire(i32, at + VERSION_HIGH);
      low = loadAcquire(i32, at + VERSION_LOW);
      if (loadAcquire(i32, at + INCARNATION) !== this.#states[object]) {
        high = this.#highs[object];
        low = this.#lows[object];
        break;
      }
      copyWords(i32, at, out, copy, this.#words[object]);
    }
    out[copy + LOCK] = 0;
    out[copy + VERSION_HIGH] = high;
    out[copy + VERSION_LOW] = low;
    out[copy + INCARNATION] = this.#states[object];
  }

  /** Looks at the header of an object. Returns its incarnation word. */
  #look(i32: Int32Array, at: number, place: number, words: number): number {
    const object = this.#objects++;
    for (;;) {
      this.#installs.await(i32, at);
      const high = loadAcquire(i32, at + VERSION_HIGH);
      const low = loadAcquire(i32, at + VERSION_LOW);
      const state = loadAcquire(i32, at + INCARNATION);
      if (!this.#installs.isSettled(i32, at, high, low)) continue;
      this.#ats[object] = at;
      this.#places[object] = place;
      this.#words[object] = words;
      this.#highs[object] = high;
      this.#lows[object] = low;
      this.#states[object] = state;
      return state;
    }
  }

  /** Words of a block that are to be copied. */
  #add(at: number, words: number): void {
    if (at === this.#end) {
      this.#lengths[this.runs - 1] += words;
    } else {
      this.#starts[this.runs] = at;
      this.#lengths[this.runs++] = words;
    }
    this.#end = at + words;
    this.words += words;
  }

  #addCell(i32: Int32Array, at: number, words: number): void {
    const object = this.#objects;
    const inCopy = this.words;
    const state = this.#look(i32, at, inCopy, words);
    if ((state & ALLOCATED) === 0) {
      this.#words[object] = HEADER_WORDS;
      // A cell that was never used is as in a new block.
      if (this.#highs[object] !== 0 || this.#lows[object] !== 0) this.#add(at, HEADER_WORDS);
      else this.#objects--;
      return;
    }
    this.#add(at, words);
    if ((state & ARRAY) === 0 || !this.#lookAtArray(i32, at, words, state)) return;
    this.#words[object] = ARRAY_HEADER_WORDS;
    for (let index = 0; index < this.#count; index++) {
      const element = ARRAY_HEADER_WORDS + index * this.#stride;
      this.#look(i32, at + element, inCopy + element, this.#stride);
    }
  }

  #addChangedElements(i32: Int32Array, at: number, words: number): void {
    const state = loadAcquire(i32, at + INCARNATION);
    if ((state & (ALLOCATED | ARRAY)) !== (ALLOCATED | ARRAY)) return;
    if (!this.#lookAtArray(i32, at, words, state)) return;
    const stride = this.#stride;
    let element = at + ARRAY_HEADER_WORDS;
    for (let index = 0; index < this.#count; index++, element += stride) {
      if (!this.#isChanged(i32, element)) continue;
      this.#look(i32, element, this.words, stride);
      this.#add(element, stride);
    }
  }

  /**
   * Finds the shape of an array. False if it has been freed meanwhile: then its cell is in the
   * log, and what is copied of it does not matter.
   */
  #lookAtArray(i32: Int32Array, at: number, words: number, state: number): boolean {
    const dataWords = i32[at + ELEMENT_WORDS];
    const count = i32[at + ELEMENT_COUNT];
    const stride = HEADER_WORDS + dataWords;
    const isPossible =
      dataWords >= 2 && count >= 1 && count <= (words - ARRAY_HEADER_WORDS) / stride;
    if (!isPossible) {
      if (loadAfterLoads(i32, at + INCARNATION) === state) {
        this.problem = `the array at word ${at} cannot have ${count} elements of ${dataWords} words`;
      }
      return false;
    }
    this.#stride = stride;
    this.#count = count;
    return true;
  }

  #isChanged(i32: Int32Array, at: number): boolean {
    for (;;) {
      const high = loadAcquire(i32, at + VERSION_HIGH);
      const low = loadAcquire(i32, at + VERSION_LOW);
      if (loadAcquire(i32, at + VERSION_HIGH) !== high) continue;
      return isLater(high, low, this.#limitHigh, this.#limitLow);
    }
  }
}
