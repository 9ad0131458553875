/**
 * The receiving side of a simulated endpoint: hands the frames of a packet to where each is served. A
 * verb needs no core; messages and replies wait for one of the cores of their place, all of a packet
 * for the same one, and what they send then leaves in one piece.
 */

import {
  CLIENT,
  FIRST_MESSAGE_KIND,
  type Incoming,
  isOfAnyConfiguration,
  type Place,
  type Sender,
  type Ticket,
} from "../../src/fabric/fabric.ts";
import { writeError } from "../../src/fabric/frames.ts";
import { isWriting, serveVerb } from "../../src/fabric/verbs.ts";
import {
  FLAG_ERROR,
  FLAG_REPLY,
  FRAME_CONFIGURATION,
  FRAME_HEADER_WORDS,
  FRAME_ID,
  FRAME_KIND,
  KIND_MASK,
  Reader,
  Writer,
} from "../../src/fabric/wire.ts";
import { assert } from "../../src/runtime/assert.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { SimulatedEndpoint } from "./endpoint.ts";
import { serveInLines } from "./lines.ts";
import type { Peer } from "./peer.ts";
import { between } from "./streams.ts";
import { forEachFrame, type Packet, type Transit } from "./transit.ts";
import type { World } from "./world.ts";

/** In place of a request's id: nobody waits for a reply. */
export const POSTED = 0;

/** Where the only frame of a packet is. */
const ONLY: readonly number[] = [0];

export class Server {
  readonly #endpoint: SimulatedEndpoint;
  readonly #world: World;
  readonly #transit: Transit;
  readonly #incoming: Arrived;
  readonly #gaps: Random;
  /** For the replies of verbs that take their time. */
  readonly #spare: Writer[] = [];

  constructor(endpoint: SimulatedEndpoint, world: World, transit: Transit) {
    this.#endpoint = endpoint;
    this.#world = world;
    this.#transit = transit;
    this.#incoming = new Arrived(endpoint);
    this.#gaps = world.random(`lines-${endpoint.id}`);
  }

  checkNoReplyIsOpen(): void {
    assert(!this.#incoming.isReplying, "nothing is sent while a reply is being written");
  }

  receive(packet: Packet): void {
    if (packet.frames.frames === 1) this.#receiveOne(packet);
    else this.#receiveMany(packet);
    this.#transit.release(packet);
  }

  /** Most packets have one frame. */
  #receiveOne(packet: Packet): void {
    const kind = packet.frames.out.views.i32[FRAME_KIND];
    const place = this.#placeOf(kind);
    if (place === "verb") this.#beginVerb(packet, 0);
    else this.#enqueue(packet, place, ONLY, this.#coreUs(place, kind, true));
  }

