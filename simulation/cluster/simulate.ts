/**
 * One run: a cluster, workers and faults from one seed; then rest; then everything that must hold is
 * checked. The same options give the same trace, byte for byte.
 */

import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import type { ProtocolName } from "../../src/protocols/places.ts";
import { assert } from "../../src/runtime/assert.ts";
import { SimulatedFabric } from "../fabric/fabric.ts";
import type { Fault } from "../fabric/faults.ts";
import { SimulatedClient } from "./client.ts";
import { type FaultLevel, FaultSchedule } from "./fault-schedule.ts";
import { RecoveringNodes } from "./recovering-nodes.ts";
import { disagreements, leftOvers, primaryRows, unsound } from "./rest.ts";
import { SimulatedNode, type SimulatedNodeOptions } from "./sim-node.ts";
import { TIMEOUT_MS, Worker } from "./worker.ts";
import type { Counts, Witness, Workload } from "./workload.ts";
import { AppendWorkload } from "./workloads/append.ts";
import { BankWorkload } from "./workloads/bank.ts";
import { BatchesWorkload } from "./workloads/batches.ts";
import { RegistersWorkload } from "./workloads/registers.ts";
import { SnapshotsWorkload } from "./workloads/snapshots.ts";

export const WORKLOADS = ["append", "bank", "registers", "batches", "snapshots"] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

export interface SimulationOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly workload: WorkloadName;
  readonly clients: number;
  /** Transactions of each worker. */
  readonly transactions: number;
  readonly faults: FaultLevel;
  readonly protocol: ProtocolName;
  /** Further faults of frames, for tests of one kind alone. */
  readonly frames?: readonly Fault[];
  /** For tests that plant bugs. */
  readonly node?: SimulatedNodeOptions;
}

export interface SimulationReport {
  readonly options: SimulationOptions;
  readonly counts: Counts;
  readonly backups: number;
  readonly workers: number;
  readonly vanished: number;
  /** Of nodes. */
  readonly crashes: number;
  readonly episodes: number;
  readonly virtualMs: number;
  readonly messages: number;
  readonly lost: number;
  readonly roundTrips: number;
  readonly traceHash: string;
  /** Everything that is wrong, as sentences. */
  readonly problems: readonly string[];
}

/** After this much virtual time without an end, something hangs. */
const LONGEST_US = 120e6;
/** In this time all that was committed gets into the logs. */
const SYNCED_US = 50_000;
/** One transaction in so many is submitted to a node that may have none of its data. */
const STRAY_ONE_IN = 10;
/** Until a node or a client hears of a configuration, and until a death is noticed. */
const MOST_HEARING_US = 2_000;
const MOST_SUSPECTED_US = 5_000;
/** From the healing of all faults to rest. */
const REST_US = 30e6;

/** The command that runs the same again. */
export function replayCommand(options: SimulationOptions): string {
  const { seed, nodes, workload, clients, transactions, faults, protocol } = options;
  return (
    `npm run simulate -- --seed ${seed} --nodes ${nodes} --workload ${workload} --clients ${clients} ` +
    `--transactions ${transactions} --faults ${faults} --protocol ${protocol}`
  );
}

