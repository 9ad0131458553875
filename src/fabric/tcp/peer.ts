/**
 * A node that this end sends requests to. The connection is made when there is the first request,
 * kept, and made again, with growing pauses, while there are requests that want it. A request
 * that was sent is never sent again from here: when the connection is lost nobody knows whether it
 * was served, and the protocols above know what to do then.
 *
 * Time goes by in ticks of the endpoint, TIMEOUT_TICKS to a progress time-out. A connection that has
 * requests under way and is silent for half of them gets a ping, and is given up after all of them. A
 * process that was stopped counts one tick for all the time it was; and before it gives up a
 * connection, it lets what has arrived meanwhile be read.
 */

import { assert } from "../../runtime/assert.ts";
import { afterTurn, realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  MAX_QUEUED_REQUESTS,
  MAX_UNREAD_BYTES,
  RECONNECT_MAX_MS,
  RECONNECT_MIN_MS,
} from "../../runtime/limits.ts";
import { Random } from "../../runtime/random.ts";
import { makeNonce } from "../../runtime/secret.ts";
import type { Endings } from "../exchange/endings.ts";
import { RequestsUnderWay, WaitingRequests } from "../exchange/requests.ts";
import type { ConfigurationId, NodeId, Request, Timer } from "../fabric.ts";
import { PING, readError } from "../frames.ts";
import { FLAG_ERROR, FLAG_ONE_WAY, FLAG_REPLY, KIND_MASK, type Reader } from "../wire.ts";
import {
  ANYBODY,
  CHALLENGE,
  Conversation,
  HELLO,
  keysOf,
  PROOF,
  READY,
  REFUSED,
  readChallenge,
  secretOf,
  writeHello,
} from "./handshake.ts";
import { Link, type LinkOwner, lost } from "./link.ts";
import { connectTo } from "./sockets.ts";
import type { NodeAddress, TcpShared } from "./tcp-options.ts";

export const TIMEOUT_TICKS = 8;
const PING_TICKS = TIMEOUT_TICKS / 2;

export class Peer implements LinkOwner {
  readonly node: NodeId;
  address: NodeAddress;
  /** The instance that was reached last: another one has begun anew. */
  instance: string | undefined;
  /** The configuration number of its last frame. */
  configurationId: ConfigurationId | undefined;
  isReady = false;
  readonly #shared: TcpShared;
  readonly #endings: Endings;
  readonly #random = new Random();
  readonly #underWay = new RequestsUnderWay();
  readonly #waiting = new WaitingRequests();
  #link: Link | undefined;
  #conversation = new Conversation();
  #expected = CHALLENGE;
  #challenged: string | undefined;
  #tick = 0;
  #silentTicks = 0;
  /** Connections in a row that nothing was answered over. */
  #failures = 0;
  #pause: Timer | undefined;
  #isClosed = false;

  constructor(shared: TcpShared, endings: Endings, node: NodeId, address: NodeAddress) {
    this.#shared = shared;
    this.#endings = endings;
    this.node = node;
    this.address = address;
  }

