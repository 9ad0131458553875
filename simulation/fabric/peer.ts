/** What one end of a simulated fabric knows of another: what is to be sent, and what is under way. */

import type { Request, Sender } from "../../src/fabric/fabric.ts";
import type { FrameWriter } from "../../src/fabric/frames.ts";

/** A request that was sent and has no reply yet. */
export interface UnderWay {
  readonly request: Request;
  readonly peer: Peer;
  readonly id: number;
  readonly deadlineUs: number;
  isOver: boolean;
  /** The wire has made a second copy of it. */
  isDuplicated: boolean;
}

export class Peer {
  readonly id: number;
  readonly sender: Sender;
  /** Frames that leave when the turn ends. */
  outbox: FrameWriter;
  isDirty = false;
  inFlight = 0;
  /** Requests that wait until others have their replies. */
  readonly #queue: Request[] = [];
  #first = 0;

  constructor(id: number, sender: Sender, outbox: FrameWriter) {
    this.id = id;
    this.sender = sender;
    this.outbox = outbox;
  }

  get queued(): number {
    return this.#queue.length - this.#first;
  }

  queue(request: Request): void {
    this.#queue.push(request);
  }

  nextQueued(): Request | undefined {
    if (this.queued === 0) return undefined;
    const request = this.#queue[this.#first++];
    if (this.#first > 1_024 && this.#first * 2 > this.#queue.length) {
      this.#queue.splice(0, this.#first);
      this.#first = 0;
    }
    return request;
  }
}
