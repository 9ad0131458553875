/**
 * Frames (wire.ts) in a stream of bytes.
 *
 * `FrameWriter` appends frames to a buffer, one after the other, and takes one back that turns out
 * too long, so that those before it are not lost.
 *
 * `FrameDecoder` finds frames in chunks of any size and alignment. It copies a chunk behind what was
 * left of the one before, into memory that begins at an even word, and hands out frames where they
 * lie there. The copy is what buys alignment; nothing is allocated per frame.
 *
 *   own:      [ consumed | complete frames … | part of a frame | room ]
 *                        start                                 end
 *
 * Most chunks end with a frame. So many connections would each have a buffer of their own that is
 * empty between two chunks; instead they share one (`Scratch`), and a decoder has memory of its
 * own only while it keeps something. What it keeps is bounded by the longest frame and the chunk
 * that came last, and what all of them keep has a limit too: whoever needs more is refused. A
 * length is judged as soon as its word is there, before the rest is kept.
 */

import { Views } from "../memory/views.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { MAX_PARTIAL_BYTES } from "../runtime/limits.ts";
import {
  FRAME_CONFIGURATION,
  FRAME_HEADER_WORDS,
  FRAME_ID,
  FRAME_KIND,
  FRAME_LENGTH,
  MAX_FRAME_WORDS,
  type Reader,
  tooLong,
  Writer,
} from "./wire.ts";

/** Asks whether the other end is alive; it is answered at once, whatever else is under way. */
export const PING = 13;

/** As libuv reads. */
const SCRATCH_BYTES = 64 * 1024;
/** A decoder's own memory, at first; it is given back when it has grown and is empty. */
const OWN_BYTES = 2 * 1024;
const KEPT_BYTES = 16 * 1024;

export class FrameWriter {
  readonly out = new Writer();
  /** Frames since the last `clear`. */
  frames = 0;
  #start = 0;

  get bytes(): number {
    return this.out.at * 4;
  }

  /** Begins a frame. Whatever is written to `out` until `end` is its body. */
  begin(kind: number, id: number, configurationId: number): Writer {
    const { out } = this;
    const start = out.at;
    this.#start = start;
    out.limit = start + MAX_FRAME_WORDS;
    out.reserve(FRAME_HEADER_WORDS);
    const { i32 } = out.views;
    i32[start + FRAME_KIND] = kind;
    i32[start + FRAME_ID] = id;
    i32[start + FRAME_CONFIGURATION] = configurationId;
    out.at = start + FRAME_HEADER_WORDS;
    return out;
  }

  /** The frame is complete, or, being too long, was never there: then it throws SITU_TOO_LARGE. */
  end(): void {
    const { out } = this;
    if (out.at > out.limit) {
      this.takeBack();
      throw tooLong();
    }
    out.align();
    out.views.i32[this.#start + FRAME_LENGTH] = out.at - this.#start;
    this.frames++;
  }

  /** The frame that was begun is not sent. */
  takeBack(): void {
    this.out.at = this.#start;
  }

  clear(): void {
    this.out.clear();
    this.frames = 0;
  }
}

/** What the decoders of a thread share. */
export class Scratch {
  /** Memory for one chunk at a time. */
  readonly views = new Views(new ArrayBuffer(SCRATCH_BYTES));
  /** The bytes of all decoders that have more than a little memory of their own. */
  heldBytes = 0;
  readonly maxHeldBytes: number;

  constructor(maxHeldBytes = MAX_PARTIAL_BYTES) {
    this.maxHeldBytes = maxHeldBytes;
  }
}

export class FrameDecoder {
  /** Where the frame is that `next` has found: the words [from, to) of `views`. */
  views: Views;
  from = 0;
  to = 0;
  /** The longest frame that is accepted: short ones only, before one has said who one is. */
  maxWords: number;
  readonly #scratch: Scratch;
  #own: Views | undefined;
  /** Bytes of `views` that are not consumed. */
  #start = 0;
  #end = 0;

  constructor(scratch: Scratch, maxWords = MAX_FRAME_WORDS) {
    this.#scratch = scratch;
    this.views = scratch.views;
    this.maxWords = maxWords;
  }

  /** Bytes that wait for the rest of their frame, or for `next`. */
  get left(): number {
    return this.#end - this.#start;
  }

