/**
 * A record that does not fit a journal lies in a segment of its own, one for each slot, which is made when it is
 * needed and emptied afterwards. In the journal stands a stub in its place:
 *
 *   words 0–3  as in any record, with LARGE_RECORD in the place of the entries
 *
 * and the slot's word `large` says how many words the segment has. The segment holds a record in the usual form, of
 * changed words only: it has no edits, and so no redo words. Its length is the segment's, but for padding.
 *
 *   1. `large` is announced, the segment is made and filled, then the stub. Nothing is locked before that, and without
 *      room for the segment nothing is committed.
 *   2. The commit goes on as always. Whoever ends it for a dead owner reads the segment.
 *   3. The segment is emptied by the last one who needs it: `large` -1, the segment's file has no bytes any more, `large`
 *      0. In a store with a log this is the log's writer, when the record is on disk, before the journal's tail moves
 *      past the stub. Otherwise it is the owner, when all is installed, or whoever ends the owner's commit, before
 *      the slot turns to IDLE.
 *
 * A death in step 1 leaves a segment that no stub speaks of: the next owner of the slot empties it. A death in step 3
 * leaves -1, or the file without its bytes: whoever comes next finds that nothing is left to be installed, or that the
 * log has the record, and empties it again. There is one such segment for each slot: the next large record waits until
 * the log has this one.
 *
 * The threads of one process that share memory without files have no such segments: there, a transaction must fit
 * the journal.
 */

import type { Segment } from "../memory/segments.ts";
import { largeRecordName, type StoreMemory } from "../memory/store-memory.ts";
import { LARGE, type SlotId } from "./slot.ts";

/** In the place of the entries: the record lies in the slot's large segment. */
export const LARGE_RECORD = -2;
const EMPTYING = -1;
/** The segment's length is a multiple of a page. */
const PAGE_WORDS = 1024;

export class LargeRecord {
  readonly #memory: StoreMemory;
  readonly #control: Int32Array;
  readonly #slot: SlotId;
  readonly #largeAt: number;
  #segment: Segment | undefined;
  #words: Int32Array | undefined;

  constructor(memory: StoreMemory, slot: SlotId) {
    this.#memory = memory;
    this.#control = memory.control.i32;
    this.#slot = slot;
    this.#largeAt = memory.control.slotAt(slot) + LARGE;
  }

  /** Whether this memory can have such segments at all. */
  get isPossible(): boolean {
    return this.#memory.segments.empty !== undefined;
  }

  /** Whether the segment holds no record, and nobody is emptying it. */
  get isEmpty(): boolean {
    return Atomics.load(this.#control, this.#largeAt) === 0;
  }

  /** Step 1: a segment for a record of so many words, to be filled. */
  make(words: number): Int32Array {
    this.unmap();
    const whole = Math.ceil(words / PAGE_WORDS) * PAGE_WORDS;
    Atomics.store(this.#control, this.#largeAt, whole);
    try {
      return this.#keep(this.#memory.segments.create(largeRecordName(this.#slot), 4 * whole));
    } catch (error) {
      this.empty();
      throw error;
    }
  }

  /** The record in the segment; undefined if it is being emptied: nobody needs it any more. */
  read(): Int32Array | undefined {
    if (this.#words !== undefined) return this.#words;
    const words = Atomics.load(this.#control, this.#largeAt);
    if (words <= 0) return undefined;
    return this.#keep(this.#memory.segments.attach(largeRecordName(this.#slot), 4 * words));
  }

  /** To be called before another one may empty the segment. */
  unmap(): void {
    this.#words = undefined;
    this.#segment?.release();
    this.#segment = undefined;
  }

  /** Step 3. */
  empty(): void {
    this.unmap();
    if (Atomics.load(this.#control, this.#largeAt) === 0) return;
    Atomics.store(this.#control, this.#largeAt, EMPTYING);
    this.#memory.segments.empty?.(largeRecordName(this.#slot));
    Atomics.store(this.#control, this.#largeAt, 0);
  }

  #keep(segment: Segment): Int32Array {
    this.#segment = segment;
    this.#words = new Int32Array(segment.buffer);
    return this.#words;
  }
}
