/**
 * The way of a packet: all that one end has for another when a turn ends. It passes the cores and the
 * NIC of its machine, the wire with its faults, and the other NIC (hardware.ts has the times). A frame
 * that a fault is about travels alone from then on.
 *
 * Frames are encoded as on a real wire, and their memory is overwritten once they were received:
 * whoever keeps a reference into a message sees that at once.
 */

import { FIRST_MESSAGE_KIND } from "../../src/fabric/fabric.ts";
import { FrameWriter } from "../../src/fabric/frames.ts";
import { GUARDED, WRITE } from "../../src/fabric/verbs.ts";
import {
  FLAG_REPLY,
  FRAME_ID,
  FRAME_KIND,
  FRAME_LENGTH,
  KIND_MASK,
} from "../../src/fabric/wire.ts";
import type { Machine } from "./machine.ts";
import { between } from "./streams.ts";
import type { World } from "./world.ts";

/** What memory holds after its message was received. */
const POISON = 0x5a5a5a5a;
/** Larger ones are left to the garbage collector. */
const KEPT_WORDS = 1 << 14;

export class Packet {
  readonly source: Receiver;
  /** Who was there when it left: one who takes that one's place later does not get it. */
  readonly target: Receiver | undefined;
  readonly to: number;
  readonly frames: FrameWriter;
  /** Frames that are still to be served; the memory is free after the last. */
  holders = 1;
  #load: Load | undefined;

  constructor(source: Receiver, target: Receiver | undefined, to: number, frames: FrameWriter) {
    this.source = source;
    this.target = target;
    this.to = to;
    this.frames = frames;
  }

  get from(): number {
    return this.source.id;
  }

  get load(): Load {
    this.#load ??= loadOf(this.frames);
    return this.#load;
  }
}

/** One who gets packets. */
export interface Receiver {
  readonly id: number;
  readonly machine: Machine;
  receive(packet: Packet): void;
  /** The wire has made a second copy of a request of this one. */
  duplicated(requestId: number): void;
}

/** What the NIC sees of a packet. */
interface Load {
  messageBytes: number;
  verbBytes: number;
  verbs: number;
  writes: number;
  /** Of these, requests. */
  requests: number;
  verbRequests: number;
}

export class Transit {
  readonly #world: World;
  readonly #receivers = new Map<number, Receiver>();
  readonly #free: FrameWriter[] = [];
  readonly #held = new Map<string, Packet>();
  readonly #slowness;

  constructor(world: World) {
    this.#world = world;
    this.#slowness = world.random("slowness");
  }

  connect(receiver: Receiver): void {
    this.#receivers.set(receiver.id, receiver);
  }

  disconnect(receiver: Receiver): void {
    this.#receivers.delete(receiver.id);
  }

  /** All that one end has for another. */
  pack(source: Receiver, to: number, frames: FrameWriter): Packet {
    const packet = new Packet(source, this.#receivers.get(to), to, frames);
    this.#traceAll("sent", packet);
    return packet;
  }

  take(): FrameWriter {
    return this.#free.pop() ?? new FrameWriter();
  }

  /** One holder of a packet is done with it. */
  release(packet: Packet): void {
    if (--packet.holders > 0) return;
    const { frames } = packet;
    const { i32 } = frames.out.views;
    i32.fill(POISON, 0, frames.out.at);
    if (i32.length > KEPT_WORDS) return;
    frames.clear();
    this.#free.push(frames);
  }

  /** All that a machine sends when a turn ends, from this place. */
  leave(machine: Machine, place: "host" | "nic" | "verb", packets: readonly Packet[]): void {
    const world = this.#world;
    let coreUs = 0;
    let isRung = false;
    if (place !== "verb") {
      const model = machine.modelAt(place);
      for (const { load } of packets) {
        if (load.requests > 0) coreUs += model.issueUs;
        coreUs += load.verbRequests * model.verbUs;
        isRung ||= load.requests > 0;
      }
      if (isRung) coreUs += model.doorbellUs;
    }
    const pass = (): void => {
      let bellUs = isRung ? machine.hardware.nic.doorbellUs : 0;
      for (const packet of packets) {
        const leftUs = this.#passNic(machine, packet.load, bellUs, false);
        bellUs = 0;
        this.#travel(machine, packet, leftUs);
      }
    };
    if (coreUs === 0 || place === "verb") pass();
    else world.at(machine.coresAt(place).serve(world.nowUs, coreUs), pass, machine);
  }

  #passNic(machine: Machine, load: Load, bellUs: number, isComing: boolean): number {
    const nowUs = bellUs === 0 ? this.#world.nowUs : machine.nics.serve(this.#world.nowUs, bellUs);
    return machine.passNic(nowUs, load, isComing);
  }

  #travel(machine: Machine, packet: Packet, leftUs: number): void {
    const world = this.#world;
    const { from, to } = packet;
    if (from === to) {
      world.at(world.nowUs, () => this.#arrive(packet), machine);
      return;
    }
    const { wireUs, pcieUs } = machine.hardware;
    const latencyUs = wireUs + 2 * pcieUs;
    if (world.faults.isEmpty) {
      this.#arriveAt(packet, leftUs + latencyUs);
      return;
    }
    const sound = this.#judge(packet, leftUs + latencyUs);
    if (sound === undefined) this.release(packet);
    else this.#arriveAt(sound, leftUs + latencyUs);
  }