  send(request: Request): void {
    if (this.#canSend() && this.#waiting.count === 0) {
      this.#transmit(request);
      return;
    }
    if (this.#waiting.count >= MAX_QUEUED_REQUESTS) {
      this.#shared.counters.overloaded++;
      this.#endings.fail(request, overloaded(this.node));
      return;
    }
    this.#waiting.add(request, this.#tick);
    if (this.#link === undefined && this.#pause === undefined) this.#connect();
  }

  /** An eighth of the progress time-out is over. */
  tick(): void {
    this.#tick++;
    if (!this.isReady) {
      while (this.#waiting.count > 0 && this.#tick - this.#waiting.oldestTick > TIMEOUT_TICKS) {
        this.#lose(this.#waiting.take(), lost(`node ${this.node} cannot be reached`));
      }
      return;
    }
    const link = this.#link;
    assert(link !== undefined, "who is ready has a link");
    if (link.heard || this.#underWay.count === 0) {
      link.heard = false;
      this.#silentTicks = 0;
      return;
    }
    this.#silentTicks++;
    if (this.#silentTicks === PING_TICKS) this.#ping(link);
    if (this.#silentTicks < TIMEOUT_TICKS) return;
    afterTurn(() => {
      if (!link.heard) link.destroy(lost(`node ${this.node} is silent`));
    });
  }

  /** For good. */
  close(why: SituError): void {
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#isClosed = true;
    if (this.isReady) this.#link?.finish(why);
    else this.#link?.destroy(why);
    for (const request of this.#underWay.takeAll()) request.failed(why);
    for (const request of this.#waiting.takeAll()) request.failed(why);
  }

  frame(kind: number, id: number, configurationId: number, body: Reader): void {
    this.configurationId = configurationId;
    if (!this.isReady) {
      this.#handshake(kind, body);
      return;
    }
    if ((kind & FLAG_REPLY) === 0) {
      if (this.#wasRefused(kind, body)) return;
      throw new SituError("SITU_PROTOCOL", `node ${this.node} asks, where it should answer`);
    }
    if ((kind & KIND_MASK) === PING) return;
    const request = this.#underWay.take(id);
    if (request === undefined || request.kind !== (kind & KIND_MASK)) {
      if (request !== undefined) this.#lose(request, lost("another request was answered"));
      throw new SituError("SITU_PROTOCOL", `node ${this.node} answers what nobody has asked`);
    }
    this.#shared.counters.repliesReceived++;
    this.#failures = 0;
    if ((kind & FLAG_ERROR) !== 0) {
      request.failed(readError(body));
      return;
    }
    try {
      request.replied(body);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      request.failed(error);
    }
  }

  chunkRead(): void {
    this.#pump();
  }

  drained(): void {
    this.#pump();
  }

  closed(why: SituError): void {
    const wasReady = this.isReady;
    this.isReady = false;
    this.#link = undefined;
    this.#silentTicks = 0;
    if (wasReady) this.#shared.counters.connections--;
    if (this.#isClosed) return;
    const underWay = this.#underWay.takeAll();
    // Who was refused will be refused again: there is nothing to wait for.
    const isRefused = !wasReady && why.code !== "SITU_LOST" && why.code !== "SITU_TIMEOUT";
    const waiting = isRefused ? this.#waiting.takeAll() : [];
    this.#rest();
    for (const request of underWay) {
      this.#lose(request, lost(`the connection to node ${this.node} was lost`, why));
    }
    for (const request of waiting) request.failed(why);
  }

  #canSend(): boolean {
    return (
      this.isReady &&
      !this.#underWay.isFull &&
      this.#link !== undefined &&
      this.#link.outbox.unsentBytes <= MAX_UNREAD_BYTES
    );
  }

  #pump(): void {
    while (this.#waiting.count > 0 && this.#canSend()) this.#transmit(this.#waiting.take());
  }

  #transmit(request: Request): void {
    const link = this.#link;
    assert(link !== undefined, "a request leaves over a link");
    if (request.isOneWay === true) {
      this.#post(link, request);
      return;
    }
    const id = this.#underWay.add(request);
    const { frames } = link.outbox;
    try {
      const configurationId = request.configurationId ?? this.#shared.configurationId;
      request.encode(frames.begin(request.kind, id, configurationId));
      frames.end();
      this.#shared.counters.requestsSent++;
    } catch (error) {
      frames.takeBack();
      this.#underWay.take(id);
      if (!(error instanceof SituError)) throw error;
      this.#endings.fail(request, error);
    }
  }

  #post({ outbox: { frames } }: Link, request: Request): void {
    try {
      const { configurationId, counters } = this.#shared;
      request.encode(frames.begin(request.kind | FLAG_ONE_WAY, 0, configurationId));
      frames.end();
      counters.requestsSent++;
    } catch (error) {
      frames.takeBack();
      if (!(error instanceof SituError)) throw error;
      this.#endings.fail(request, error);
    }
  }

  #ping(link: Link): void {
    const { frames } = link.outbox;
    frames.begin(PING, 0, this.#shared.configurationId);
    frames.end();
  }

  #connect(): void {
    this.#conversation = new Conversation();
    this.#expected = CHALLENGE;
    const link = new Link(this.#shared, connectTo(this.address, this.#shared.tls), this);
    this.#link = link;
    const { self, cluster, instance, configurationId } = this.#shared;
    const { frames } = link.outbox;
    writeHello(frames.begin(HELLO, 0, configurationId), {
      cluster,
      role: self,
      to: this.address.isAnybody ? ANYBODY : this.node,
      instance,
      nonce: makeNonce(),
    });
    frames.end();
    this.#conversation.add(frames.out.views.u8.subarray(0, frames.bytes));
  }

  #handshake(kind: number, body: Reader): void {
    const link = this.#link;
    assert(link !== undefined, "a handshake goes over a link");
    if (this.#wasRefused(kind, body)) return;
    if (kind !== this.#expected) {
      throw new SituError("SITU_PROTOCOL", `a handshake with a frame of kind ${kind}`);
    }
    const { self, configurationId, counters } = this.#shared;
    const secret = secretOf(this.#shared, self);
    if (kind === CHALLENGE) {
      const { node, instance } = readChallenge(body);
      if (node !== this.node && !this.address.isAnybody) {
        throw new SituError("SITU_CONFIG", `node ${node} answers in place of ${this.node}`);
      }
      this.#challenged = instance;
      this.#conversation.add(link.frameBytes());
      this.#conversation.add(link.binding());
      const { frames } = link.outbox;
      this.#conversation.writeProof(frames.begin(PROOF, 0, configurationId), secret, "connecting");
      frames.end();
      this.#expected = READY;
      return;
    }
    this.#conversation.checkProof(body, secret, "accepting");
    link.handshakeIsOver(keysOf(this.#shared, this.#conversation, secret, "connecting"));
    this.instance = this.#challenged;
    this.isReady = true;
    counters.connections++;
  }

  #wasRefused(kind: number, body: Reader): boolean {
    if (kind !== (REFUSED | FLAG_ERROR)) return false;
    this.#link?.destroy(readError(body));
    return true;
  }

  /** Tries again after a while if there is somebody who waits, and not before. */
  #rest(): void {
    const most = Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * 2 ** Math.min(this.#failures, 20));
    this.#pause = realClock.after(most / 2 + this.#random.below(most / 2), () => {
      this.#pause = undefined;
      if (this.#waiting.count > 0) this.#connect();
    });
    this.#failures++;
  }

  #lose(request: Request, why: SituError): void {
    this.#shared.counters.lost++;
    request.failed(why);
  }
}

export function closed(): SituError {
  return new SituError("SITU_CLOSED", "this end was closed");
}

function overloaded(node: NodeId): SituError {
  return new SituError("SITU_OVERLOADED", `too many requests wait for node ${node}`);
}
