/**
 * Throughput and median latency of a workload on six simulated servers, each of which has so many clients in a closed loop: with
 * few the latency at low load, with many the peak. When the time is over the clients stop, everything comes to its end, and the
 * rows must show what was committed.
 */

import type { Work, XenicOutcome } from "../../../src/protocols/xenic/coordinator.ts";
import { NO_VERSION } from "../../../src/protocols/xenic/host.ts";
import type { RowName } from "../../../src/protocols/xenic/message.ts";
import { ALL_ON, type Switches } from "../../../src/protocols/xenic/ports.ts";
import { Stream } from "../../../workloads/random/stream.ts";
import type { Hardware } from "../../fabric/hardware.ts";
import { PLAIN } from "../../fabric/hardware.ts";
import { XenicCluster } from "../cluster.ts";
import type { Charge } from "../model/burst-cores.ts";
import { RDMA_NIC, SMART_NIC } from "../model/hardware.ts";
import { RdmaNode } from "../model/rdma-node.ts";
import { ALL_TECHNIQUES, SmartNic, type Techniques } from "../model/smart-nic.ts";
import type { XenicServer } from "../server.ts";
import { type FigureWorkload, SERVERS } from "./workload.ts";

/** What runs the transactions. */
export type System =
  | {
      readonly kind: "xenic";
      readonly switches?: Partial<Switches>;
      readonly techniques?: Partial<Techniques>;
    }
  | { readonly kind: "drtm+h" };

export interface LoadOptions {
  readonly clientsPerServer: number;
  readonly warmUpUs: number;
  readonly measuredUs: number;
  readonly seed?: number;
}

export interface Point {
  /** Millions of transactions a second and server. */
  readonly mtps: number;
  readonly medianUs: number;
  readonly aborted: number;
  readonly committed: number;
  /** How busy NIC cores, or threads, were, and the link out: from 0 to 1. */
  readonly coresBusy: number;
  readonly linkBusy: number;
  readonly bytesPerTransaction: number;
  readonly packetsPerTransaction: number;
  /** DrTM+H: verbs and messages that a server's threads have to do with, for each transaction. */
  readonly operationsPerTransaction: number;
}

/** With RDMA every phase has operations of its own, and nothing is shipped: §5.7's baseline. */
const SEPARATE: Partial<Switches> = { combines: false, runsAtNic: false, hops: false };

const NIC_BYTES = 24 << 20;
const LONG = 1e7;

export function measure(workload: FigureWorkload, system: System, load: LoadOptions): Point {
  return new Run(workload, system, load).run();
}

class Run {
  readonly #workload: FigureWorkload;
  readonly #load: LoadOptions;
  readonly #cluster: XenicCluster;
  readonly #nodes: (SmartNic | RdmaNode)[] = [];
  readonly #drawing;
  readonly #loaded = new Set<number>();
  readonly #latencies: number[] = [];
  #isOver = false;
  #isMeasuring = false;
  #aborted = 0;
  #open = 0;
  #sum = 0;