export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const simulation = new Simulation(options);
  try {
    return await simulation.run();
  } finally {
    await simulation.close();
  }
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #fabric: SimulatedFabric;
  readonly #nodes: SimulatedNode[];
  readonly #workload: Workload;
  /** That of new clients. */
  #configuration: Configuration;
  readonly #recovering: RecoveringNodes;
  readonly #clients = new Map<number, { client: SimulatedClient; worker: Worker }>();
  readonly #procedures = new Set<{ node: SimulatedNode; worker: Worker }>();
  readonly #problems: string[] = [];
  #failure: unknown;
  #workers = 0;
  #working = 0;
  #vanished = 0;
  #crashes = 0;

  constructor(options: SimulationOptions) {
    const { seed, nodes, workload } = options;
    this.#options = options;
    const fabric = new SimulatedFabric({ seed });
    this.#fabric = fabric;
    const random = fabric.random("cluster");
    const ids = Array.from({ length: nodes }, (_, id) => id);
    const most = Math.min(2, nodes - 1);
    // Mostly as many as there can be.
    const backups = random.below(4) > 0 ? most : random.below(most + 1);
    this.#configuration = configurationOf(
      { nodes: ids.map((id) => ({ id, host: "simulated", port: id })), backups },
      "the simulation",
    );
    this.#nodes = ids.map((id) => {
      // Clock rates drift by up to 5 %.
      const clockRate = options.faults === "none" ? 1 : 0.95 + random.below(1_000) / 10_000;
      const isLogged = options.faults === "power";
      const recovers = options.faults === "failover";
      const each = { protocol: options.protocol, clockRate, isLogged, recovers, ...options.node };
      return new SimulatedNode(fabric, id, this.#configuration, each);
    });
    const hearing = fabric.random("configurations");
    this.#recovering = new RecoveringNodes(fabric, this.#nodes, this.#configuration, () =>
      hearing.below(MOST_HEARING_US),
    );
    this.#workload = newWorkload(workload, {
      get nowUs() {
        return fabric.nowUs;
      },
      note: (text) => fabric.note(text),
    });
  }

  async run(): Promise<SimulationReport> {
    await this.#load();
    const schedule = new FaultSchedule(this.#fabric, this.#options.faults, {
      nodes: this.#nodes.map(({ id }) => id),
      mostLost: this.#configuration.backups,
      clients: () => [...this.#clients.keys()],
      vanish: (client) => this.#vanish(client),
      crash: (node) => this.#crash(this.#nodes[node]),
      comeBack: (node) => this.#nodes[node].comeBack(),
    });
    for (const fault of this.#options.frames ?? []) this.#fabric.addFault(fault);
    schedule.begin();
    for (let i = 0; i < this.#options.clients; i++) this.#employ();
    await this.#runUntil(() => this.#working === 0, LONGEST_US);
    schedule.end();
    if (this.#working > 0) {
      const seconds = LONGEST_US / 1e6;
      this.#problems.push(
        `${this.#working} workers did not end within ${seconds} s of virtual time`,
      );
    }
    await this.#runUntil(() => this.#isAtRest(), REST_US);
    await this.#inspect();
    return this.#report(schedule.episodes);
  }

  /** Without faults: tables are made, and first rows. */
  async #load(): Promise<void> {
    const { client, worker } = this.#newClient();
    let isLoaded = false;
    const load = async (): Promise<void> => {
      await client.arrive(this.#workload.tables);
      await this.#workload.load(worker);
      await client.db.close();
      isLoaded = true;
    };
    load().catch((error: unknown) => this.#fail(error));
    await this.#runUntil(() => isLoaded, LONGEST_US);
    assert(isLoaded, "a workload is loaded before the faults begin");
    // And is on disk, where there are any.
    if (this.#options.faults === "power") await this.#runUntil(() => false, SYNCED_US);
    this.#clients.delete(client.id);
  }

  #newClient(): { client: SimulatedClient; worker: Worker } {
    const number = this.#workers++;
    const client = new SimulatedClient(this.#fabric, {
      number,
      configuration: this.#configuration,
      timeoutMs: TIMEOUT_MS,
      protocol: this.#options.protocol,
      strayOneIn: STRAY_ONE_IN,
    });
    const random = this.#fabric.random(`worker ${number}`);
    const worker = new Worker(number, random, client.db, client.endpoint.clock);
    this.#clients.set(client.id, { client, worker });
    return { client, worker };
  }

  /** One more worker: a client mostly, else a procedure at a node. */
  #employ(): void {
    const up = this.#nodes.filter(({ isUp }) => isUp);
    if (this.#workers % 4 === 3 && up.length > 0) {
      const number = this.#workers++;
      const random = this.#fabric.random(`worker ${number}`);
      const node = up[random.below(up.length)];
      const retries = this.#fabric.random(`client ${number}`);
      const db = node.database(`procedure ${number}`, retries, TIMEOUT_MS);
      const procedure = { node, worker: new Worker(number, random, db, node.clock) };
      this.#procedures.add(procedure);
      const arrive = (): Promise<void> => db.openTables(this.#workload.tables);
      // Its database is the node's own: what it has left under way goes on, as long as the node does.
      this.#start(procedure.worker, arrive, async () => {
        this.#procedures.delete(procedure);
      });
      return;
    }
    const { client, worker } = this.#newClient();
    const arrive = (): Promise<void> => client.arrive(this.#workload.tables);
    this.#start(worker, arrive, async () => {
      this.#clients.delete(client.id);
      if (!worker.isGone) await worker.db.close();
    });
  }

  #start(worker: Worker, arrive: () => Promise<void>, leave: () => Promise<void>): void {
    this.#working++;
    const run = async (): Promise<void> => {
      await worker.insist(arrive);
      await this.#workload.work(worker, this.#options.transactions);
      this.#working--;
      await leave();
    };
    run().catch((error: unknown) => this.#fail(error));
  }

  /** What no program may throw: the run is over. */
  #fail(error: unknown): void {
    this.#failure ??= error;
  }

  #vanish(client: number): void {
    const gone = this.#clients.get(client);
    if (gone === undefined) return;
    this.#vanished++;
    this.#clients.delete(client);
    gone.client.vanish();
    gone.worker.killed();
    this.#employ();
  }

  /** Procedures die with their node; others come in their places. */
  #crash(node: SimulatedNode): void {
    this.#crashes++;
    node.crash();
    if (this.#options.faults === "power") {
      node.losePower(this.#fabric.random(`power ${this.#crashes}`));
    }
    if (this.#options.faults === "failover") {
      const random = this.#fabric.random(`suspicion ${this.#crashes}`);
      const inUs = 1 + random.below(MOST_SUSPECTED_US);
      this.#fabric.at(this.#fabric.nowUs + inUs, () => this.#reconfigure());
    }
    for (const procedure of this.#procedures) {
      if (procedure.node !== node || procedure.worker.isGone) continue;
      procedure.worker.killed();
      this.#employ();
    }
  }

  /** Clients hear of the configuration some time after all of its nodes have it. */
  #reconfigure(): void {
    this.#recovering.recover(() => {
      const { configuration } = this.#recovering;
      this.#configuration = configuration;
      const random = this.#fabric.random(`news ${configuration.configurationId}`);
      for (const { client } of this.#clients.values()) {
        const inUs = random.below(MOST_HEARING_US);
        this.#fabric.at(this.#fabric.nowUs + inUs, () => client.adopt(configuration));
      }
    });
  }

  get #up(): SimulatedNode[] {
    return this.#nodes.filter(({ isUp }) => isUp);
  }

  async #runUntil(isDone: () => boolean, withinUs: number): Promise<void> {
    const untilUs = this.#fabric.nowUs + withinUs;
    await this.#fabric.settle(() => this.#failure !== undefined || isDone(), untilUs);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #isAtRest(): boolean {
    return this.#up.every(
      ({ service, running }) =>
        service.participant.prepared === 0 &&
        (service.backup?.logged ?? 0) === 0 &&
        service.coordinator.open === 0 &&
        running === 0,
    );
  }

  async #inspect(): Promise<void> {
    const placement = new ClusterPlacement(this.#configuration);
    const { tables } = this.#workload;
    const problems = this.#problems;
    const nodes = this.#up;
    problems.push(...leftOvers(nodes));
    const isFree = problems.length === 0;
    try {
      problems.push(...disagreements(nodes, tables, placement));
      problems.push(...this.#workload.check((table) => primaryRows(nodes, table, placement)));
    } catch (error) {
      // Rows that are locked cannot be read; that they are was told already.
      if (isFree) throw error;
      problems.push(`rows could not be read: ${(error as Error).message}`);
    }
    if (isFree) problems.push(...(await unsound(nodes)));
  }

  #report(episodes: number): SimulationReport {
    const sum = (of: (node: SimulatedNode) => number): number =>
      this.#nodes.reduce((all, node) => all + of(node), 0);
    return {
      options: this.#options,
      counts: this.#workload.counts,
      backups: this.#configuration.backups,
      workers: this.#workers,
      vanished: this.#vanished,
      crashes: this.#crashes,
      episodes,
      virtualMs: this.#fabric.nowUs / 1e3,
      messages: sum(({ endpoint }) => endpoint.counters.requestsServed),
      lost: sum(({ endpoint }) => endpoint.counters.lost),
      roundTrips: sum(({ roundTrips }) => roundTrips),
      traceHash: this.#fabric.traceHash(),
      problems: this.#problems,
    };
  }

  async close(): Promise<void> {
    for (const { client } of this.#clients.values()) client.vanish();
    for (const node of this.#nodes) await node.close();
  }
}

export function newWorkload(name: WorkloadName, witness: Witness): Workload {
  switch (name) {
    case "append":
      return new AppendWorkload(witness);
    case "bank":
      return new BankWorkload(witness);
    case "registers":
      return new RegistersWorkload(witness);
    case "batches":
      return new BatchesWorkload(witness);
    case "snapshots":
      return new SnapshotsWorkload(witness);
  }
}
