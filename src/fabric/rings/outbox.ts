import { FrameWriter } from "../frames.ts";
import { FRAME_LENGTH } from "../wire.ts";
import type { RingSender } from "./ring.ts";

/** Frames on their way into a ring: those of this turn, and those that found no room. */
export class RingOutbox {
  readonly #frames = new FrameWriter();
  isScheduled = false;
  /** Has the outbox flushed when the turn is over. */
  readonly #schedule: (outbox: RingOutbox) => void;
  readonly #sender: RingSender;
  readonly #bell: { ring(): void };
  /** Words of the frames that are in the ring already. */
  #written = 0;

  constructor(sender: RingSender, bell: { ring(): void }, schedule: (outbox: RingOutbox) => void) {
    this.#sender = sender;
    this.#bell = bell;
    this.#schedule = schedule;
  }

  /** Where the next frame goes. */
  get frames(): FrameWriter {
    if (!this.isScheduled) {
      this.isScheduled = true;
      this.#schedule(this);
    }
    return this.#frames;
  }

  get unsentBytes(): number {
    return this.#frames.bytes - this.#written * 4;
  }

  /** Writes what fits, and rings once for all of it. True if anything did. */
  flush(): boolean {
    const { out } = this.#frames;
    const { i32 } = out.views;
    const before = this.#written;
    while (this.#written < out.at) {
      const end = this.#written + i32[this.#written + FRAME_LENGTH];
      if (!this.#sender.tryWrite(i32, this.#written, end)) {
        this.#sender.askForRoom();
        if (!this.#sender.tryWrite(i32, this.#written, end)) break;
      }
      this.#written = end;
    }
    const found = this.#written > before;
    const isFull = this.#written < out.at;
    if (!isFull) {
      this.#frames.clear();
      this.#written = 0;
    } else if (this.#written > out.at >> 1) this.#shift();
    if (found || isFull) this.#bell.ring();
    return found;
  }

  /** What was written is not kept: one who reads slowly must not cost ever more memory. */
  #shift(): void {
    const { out } = this.#frames;
    out.views.i32.copyWithin(0, this.#written, out.at);
    out.at -= this.#written;
    this.#written = 0;
  }
}