  #receiveMany(packet: Packet): void {
    const verbs: number[] = [];
    const others: Record<"host" | "nic", number[]> = { host: [], nic: [] };
    const coreUs = { host: 0, nic: 0 };
    forEachFrame(packet.frames, (i32, at) => {
      const place = this.#placeOf(i32[at + FRAME_KIND]);
      if (place === "verb") verbs.push(at);
      else {
        coreUs[place] += this.#coreUs(place, i32[at + FRAME_KIND], others[place].length === 0);
        others[place].push(at);
      }
    });
    for (const at of verbs) this.#beginVerb(packet, at);
    for (const place of ["host", "nic"] as const) {
      if (others[place].length === 0) continue;
      this.#enqueue(packet, place, others[place], coreUs[place]);
    }
  }

  /** Frames of a packet wait for a core of their place, if it takes any time. */
  #enqueue(packet: Packet, place: "host" | "nic", frames: readonly number[], coreUs: number): void {
    packet.holders++;
    const { machine } = this.#endpoint;
    const { nowUs } = this.#world;
    if (coreUs === 0) this.#handle(packet, place, frames);
    else {
      const doneUs = machine.coresAt(place).serve(nowUs, coreUs);
      this.#world.at(doneUs, () => this.#handle(packet, place, frames), machine);
    }
  }

  #placeOf(kindWord: number): Place {
    const { options } = this.#endpoint;
    if ((kindWord & FLAG_REPLY) !== 0) return options.home ?? "host";
    const kind = kindWord & KIND_MASK;
    return kind < FIRST_MESSAGE_KIND ? "verb" : (options.places?.(kind) ?? "host");
  }

  /** Core time for a frame, the first of its packet or a further one. */
  #coreUs(place: "host" | "nic", kindWord: number, isFirst: boolean): number {
    const { machine, options } = this.#endpoint;
    const model = machine.modelAt(place);
    const kind = kindWord & KIND_MASK;
    if ((kindWord & FLAG_REPLY) === 0) {
      const workUs = options.workUs?.(kind) ?? model.handlerUs;
      return workUs + (isFirst ? model.serveUs : 0);
    }
    // What a verb's completion takes is in what it took to issue it; but who reads memory from afar
    // must look for its key in it himself.
    if (kind < FIRST_MESSAGE_KIND) return options.workUs?.(kind) ?? model.handlerUs;
    return isFirst ? model.completeUs : 0;
  }

  #handle(packet: Packet, place: "host" | "nic", frames: readonly number[]): void {
    this.#endpoint.turnPlace = place;
    const { views } = packet.frames.out;
    for (const at of frames) {
      if (this.#endpoint.isClosed) break;
      const end = at + views.i32[at];
      if ((views.i32[at + FRAME_KIND] & FLAG_REPLY) !== 0) {
        this.#endpoint.complete(packet, at, end);
      } else this.#serve(packet, at, end);
    }
    this.#transit.release(packet);
  }

  /** False if it was refused. */
  #admit(packet: Packet, at: number, peer: Peer): boolean {
    const { i32 } = packet.frames.out.views;
    const { configurationId, counters } = this.#endpoint;
    if (i32[at + FRAME_CONFIGURATION] === configurationId) return true;
    if (isOfAnyConfiguration(i32[at + FRAME_KIND] & KIND_MASK)) return true;
    counters.stale++;
    if (i32[at + FRAME_ID] === POSTED) return false;
    const message = `a request of configuration ${i32[at + FRAME_CONFIGURATION]}, this is ${configurationId}`;
    this.#refuse(peer, i32, at, new SituError("SITU_STALE_CONFIGURATION", message));
    return false;
  }

  #serve(packet: Packet, at: number, end: number): void {
    const endpoint = this.#endpoint;
    const peer = endpoint.peer(packet.from);
    if (!this.#admit(packet, at, peer)) return;
    const { views } = packet.frames.out;
    const { nowUs, trace } = this.#world;
    trace?.frame("served", nowUs, packet.from, packet.to, views.i32, at, end);
    const { service } = endpoint.options;
    if (service === undefined) {
      const message = `node ${endpoint.self} serves no messages`;
      this.#refuse(peer, views.i32, at, new SituError("SITU_UNSUPPORTED", message));
      return;
    }
    endpoint.counters.requestsServed++;
    const incoming = this.#incoming;
    incoming.begin(peer, views.i32[at + FRAME_KIND], views.i32[at + FRAME_ID]);
    incoming.body.reset(views, at + FRAME_HEADER_WORDS, end);
    try {
      service(incoming);
      incoming.end();
    } catch (error) {
      incoming.takeBack();
      if (!(error instanceof SituError)) throw error;
      assert(!incoming.isDeferred, "a request that was deferred is answered by its ticket");
      this.#refuse(peer, views.i32, at, error);
    }
  }

  #refuse(peer: Peer, i32: Int32Array, at: number, error: SituError): void {
    replyError(this.#endpoint, peer, i32[at + FRAME_KIND] & KIND_MASK, i32[at + FRAME_ID], error);
  }

  /** The NIC fetches the data over PCIe, line by line. */
  #beginVerb(packet: Packet, at: number): void {
    packet.holders++;
    const { machine } = this.#endpoint;
    const { pcieUs } = machine.hardware;
    const begin = (): void => this.#serveVerb(packet, at);
    if (pcieUs === 0) begin();
    else this.#world.at(this.#world.nowUs + 2 * pcieUs, begin, machine);
  }

  #serveVerb(packet: Packet, at: number): void {
    const endpoint = this.#endpoint;
    const { views } = packet.frames.out;
    const kind = views.i32[at + FRAME_KIND] & KIND_MASK;
    const end = at + views.i32[at];
    const peer = endpoint.peer(packet.from);
    endpoint.turnPlace = "verb";
    if (kind >= FIRST_MESSAGE_KIND) {
      // A message whose place is the NIC's hardware: a model of a verb that ours do not have.
      this.#serve(packet, at, end);
      this.#transit.release(packet);
      return;
    }
    if (!this.#admit(packet, at, peer)) {
      this.#transit.release(packet);
      return;
    }
    const { memory } = endpoint.options;
    const out = this.#spare.pop() ?? new Writer();
    const body = new Reader(views).reset(views, at + FRAME_HEADER_WORDS, end);
    const { nowUs, trace } = this.#world;
    trace?.frame("served", nowUs, packet.from, packet.to, views.i32, at, end);
    let error: SituError | undefined;
    if (memory === undefined) {
      error = new SituError("SITU_UNSUPPORTED", `node ${endpoint.self} has no memory for verbs`);
    } else if (isWriting(kind) && peer.sender.node === CLIENT) {
      error = new SituError("SITU_PERMISSION", "only nodes write by verb");
    }
    if (error === undefined && endpoint.options.isWhole?.() === false) {
      error = new SituError("SITU_OVERLOADED", `node ${endpoint.self} recovers: try again`);
    }
    if (memory === undefined || error !== undefined) {
      this.#endVerb(packet, at, peer, out, error);
      return;
    }
    const { lineGapUs } = endpoint.machine.hardware;
    const steps = lineGapUs === 0 ? undefined : serveInLines(memory, kind, body, out);
    const advance = (): void => {
      endpoint.turnPlace = "verb";
      try {
        if (steps === undefined) serveVerb(memory, kind, body, out);
        else if (!endpoint.isClosed && steps.next().done !== true) {
          const laterUs = this.#world.nowUs + between(this.#gaps, 0, lineGapUs);
          this.#world.at(laterUs, advance, endpoint.machine);
          return;
        }
      } catch (thrown) {
        if (!(thrown instanceof SituError)) throw thrown;
        this.#endVerb(packet, at, peer, out, thrown);
        return;
      }
      this.#endVerb(packet, at, peer, out, undefined);
    };
    advance();
  }

  #endVerb(
    packet: Packet,
    at: number,
    peer: Peer,
    out: Writer,
    error: SituError | undefined,
  ): void {
    const { i32 } = packet.frames.out.views;
    if (error !== undefined) this.#refuse(peer, i32, at, error);
    else {
      this.#endpoint.counters.requestsServed++;
      const kind = i32[at + FRAME_KIND] & KIND_MASK;
      const { outbox } = peer;
      const { configurationId } = this.#endpoint;
      outbox
        .begin(kind | FLAG_REPLY, i32[at + FRAME_ID], configurationId)
        .words(out.views.i32, 0, out.at);
      outbox.end();
      this.#endpoint.dirty(peer);
    }
    out.clear();
    this.#spare.push(out);
    this.#transit.release(packet);
  }
}