  /** Sends what a fault is about on ways of its own; gives back the rest, if there is any. */
  #judge(packet: Packet, arrivalUs: number): Packet | undefined {
    const world = this.#world;
    const { from, to } = packet;
    const link = `${from}>${to}`;
    const overtaken = this.#held.get(link);
    let rest: FrameWriter | undefined;
    forEachFrame(packet.frames, (i32, at, end) => {
      const isReply = (i32[at + FRAME_KIND] & FLAG_REPLY) !== 0;
      const verdict = world.faults.judge(from, to, isReply, world.nowUs);
      if (verdict.isLost) world.trace?.frame("dropped", world.nowUs, from, to, i32, at, end);
      if (verdict.copiesUs.length > 0 && !isReply) packet.source.duplicated(i32[at + FRAME_ID]);
      for (const laterUs of verdict.copiesUs) {
        world.trace?.frame("duplicated", world.nowUs, from, to, i32, at, end);
        this.#arriveAt(this.#copy(packet, i32, at, end), arrivalUs + laterUs);
      }
      if (verdict.isLost) return;
      if (verdict.heldUs > 0 && !this.#held.has(link)) {
        this.#hold(link, this.#copy(packet, i32, at, end), arrivalUs + verdict.heldUs);
      } else if (verdict.delayUs > 0) {
        this.#arriveAt(this.#copy(packet, i32, at, end), arrivalUs + verdict.delayUs);
      } else {
        rest ??= this.take();
        append(rest, i32, at, end);
      }
    });
    if (rest === undefined) return undefined;
    const sound = new Packet(packet.source, packet.target, to, rest);
    if (overtaken !== undefined && this.#held.get(link) === overtaken) {
      // At the same instant, but after it.
      this.#held.delete(link);
      world.at(arrivalUs, () => this.#arriveAt(overtaken, world.nowUs));
    }
    this.release(packet);
    return sound;
  }

  #hold(link: string, packet: Packet, untilUs: number): void {
    this.#held.set(link, packet);
    this.#world.at(untilUs, () => {
      if (this.#held.get(link) !== packet) return;
      this.#held.delete(link);
      this.#arriveAt(packet, this.#world.nowUs);
    });
  }

  #copy(packet: Packet, i32: Int32Array, at: number, end: number): Packet {
    const frames = this.take();
    append(frames, i32, at, end);
    return new Packet(packet.source, packet.target, packet.to, frames);
  }

  #arriveAt(packet: Packet, arrivalUs: number): void {
    const machine = packet.target?.machine;
    const slow = machine?.slowness;
    const laterUs = slow === undefined ? 0 : between(this.#slowness, slow.minUs, slow.maxUs);
    this.#world.at(arrivalUs + laterUs, () => this.#arrive(packet), machine);
  }

  #arrive(packet: Packet): void {
    const world = this.#world;
    const receiver = packet.target;
    if (receiver === undefined || this.#receivers.get(packet.to) !== receiver) {
      this.#traceAll("dropped", packet);
      this.release(packet);
      return;
    }
    this.#traceAll("delivered", packet);
    const { machine } = receiver;
    const isLocal = packet.from === packet.to;
    const readyUs = isLocal ? world.nowUs : this.#passNic(machine, packet.load, 0, true);
    if (readyUs === world.nowUs) receiver.receive(packet);
    else world.at(readyUs, () => receiver.receive(packet), machine);
  }

  #traceAll(what: "sent" | "dropped" | "delivered", packet: Packet): void {
    const { trace, nowUs } = this.#world;
    if (trace === undefined) return;
    forEachFrame(packet.frames, (i32, at, end) => {
      trace.frame(what, nowUs, packet.from, packet.to, i32, at, end);
    });
  }
}

export function forEachFrame(
  frames: FrameWriter,
  visit: (i32: Int32Array, at: number, end: number) => void,
): void {
  const { views, at: last } = frames.out;
  for (let at = 0; at < last; ) {
    const end = at + views.i32[at + FRAME_LENGTH];
    visit(views.i32, at, end);
    at = end;
  }
}

function append(frames: FrameWriter, i32: Int32Array, at: number, end: number): void {
  frames.out.limit = Number.POSITIVE_INFINITY;
  frames.out.words(i32, at, end - at);
  frames.frames++;
}

function loadOf(frames: FrameWriter): Load {
  const load: Load = {
    messageBytes: 0,
    verbBytes: 0,
    verbs: 0,
    writes: 0,
    requests: 0,
    verbRequests: 0,
  };
  const { views, at: last } = frames.out;
  const { i32 } = views;
  for (let at = 0; at < last; at += i32[at + FRAME_LENGTH]) {
    const kind = i32[at + FRAME_KIND];
    const bytes = i32[at + FRAME_LENGTH] * 4;
    const isReply = (kind & FLAG_REPLY) !== 0;
    if ((kind & KIND_MASK) < FIRST_MESSAGE_KIND) {
      load.verbBytes += bytes;
      load.verbs++;
      if (!isReply) {
        load.verbRequests++;
        if ((kind & KIND_MASK & ~GUARDED) === WRITE) load.writes++;
      }
    } else {
      load.messageBytes += bytes;
      if (!isReply) load.requests++;
    }
  }
  return load;
}
