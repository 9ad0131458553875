/**
 * The memory between an end that asks and a node that answers: a header, a ring for requests and one
 * for replies, in one file. Made by the one who asks.
 *
 *     word 0      its number as a node, or CLIENT
 *     word 1      it is closed
 *     word 2…     where its bell is
 *     word 256…   the ring of the requests, then that of the replies
 */

import type { Segment } from "../../memory/segments.ts";
import { Views } from "../../memory/views.ts";
import { MESSAGE_RING_BYTES } from "../../runtime/limits.ts";
import { RingReceiver, RingSender, ringWords } from "./ring.ts";

const WORD_ROLE = 0;
const WORD_CLOSED = 1;
const WORD_BELL = 2;
const RINGS_AT = 256;

/** The file of one. */
export const CONNECTION_BYTES =
  Math.ceil(((RINGS_AT + 2 * ringWords(MESSAGE_RING_BYTES)) * 4) / 4096) * 4096;

export class Connection {
  readonly views: Views;
  readonly #segment: Segment;

  constructor(segment: Segment) {
    this.#segment = segment;
    this.views = new Views(segment.buffer);
  }

  describe(role: number, bell: string): void {
    const { i32, bytes } = this.views;
    i32[WORD_ROLE] = role;
    i32[WORD_BELL] = bytes.write(bell, (WORD_BELL + 1) * 4, "utf8");
  }

  get role(): number {
    return this.views.i32[WORD_ROLE];
  }

  get bell(): string {
    const from = (WORD_BELL + 1) * 4;
    return this.views.bytes.toString("utf8", from, from + this.views.i32[WORD_BELL]);
  }

  /** The one who asks has gone, in good order. */
  get isClosed(): boolean {
    return this.views.i32.length === 0 || Atomics.load(this.views.i32, WORD_CLOSED) !== 0;
  }

  markClosed(): void {
    if (this.views.i32.length > 0) Atomics.store(this.views.i32, WORD_CLOSED, 1);
  }

  ringAt(which: "requests" | "replies"): { at: number; words: number } {
    // Even: frames begin at even words. What is left over belongs to none.
    const words = ((this.views.i32.length - RINGS_AT) >> 2) << 1;
    return { at: which === "requests" ? RINGS_AT : RINGS_AT + words, words };
  }

  sender(which: "requests" | "replies"): RingSender {
    const { at, words } = this.ringAt(which);
    return new RingSender(this.views.i32, at, words);
  }

  receiver(which: "requests" | "replies"): RingReceiver {
    const { at, words } = this.ringAt(which);
    return new RingReceiver(this.views, at, words);
  }

  close(): void {
    if (this.views.i32.length === 0) return;
    this.views.clear();
    this.#segment.release();
  }
}
