/**
 * One socket, seen as frames in both directions. Whoever owns the link gets the frames that arrive,
 * and is told once when it is over. The owner's errors about what arrived end the link: nothing
 * that comes over a connection can do more than that to this end.
 *
 * A link can be paused, in the middle of a chunk too: a few bytes of requests may ask for many of
 * replies. What is left of the chunk then stays in the decoder, and the rest in the kernel, which
 * makes the other end wait.
 */

import type { Duplex } from "node:stream";
import { afterTurn, realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Timer } from "../fabric.ts";
import { FrameDecoder, writeError } from "../frames.ts";
import {
  FLAG_ERROR,
  FRAME_CONFIGURATION,
  FRAME_HEADER_WORDS,
  FRAME_ID,
  FRAME_KIND,
  MAX_FRAME_WORDS,
  Reader,
} from "../wire.ts";
import { BatchReader, BatchWriter } from "./batches.ts";
import { type BatchKeys, HANDSHAKE_WORDS, REFUSED } from "./handshake.ts";
import { Outbox } from "./outbox.ts";
import { bindingOf, errorOf } from "./sockets.ts";
import type { TcpShared } from "./tcp-options.ts";

/** How long one who is refused may take to read why. */
const LINGER_MS = 1_000;
/** More of them are not told. */
const MAX_LINGERING = 64;

export interface LinkOwner {
  /** A frame; `kind` with its flags. Throws a SituError to end the link. */
  frame(kind: number, id: number, configurationId: number, body: Reader): void;
  /** All that has arrived by now was handed out. */
  chunkRead(): void;
  /** All that was written is on its way. */
  drained(): void;
  closed(why: SituError): void;
}

export class Link {
  readonly outbox: Outbox;
  /** Set with each byte that arrives; whoever watches it resets it. */
  heard = false;
  isOver = false;
  readonly #shared: TcpShared;
  readonly #socket: Duplex;
  readonly #owner: LinkOwner;
  readonly #decoder: FrameDecoder;
  readonly #body: Reader;
  #handshake: Timer | undefined;
  #batches: BatchReader | undefined;
  #isPaused = false;

