/**
 * What leaves a connection. Frames of one turn gather in one buffer and leave with one write when
 * the turn is over (FaSST §4.2: Doorbell batching).
 *
 * Buffers go round: a connection has one only while something is in it. If the kernel took all that
 * was written, the buffer is free for the next turn, of any connection; if not, it belongs to the
 * socket now and is left to the garbage collector. Where batches have tags (batches.ts), frames are
 * copied to another buffer, with which it is the same.
 */

import type { Duplex } from "node:stream";
import { afterTurn } from "../../runtime/clock.ts";
import type { SpareFrames } from "../exchange/spare-frames.ts";
import type { FabricCounters } from "../fabric.ts";
import type { FrameWriter } from "../frames.ts";
import { BatchWriter } from "./batches.ts";

/** A buffer for batches; a longer one is not kept. */
const BATCHES_BYTES = 256 * 1024;

/** The connections of an endpoint that have something to send when the turn is over. */
export class Turn {
  readonly spares: SpareFrames;
  readonly #counters: FabricCounters;
  readonly #dirty: Outbox[] = [];
  #batches: Buffer | undefined;
  #scheduled = false;
  readonly #flush = (): void => this.flush();

  constructor(counters: FabricCounters, spares: SpareFrames) {
    this.#counters = counters;
    this.spares = spares;
  }

  add(outbox: Outbox): void {
    this.#dirty.push(outbox);
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTurn(this.#flush);
  }

  /** Room for batches, until `keepBatches`. */
  takeBatches(bytes: number): Buffer {
    const kept = this.#batches;
    this.#batches = undefined;
    if (kept !== undefined && kept.length >= bytes) return kept;
    return Buffer.allocUnsafeSlow(Math.max(bytes, BATCHES_BYTES));
  }

  keepBatches(batches: Buffer): void {
    if (batches.length === BATCHES_BYTES) this.#batches = batches;
  }

  flush(): void {
    this.#scheduled = false;
    // A write may fail at once, and what that causes may send again: to the end of the list.
    for (let i = 0; i < this.#dirty.length; i++) {
      if (this.#dirty[i].flush()) this.#counters.writes++;
    }
    this.#dirty.length = 0;
  }
}

export class Outbox {
  readonly #turn: Turn;
  readonly #socket: Duplex;
  /** Where what is written must be authenticated. */
  batches: BatchWriter | undefined;
  #frames: FrameWriter | undefined;

  constructor(turn: Turn, socket: Duplex) {
    this.#turn = turn;
    this.#socket = socket;
  }

  /** Where the next frame goes. */
  get frames(): FrameWriter {
    if (this.#frames === undefined) {
      this.#frames = this.#turn.spares.take();
      this.#turn.add(this);
    }
    return this.#frames;
  }

  /** Bytes that nobody has taken yet: those of this turn, and those that the socket keeps. */
  get unsentBytes(): number {
    return (this.#frames?.bytes ?? 0) + this.#socket.writableLength;
  }

  /** Writes what there is; false if there is nothing, or nobody to write it to. */
  flush(): boolean {
    const frames = this.#frames;
    if (frames === undefined) return false;
    this.#frames = undefined;
    const { bytes } = frames;
    if (bytes === 0 || !this.#socket.writable) {
      this.#turn.spares.giveBack(frames);
      return false;
    }
    if (this.batches !== undefined) this.#writeBatches(this.batches, frames);
    else {
      this.#socket.write(frames.out.views.bytes.subarray(0, bytes));
      if (this.#socket.writableLength === 0) this.#turn.spares.giveBack(frames);
    }
    return true;
  }

  #writeBatches(batches: BatchWriter, frames: FrameWriter): void {
    const { bytes } = frames;
    const whole = BatchWriter.bytesFor(bytes);
    const room = this.#turn.takeBatches(whole);
    batches.write(frames.out.views.bytes.subarray(0, bytes), room);
    this.#turn.spares.giveBack(frames);
    this.#socket.write(room.subarray(0, whole));
    if (this.#socket.writableLength === 0) this.#turn.keepBatches(room);
  }
}
