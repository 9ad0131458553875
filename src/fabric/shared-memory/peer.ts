/**
 * A node that this end sends requests to, through rings of its own (directory.ts). They are made with
 * the first request, and made anew, for requests that wait, when the node was gone and is back.
 *
 * Time goes by in ticks, TIMEOUT_TICKS to a progress time-out. At each it is asked whether the node
 * still lives; and one that lives, but whose event loop does not turn while it owes replies, is given
 * up after that time, as over TCP.
 *
 * Verbs are done here, on the node's memory, where it is known where that is.
 */

import { rmSync } from "node:fs";
import { bootId } from "../../memory/boot.ts";
import { MappedSegments } from "../../memory/mapped-segments.ts";
import { joinMemory } from "../../memory/mapped-store.ts";
import type { StoreMemory } from "../../memory/region.ts";
import { afterTurn } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_QUEUED_REQUESTS, MAX_UNREAD_BYTES } from "../../runtime/limits.ts";
import type { Endings } from "../exchange/endings.ts";
import { RequestsUnderWay, WaitingRequests } from "../exchange/requests.ts";
import type { Shared } from "../exchange/shared.ts";
import { FIRST_MESSAGE_KIND, type NodeId, type Request } from "../fabric.ts";
import { readError } from "../frames.ts";
import { FLAG_ERROR, FRAME_HEADER_WORDS, FRAME_ID, FRAME_KIND, Reader, Writer } from "../wire.ts";
import { Bell, OwnBell } from "./bell.ts";
import { CONNECTION_BYTES, Connection } from "./connection.ts";
import { Directory, FileLock, ringsName, slotLock } from "./directory.ts";
import type { NodePlace } from "./options.ts";
import { RingOutbox } from "./outbox.ts";
import type { RingReceiver, RingSender } from "./ring.ts";
import { applyVerb } from "./verbs.ts";

export const TIMEOUT_TICKS = 8;

/** All that there is while there are rings. */
interface Rings {
  readonly directory: Directory;
  readonly slot: number;
  readonly generation: number;
  readonly lock: FileLock;
  readonly connection: Connection;
  readonly bell: Bell;
  readonly sender: RingSender;
  readonly receiver: RingReceiver;
  readonly outbox: RingOutbox;
  readonly memory: StoreMemory | undefined;
}

export class RingPeer {
  readonly node: NodeId;
  readonly #place: NodePlace;
  readonly #shared: Shared;
  readonly #endings: Endings;
  readonly #schedule: (outbox: RingOutbox) => void;
  readonly #underWay = new RequestsUnderWay();
  readonly #waiting = new WaitingRequests();
  #verbs: Request[] = [];
  readonly #body = new Reader(new Writer().views);
  #rings: Rings | undefined;
  #tick = 0;
  #silentTicks = 0;
  #heartbeat = 0;
  readonly #doVerbs = (): void => this.#doVerbsNow();

  constructor(
    shared: Shared,
    endings: Endings,
    node: NodeId,
    place: NodePlace,
    schedule: (outbox: RingOutbox) => void,
  ) {
    this.#shared = shared;
    this.#endings = endings;
    this.node = node;
    this.#place = place;
    this.#schedule = schedule;
  }

  get isConnected(): boolean {
    return this.#rings !== undefined;
  }

