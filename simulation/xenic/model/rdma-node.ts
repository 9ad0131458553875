/**
 * A server with an RDMA NIC, as DrTM+H uses it: the same coroutines of a transaction as Xenic's (its baseline "resembles DrTM+H,
 * implementing the same set of remote operations", §5.7), with another table of places. The coordinator is a thread of the host.
 * Rows are read, locked, validated and logged by verbs, which the NIC of the other server serves without its
 * threads; each is about one row. Only COMMIT is a message to a thread.
 *
 *   read       READ of the row; its address is in the coordinator's cache (§5.1)
 *   lock       compare-and-swap of the row's header, and a READ of it in the same doorbell batch
 *   validate   READ of the row's header
 *   log        WRITE of a record at each backup
 *   commit     message
 *   unlock     WRITE of the row's header
 */

import type { NodeId } from "../../../src/fabric/fabric.ts";
import {
  XENIC_ABORT,
  XENIC_COMMIT,
  XENIC_EXECUTE,
  XENIC_EXECUTED,
  XENIC_LOG,
  XENIC_LOW,
  XENIC_VALIDATE,
} from "../../../src/protocols/kinds.ts";
import type { XenicMessage } from "../../../src/protocols/xenic/message.ts";
import type { Machine } from "../../fabric/machine.ts";
import type { World } from "../../fabric/world.ts";
import type { Runtime } from "../runtime.ts";
import { BurstCores, type Charge, type Output } from "./burst-cores.ts";
import {
  AETH_BYTES,
  ATOMIC_BYTES,
  type RdmaModel,
  RETH_BYTES,
  ROW_HEADER_BYTES,
} from "./hardware.ts";
import { Link } from "./link.ts";

export type DrtmPlace = "verb" | "host";

/** Where requests are served. */
export const DRTM_H: Readonly<Record<number, DrtmPlace>> = {
  [XENIC_EXECUTE]: "verb",
  [XENIC_VALIDATE]: "verb",
  [XENIC_LOG]: "verb",
  [XENIC_LOW]: "verb",
  [XENIC_ABORT]: "verb",
  [XENIC_COMMIT]: "host",
};

/** What a message is on the wire of an RDMA NIC. */
interface Wire {
  readonly packets: number;
  readonly bytes: number;
}

export class RdmaNode implements Runtime {
  readonly threads: BurstCores;
  readonly link: Link;
  /** Verbs and messages that were posted, and messages that were served. */
  operations = 0;
  readonly #world: World;
  readonly #machine: Machine;
  readonly #model: RdmaModel;
  readonly #pending: Output[][];
  /** Rows of the request that verbs are serving: each has an answer of its own. */
  #rowsAsked = 1;

  readonly #applyUs: (message: XenicMessage) => number;
  /** When each thread's last verb has entered the NIC. */
  readonly #enteredUs: Float64Array;

