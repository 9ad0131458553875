/**
 * One end of a simulated fabric. Requests and replies are appended to the outbox of their peer, and
 * leave when the turn ends, that is, the event that is being handled (transit.ts). All that comes is
 * handled in events of this end's machine: they wait while it is stopped.
 *
 * Every request has a deadline. They all have the same time, so they run out in the order in which the
 * requests were sent, and one timer for the oldest is enough.
 */

import { freshCounters } from "../../src/fabric/counters.ts";
import {
  CLIENT,
  type Clock,
  type Endpoint,
  type NodeId,
  type Place,
  type Request,
  type Service,
} from "../../src/fabric/fabric.ts";
import { readError } from "../../src/fabric/frames.ts";
import type { VerbMemory } from "../../src/fabric/verbs.ts";
import {
  FLAG_ERROR,
  FRAME_HEADER_WORDS,
  FRAME_ID,
  FRAME_KIND,
  Reader,
  Writer,
} from "../../src/fabric/wire.ts";
import { SituError } from "../../src/runtime/errors.ts";
import {
  MAX_IN_FLIGHT,
  MAX_QUEUED_REQUESTS,
  PROGRESS_TIMEOUT_MS,
} from "../../src/runtime/limits.ts";
import type { Machine } from "./machine.ts";
import { Peer, type UnderWay } from "./peer.ts";
import { POSTED, Server } from "./server.ts";
import type { Packet, Receiver, Transit } from "./transit.ts";
import type { World } from "./world.ts";

export interface SimulatedEndpointOptions {
  /** A node's number; or one below 0, its own for each client. */
  readonly self: number;
  readonly configurationId: number;
  readonly memory?: VerbMemory;
  readonly service?: Service;
  /** Whether verbs may read all of the memory: not while what lies there is being recovered. */
  readonly isWhole?: () => boolean;
  /** Where a message is served: by the host, unless it says otherwise. */
  readonly places?: (kind: number) => Place;
  /** Where the program runs that sends requests and gets replies. */
  readonly home?: "host" | "nic";
  /** Core time that a message takes at its handler; the model's figure for one key, if not given. */
  readonly workUs?: (kind: number) => number;
  /** How fast this machine's clock is: 1.05 is 5 % fast. */
  readonly clockRate?: number;
  /** The other end of a connection was closed. */
  readonly onConnectionClosed?: (connection: number) => void;
}

export class SimulatedEndpoint implements Endpoint, Receiver {
  readonly self: NodeId;
  /** As `self`, but clients differ. */
  readonly id: number;
  readonly clock: Clock;
  configurationId: number;
  readonly counters = freshCounters();
  readonly machine: Machine;
  readonly options: SimulatedEndpointOptions;
  /** Where the program runs whose turn it is. */
  turnPlace: Place;
  /** For the fabric. */
  whenClosed: () => void = () => {};
  readonly #world: World;
  readonly #transit: Transit;
  readonly #server: Server;
  readonly #isNode: (id: number) => boolean;
  readonly #peers = new Map<number, Peer>();
  readonly #dirty: Peer[] = [];
  readonly #underWay = new Map<number, UnderWay>();
  readonly #deadlines: UnderWay[] = [];
  readonly #gone = new WeakSet<Receiver>();
  #firstDeadline = 0;
  #isTimerSet = false;
  #nextId = 1;
  #connections = 0;
  #isClosed = false;
  #isCrashed = false;
  readonly #reader: Reader;