  /** Takes a chunk. Call `next` until there are no more frames, or until enough; then `keepRest`. */
  push(chunk: Uint8Array): void {
    const { length } = chunk;
    const left = this.#end - this.#start;
    if (left === 0) {
      this.#start = 0;
      this.views = this.#scratch.views;
      if (length > this.views.u8.length) this.views.reset(new ArrayBuffer(roundUp(length)));
      this.views.u8.set(chunk, 0);
      this.#end = length;
      return;
    }
    this.#makeRoom(left, length);
    this.views.u8.set(chunk, this.#end);
    this.#end += length;
  }

  /**
   * Whether there is another complete frame: then `from` and `to` say where. It stays there until
   * `keepRest`. Throws SITU_PROTOCOL for a length that no frame has: nothing after it can be found.
   */
  next(): boolean {
    const left = this.#end - this.#start;
    if (left < 4) return false;
    const from = this.#start >> 2;
    const words = this.views.i32[from + FRAME_LENGTH];
    if (words < FRAME_HEADER_WORDS || words > this.maxWords || (words & 1) !== 0) {
      throw new SituError("SITU_PROTOCOL", `a frame says it has ${words} words`);
    }
    if (left < words * 4) return false;
    this.from = from;
    this.to = from + words;
    this.#start += words * 4;
    return true;
  }

  /** What is left moves away from the shared memory. Frames that were found are gone. */
  keepRest(): void {
    const left = this.#end - this.#start;
    if (left === 0) {
      if (this.#own !== undefined && this.#own.u8.length > KEPT_BYTES) this.release();
      this.views = this.#scratch.views;
      this.#start = 0;
      this.#end = 0;
    } else if (this.views === this.#scratch.views) {
      const { u8 } = this.views;
      const own = this.#ownOf(left);
      own.u8.set(u8.subarray(this.#start, this.#end));
      this.views = own;
      this.#start = 0;
      this.#end = left;
    }
  }

  /** What is left, for one who knows better what it is. */
  takeRest(): Uint8Array {
    const rest = this.views.u8.slice(this.#start, this.#end);
    this.#start = this.#end;
    return rest;
  }

  /** Gives its memory back; what was left is gone. */
  release(): void {
    if (this.#own !== undefined) this.#scratch.heldBytes -= heavy(this.#own.u8.length);
    this.#own = undefined;
    this.views = this.#scratch.views;
    this.#start = 0;
    this.#end = 0;
  }

  /** In its own memory, behind `left` bytes that move to the front. */
  #makeRoom(left: number, more: number): void {
    const { u8 } = this.views;
    if (this.#end + more <= u8.length) return;
    if (left + more <= u8.length) u8.copyWithin(0, this.#start, this.#end);
    else {
      this.views.reset(this.#take(u8.length, Math.max(left + more, 2 * u8.length)));
      this.views.u8.set(u8.subarray(this.#start, this.#end));
    }
    this.#start = 0;
    this.#end = left;
  }

  #ownOf(bytes: number): Views {
    if (this.#own === undefined) {
      this.#own = new Views(this.#take(0, Math.max(bytes, OWN_BYTES)));
    } else if (this.#own.u8.length < bytes) {
      this.#own.reset(this.#take(this.#own.u8.length, bytes));
    }
    return this.#own;
  }

  #take(before: number, bytes: number): ArrayBuffer {
    const scratch = this.#scratch;
    const held = scratch.heldBytes - heavy(before) + heavy(roundUp(bytes));
    if (held > scratch.maxHeldBytes && bytes > KEPT_BYTES) {
      throw new SituError("SITU_OVERLOADED", "too many long frames are on their way to this end");
    }
    scratch.heldBytes = held;
    return new ArrayBuffer(roundUp(bytes));
  }
}

/** The body of a reply that refuses. */
export function writeError(out: Writer, error: SituError): void {
  out.text(error.code);
  out.text(error.message.slice(0, MAX_MESSAGE_LENGTH));
}

/** An error that came over a fabric; a code that nobody knows is a protocol error. */
export function readError(body: Reader): SituError {
  try {
    const code = body.text();
    const message = body.text();
    if (CODE.test(code)) return new SituError(code as SituErrorCode, message);
    return new SituError("SITU_PROTOCOL", `there is no error ${JSON.stringify(code.slice(0, 40))}`);
  } catch (error) {
    if (error instanceof SituError) return error;
    throw error;
  }
}

const MAX_MESSAGE_LENGTH = 1_000;
/** Another version of Situ may know more codes than this one. */
const CODE = /^SITU_[A-Z_]{2,40}$/;

/** Little memory is not counted. */
function heavy(bytes: number): number {
  return bytes > KEPT_BYTES ? bytes : 0;
}

function roundUp(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}