  /** `applyUs`: what a thread does later for a record of LOG or COMMIT. */
  constructor(
    world: World,
    machine: Machine,
    model: RdmaModel,
    charge: Charge,
    applyUs: (message: XenicMessage) => number,
  ) {
    this.#world = world;
    this.#applyUs = applyUs;
    this.#enteredUs = new Float64Array(model.host.threads);
    this.#machine = machine;
    this.#model = model;
    this.link = new Link(model.link);
    const { threads } = model.host;
    this.#pending = Array.from({ length: threads }, () => []);
    const sink = { outputsOf: (core: number) => this.#pending[core].splice(0) };
    this.threads = new BurstCores(world, machine, { cores: threads, burst: 64 }, sink, charge);
  }

  post(to: NodeId, message: XenicMessage, send: () => void): void {
    if (to === this.#machine.id) {
      this.#output(0, send);
      return;
    }
    const isRequest = message.kind in DRTM_H;
    const wire = wireOf(message, this.link, this.#rowsAsked);
    const operations = isRequest ? wire.packets : 0;
    this.operations += operations;
    const { verbUs, gapUs } = this.#model.host;
    const thread = this.threads.current;
    const leave = (): void => {
      const leftUs = this.link.leave(this.#world.nowUs, wire.packets, wire.bytes);
      this.#world.at(leftUs, send, this.#machine);
    };
    const enter = (): void => {
      if (thread === undefined || operations === 0) {
        leave();
        return;
      }
      const lastUs = Math.max(this.#enteredUs[thread], this.#world.nowUs) + operations * gapUs;
      this.#enteredUs[thread] = lastUs;
      this.#world.at(lastUs, leave, this.#machine);
    };
    this.#output(operations * verbUs, enter);
  }

  receive(from: NodeId, message: XenicMessage, deliver: () => void): void {
    const place = DRTM_H[message.kind];
    const { serveUs } = this.#model.host;
    const thread = message.name.sequence % this.threads.count;
    if (from === this.#machine.id) {
      this.threads.give(Math.abs(thread), 0, deliver);
      return;
    }
    const { packets, bytes } = wireOf(message, this.link, 1);
    const thereUs = this.link.arrive(this.#world.nowUs, packets, bytes);
    const hand = (): void => {
      const laterUs = this.#applyUs(message);
      if (laterUs > 0) this.threads.give(this.threads.nextCore(), laterUs, () => {});
      if (place === "verb") {
        this.#rowsAsked = Math.max(1, message.items.length);
        deliver();
        this.#rowsAsked = 1;
      } else if (place === "host") {
        this.operations++;
        this.threads.give(this.threads.nextCore(), serveUs, deliver);
      } else this.threads.give(Math.abs(thread), 0, deliver);
    };
    this.#world.at(thereUs, hand, this.#machine);
  }

  timer(run: () => void): void {
    this.atHost(run);
  }

  /** All of it is in the host's memory, which verbs reach by themselves: their time is in the round trip. */
  read(_words: number, done: () => void): void {
    done();
  }

  write(_words: number, done: () => void): void {
    done();
  }

  toHost(_words: number, run: () => void): void {
    const { current } = this.threads;
    if (current === undefined) this.atHost(run);
    else this.threads.give(current, 0, run);
  }

  toNic(_words: number, run: () => void): void {
    if (this.threads.current === undefined) this.atHost(run);
    else run();
  }

  atHost(run: () => void): void {
    this.threads.give(this.threads.nextCore(), 0, run);
  }

  /** What a thread does leaves with its burst; what the NIC does, at once. */
  #output(coreUs: number, leave: () => void): void {
    const { current } = this.threads;
    if (current === undefined) leave();
    else this.#pending[current].push({ coreUs, leave });
  }
}

function wireOf({ kind, items, words }: XenicMessage, link: Link, rowsAsked: number): Wire {
  const rows = Math.max(1, items.length);
  const isLocking = items.some(({ isWritten }) => isWritten);
  switch (kind) {
    case XENIC_EXECUTE:
      if (!isLocking) return { packets: rows, bytes: rows * RETH_BYTES };
      return { packets: 2 * rows, bytes: rows * (ATOMIC_BYTES + RETH_BYTES) };
    case XENIC_EXECUTED: {
      // The compare-and-swap gives back the word, and so does the READ behind it.
      if (isLocking)
        return { packets: 2 * rows, bytes: 2 * rows * (AETH_BYTES + ROW_HEADER_BYTES) };
      let packets = 0;
      let bytes = 0;
      for (const item of items) {
        const rowBytes = ROW_HEADER_BYTES + 4 * (item.value?.length ?? 0);
        packets += link.packetsFor(rowBytes);
        bytes += AETH_BYTES + rowBytes;
      }
      return { packets: Math.max(1, packets), bytes };
    }
    case XENIC_VALIDATE:
      return { packets: rows, bytes: rows * RETH_BYTES };
    case XENIC_LOG: {
      const bytes = RETH_BYTES + recordBytes(items) + 4 * words.length;
      return { packets: link.packetsFor(bytes), bytes };
    }
    case XENIC_COMMIT: {
      const bytes = RETH_BYTES + recordBytes(items);
      return { packets: link.packetsFor(bytes), bytes };
    }
    case XENIC_ABORT:
    case XENIC_LOW:
      return { packets: 1, bytes: RETH_BYTES + ROW_HEADER_BYTES };
    // An acknowledgement, or the headers that VALIDATE has asked for.
    default:
      return { packets: rowsAsked, bytes: rowsAsked * (AETH_BYTES + ROW_HEADER_BYTES) };
  }
}

/** A record has the name of its transaction; each row its key and version. */
function recordBytes(items: XenicMessage["items"]): number {
  return items.reduce((sum, { value }) => sum + 16 + 4 * (value?.length ?? 0), 16);
}
