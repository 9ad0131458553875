/**
 * One who sends requests to this node: its rings, and what is to go back. Its requests are not read
 * while its replies pile up: they stay in the ring, which fills, and the one who asks has to wait.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_IN_FLIGHT, MAX_NODES, MAX_UNREAD_BYTES } from "../../runtime/limits.ts";
import type { Asker, Responder } from "../exchange/responder.ts";
import { CLIENT, type FabricCounters, type Sender } from "../fabric.ts";
import type { FrameWriter } from "../frames.ts";
import { FRAME_EPOCH, FRAME_HEADER_WORDS, FRAME_ID, FRAME_KIND, Reader } from "../wire.ts";
import { Bell } from "./bell.ts";
import type { Connection } from "./connection.ts";
import { RingOutbox } from "./outbox.ts";
import type { RingReceiver, RingSender } from "./ring.ts";

export class Visitor implements Asker {
  readonly slot: number;
  readonly generation: number;
  readonly from: Sender;
  deferred = 0;
  isOpen = true;
  readonly #connection: Connection;
  readonly #bell: Bell;
  readonly #sender: RingSender;
  readonly #receiver: RingReceiver;
  readonly #outbox: RingOutbox;
  readonly #responder: Responder;
  readonly #counters: FabricCounters;
  readonly #body: Reader;

  /** Throws a SituError if what is in the file is not understood, or its owner's bell is gone. */
  constructor(
    slot: number,
    generation: number,
    number: number,
    connection: Connection,
    responder: Responder,
    counters: FabricCounters,
    schedule: (outbox: RingOutbox) => void,
  ) {
    const { role } = connection;
    if (role < CLIENT || role >= MAX_NODES) {
      throw new SituError("SITU_PROTOCOL", `there is no node ${role}`);
    }
    this.slot = slot;
    this.generation = generation;
    this.from = { node: role, connection: number };
    this.#connection = connection;
    this.#responder = responder;
    this.#counters = counters;
    this.#bell = Bell.open(connection.bell);
    this.#sender = connection.sender("replies");
    this.#receiver = connection.receiver("requests");
    this.#outbox = new RingOutbox(this.#sender, this.#bell, schedule);
    this.#body = new Reader(connection.views);
  }

  get frames(): FrameWriter {
    return this.#outbox.frames;
  }

  settledOne(): void {}

  /** It has closed its end. */
  get isGone(): boolean {
    return this.#connection.isClosed;
  }

  get bellPath(): string {
    return this.#bell.path;
  }

  /** Throws SITU_PROTOCOL for what no end of ours sends. */
  poll(): boolean {
    let found = !this.#outbox.isScheduled && this.#outbox.unsentBytes > 0 && this.#outbox.flush();
    const receiver = this.#receiver;
    while (this.isOpen && !this.#isFull() && receiver.next()) {
      found = true;
      const { views, from, to } = receiver;
      const { i32 } = views;
      this.#body.reset(views, from + FRAME_HEADER_WORDS, to);
      const kind = i32[from + FRAME_KIND];
      this.#responder.serve(this, kind, i32[from + FRAME_ID], i32[from + FRAME_EPOCH], this.#body);
      if (this.isOpen) receiver.done();
    }
    if (this.isOpen && receiver.settle()) this.#bell.ring();
    return found;
  }

  call(): void {
    this.#bell.ring();
  }

  /** Replies that are ready leave first. */
  close(): void {
    if (!this.isOpen) return;
    if (this.#outbox.unsentBytes > 0 && this.#outbox.flush()) this.#counters.writes++;
    this.isOpen = false;
    this.#bell.ring();
    this.#sender.close();
    this.#receiver.close();
    this.#bell.close();
    this.#connection.close();
  }

  #isFull(): boolean {
    return this.deferred >= MAX_IN_FLIGHT || this.#outbox.unsentBytes > MAX_UNREAD_BYTES;
  }
}
