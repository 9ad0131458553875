/**
 * Copies what a block holds while others go on changing it, and never waits for them.
 *
 * The copy may be torn in any way: of an object that is being installed it may have a part of the
 * new words, of one that is freed and allocated again a mixture of both. This is sound, as it is for
 * any redo log: whatever is torn was changed by a commit after the checkpoint's start epoch, for all
 * before were installed when the copy began. So its record is in the log, up to the end epoch, and
 * recovery applies all records after the start epoch, in the order of their TIDs, whatever version
 * it finds in the copy. Each word that one of them wrote ends as the last of them left it; each word
 * that none of them wrote did not change while it was copied. Not in the log, and so to be seen to
 * here, are the lock words: they are 0 in the copy.
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
  VERSION_HIGH,
  VERSION_LOW,
} from "../../memory/object.ts";
import { loadAcquire, loadAfterLoads } from "../../memory/ordering.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import { MAX_BLOCK_UNITS } from "../../runtime/limits.ts";

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
  /** Where lock words lie in the copy. */
  readonly #locks = new Int32Array(MAX_OBJECTS);
  #lockCount = 0;
  /** The array that was looked at last. */
  #count = 0;
  #stride = 0;
  /** The greatest TID of the epoch after which changes count. */
  #limitHigh = 0;
  #limitLow = 0;

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
    for (let lock = 0; lock < this.#lockCount; lock++) out[outAt + this.#locks[lock]] = 0;
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
    this.#lockCount = 0;
  }

  /** An object, and its lock word with it. */
  #add(at: number, words: number): void {
    this.#locks[this.#lockCount++] = this.words;
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
    const state = loadAcquire(i32, at + INCARNATION);
    if ((state & ALLOCATED) === 0) {
      // A cell that was never used is as in a new block.
      if (i32[at + VERSION_HIGH] !== 0 || i32[at + VERSION_LOW] !== 0) this.#add(at, HEADER_WORDS);
      return;
    }
    const inCopy = this.words;
    this.#add(at, words);
    if ((state & ARRAY) === 0 || !this.#lookAtArray(i32, at, words, state)) return;
    for (let index = 0; index < this.#count; index++) {
      this.#locks[this.#lockCount++] = inCopy + ARRAY_HEADER_WORDS + index * this.#stride;
    }
  }

  #addChangedElements(i32: Int32Array, at: number, words: number): void {
    const state = loadAcquire(i32, at + INCARNATION);
    if ((state & (ALLOCATED | ARRAY)) !== (ALLOCATED | ARRAY)) return;
    if (!this.#lookAtArray(i32, at, words, state)) return;
    const stride = this.#stride;
    let element = at + ARRAY_HEADER_WORDS;
    for (let index = 0; index < this.#count; index++, element += stride) {
      if (this.#isChanged(i32, element)) this.#add(element, stride);
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