function replyError(
  endpoint: SimulatedEndpoint,
  peer: Peer,
  kind: number,
  id: number,
  error: SituError,
): void {
  const { outbox } = peer;
  writeError(outbox.begin(kind | FLAG_REPLY | FLAG_ERROR, id, endpoint.configurationId), error);
  outbox.end();
  endpoint.dirty(peer);
}

/** The request that is being served. */
class Arrived implements Incoming {
  from: Sender = { node: CLIENT, connection: 0 };
  kind = 0;
  readonly body: Reader;
  isReplying = false;
  isDeferred = false;
  readonly #endpoint: SimulatedEndpoint;
  #peer: Peer | undefined;
  #id = 0;
  #hasReply = false;

  constructor(endpoint: SimulatedEndpoint) {
    this.#endpoint = endpoint;
    this.body = new Reader(new Writer().views);
  }

  begin(peer: Peer, kindWord: number, id: number): void {
    this.#peer = peer;
    this.from = peer.sender;
    this.kind = kindWord & KIND_MASK;
    this.#id = id;
    this.#hasReply = false;
    this.isDeferred = false;
  }

  reply(): Writer {
    assert(!this.#hasReply && !this.isDeferred, "a request is answered once");
    this.#hasReply = true;
    this.isReplying = true;
    const { outbox } = this.#sender();
    return outbox.begin(this.kind | FLAG_REPLY, this.#id, this.#endpoint.configurationId);
  }

  defer(): Ticket {
    assert(!this.#hasReply && !this.isDeferred, "a request is answered once");
    this.isDeferred = true;
    return new Deferred(this.#endpoint, this.#sender(), this.kind, this.#id);
  }

  /** The service has returned. */
  end(): void {
    assert(
      this.#hasReply || this.isDeferred || this.#id === POSTED,
      "a service replies, defers or throws",
    );
    if (!this.isReplying) return;
    const peer = this.#sender();
    peer.outbox.end();
    this.isReplying = false;
    this.#endpoint.dirty(peer);
  }

  /** The reply that was begun is not sent. */
  takeBack(): void {
    if (!this.isReplying) return;
    this.#sender().outbox.takeBack();
    this.isReplying = false;
  }

  #sender(): Peer {
    assert(this.#peer !== undefined, "a request is being served");
    return this.#peer;
  }
}

class Deferred implements Ticket {
  readonly #endpoint: SimulatedEndpoint;
  readonly #peer: Peer;
  readonly #kind: number;
  readonly #id: number;
  #isOver = false;

  constructor(endpoint: SimulatedEndpoint, peer: Peer, kind: number, id: number) {
    this.#endpoint = endpoint;
    this.#peer = peer;
    this.#kind = kind;
    this.#id = id;
  }

  get isWanted(): boolean {
    return !this.#isOver && !this.#endpoint.isClosed && this.#endpoint.knows(this.#peer);
  }

  reply(write: (out: Writer) => void): void {
    if (!this.#take()) return;
    const { outbox } = this.#peer;
    try {
      write(outbox.begin(this.#kind | FLAG_REPLY, this.#id, this.#endpoint.configurationId));
      outbox.end();
      this.#endpoint.dirty(this.#peer);
    } catch (error) {
      outbox.takeBack();
      if (!(error instanceof SituError)) throw error;
      replyError(this.#endpoint, this.#peer, this.#kind, this.#id, error);
    }
  }

  fail(error: SituError): void {
    if (this.#take()) replyError(this.#endpoint, this.#peer, this.#kind, this.#id, error);
  }

  /** Whether this is the first answer, and somebody waits for it. */
  #take(): boolean {
    const { isWanted } = this;
    this.#isOver = true;
    return isWanted;
  }
}