  constructor(workload: FigureWorkload, system: System, load: LoadOptions) {
    this.#workload = workload;
    this.#load = load;
    this.#drawing = workload.drawing();
    const charge: Charge = { us: 0 };
    const isXenic = system.kind === "xenic";
    const { threads } = workload;
    const smartNic = { ...SMART_NIC, cores: { ...SMART_NIC.cores, cores: threads.nic } };
    const rdma = { ...RDMA_NIC, host: { ...RDMA_NIC.host, threads: threads.drtm } };
    const { link } = isXenic ? smartNic : rdma;
    const hardware: Hardware = { ...PLAIN, name: system.kind, wireUs: link.hopUs, lineGapUs: 0 };
    const switches = isXenic ? { ...ALL_ON, ...system.switches } : { ...ALL_ON, ...SEPARATE };
    // Room for the rows that are drawn: few clients draw few.
    const part = Math.min(1, Math.max(0.1, load.clientsPerServer / 100));
    const shapes = workload.shapes.map((shape) => ({ ...shape, rows: shape.rows * part }));
    this.#cluster = new XenicCluster({
      seed: load.seed ?? 1,
      hardware,
      trace: false,
      servers: SERVERS,
      copies: 3,
      shapes,
      procedures: workload.procedures(charge, isXenic),
      switches,
      memoryBytes: NIC_BYTES * Math.max(0.25, part),
      logRecords: LONG,
      applyEveryUs: 20,
      applyRecords: LONG,
      runtimeOf: (fabric, id) => {
        const machine = fabric.machine(id);
        const node = isXenic
          ? new SmartNic(
              fabric.world,
              machine,
              smartNic,
              { ...ALL_TECHNIQUES, ...system.techniques },
              charge,
            )
          : new RdmaNode(fabric.world, machine, rdma, charge, workload.applyUs);
        this.#nodes[id] = node;
        return node;
      },
    });
  }

  run(): Point {
    const { fabric, servers } = this.#cluster;
    const { clientsPerServer, warmUpUs, measuredUs, seed = 1 } = this.#load;
    for (const server of servers) {
      for (let client = 0; client < clientsPerServer; client++) {
        const stream = new Stream(seed, server.id * clientsPerServer + client);
        const beginUs = (stream.below(1_000) / 1_000) * Math.min(10, warmUpUs);
        fabric.at(beginUs, () => this.#next(server, client, stream));
      }
    }
    fabric.run(warmUpUs);
    const before = this.#totals();
    this.#isMeasuring = true;
    fabric.run(warmUpUs + measuredUs);
    const after = this.#totals();
    this.#isMeasuring = false;
    this.#isOver = true;
    const committed = this.#latencies.length;
    this.#latencies.sort((a, b) => a - b);
    this.#finish();
    const share = (busyUs: number, count: number): number =>
      busyUs / (SERVERS * count * measuredUs);
    const bytes = after.bytes - before.bytes;
    return {
      mtps: committed / SERVERS / measuredUs,
      medianUs: this.#latencies[committed >> 1] ?? 0,
      aborted: this.#aborted,
      committed,
      coresBusy: share(after.coresUs - before.coresUs, coresOf(this.#nodes[0]).count),
      linkBusy: share(bytes / SMART_NIC.link.bytesPerUs, 1),
      bytesPerTransaction: bytes / committed,
      packetsPerTransaction: (after.packets - before.packets) / committed,
      operationsPerTransaction: (after.operations - before.operations) / committed,
    };
  }

  #totals() {
    const sum = (pick: (node: SmartNic | RdmaNode) => number): number =>
      this.#nodes.reduce((total, node) => total + pick(node), 0);
    return {
      coresUs: sum((node) => coresOf(node).busyUs),
      bytes: sum(({ link }) => link.bytesOut),
      packets: sum(({ link }) => link.packetsOut),
      operations: sum((node) => (node instanceof RdmaNode ? node.operations : 0)),
    };
  }

  #next(server: XenicServer, client: number, stream: Stream): void {
    if (this.#isOver) return;
    const work = this.#drawing.draw(server.id, client, stream);
    for (const row of work.reads) this.#loadRow(row);
    for (const row of work.writes) this.#loadRow(row);
    this.#open++;
    this.#attempt(server, client, stream, work, this.#cluster.fabric.nowUs);
  }

  #attempt(server: XenicServer, client: number, stream: Stream, work: Work, beganUs: number): void {
    this.#nodes[server.id].atHost(() => {
      server.submit(work, (outcome: XenicOutcome) => {
        const { nowUs } = this.#cluster.fabric;
        if (outcome.kind === "aborted") {
          if (outcome.reason === "refused") throw new Error("no transaction here is refused");
          if (this.#isMeasuring) this.#aborted++;
          this.#attempt(server, client, stream, work, beganUs);
          return;
        }
        this.#open--;
        this.#sum += this.#workload.adds(work, outcome.result);
        if (this.#isMeasuring) this.#latencies.push(nowUs - beganUs);
        this.#next(server, client, stream);
      });
    });
  }

  /** Into all copies, and the primary's NIC knows it. */
  #loadRow({ table, key }: RowName): void {
    const id = key * 4 + table;
    const value = this.#workload.initial(table);
    if (this.#loaded.has(id)) return;
    this.#loaded.add(id);
    const { placement, servers } = this.#cluster;
    const shard = placement.shardOf(table, key);
    const { nic, host } = servers[placement.primaryOf(shard)];
    if (value !== undefined) this.#cluster.load(table, key, value);
    const index = nic.rows.indexes[table];
    const rows = host.table(shard, table);
    const found = rows.get(key);
    const slot = index.claim(rows.segmentOf(rows.homeOf(key)), new Int32Array([key]));
    if (slot !== 0) index.note(slot, found?.value, found?.version ?? NO_VERSION);
  }

  /** Everything comes to its end, and what was committed is there, in all copies. */
  #finish(): void {
    const { fabric, servers, placement } = this.#cluster;
    const limitUs = fabric.nowUs + 20_000;
    while (this.#open > 0 && fabric.nowUs < limitUs && fabric.step());
    // Those who have logged are told that it is over, and apply.
    fabric.run(fabric.nowUs + 2_000);
    if (this.#open > 0) throw new Error(`${this.#open} transactions have no outcome`);
    const sums = new Array<number>(3).fill(0);
    for (const { host, nic } of servers) {
      const locked = nic.rows.indexes.reduce((sum, index) => sum + index.locked, 0);
      if (locked > 0) throw new Error(`${locked} rows are locked for ever`);
      for (const shard of host.shards) {
        const copy = [placement.primaryOf(shard), ...placement.backupsOf(shard)].indexOf(nic.self);
        for (let table = 0; table < host.tables; table++) {
          for (const { value } of host.table(shard, table).rows()) {
            sums[copy] += this.#workload.counted(table, value);
          }
        }
      }
    }
    for (const sum of sums) {
      if (sum !== this.#sum) throw new Error(`rows have ${sums}, and ${this.#sum} was committed`);
    }
  }
}

function coresOf(node: SmartNic | RdmaNode) {
  return node instanceof SmartNic ? node.nicCores : node.threads;
}
