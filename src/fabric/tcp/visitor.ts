/**
 * One who has connected to this node: first the handshake, then requests. Reading stops while the
 * replies pile up, for those who do not read theirs and for those who ask faster than the node can
 * answer; so what one connection can take of the node's memory is bounded.
 */

import type { Duplex } from "node:stream";
import { SituError } from "../../runtime/errors.ts";
import {
  MAX_ALL_UNREAD_BYTES,
  MAX_IN_FLIGHT,
  MAX_NODES,
  MAX_UNREAD_BYTES,
  MIN_UNREAD_BYTES,
} from "../../runtime/limits.ts";
import { makeNonce } from "../../runtime/secret.ts";
import type { Asker, Responder } from "../exchange/responder.ts";
import type { Sender } from "../fabric.ts";
import type { FrameWriter } from "../frames.ts";
import type { Reader } from "../wire.ts";
import {
  ANYBODY,
  CHALLENGE,
  Conversation,
  HELLO,
  keysOf,
  PROOF,
  READY,
  readHello,
  secretOf,
  writeChallenge,
} from "./handshake.ts";
import { Link, type LinkOwner, lost } from "./link.ts";
import type { TcpShared } from "./tcp-options.ts";

/**
 * Replies that come later cannot be held back: one who has so much of them unread is cut off. They
 * may be long, though, and many.
 */
const MAX_DEFERRED_BYTES = 16 * MAX_UNREAD_BYTES;

export type VisitorClosed = (visitor: Visitor, why: SituError) => void;

export class Visitor implements LinkOwner, Asker {
  from: Sender;
  deferred = 0;
  /** Set when the handshake is over. */
  isReady = false;
  readonly link: Link;
  readonly #shared: TcpShared;
  readonly #responder: Responder;
  readonly #closed: VisitorClosed;
  #conversation: Conversation | undefined = new Conversation();
  #role = 0;
  #secret: string | undefined;
  #expected = HELLO;

  constructor(
    shared: TcpShared,
    socket: Duplex,
    connection: number,
    responder: Responder,
    closed: VisitorClosed,
  ) {
    this.#shared = shared;
    this.#responder = responder;
    this.#closed = closed;
    this.from = { node: -1, connection };
    this.link = new Link(shared, socket, this);
  }

  get isOpen(): boolean {
    return !this.link.isOver;
  }

  get frames(): FrameWriter {
    return this.link.outbox.frames;
  }

  frame(kind: number, id: number, configurationId: number, body: Reader): void {
    if (!this.isReady) {
      this.#handshake(kind, body);
      return;
    }
    this.#responder.serve(this, kind, id, configurationId, body);
    if (this.#isFull()) this.link.pause();
  }

  chunkRead(): void {
    if (!this.#responder.endChunk()) this.link.destroy(lost("this node has lost its lease"));
  }

  drained(): void {
    this.answeredOne();
  }

  answeredOne(): void {
    if (this.link.isPaused && !this.#isFull()) this.link.resume();
    else if (this.link.outbox.unsentBytes > MAX_DEFERRED_BYTES) {
      this.link.cutOff(new SituError("SITU_OVERLOADED", "its replies are not read"));
    }
  }

  closed(why: SituError): void {
    this.#closed(this, why);
  }

  #isFull(): boolean {
    return this.deferred > MAX_IN_FLIGHT || this.link.outbox.unsentBytes > this.#mayBeUnread();
  }

  /** Where there are many connections each has less: all of them together are bounded too. */
  #mayBeUnread(): number {
    const share = MAX_ALL_UNREAD_BYTES / this.#shared.visitors;
    return Math.max(MIN_UNREAD_BYTES, Math.min(MAX_UNREAD_BYTES, share));
  }

  #handshake(kind: number, body: Reader): void {
    if (kind !== this.#expected) {
      throw new SituError("SITU_PROTOCOL", `a handshake with a frame of kind ${kind}`);
    }
    const { self, cluster, instance, configurationId } = this.#shared;
    const conversation = this.#conversation ?? new Conversation();
    const { frames } = this;
    if (kind === HELLO) {
      const hello = readHello(body);
      if (
        hello.cluster !== cluster ||
        (hello.to !== self && hello.to !== ANYBODY) ||
        hello.role >= MAX_NODES
      ) {
        const wanted = `node ${hello.to} of ${hello.cluster}`;
        throw new SituError("SITU_CONFIG", `this is node ${self} of ${cluster}, not ${wanted}`);
      }
      if (hello.role === self) {
        throw new SituError("SITU_CONFIG", `two nodes of ${cluster} have the number ${self}`);
      }
      this.#role = hello.role;
      this.#secret = secretOf(this.#shared, hello.role);
      conversation.add(this.link.frameBytes());
      const from = frames.bytes;
      const challenge = { node: self, instance, nonce: makeNonce() };
      writeChallenge(frames.begin(CHALLENGE, 0, configurationId), challenge);
      frames.end();
      conversation.add(frames.out.views.u8.subarray(from, frames.bytes));
      conversation.add(this.link.binding());
      this.#expected = PROOF;
      return;
    }
    const secret = this.#secret;
    conversation.checkProof(body, secret, "connecting");
    conversation.writeProof(frames.begin(READY, 0, configurationId), secret, "accepting");
    frames.end();
    this.#conversation = undefined;
    this.from = { node: this.#role, connection: this.from.connection };
    this.isReady = true;
    this.#shared.counters.connections++;
    this.link.handshakeIsOver(keysOf(this.#shared, conversation, secret, "accepting"));
  }
}
