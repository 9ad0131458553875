/**
 * A server of Xenic on the simulated fabric: its NIC's program and its host's (src/protocols/xenic/), an end of the network,
 * and a bus between the two. A crash ends all of it.
 */

import type { Timer } from "../../src/fabric/fabric.ts";
import { Sequences } from "../../src/protocols/names.ts";
import {
  type Work,
  XenicCoordinator,
  type XenicOutcome,
} from "../../src/protocols/xenic/coordinator.ts";
import { XenicHost } from "../../src/protocols/xenic/host.ts";
import type { HostTableShape } from "../../src/protocols/xenic/host-table.ts";
import { runLocal } from "../../src/protocols/xenic/local.ts";
import { XenicMessage } from "../../src/protocols/xenic/message.ts";
import { type NicOptions, XenicNic } from "../../src/protocols/xenic/nic.ts";
import type { NicPorts, Placement } from "../../src/protocols/xenic/ports.ts";
import { Recovery } from "../../src/protocols/xenic/recovery.ts";
import type { SimulatedEndpoint } from "../fabric/endpoint.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import type { Bus } from "./bus.ts";
import { PlainRuntime, type Runtime } from "./runtime.ts";

export interface XenicServerOptions extends NicOptions {
  readonly shapes: readonly HostTableShape[];
  readonly shards: readonly number[];
  readonly placement: Placement;
  readonly placementOf: (configurationId: number) => Placement;
  readonly busOf: (fabric: SimulatedFabric, id: number) => Bus;
  /** A model of its hardware, in place of a bus. */
  readonly runtimeOf?: ((fabric: SimulatedFabric, id: number) => Runtime) | undefined;
  /** A mistake that is planted: what is posted in place of a message. */
  readonly tamper?: ((message: XenicMessage) => XenicMessage) | undefined;
  /** How often a worker of the host looks at the log, and how many records it applies then. */
  readonly applyEveryUs: number;
  readonly applyRecords: number;
}

export interface XenicCounts {
  /** Messages over the bus, and DMA transfers. */
  crossings: number;
  reads: number;
  writes: number;
  /** Messages to other nodes, by their kinds. */
  readonly sent: Map<number, number>;
}

export class XenicServer {
  readonly id: number;
  readonly endpoint: SimulatedEndpoint;
  readonly host: XenicHost;
  readonly nic: XenicNic;
  readonly coordinator: XenicCoordinator;
  readonly recovery: Recovery;
  readonly counts: XenicCounts = { crossings: 0, reads: 0, writes: 0, sent: new Map() };
  /** Whether its workers apply the log. */
  isApplying = true;
  readonly #ports: NicPorts;
  readonly #options: XenicServerOptions;
  /** What the host has applied and the NIC does not know yet. */
  #acknowledgement: (() => void) | undefined;

  constructor(fabric: SimulatedFabric, id: number, options: XenicServerOptions) {
    this.id = id;
    this.#options = options;
    const { placement, shards, shapes } = options;
    const runtime = options.runtimeOf?.(fabric, id) ?? new PlainRuntime(options.busOf(fabric, id));
    this.endpoint = fabric.endpoint({
      self: id,
      configurationId: placement.configurationId,
      places: () => "nic",
      home: "nic",
      service: (incoming) => {
        const message = XenicMessage.decode(incoming.kind, incoming.body);
        const { node } = incoming.from;
        runtime.receive(node, message, () => {
          if (!this.recovery.receive(node, message)) this.nic.receive(node, message);
        });
      },
    });
    this.#ports = this.#portsOn(runtime);
    this.host = new XenicHost(shards, shapes, placement.shardOf);
    this.nic = new XenicNic(this.#ports, this.host, placement, options);
    this.coordinator = new XenicCoordinator(this.nic, new Sequences(id, 0, () => 1));
    this.recovery = new Recovery(this.nic, this.coordinator, options.placementOf);
    fabric.every(options.applyEveryUs, id, () => this.#apply());
  }

  /** A transaction of the host's. `done` runs at the host. */
  submit(work: Work, done: (outcome: XenicOutcome) => void): void {
    const { nic, coordinator } = this;
    if (nic.isRecovering) {
      done({ kind: "aborted", reason: "busy" });
    } else if (!runLocal(nic, coordinator, work, done)) {
      const words = 4 * (work.reads.length + work.writes.length) + work.args.length;
      nic.bus.toNic(words, () => coordinator.begin(work, done));
    }
  }

  /** The server hears of another configuration. */
  reconfigure(placement: Placement): void {
    this.endpoint.configurationId = placement.configurationId;
    this.#acknowledgement = undefined;
    this.nic.reconfigure(placement);
  }

  #apply(): void {
    this.#acknowledge();
    const { host, nic } = this;
    if (!this.isApplying || nic.isRecovering) return;
    const { applyRecords } = this.#options;
    const commits = host.applyCommits(applyRecords);
    const logged = host.applyLogged(applyRecords);
    if (commits.length + logged.length > 0) {
      this.#acknowledgement = () => nic.applied(commits, logged);
    }
  }

  /** It rides on whatever goes to the NIC next; if nothing does, it goes with the next look at the log. */
  #acknowledge(): void {
    const acknowledge = this.#acknowledgement;
    this.#acknowledgement = undefined;
    acknowledge?.();
  }

  #portsOn(runtime: Runtime): NicPorts {
    const { counts, endpoint, id } = this;
    const { tamper = (message: XenicMessage) => message } = this.#options;
    return {
      self: id,
      post: (to, wanted) => {
        const message = tamper(wanted);
        if (to !== id) counts.sent.set(message.kind, (counts.sent.get(message.kind) ?? 0) + 1);
        runtime.post(to, message, () => {
          endpoint.post(to, message.kind, (out) => message.encode(out));
        });
      },
      read: (words, done) => {
        counts.reads++;
        runtime.read(words, done);
      },
      write: (words, done) => {
        counts.writes++;
        runtime.write(words, done);
      },
      toHost: (words, run) => {
        counts.crossings++;
        runtime.toHost(words, run);
      },
      toNic: (words, run) => {
        counts.crossings++;
        runtime.toNic(words, () => {
          this.#acknowledge();
          run();
        });
      },
      after: (us, run): Timer => endpoint.clock.after(us / 1e3, () => runtime.timer(run)),
    };
  }
}
