/**
 * A server with a SmartNIC on which Xenic runs (§4.3): the program of its NIC is handled by bursts on the NIC's cores, DMA transfers go
 * to the engine in vectors, messages of a burst to one destination leave in one packet, and so do those to the host.
 * Techniques of the runtime can be left out (§5.7):
 *
 *   aggregates       else each message is a packet of its own
 *   batchesDma       else each transfer is submitted alone. (That cores also waited for their ends, as the words of §5.7 may be read,
 *                    cannot be: 570 ns for each record would make this step worth 2.3 times, and the paper has 1.16.)
 *   splitsRows       each row of a request is a request of its own, as with one-sided verbs: the paper's baseline
 */

import type { NodeId } from "../../../src/fabric/fabric.ts";
import { FRAME_HEADER_WORDS, Writer } from "../../../src/fabric/wire.ts";
import type { XenicMessage } from "../../../src/protocols/xenic/message.ts";
import { type Machine, Servers } from "../../fabric/machine.ts";
import type { World } from "../../fabric/world.ts";
import type { Runtime } from "../runtime.ts";
import { BurstCores, type Charge, type Output } from "./burst-cores.ts";
import type { SmartNicModel } from "./hardware.ts";
import { Link } from "./link.ts";

export interface Techniques {
  readonly aggregates: boolean;
  readonly batchesDma: boolean;
  readonly splitsRows: boolean;
}

export const ALL_TECHNIQUES: Techniques = {
  aggregates: true,
  batchesDma: true,
  splitsRows: false,
};

interface Posted {
  readonly to: NodeId;
  readonly rows: number;
  readonly bytes: number;
  readonly send: () => void;
}

interface Transfer {
  readonly words: number;
  readonly done: () => void;
}

interface Crossing {
  readonly words: number;
  readonly run: () => void;
}

/** What a core's handlers have asked for in a burst. */
interface Pending {
  posts: Posted[];
  reads: Transfer[];
  writes: Transfer[];
  crossings: Crossing[];
}

interface Arrival {
  readonly from: NodeId;
  readonly rows: number;
  readonly bytes: number;
  readonly deliver: () => void;
}

export class SmartNic implements Runtime {
  readonly nicCores: BurstCores;
  readonly hostCores: BurstCores;
  readonly link: Link;
  readonly #world: World;
  readonly #machine: Machine;
  readonly #model: SmartNicModel;
  readonly #techniques: Techniques;
  readonly #pending: Pending[];
  readonly #hostPending: Crossing[][];
  readonly #engines: readonly Servers[];
  readonly #toHostBus = new Servers(1);
  readonly #toNicBus = new Servers(1);
  #arrivals: Arrival[] = [];

