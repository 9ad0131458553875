/**
 * Requests of a node to itself: the same frames, served by the same responder when the turn is over,
 * without a socket. They are subject to the same limits, so that what works here works elsewhere.
 */

import { afterTurn } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_QUEUED_REQUESTS } from "../../runtime/limits.ts";
import type { NodeId, Request, Sender } from "../fabric.ts";
import { FrameWriter, readError } from "../frames.ts";
import {
  FLAG_ERROR,
  FRAME_CONFIGURATION,
  FRAME_HEADER_WORDS,
  FRAME_ID,
  FRAME_KIND,
  FRAME_LENGTH,
  Reader,
} from "../wire.ts";
import type { Endings } from "./endings.ts";
import { RequestsUnderWay, WaitingRequests } from "./requests.ts";
import type { Asker, Responder } from "./responder.ts";
import type { Shared } from "./shared.ts";

export class LocalPeer implements Asker {
  readonly from: Sender;
  deferred = 0;
  isOpen = true;
  readonly #shared: Shared;
  readonly #endings: Endings;
  readonly #responder: Responder;
  readonly #underWay = new RequestsUnderWay();
  readonly #waiting = new WaitingRequests();
  #requests = new FrameWriter();
  #replies = new FrameWriter();
  readonly #body: Reader;
  #scheduled = false;
  readonly #run = (): void => this.#runTurn();

  constructor(shared: Shared, endings: Endings, responder: Responder, node: NodeId) {
    this.#shared = shared;
    this.#endings = endings;
    this.#responder = responder;
    this.from = { node, connection: 0 };
    this.#body = new Reader(this.#requests.out.views);
  }

  get frames(): FrameWriter {
    this.#schedule();
    return this.#replies;
  }

  send(request: Request): void {
    if (this.#waiting.count === 0 && !this.#underWay.isFull) this.#transmit(request);
    else if (this.#waiting.count < MAX_QUEUED_REQUESTS) this.#waiting.add(request, 0);
    else {
      this.#shared.counters.overloaded++;
      const why = new SituError("SITU_OVERLOADED", "too many requests wait for this node itself");
      this.#endings.fail(request, why);
    }
  }

  answeredOne(): void {}

  close(why: SituError): void {
    this.isOpen = false;
    for (const request of this.#underWay.takeAll()) request.failed(why);
    for (const request of this.#waiting.takeAll()) request.failed(why);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTurn(this.#run);
  }

  #transmit(request: Request): void {
    const id = this.#underWay.add(request);
    const frames = this.#requests;
    try {
      const configurationId = request.configurationId ?? this.#shared.configurationId;
      request.encode(frames.begin(request.kind, id, configurationId));
      frames.end();
      this.#shared.counters.requestsSent++;
      this.#schedule();
    } catch (error) {
      frames.takeBack();
      this.#underWay.take(id);
      if (!(error instanceof SituError)) throw error;
      this.#endings.fail(request, error);
    }
  }

  /** Serves what has come, then hands out the replies; both may cause more, for the next turn. */
  #runTurn(): void {
    if (!this.isOpen) return;
    const { spares } = this.#shared;
    const requests = this.#requests;
    this.#requests = spares.take();
    this.#walk(requests, (kind, id, configurationId) =>
      this.#responder.serve(this, kind, id, configurationId, this.#body),
    );
    spares.giveBack(requests);
    if (!this.#responder.endChunk()) this.#lose();
    const replies = this.#replies;
    this.#replies = spares.take();
    this.#scheduled = false;
    this.#walk(replies, (kind, id) => this.#replied(kind, id));
    spares.giveBack(replies);
    while (this.#waiting.count > 0 && !this.#underWay.isFull) this.#transmit(this.#waiting.take());
  }

  /** Replies that have been written find nobody who waits for them. */
  #lose(): void {
    const why = new SituError("SITU_LOST", "this node has lost its lease");
    for (const request of this.#underWay.takeAll()) request.failed(why);
  }

  #walk(
    frames: FrameWriter,
    each: (kind: number, id: number, configurationId: number) => void,
  ): void {
    const { views, at: end } = frames.out;
    for (let at = 0; at < end && this.isOpen; ) {
      const { i32 } = views;
      const to = at + i32[at + FRAME_LENGTH];
      this.#body.reset(views, at + FRAME_HEADER_WORDS, to);
      each(i32[at + FRAME_KIND], i32[at + FRAME_ID], i32[at + FRAME_CONFIGURATION]);
      at = to;
    }
  }

  #replied(kind: number, id: number): void {
    const request = this.#underWay.take(id);
    if (request === undefined) return;
    this.#shared.counters.repliesReceived++;
    if ((kind & FLAG_ERROR) !== 0) {
      request.failed(readError(this.#body));
      return;
    }
    try {
      request.replied(this.#body);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      request.failed(error);
    }
  }
}
