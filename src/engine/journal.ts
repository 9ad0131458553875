/**
 * The journal of a slot: what its running commit is about to do, complete before anything is
 * locked. DESIGN §5 speaks of an intent list (addresses, before locking) and a journal (data, at
 * the commit point). They are one record here: the addresses are the intent, and the same bytes
 * become the redo record when the status word turns to COMMITTED. Locks are then held for as
 * long as it takes to choose a TID, not to copy data.
 *
 *   word 0  length of the record in words
 *   word 1  entries
 *   words 2–3  TID, written just before the commit point
 *   then for each entry, in address order:
 *     region id, word of the header, incarnation word after the commit,
 *     first changed data word, changed data words, and these words
 */

import type { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import {
  type AccessSet,
  BUFFER,
  DIRTY_FROM,
  DIRTY_TO,
  INCARNATION,
  REGION_ID,
  WORD,
} from "./access-set.ts";

const ENTRIES = 1;
const TID_HIGH = 2;
const TID_LOW = 3;
const RECORD_WORDS = 4;
export const RECORD_ENTRY_WORDS = 5;

/** From here on a native copy beats a loop over words. */
const LONG_COPY_WORDS = 64;

export function copyWords(
  from: Int32Array,
  fromAt: number,
  to: Int32Array,
  toAt: number,
  words: number,
): void {
  if (words < LONG_COPY_WORDS) {
    for (let i = 0; i < words; i++) to[toAt + i] = from[fromAt + i];
  } else {
    to.set(from.subarray(fromAt, fromAt + words), toAt);
  }
}

export class Journal {
  readonly views: Views;
  readonly #capacity: number;

  constructor(views: Views) {
    this.views = views;
    this.#capacity = views.i32.length;
  }

  /** Writes the record of the write set. Refuses one that does not fit, before any lock. */
  write(set: AccessSet, order: Int32Array, count: number): void {
    const { i32 } = this.views;
    const arena = set.arena.i32;
    const { words } = set;
    let at = RECORD_WORDS;
    for (let i = 0; i < count; i++) {
      const entry = order[i];
      const from = words[entry + DIRTY_FROM];
      const changed = Math.max(words[entry + DIRTY_TO] - from, 0);
      if (at + RECORD_ENTRY_WORDS + changed > this.#capacity) throw tooLarge(this.#capacity);
      i32[at] = words[entry + REGION_ID];
      i32[at + 1] = words[entry + WORD];
      i32[at + 2] = words[entry + INCARNATION];
      i32[at + 3] = from;
      i32[at + 4] = changed;
      at += RECORD_ENTRY_WORDS;
      copyWords(arena, words[entry + BUFFER] + from, i32, at, changed);
      at += changed;
    }
    i32[0] = at;
    i32[ENTRIES] = count;
  }

  writeTid(high: number, low: number): void {
    this.views.i32[TID_HIGH] = high;
    this.views.i32[TID_LOW] = low;
  }

  get entries(): number {
    return this.views.i32[ENTRIES];
  }

  get tidHigh(): number {
    return this.views.i32[TID_HIGH];
  }

  get tidLow(): number {
    return this.views.i32[TID_LOW];
  }

  /** Where the first entry starts; `next` gives the following one. */
  readonly first = RECORD_WORDS;

  next(at: number): number {
    return at + RECORD_ENTRY_WORDS + this.views.i32[at + 4];
  }
}

function tooLarge(capacity: number): SituError {
  return new SituError(
    "SITU_TOO_LARGE",
    `the transaction writes more than the ${capacity * 4} bytes that a journal holds: ` +
      `write less in one transaction`,
  );
}