  constructor(shared: TcpShared, socket: Duplex, owner: LinkOwner) {
    this.#shared = shared;
    this.#socket = socket;
    this.#owner = owner;
    this.outbox = new Outbox(shared.turn, socket);
    this.#decoder = new FrameDecoder(shared.scratch, HANDSHAKE_WORDS);
    this.#body = new Reader(this.#decoder.views);
    socket.on("data", (chunk: Buffer) => this.#data(chunk));
    socket.on("drain", () => {
      if (!this.isOver) this.#owner.drained();
    });
    socket.on("error", (error) => this.destroy(errorOf(socket, error)));
    socket.on("end", () => this.#ended());
    socket.on("close", () => this.#over(lost("the connection was closed")));
    this.#handshake = realClock.after(shared.handshakeTimeoutMs, () => {
      // One that comes late, after a stall, must not overtake what has arrived in the meantime.
      afterTurn(() => {
        if (this.#handshake !== undefined) this.refuse(tooSlow());
      });
    });
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /**
   * Both ends know each other: frames may be long from now on, and take their time. With keys, all that
   * follows is authenticated, in both directions.
   */
  handshakeIsOver(keys: BatchKeys | undefined): void {
    this.#decoder.maxWords = MAX_FRAME_WORDS;
    this.#handshake?.cancel();
    this.#handshake = undefined;
    if (keys === undefined) return;
    this.outbox.flush();
    this.outbox.batches = new BatchWriter(keys.sending);
    this.#batches = new BatchReader(keys.receiving);
    this.#batches.push(Buffer.from(this.#decoder.takeRest()));
  }

  /** The bytes of the frame that is being handed out. */
  frameBytes(): Uint8Array {
    const { views, from, to } = this.#decoder;
    return views.u8.slice(from * 4, to * 4);
  }

  /** What TLS knows of this connection. */
  binding(): Uint8Array {
    return bindingOf(this.#socket);
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  /** When this turn is over: the caller may be serving another connection. */
  resume(): void {
    if (!this.#isPaused) return;
    afterTurn(() => {
      if (!this.#isPaused || this.isOver) return;
      this.#isPaused = false;
      this.#handOut();
      if (!this.#isPaused && !this.isOver) this.#socket.resume();
    });
  }

  /** Ends the link and tells the other end why. */
  refuse(why: SituError): void {
    if (this.isOver) return;
    const shared = this.#shared;
    this.#count(why);
    this.#over(why);
    if (shared.lingering >= MAX_LINGERING || !this.#socket.writable) {
      this.#socket.destroy();
      return;
    }
    const { frames } = this.outbox;
    writeError(frames.begin(REFUSED | FLAG_ERROR, 0, shared.configurationId), why);
    frames.end();
    this.outbox.flush();
    // What still arrives is thrown away: to close a socket that has unread bytes would reset the
    // connection, and the other end might never read why.
    this.#socket.resume();
    this.#socket.end();
    shared.lingering++;
    const timer = realClock.after(LINGER_MS, () => this.#socket.destroy());
    this.#socket.once("close", () => {
      shared.lingering--;
      timer.cancel();
    });
  }

  /** Ends the link without a word, to one who would not read it. */
  cutOff(why: SituError): void {
    this.#count(why);
    this.destroy(why);
  }

  destroy(why: SituError): void {
    this.#over(why);
    this.#socket.destroy();
  }

  /** Sends what there is, then ends. */
  finish(why: SituError): void {
    if (this.isOver) return;
    this.outbox.flush();
    this.#over(why);
    this.#socket.end();
    if (this.#socket.writableLength === 0) this.#socket.destroy();
    else {
      const timer = realClock.after(LINGER_MS, () => this.#socket.destroy());
      this.#socket.once("close", () => timer.cancel());
    }
  }

  #count({ code }: SituError): void {
    const { counters } = this.#shared;
    counters.refused[code] = (counters.refused[code] ?? 0) + 1;
    if (code === "SITU_OVERLOADED") counters.overloaded++;
  }

  #over(why: SituError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#handshake?.cancel();
    this.#handshake = undefined;
    this.#decoder.release();
    this.#owner.closed(why);
  }

  /** The other end says nothing more; so it wants no replies either. */
  #ended(): void {
    if (!this.isOver) this.destroy(lost("the other end closed the connection"));
  }

  #data(chunk: Buffer): void {
    this.heard = true;
    if (this.isOver) return;
    if (this.#batches === undefined) this.#handOut(chunk);
    else this.#batches.push(chunk);
    // With the last frame of the handshake some of what follows may have come.
    if (this.#batches !== undefined) this.#readBatches(this.#batches);
  }

  #readBatches(batches: BatchReader): void {
    try {
      while (!this.isOver) {
        const batch = batches.next();
        if (batch === undefined) return;
        this.#handOut(batch);
      }
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      this.refuse(error);
    }
  }

  #handOut(chunk?: Uint8Array): void {
    const decoder = this.#decoder;
    const body = this.#body;
    try {
      if (chunk !== undefined) decoder.push(chunk);
      while (!this.#isPaused && !this.isOver && decoder.next()) {
        const { views, from, to } = decoder;
        const { i32 } = views;
        body.reset(views, from + FRAME_HEADER_WORDS, to);
        this.#owner.frame(
          i32[from + FRAME_KIND],
          i32[from + FRAME_ID],
          i32[from + FRAME_CONFIGURATION],
          body,
        );
      }
      if (!this.isOver) decoder.keepRest();
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      this.refuse(error);
      return;
    }
    if (!this.isOver) this.#owner.chunkRead();
  }
}

export function lost(what: string, cause?: unknown): SituError {
  return new SituError("SITU_LOST", what, { cause });
}

function tooSlow(): SituError {
  return new SituError("SITU_TIMEOUT", "the handshake took too long");
}