  constructor(
    world: World,
    transit: Transit,
    machine: Machine,
    isNode: (id: number) => boolean,
    options: SimulatedEndpointOptions,
  ) {
    this.#world = world;
    this.#transit = transit;
    this.#isNode = isNode;
    this.machine = machine;
    this.options = options;
    this.id = options.self;
    this.self = options.self < 0 ? CLIENT : options.self;
    this.configurationId = options.configurationId;
    this.turnPlace = options.home ?? "host";
    this.clock = this.#virtualClock(options.clockRate ?? 1);
    this.#server = new Server(this, world, transit);
    this.#reader = new Reader(new Writer().views);
    transit.connect(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  send(to: NodeId, request: Request): void {
    this.#server.checkNoReplyIsOpen();
    if (this.#isCrashed) return;
    if (this.#isClosed) this.#failLater(request, closed());
    else if (!this.#isNode(to)) {
      this.#failLater(request, new SituError("SITU_UNREACHABLE", `there is no node ${to}`));
    } else {
      const peer = this.peer(to);
      if (peer.inFlight < MAX_IN_FLIGHT) this.#dispatch(peer, request);
      else if (peer.queued < MAX_QUEUED_REQUESTS) {
        this.#world.underWay++;
        peer.queue(request);
      } else {
        this.counters.overloaded++;
        const message = `${MAX_QUEUED_REQUESTS} requests wait for node ${to} already`;
        this.#failLater(request, new SituError("SITU_OVERLOADED", message));
      }
    }
  }

  /** Sends a message that nobody answers. What is said in return, if anything, is another one, to whomever. */
  post(to: number, kind: number, encode: (out: Writer) => void): void {
    if (this.#isClosed || !this.#isNode(to)) return;
    const peer = this.peer(to);
    encode(peer.outbox.begin(kind, POSTED, this.configurationId));
    peer.outbox.end();
    this.counters.requestsSent++;
    this.dirty(peer);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#transit.disconnect(this);
    const failing = [...this.#underWay.values()].map(({ request }) => request);
    this.#underWay.clear();
    for (const peer of this.#peers.values()) {
      for (let next = peer.nextQueued(); next !== undefined; next = peer.nextQueued()) {
        failing.push(next);
      }
    }
    for (const request of failing) {
      this.#world.underWay--;
      request.failed(closed());
    }
    this.whenClosed();
  }

  /** As if its process were killed: nothing of its program runs any more, and nobody here is told. */
  crash(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isCrashed = true;
    this.#transit.disconnect(this);
    this.#world.underWay -= this.#underWay.size;
    for (const peer of this.#peers.values()) this.#world.underWay -= peer.queued;
    this.#underWay.clear();
    this.#peers.clear();
    this.whenClosed();
  }

  /** False once the other end of a connection is gone. */
  knows(peer: Peer): boolean {
    return this.#peers.get(peer.id) === peer;
  }

  /** The other end is gone for good: nothing comes from it any more, replies neither. */
  peerClosed(source: SimulatedEndpoint): void {
    this.#gone.add(source);
    const peer = this.#peers.get(source.id);
    if (peer === undefined || this.#isClosed) return;
    this.#peers.delete(source.id);
    this.counters.connections--;
    this.options.onConnectionClosed?.(peer.sender.connection);
    const lost = [...this.#underWay.values()].filter((underWay) => underWay.peer === peer);
    for (const underWay of lost) this.#lose(underWay, `node ${peer.id} was closed`);
    // What was not sent yet has another chance: the node may come back.
    for (let next = peer.nextQueued(); next !== undefined; next = peer.nextQueued()) {
      this.#world.underWay--;
      this.send(peer.id, next);
    }
  }

  peer(id: number): Peer {
    let peer = this.#peers.get(id);
    if (peer === undefined) {
      const sender = { node: id < 0 ? CLIENT : id, connection: this.#connections++ };
      peer = new Peer(id, sender, this.#transit.take());
      this.#peers.set(id, peer);
      this.counters.connections++;
    }
    return peer;
  }

  /** Something was appended to the outbox of a peer. */
  dirty(peer: Peer): void {
    if (peer.isDirty) return;
    peer.isDirty = true;
    if (this.#dirty.length === 0) this.#world.dirty(this);
    this.#dirty.push(peer);
  }

  flush(): void {
    if (this.#isCrashed) this.#dirty.length = 0;
    const packets: Packet[] = [];
    for (const peer of this.#dirty) {
      peer.isDirty = false;
      if (peer.outbox.frames === 0) continue;
      packets.push(this.#transit.pack(this, peer.id, peer.outbox));
      peer.outbox = this.#transit.take();
      this.counters.writes++;
    }
    this.#dirty.length = 0;
    const place = this.turnPlace;
    this.turnPlace = this.options.home ?? "host";
    this.#transit.leave(this.machine, place, packets);
  }

  receive(packet: Packet): void {
    if (this.#isClosed || this.#gone.has(packet.source)) this.#transit.release(packet);
    else this.#server.receive(packet);
  }

  /** A frame [at, end) of a packet is a reply. */
  complete(packet: Packet, at: number, end: number): void {
    const { views } = packet.frames.out;
    const underWay = this.#underWay.get(views.i32[at + FRAME_ID]);
    // Late, or another copy: whoever has asked was told long ago.
    if (underWay === undefined || underWay.peer.id !== packet.from) return;
    const { nowUs, trace } = this.#world;
    trace?.frame("replied", nowUs, packet.from, packet.to, views.i32, at, end);
    this.counters.repliesReceived++;
    const { request } = underWay;
    this.#end(underWay);
    const body = this.#reader.reset(views, at + FRAME_HEADER_WORDS, end);
    if ((views.i32[at + FRAME_KIND] & FLAG_ERROR) === 0) tell(request, body);
    else request.failed(failureOf(underWay, readError(body)));
    this.#pump(underWay.peer);
  }

  duplicated(requestId: number): void {
    const underWay = this.#underWay.get(requestId);
    if (underWay !== undefined) underWay.isDuplicated = true;
  }

  #dispatch(peer: Peer, request: Request): void {
    const id = this.#nextId;
    const { outbox } = peer;
    try {
      const configurationId = request.configurationId ?? this.configurationId;
      request.encode(outbox.begin(request.kind, id, configurationId));
      outbox.end();
    } catch (error) {
      outbox.takeBack();
      if (!(error instanceof SituError)) throw error;
      this.#failLater(request, error);
      return;
    }
    this.#nextId = (id + 1) | 0 || 1;
    this.dirty(peer);
    this.counters.requestsSent++;
    this.#world.underWay++;
    peer.inFlight++;
    const deadlineUs = this.#world.nowUs + PROGRESS_TIMEOUT_MS * 1e3;
    const underWay = { request, peer, id, deadlineUs, isOver: false, isDuplicated: false };
    this.#underWay.set(id, underWay);
    this.#deadlines.push(underWay);
    if (!this.#isTimerSet) this.#setTimer();
  }

  #end(underWay: UnderWay): void {
    underWay.isOver = true;
    underWay.peer.inFlight--;
    this.#underWay.delete(underWay.id);
    this.#world.underWay--;
  }

  #lose(underWay: UnderWay, why: string): void {
    if (underWay.isOver) return;
    this.#end(underWay);
    this.counters.lost++;
    this.#world.trace?.note("lost", this.#world.nowUs, this.id, underWay.id);
    underWay.request.failed(new SituError("SITU_LOST", why));
  }

  #pump(peer: Peer): void {
    while (peer.inFlight < MAX_IN_FLIGHT) {
      const next = peer.nextQueued();
      if (next === undefined) return;
      this.#world.underWay--;
      this.#dispatch(peer, next);
    }
  }

  #virtualClock(rate: number): Clock {
    const world = this.#world;
    return {
      nowMs: () => (world.nowUs * rate) / 1e3,
      after: (ms, run) => {
        if (this.#isCrashed) return { cancel() {} };
        const runHere = (): void => {
          this.turnPlace = this.options.home ?? "host";
          run();
        };
        return world.at(world.nowUs + (ms * 1e3) / rate, runHere, this.machine);
      },
    };
  }

  #failLater(request: Request, error: SituError): void {
    this.#world.at(this.#world.nowUs, () => request.failed(error), this.machine);
  }

  #setTimer(): void {
    while (this.#firstDeadline < this.#deadlines.length) {
      const underWay = this.#deadlines[this.#firstDeadline];
      if (!underWay.isOver) {
        this.#isTimerSet = true;
        this.#world.atInBackground(underWay.deadlineUs, () => this.#timeOut(), this.machine);
        return;
      }
      this.#firstDeadline++;
    }
    this.#deadlines.length = 0;
    this.#firstDeadline = 0;
  }

  #timeOut(): void {
    this.#isTimerSet = false;
    if (this.#isClosed) return;
    const { nowUs } = this.#world;
    const late: UnderWay[] = [];
    while (this.#firstDeadline < this.#deadlines.length) {
      const underWay = this.#deadlines[this.#firstDeadline];
      if (!underWay.isOver && underWay.deadlineUs > nowUs) break;
      this.#firstDeadline++;
      if (!underWay.isOver) late.push(underWay);
    }
    this.#deadlines.splice(0, this.#firstDeadline);
    this.#firstDeadline = 0;
    for (const underWay of late) {
      this.#lose(underWay, `node ${underWay.peer.id} did not reply in time`);
    }
    for (const { peer } of late) this.#pump(peer);
    this.#setTimer();
  }
}

/** A reply that is too short is told as a failure. */
function tell(request: Request, body: Reader): void {
  try {
    request.replied(body);
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    request.failed(error);
  }
}

/** That one copy of a request was refused says nothing about the other: it may have been served, or will be. */
function failureOf({ isDuplicated }: UnderWay, error: SituError): SituError {
  const isRefused = error.code === "SITU_STALE_CONFIGURATION" || error.code === "SITU_OVERLOADED";
  if (!isDuplicated || !isRefused) return error;
  return new SituError("SITU_LOST", `one of two copies was refused: ${error.message}`);
}

function closed(): SituError {
  return new SituError("SITU_CLOSED", "this end of the fabric was closed");
}
