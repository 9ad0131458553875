/**
 * A message ring from one sender to one receiver, in memory that both have mapped (FaRM §3.1, Figure 1).
 *
 *     control:  HEAD      how far the receiver has processed, as the sender knows it
 *               WAITS     the sender has found no room
 *
 *     ring:     … 0 0 | frame, trailer | frame, trailer | 0 0 0 …
 *                     head                               tail
 *
 * What is not a message is zero. The first word of a frame is its length, so a word at the head that
 * is not zero is a new message; the trailer, which is written last, says that all of it is there. The
 * receiver hands a frame out where it lies, then zeroes it. It tells the sender how far it is lazily,
 * after half the ring, or when the sender says that it waits.
 *
 * A frame does not go round the end: where it would, a WRAP in place of a length leads to the
 * beginning. The ring is large enough for two of the longest frames, so one always fits an empty ring.
 *
 * A sender that dies in the middle of a message leaves a length without a trailer. The receiver then
 * waits at this ring, and at no other, until it is told that the sender is dead.
 */

import { loadAcquire, storeRelease } from "../../memory/ordering.ts";
import type { Views } from "../../memory/views.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { FRAME_HEADER_WORDS, FRAME_LENGTH, MAX_FRAME_WORDS } from "../wire.ts";

/** Words of control, on cache lines of their own. */
export const RING_CONTROL_WORDS = 32;
const HEAD = 0;
const WAITS = 16;

const TRAILER = 0x4d526146; // "FaRM", read in little-endian order
/** Two words, so that frames begin at even ones. */
export const TRAILER_WORDS = 2;
const WRAP = -1;

/** Words of a ring of so many bytes, its control included. */
export function ringWords(bytes: number): number {
  return RING_CONTROL_WORDS + bytes / 4;
}

const NOTHING = new Int32Array(0);

class RingEnd {
  protected i32: Int32Array;
  protected readonly control: number;
  protected readonly start: number;
  protected readonly size: number;
  /** Where this end is, as an offset, and counted from the start, modulo 2^32. */
  protected offset = 0;
  protected count = 0;

  /** The ring, with its control before it, begins at word `at` and has so many words in all. */
  constructor(i32: Int32Array, at: number, words: number) {
    this.i32 = i32;
    this.control = at;
    this.start = at + RING_CONTROL_WORDS;
    this.size = words - RING_CONTROL_WORDS;
    assert(at % 2 === 0 && this.size % 2 === 0, "frames of a ring begin at even words");
  }

  /** The memory is about to be unmapped: nothing touches it from here on. */
  close(): void {
    this.i32 = NOTHING;
  }

  protected advance(words: number): void {
    this.count = (this.count + words) | 0;
    this.offset += words;
    if (this.offset === this.size) this.offset = 0;
  }
}

export class RingSender extends RingEnd {
  /** The receiver's place, as far as known here. */
  #head = 0;

  /** Writes the frame in words [from, to) of `source`. False if there is no room. */
  tryWrite(source: Int32Array, from: number, to: number): boolean {
    const { i32, start, size } = this;
    if (i32.length === 0) return false;
    const words = to - from;
    const needed = words + TRAILER_WORDS;
    const left = size - this.offset;
    const wraps = needed > left;
    if (!this.#hasRoom(wraps ? left + needed : needed)) return false;
    if (wraps) {
      storeRelease(i32, start + this.offset, WRAP);
      this.advance(left);
    }
    const at = start + this.offset;
    if (words <= 32) for (let i = 0; i < words; i++) i32[at + i] = source[from + i];
    else i32.set(source.subarray(from, to), at);
    storeRelease(i32, at + words, TRAILER);
    this.advance(needed);
    return true;
  }

  /** Has the receiver say how far it is, soon, and call the sender; see RingReceiver.returnRoom. */
  askForRoom(): void {
    if (this.i32.length > 0) Atomics.store(this.i32, this.control + WAITS, 1);
  }

  #hasRoom(words: number): boolean {
    if (words <= this.size - ((this.count - this.#head) | 0)) return true;
    this.#head = loadAcquire(this.i32, this.control + HEAD);
    return words <= this.size - ((this.count - this.#head) | 0);
  }
}

export class RingReceiver extends RingEnd {
  /** The frame that `next` has found: words [from, to) of the memory. */
  readonly views: Views;
  from = 0;
  to = 0;
  /** Words processed that the sender does not know of. */
  #processed = 0;

  constructor(views: Views, at: number, words: number) {
    super(views.i32, at, words);
    this.views = views;
  }

  /** Whether there is another whole frame. Throws SITU_PROTOCOL for what no sender writes. */
  next(): boolean {
    const { i32 } = this;
    if (i32.length === 0) return false;
    let at = this.start + this.offset;
    let words = loadAcquire(i32, at + FRAME_LENGTH);
    if (words === WRAP) {
      storeRelease(i32, at, 0);
      const left = this.size - this.offset;
      this.advance(left);
      this.#processed += left;
      at = this.start;
      words = loadAcquire(i32, at + FRAME_LENGTH);
    }
    if (words === 0) return false;
    if (!this.#isLength(words)) throw damaged(`a message of ${words} words`);
    const trailer = loadAcquire(i32, at + words);
    if (trailer === 0) return false;
    if (trailer !== TRAILER) throw damaged("a message with a wrong trailer");
    this.from = at;
    this.to = at + words;
    return true;
  }

  /** The frame was processed; its memory is free. */
  done(): void {
    const words = this.to - this.from + TRAILER_WORDS;
    this.i32.fill(0, this.from, this.from + words);
    this.advance(words);
    this.#processed += words;
    if (this.#processed * 2 >= this.size) this.#returnHead();
  }

  /** All that was there is processed. True if the sender waits for the room, and must be called. */
  returnRoom(): boolean {
    const { i32, control } = this;
    if (i32.length === 0 || Atomics.load(i32, control + WAITS) === 0) return false;
    Atomics.store(i32, control + WAITS, 0);
    this.#returnHead();
    return true;
  }

  #returnHead(): void {
    if (this.i32.length === 0) return;
    this.#processed = 0;
    storeRelease(this.i32, this.control + HEAD, this.count);
  }

  #isLength(words: number): boolean {
    return (
      words >= FRAME_HEADER_WORDS &&
      words <= MAX_FRAME_WORDS &&
      (words & 1) === 0 &&
      words + TRAILER_WORDS <= this.size - this.offset
    );
  }
}

function damaged(what: string): SituError {
  return new SituError("SITU_PROTOCOL", `there is ${what} in a message ring`);
}