  constructor(
    world: World,
    machine: Machine,
    model: SmartNicModel,
    techniques: Techniques,
    charge: Charge,
  ) {
    this.#world = world;
    this.#machine = machine;
    this.#model = model;
    this.#techniques = techniques;
    this.link = new Link(model.link);
    this.#engines = Array.from({ length: model.dma.queues }, () => new Servers(1));
    this.#pending = Array.from({ length: model.cores.cores }, freshPending);
    this.#hostPending = Array.from({ length: model.host.cores }, () => []);
    const nicSink = { outputsOf: (core: number) => this.#nicOutputs(core) };
    const hostSink = { outputsOf: (core: number) => this.#hostOutputs(core) };
    this.nicCores = new BurstCores(world, machine, model.cores, nicSink, charge);
    this.hostCores = new BurstCores(world, machine, model.host, hostSink, charge);
  }

  post(to: NodeId, message: XenicMessage, send: () => void): void {
    const rows = Math.max(1, message.items.length);
    this.#atNic((pending) => pending.posts.push({ to, rows, bytes: bytesOf(message), send }));
  }

  receive(from: NodeId, message: XenicMessage, deliver: () => void): void {
    const rows = Math.max(1, message.items.length);
    if (from === this.#machine.id) {
      this.nicCores.give(this.nicCores.nextCore(), this.#handlingUs(rows), deliver);
      return;
    }
    // All frames of a packet come in one turn.
    if (this.#arrivals.length === 0) {
      this.#world.at(this.#world.nowUs, () => this.#arrived(), this.#machine);
    }
    this.#arrivals.push({ from, rows, bytes: bytesOf(message), deliver });
  }

  timer(run: () => void): void {
    this.nicCores.give(this.nicCores.nextCore(), 0, run);
  }

  read(words: number, done: () => void): void {
    this.#atNic((pending) => pending.reads.push({ words, done }));
  }

  write(words: number, done: () => void): void {
    this.#atNic((pending) => pending.writes.push({ words, done }));
  }

  toHost(words: number, run: () => void): void {
    this.#atNic((pending) => pending.crossings.push({ words, run }));
  }

  toNic(words: number, run: () => void): void {
    const { current } = this.hostCores;
    if (current !== undefined) this.#hostPending[current].push({ words, run });
    else this.atHost(() => this.toNic(words, run));
  }

  /** Something that the application does. */
  atHost(run: () => void): void {
    this.hostCores.give(this.hostCores.nextCore(), 0, run);
  }

  #atNic(note: (pending: Pending) => void): void {
    const { current } = this.nicCores;
    if (current !== undefined) note(this.#pending[current]);
    else {
      const core = this.nicCores.nextCore();
      this.nicCores.give(core, 0, () => note(this.#pending[core]));
    }
  }

  #handlingUs(rows: number): number {
    const { messageUs, rowUs } = this.#model.cores;
    return messageUs + (rows - 1) * rowUs;
  }

  #arrived(): void {
    const bySource = new Map<NodeId, Arrival[]>();
    for (const arrival of this.#arrivals) push(bySource, arrival.from, arrival);
    this.#arrivals = [];
    for (const arrivals of bySource.values()) {
      const { packets, bytes } = this.#packetsOf(arrivals);
      const thereUs = this.link.arrive(this.#world.nowUs, packets, bytes);
      const core = this.nicCores.nextCore();
      const give = (): void => {
        const { packetUs } = this.#model.cores;
        arrivals.forEach(({ rows, deliver }, i) => {
          const firstUs = i === 0 ? packets * packetUs : 0;
          this.nicCores.give(core, firstUs + this.#handlingUs(rows), deliver);
        });
      };
      this.#world.at(thereUs, give, this.#machine);
    }
  }

  #packetsOf(messages: readonly { readonly rows: number; readonly bytes: number }[]) {
    let packets = 0;
    let bytes = 0;
    for (const message of messages) {
      bytes += message.bytes;
      packets += this.#techniques.splitsRows ? message.rows : 0;
    }
    return { packets: Math.max(packets, this.link.packetsFor(bytes)), bytes };
  }

  #nicOutputs(core: number): Output[] {
    const { posts, reads, writes, crossings } = this.#pending[core];
    this.#pending[core] = freshPending();
    return [
      ...this.#packetOutputs(posts),
      ...this.#transferOutputs(core, reads, this.#model.dma.readUs, this.#toNicBus),
      ...this.#transferOutputs(core, writes, this.#model.dma.writeUs, this.#toHostBus),
      ...this.#hostwardOutputs(crossings),
    ];
  }

  #packetOutputs(posts: readonly Posted[]): Output[] {
    const outputs: Output[] = [];
    const byTarget = new Map<NodeId, Posted[]>();
    for (const post of posts) {
      if (post.to === this.#machine.id) outputs.push({ coreUs: 0, leave: post.send });
      else push(byTarget, post.to, post);
    }
    const { aggregates } = this.#techniques;
    for (const all of byTarget.values()) {
      for (const group of aggregates ? [all] : all.map((post) => [post])) {
        const { packets, bytes } = this.#packetsOf(group);
        const leave = (): void => {
          const leftUs = this.link.leave(this.#world.nowUs, packets, bytes);
          const send = (): void => {
            for (const post of group) post.send();
          };
          this.#world.at(leftUs, send, this.#machine);
        };
        outputs.push({ coreUs: packets * this.#model.cores.packetUs, leave });
      }
    }
    return outputs;
  }

  #transferOutputs(
    core: number,
    transfers: readonly Transfer[],
    completeUs: number,
    bus: Servers,
  ): Output[] {
    const { vector, submitUs, elementUs, queues } = this.#model.dma;
    const { batchesDma } = this.#techniques;
    const outputs: Output[] = [];
    const length = batchesDma ? vector : 1;
    for (let at = 0; at < transfers.length; at += length) {
      const group = transfers.slice(at, at + length);
      const words = group.reduce((sum, transfer) => sum + transfer.words, 0);
      const leave = (): void => {
        const { nowUs } = this.#world;
        const engineUs = this.#engines[core % queues].serve(nowUs, group.length * elementUs);
        const doneUs = Math.max(engineUs, this.#over(bus, words)) + completeUs;
        const complete = (): void => {
          this.nicCores.give(core, 0, () => {
            for (const { done } of group) done();
          });
        };
        this.#world.at(doneUs, complete, this.#machine);
      };
      outputs.push({ coreUs: submitUs, leave });
    }
    return outputs;
  }

  #hostwardOutputs(crossings: readonly Crossing[]): Output[] {
    if (crossings.length === 0) return [];
    const leave = (): void => {
      const words = crossings.reduce((sum, crossing) => sum + crossing.words, 0);
      const thereUs = this.#over(this.#toHostBus, words) + this.#model.crossingUs;
      const core = this.hostCores.nextCore();
      const give = (): void => {
        for (const { run } of crossings) {
          this.hostCores.give(core, this.#model.host.messageUs, run);
        }
      };
      this.#world.at(thereUs, give, this.#machine);
    };
    return [{ coreUs: this.#bursts(crossings) * this.#model.cores.packetUs, leave }];
  }

  #hostOutputs(core: number): Output[] {
    const crossings = this.#hostPending[core];
    if (crossings.length === 0) return [];
    this.#hostPending[core] = [];
    const leave = (): void => {
      const words = crossings.reduce((sum, crossing) => sum + crossing.words, 0);
      const thereUs = this.#over(this.#toNicBus, words) + this.#model.crossingUs;
      const target = this.nicCores.nextCore();
      const { packetUs, messageUs } = this.#model.cores;
      const packetsUs = this.#bursts(crossings) * packetUs;
      const give = (): void => {
        crossings.forEach(({ run }, i) => {
          this.nicCores.give(target, messageUs + (i === 0 ? packetsUs : 0), run);
        });
      };
      this.#world.at(thereUs, give, this.#machine);
    };
    return [{ coreUs: crossings.length * this.#model.host.messageUs, leave }];
  }

  /** Packets over the bus. */
  #bursts(crossings: readonly Crossing[]): number {
    return this.#techniques.aggregates ? 1 : crossings.length;
  }

  #over(bus: Servers, words: number): number {
    return bus.serve(this.#world.nowUs, (words * 4) / this.#model.dma.bytesPerUs);
  }
}

function freshPending(): Pending {
  return { posts: [], reads: [], writes: [], crossings: [] };
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const found = map.get(key);
  if (found === undefined) map.set(key, [value]);
  else found.push(value);
}

const scratch = new Writer();

/** Of a message in its frame, as it is encoded. */
export function bytesOf(message: XenicMessage): number {
  scratch.clear();
  message.encode(scratch);
  return (FRAME_HEADER_WORDS + scratch.at) * 4;
}
