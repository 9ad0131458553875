/**
 * Two rings between two threads of one process: frames both ways, in the order in which they were sent.
 * A thread that sleeps is called by an empty message through a port; one that is awake is not.
 *
 *     const [here, there] = makeChannel();                 // `there` goes to the other thread
 *     const channel = new RingChannel(here, (kind, id, body) => …);
 *     channel.send(kind, id, (out) => out.word(1));        // leaves when the turn ends
 */

import { MessageChannel, type MessagePort } from "node:worker_threads";
import { Views } from "../../memory/views.ts";
import { assert } from "../../runtime/assert.ts";
import { afterTurn } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_UNREAD_BYTES, MESSAGE_RING_BYTES } from "../../runtime/limits.ts";
import { FRAME_HEADER_WORDS, FRAME_ID, FRAME_KIND, Reader, type Writer } from "../wire.ts";
import { RingOutbox } from "./outbox.ts";
import { Poller, type Sleeper } from "./poller.ts";
import { RING_CONTROL_WORDS, RingReceiver, RingSender, ringWords } from "./ring.ts";

/** One end of a channel, to be given to its thread; the port must be in the list of transfers. */
export interface ChannelEnd {
  readonly buffer: SharedArrayBuffer;
  readonly side: 0 | 1;
  readonly port: MessagePort;
}

/** One word for each side: whether it sleeps. */
const SLEEPS = 0;
const HEADER_WORDS = RING_CONTROL_WORDS;

export function makeChannel(bytes = MESSAGE_RING_BYTES): [ChannelEnd, ChannelEnd] {
  const buffer = new SharedArrayBuffer((HEADER_WORDS + 2 * ringWords(bytes)) * 4);
  const { port1, port2 } = new MessageChannel();
  return [
    { buffer, side: 0, port: port1 },
    { buffer, side: 1, port: port2 },
  ];
}

export type FrameHandler = (kind: number, id: number, body: Reader) => void;

export class RingChannel {
  readonly #port: MessagePort;
  readonly #i32: Int32Array;
  readonly #mine: number;
  readonly #theirs: number;
  readonly #receiver: RingReceiver;
  readonly #onFrame: FrameHandler;
  readonly #body: Reader;
  readonly #poller: Poller;
  readonly #polled = { poll: (): boolean => this.#poll() };
  readonly #outbox: RingOutbox;
  #isClosed = false;
  #wakened: (() => void) | undefined;

  constructor({ buffer, side, port }: ChannelEnd, onFrame: FrameHandler) {
    const views = new Views(buffer);
    const words = (views.i32.length - HEADER_WORDS) / 2;
    const ringOf = (from: number): number => HEADER_WORDS + from * words;
    this.#port = port;
    this.#i32 = views.i32;
    this.#mine = SLEEPS + 16 * side;
    this.#theirs = SLEEPS + 16 * (1 - side);
    const sender = new RingSender(views.i32, ringOf(side), words);
    this.#outbox = new RingOutbox(sender, { ring: () => this.#ring() }, (outbox) => {
      afterTurn(() => {
        outbox.isScheduled = false;
        outbox.flush();
      });
    });
    this.#receiver = new RingReceiver(views, ringOf(1 - side), words);
    this.#onFrame = onFrame;
    this.#body = new Reader(views);
    this.#poller = new Poller(this.#sleeper());
    port.on("message", () => this.#called());
    this.#poller.add(this.#polled);
  }

  /** Whether a process with nothing else to do goes on for this channel's sake. */
  ref(): void {
    this.#port.ref();
  }

  unref(): void {
    this.#port.unref();
  }

  /** Bytes that found no room yet. */
  get unsentBytes(): number {
    return this.#outbox.unsentBytes;
  }

  /**
   * Throws SITU_OVERLOADED if the other side does not read, and SITU_TOO_LARGE. What the other side has
   * asked for is not limited: its requests are.
   */
  send(kind: number, id: number, write: (out: Writer) => void, isLimited = true): void {
    assert(!this.#isClosed, "nothing is sent over a closed channel");
    if (this.unsentBytes > MAX_UNREAD_BYTES) this.#outbox.flush();
    if (isLimited && this.unsentBytes > MAX_UNREAD_BYTES) {
      throw new SituError("SITU_OVERLOADED", "the other thread does not read what it is sent");
    }
    const { frames } = this.#outbox;
    try {
      write(frames.begin(kind, id, 0));
      frames.end();
    } catch (error) {
      frames.takeBack();
      throw error;
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#outbox.flush();
    this.#isClosed = true;
    this.#poller.remove(this.#polled);
    this.#port.close();
    this.#called();
  }

  #called(): void {
    const wakened = this.#wakened;
    this.#wakened = undefined;
    wakened?.();
  }

  #poll(): boolean {
    if (this.#isClosed) return false;
    const receiver = this.#receiver;
    let found = false;
    while (!this.#isClosed && receiver.next()) {
      found = true;
      const { views, from, to } = receiver;
      const { i32 } = views;
      this.#body.reset(views, from + FRAME_HEADER_WORDS, to);
      this.#onFrame(i32[from + FRAME_KIND], i32[from + FRAME_ID], this.#body);
      receiver.done();
    }
    if (receiver.returnRoom()) this.#ring();
    const outbox = this.#outbox;
    if (outbox.unsentBytes > 0 && !outbox.isScheduled && outbox.flush()) found = true;
    return found;
  }

  /** The read-modify-write stands between what was written and the look at who sleeps. */
  #ring(): void {
    if (Atomics.exchange(this.#i32, this.#theirs, 0) === 1) this.#port.postMessage(0);
  }

  #sleeper(): Sleeper {
    return {
      prepare: () => void Atomics.exchange(this.#i32, this.#mine, 1),
      sleep: (wakened) => {
        this.#wakened = wakened;
      },
      cancel: () => void Atomics.store(this.#i32, this.#mine, 0),
    };
  }
}
