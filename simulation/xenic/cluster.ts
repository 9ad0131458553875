/**
 * Servers of Xenic with as many shards: shard s has its first copy at server s, the others at the next ones. In place of the
 * cluster's membership there is a manager who knows of deaths: after a while it gives all survivors the next configuration, in
 * which the first living copy of a shard is its primary, and asks the first of them to lead the recovery.
 */

import type { HostTableShape } from "../../src/protocols/xenic/host-table.ts";
import type { XenicMessage } from "../../src/protocols/xenic/message.ts";
import type { Placement, Switches } from "../../src/protocols/xenic/ports.ts";
import { ALL_ON } from "../../src/protocols/xenic/ports.ts";
import type { XenicProcedure } from "../../src/protocols/xenic/procedure.ts";
import { SimulatedFabric, type SimulatedFabricOptions } from "../fabric/fabric.ts";
import { type Bus, PlainBus } from "./bus.ts";
import type { Runtime } from "./runtime.ts";
import { XenicServer } from "./server.ts";

export interface XenicClusterOptions extends SimulatedFabricOptions {
  readonly servers: number;
  /** Of each shard. */
  readonly copies: number;
  readonly shapes: readonly HostTableShape[];
  readonly procedures: readonly XenicProcedure[];
  readonly switches?: Partial<Switches>;
  readonly memoryBytes?: number;
  readonly logRecords?: number;
  readonly applyEveryUs?: number;
  readonly applyRecords?: number;
  /** From a death until survivors hear of it. */
  readonly leaseUs?: number;
  readonly busOf?: (fabric: SimulatedFabric, id: number) => Bus;
  readonly runtimeOf?: (fabric: SimulatedFabric, id: number) => Runtime;
  readonly tamper?: ((message: XenicMessage) => XenicMessage) | undefined;
  /** Which shard a row is of; by its key, if not given. */
  readonly shardOf?: (table: number, key: number) => number;
}

const LEASE_US = 1_000;
const PLAIN_MEMORY_BYTES = 1 << 20;

export class XenicCluster {
  readonly fabric: SimulatedFabric;
  readonly servers: readonly XenicServer[];
  readonly options: XenicClusterOptions;
  readonly #dead = new Set<number>();
  readonly #placements: Placement[] = [];
  readonly #random;
  #recoveries = 0;

  constructor(options: XenicClusterOptions) {
    this.options = options;
    this.fabric = new SimulatedFabric(options);
    this.#random = this.fabric.random("manager");
    this.#placements.push(this.#placement(1));
    const { servers, copies, shapes, procedures } = options;
    this.servers = Array.from({ length: servers }, (_, id) => {
      const shards = Array.from({ length: copies }, (_each, i) => (id - i + servers) % servers);
      return new XenicServer(this.fabric, id, {
        shapes,
        procedures,
        shards,
        switches: { ...ALL_ON, ...options.switches },
        memoryBytes: options.memoryBytes ?? PLAIN_MEMORY_BYTES,
        logRecords: options.logRecords ?? 1_000,
        placement: this.placement,
        placementOf: (configurationId) => this.#placements[configurationId - 1],
        busOf:
          options.busOf ?? ((fabric, each) => new PlainBus(fabric.world, fabric.machine(each))),
        runtimeOf: options.runtimeOf,
        tamper: options.tamper,
        applyEveryUs: options.applyEveryUs ?? 20,
        applyRecords: options.applyRecords ?? 16,
      });
    });
  }

  get placement(): Placement {
    return this.#placements[this.#placements.length - 1];
  }

  get living(): XenicServer[] {
    return this.servers.filter(({ id }) => !this.#dead.has(id));
  }

  /** Recoveries that have come to their end. */
  get recoveries(): number {
    return this.#recoveries;
  }

  get isRecovering(): boolean {
    return (
      this.living.some(({ nic }) => nic.isRecovering || nic.placement !== this.placement) ||
      this.#placements.length !== this.#dead.size + 1
    );
  }

  isDead(id: number): boolean {
    return this.#dead.has(id);
  }

  /** Puts rows into all copies, before anything runs. */
  load(table: number, key: number, value: Int32Array): void {
    const shard = this.placement.shardOf(table, key);
    for (const { host } of this.servers) {
      if (!host.shards.includes(shard)) continue;
      host.table(shard, table).apply(key, { high: -1, low: -1 }, value);
    }
  }

  kill(id: number): void {
    const { fabric, options } = this;
    this.#dead.add(id);
    fabric.crash(id);
    fabric.at(fabric.nowUs + (options.leaseUs ?? LEASE_US), () => this.#reconfigure());
  }

  #reconfigure(): void {
    const placement = this.#placement(this.#placements.length + 1);
    this.#placements.push(placement);
    const { fabric } = this;
    const survivors = this.living;
    for (const server of survivors) {
      // Not all hear of it at the same time.
      fabric.at(fabric.nowUs + this.#random.below(100), () => {
        if (this.#dead.has(server.id) || this.placement !== placement) return;
        server.reconfigure(placement);
        if (server !== survivors[0]) return;
        server.recovery.lead(
          survivors.map(({ id }) => id),
          () => {
            this.#recoveries++;
          },
        );
      });
    }
  }

  #placement(configurationId: number): Placement {
    const { servers, copies, shardOf = (_table, key) => key % servers } = this.options;
    const copiesOf = Array.from({ length: servers }, (_, shard) =>
      Array.from({ length: copies }, (_each, i) => (shard + i) % servers).filter(
        (id) => !this.#dead.has(id),
      ),
    );
    return {
      configurationId,
      shardOf,
      primaryOf: (shard) => copiesOf[shard][0] ?? -1,
      backupsOf: (shard) => copiesOf[shard].slice(1),
    };
  }
}