  send(request: Request): void {
    const isFirst = this.#waiting.count === 0;
    if (isFirst && this.#canSend()) this.#transmit(request);
    else if (this.#waiting.count < MAX_QUEUED_REQUESTS) {
      this.#waiting.add(request, this.#tick);
      if (isFirst && this.#rings === undefined && this.#connect()) this.#pump();
    } else {
      this.#shared.counters.overloaded++;
      const message = `too many requests wait for node ${this.node}`;
      this.#endings.fail(request, new SituError("SITU_OVERLOADED", message));
    }
  }

  poll(): boolean {
    const rings = this.#rings;
    if (rings === undefined) return false;
    const { outbox, receiver, directory, slot, generation } = rings;
    let found = !outbox.isScheduled && outbox.unsentBytes > 0 && outbox.flush();
    try {
      while (this.#rings === rings && receiver.next()) {
        found = true;
        const { views, from, to } = receiver;
        const { i32 } = views;
        this.#body.reset(views, from + FRAME_HEADER_WORDS, to);
        this.#replied(i32[from + FRAME_KIND], i32[from + FRAME_ID]);
        if (this.#rings === rings) receiver.done();
      }
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      const { refused } = this.#shared.counters;
      refused[error.code] = (refused[error.code] ?? 0) + 1;
      this.#lose(error.message);
      return true;
    }
    if (this.#rings !== rings) return found;
    if (receiver.settle()) rings.bell.ring();
    if (directory.isClosed || directory.isGivenUp(slot, generation)) {
      this.#lose(`node ${this.node} has closed the connection`);
      return true;
    }
    this.#pump();
    return found;
  }

  /** An eighth of the progress time-out is over. */
  tick(): void {
    this.#tick++;
    const rings = this.#rings;
    if (rings === undefined) {
      while (this.#waiting.count > 0 && this.#tick - this.#waiting.oldestTick > TIMEOUT_TICKS) {
        this.#shared.counters.lost++;
        const message = `node ${this.node} cannot be reached`;
        this.#waiting.take().failed(new SituError("SITU_LOST", message));
      }
      if (this.#waiting.count > 0 && this.#connect()) this.#pump();
      return;
    }
    if (!rings.directory.isAlive()) {
      // Killed: nobody else removes its bell.
      if (!rings.directory.isClosed) rmSync(rings.bell.path, { force: true });
      this.#lose(`node ${this.node} is gone`);
      return;
    }
    const { heartbeat } = rings.directory;
    if (heartbeat !== this.#heartbeat || this.#underWay.count === 0) {
      this.#heartbeat = heartbeat;
      this.#silentTicks = 0;
    } else if (++this.#silentTicks >= TIMEOUT_TICKS) this.#lose(`node ${this.node} is silent`);
  }

  /** For good. */
  close(why: SituError): void {
    const requests = [...this.#underWay.takeAll(), ...this.#waiting.takeAll(), ...this.#verbs];
    this.#verbs = [];
    this.#release();
    for (const request of requests) request.failed(why);
  }

  #canSend(): boolean {
    const rings = this.#rings;
    if (rings === undefined || this.#underWay.isFull) return false;
    return rings.outbox.unsentBytes <= MAX_UNREAD_BYTES;
  }

  #pump(): void {
    while (this.#waiting.count > 0 && this.#canSend()) this.#transmit(this.#waiting.take());
  }

  #transmit(request: Request): void {
    const rings = this.#rings as Rings;
    if (request.kind < FIRST_MESSAGE_KIND && rings.memory !== undefined) {
      if (this.#verbs.length === 0) afterTurn(this.#doVerbs);
      this.#verbs.push(request);
      this.#shared.counters.requestsSent++;
      return;
    }
    const id = this.#underWay.add(request);
    const { frames } = rings.outbox;
    try {
      request.encode(frames.begin(request.kind, id, this.#shared.epoch));
      frames.end();
      this.#shared.counters.requestsSent++;
    } catch (error) {
      frames.takeBack();
      this.#underWay.take(id);
      if (!(error instanceof SituError)) throw error;
      this.#endings.fail(request, error);
    }
  }

  #doVerbsNow(): void {
    const verbs = this.#verbs;
    this.#verbs = [];
    const { epoch, self, counters } = this.#shared;
    for (const verb of verbs) {
      const rings = this.#rings;
      if (rings?.memory === undefined) {
        counters.lost++;
        verb.failed(new SituError("SITU_LOST", `node ${this.node} is gone`));
        continue;
      }
      const isReplied = applyVerb(rings.memory, self, epoch, rings.directory.epoch, verb);
      if (isReplied) counters.repliesReceived++;
    }
  }

  #replied(kind: number, id: number): void {
    const request = this.#underWay.take(id);
    // Of an earlier life of these rings there is nothing: they are new.
    if (request === undefined) {
      throw new SituError("SITU_PROTOCOL", `node ${this.node} answers what nobody has asked`);
    }
    this.#shared.counters.repliesReceived++;
    this.#silentTicks = 0;
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

  /** False if the node is not there; those who wait are told if it can never be. */
  #connect(): boolean {
    try {
      this.#rings = this.#open();
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      if (error.code === "SITU_OVERLOADED") this.#shared.counters.overloaded++;
      for (const request of this.#waiting.takeAll()) this.#endings.fail(request, error);
      return false;
    }
    if (this.#rings === undefined) return false;
    this.#shared.counters.connections++;
    this.#silentTicks = 0;
    return true;
  }

  #open(): Rings | undefined {
    const directory = Directory.open(this.#place.folder, this.node);
    if (directory === undefined) return undefined;
    let lock: FileLock | undefined;
    let connection: Connection | undefined;
    try {
      if (directory.isClosed) {
        directory.close();
        return undefined;
      }
      const bell = Bell.open(directory.bell);
      let slot = 0;
      for (; slot < directory.slots; slot++) {
        lock = FileLock.take(slotLock(directory.folder, slot));
        if (lock !== undefined) break;
      }
      if (lock === undefined) {
        bell.close();
        const message = `node ${this.node} has ${slot} connections, and takes no more`;
        throw new SituError("SITU_OVERLOADED", message);
      }
      const generation = (directory.generation(slot) + 1) | 0 || 1;
      const name = ringsName(slot, generation);
      connection = new Connection(directory.segments.create(name, CONNECTION_BYTES));
      connection.describe(this.#shared.self, OwnBell.get().path);
      const sender = connection.sender("requests");
      const receiver = connection.receiver("replies");
      const outbox = new RingOutbox(sender, bell, this.#schedule);
      const memory = this.#joinMemory();
      directory.claim(slot, generation);
      bell.ring();
      const ends = { sender, receiver, outbox, memory };
      return { directory, slot, generation, lock, connection, bell, ...ends };
    } catch (error) {
      connection?.close();
      lock?.release();
      directory.close();
      throw error;
    }
  }

  #joinMemory(): StoreMemory | undefined {
    const { memoryFolder } = this.#place;
    if (memoryFolder === undefined) return undefined;
    return joinMemory(new MappedSegments(memoryFolder), bootId());
  }

  #lose(why: string): void {
    this.#release();
    const lost = [...this.#underWay.takeAll(), ...this.#verbs];
    this.#verbs = [];
    this.#shared.counters.lost += lost.length;
    // What was not sent waits for the node to come back, for a while.
    for (const request of lost) request.failed(new SituError("SITU_LOST", why));
  }

  #release(): void {
    const rings = this.#rings;
    if (rings === undefined) return;
    this.#rings = undefined;
    this.#shared.counters.connections--;
    if (rings.outbox.unsentBytes > 0) rings.outbox.flush();
    rings.connection.markClosed();
    rings.bell.ring();
    rings.sender.close();
    rings.receiver.close();
    rings.connection.close();
    rings.lock.release();
    rings.bell.close();
    rings.directory.close();
    rings.memory?.close();
  }
}
