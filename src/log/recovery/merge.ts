/**
 * The records of a batch in the order of their TIDs. They lie there journal after journal, and in a
 * journal in order: so they are a few runs, each in order, and what remains is to merge these. Most
 * batches of a store with one writer are a single run.
 */

import { RECORD_WORDS } from "../../engine/journal.ts";
import { isLater } from "../../engine/tid.ts";
import { SituError } from "../../runtime/errors.ts";

const TID_HIGH = 2;
const TID_LOW = 3;

export class RecordMerge {
  #words: Int32Array = new Int32Array(0);
  #runs = 0;
  /** For each run, its next record and its end. */
  #at = new Int32Array(16);
  #end = new Int32Array(16);
  /** A heap of the runs that have records left, that with the earliest TID first. */
  #heap = new Int32Array(16);
  #size = 0;

  /** Finds the runs of a batch. */
  begin(words: Int32Array): void {
    this.#words = words;
    this.#runs = 0;
    let high = 0;
    let low = 0;
    for (let at = 0; at < words.length; ) {
      const length = words[at];
      if (!(length >= RECORD_WORDS && length <= words.length - at)) {
        throw new SituError(
          "SITU_CORRUPT",
          `a batch of ${words.length} words has a record of ${length} words at word ${at}`,
        );
      }
      const itsHigh = words[at + TID_HIGH];
      const itsLow = words[at + TID_LOW];
      if (this.#runs === 0 || !isLater(itsHigh, itsLow, high, low)) this.#addRun(at);
      high = itsHigh;
      low = itsLow;
      at += length;
      this.#end[this.#runs - 1] = at;
    }
    this.#size = 0;
    if (this.isOrdered) return;
    this.#size = this.#runs;
    for (let run = 0; run < this.#runs; run++) this.#heap[run] = run;
    for (let place = (this.#size >> 1) - 1; place >= 0; place--) this.#sink(place);
  }

  /** Whether the records are in order as they lie. */
  get isOrdered(): boolean {
    return this.#runs <= 1;
  }

  /** Where the next record is, if they are not; -1 after the last. */
  next(): number {
    if (this.#size === 0) return -1;
    const run = this.#heap[0];
    const at = this.#at[run];
    this.#at[run] = at + this.#words[at];
    if (this.#at[run] === this.#end[run]) this.#heap[0] = this.#heap[--this.#size];
    this.#sink(0);
    return at;
  }

  #sink(from: number): void {
    const heap = this.#heap;
    const run = heap[from];
    let place = from;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#size) break;
      if (child + 1 < this.#size && this.#isBefore(heap[child + 1], heap[child])) child++;
      if (!this.#isBefore(heap[child], run)) break;
      heap[place] = heap[child];
      place = child;
    }
    heap[place] = run;
  }

  #isBefore(run: number, other: number): boolean {
    const words = this.#words;
    const a = this.#at[run];
    const b = this.#at[other];
    return isLater(
      words[b + TID_HIGH],
      words[b + TID_LOW],
      words[a + TID_HIGH],
      words[a + TID_LOW],
    );
  }

  #addRun(at: number): void {
    if (this.#runs === this.#at.length) {
      this.#at = doubled(this.#at);
      this.#end = doubled(this.#end);
      this.#heap = doubled(this.#heap);
    }
    this.#at[this.#runs++] = at;
  }
}

function doubled(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * array.length);
  larger.set(array);
  return larger;
}
