/**
 * A whole life of a cluster from one seed: clients and procedures at work, as users write them, at nodes that live as
 * real ones do (nodes.ts), while nodes crash and come back, with their memory or from their logs, stop for as long as a
 * collection of garbage or a suspended machine, do not hear each other, in one direction or in both, and the store of
 * configurations is slow or gone. When all is healed, the cluster gets well, all workers get to their ends, and
 * everything that must hold is checked.
 */

import { ClusterPlacement } from "../../src/cluster/placement.ts";
import type { ProtocolName } from "../../src/protocols/places.ts";
import { assert } from "../../src/runtime/assert.ts";
import { SimulatedClient } from "../cluster/client.ts";
import { disagreements, leftOvers, primaryRows, unsound } from "../cluster/rest.ts";
import type { SimulatedNode, SimulatedNodeOptions } from "../cluster/sim-node.ts";
import { newWorkload, type WorkloadName } from "../cluster/simulate.ts";
import { TIMEOUT_MS, Worker } from "../cluster/worker.ts";
import type { Counts, Witness, Workload } from "../cluster/workload.ts";
import { SimulatedFabric } from "../fabric/fabric.ts";
import { CallsWorkload, PROCEDURES } from "./calls.ts";
import { LivingNodes } from "./nodes.ts";
import { Troubles } from "./troubles.ts";

export interface LivingRun {
  readonly seed: number;
  readonly nodes: number;
  readonly workload: WorkloadName | "calls";
  readonly clients: number;
  /** Transactions of each worker. */
  readonly transactions: number;
  readonly protocol: ProtocolName;
  /** Whether nodes have logs, and lose their power; without them only processes die. */
  readonly isLogged: boolean;
  /** Whether nodes mostly die together. */
  readonly isHarsh: boolean;
  /** Whether nodes that are removed go on for a while before their processes end. */
  readonly closesSlowly: boolean;
}

export interface LivingReport {
  readonly run: LivingRun;
  readonly counts: Counts;
  readonly crashes: number;
  readonly episodes: number;
  /** Configurations in the store, and those that were committed. */
  readonly configurations: number;
  readonly committed: number;
  /** Rows that were copied. */
  readonly copied: number;
  readonly virtualMs: number;
  readonly traceHash: string;
  /** Everything that is wrong, as sentences. */
  readonly problems: readonly string[];
}

/** Seeds whose workers call procedures: 7, 18, 29 and so on. */
const CALLS_ONE_IN = 11;
const CALLS_FIRST = 7;
/** Seeds whose nodes mostly die together: 11, 24, 37 and so on. */
const HARSH_ONE_IN = 13;
const HARSH_FIRST = 11;
/** Seeds whose removed nodes go on for a while: 4, 9, 14 and so on. */
const SLOW_ONE_IN = 5;
const SLOW_FIRST = 4;
const SIZE = { clients: 6, transactions: 20 } as const;

/** What a seed decides beside chance. */
export function livingRun(seed: number): LivingRun {
  return {
    ...SIZE,
    seed,
    nodes: 3 + (seed % 3),
    // Calls came later: the others keep their seeds.
    workload:
      seed % CALLS_ONE_IN === CALLS_FIRST
        ? "calls"
        : (["append", "bank", "registers"] as const)[Math.floor(seed / 3) % 3],
    protocol: seed % 2 === 0 ? "rpc" : "one-sided",
    isLogged: seed % 5 === 0,
    // Later still.
    isHarsh: seed % HARSH_ONE_IN === HARSH_FIRST,
    // The last.
    closesSlowly: seed % SLOW_ONE_IN === SLOW_FIRST,
  };
}

/** The command that runs the same again. */
export function replayLiving(seed: number): string {
  return `npm run simulate -- --life --seed ${seed}`;
}

const PARTITIONS = 6;
/** After this much virtual time without an end, something hangs. */
const LONGEST_US = 120e6;
/** Between two transactions of a worker, at most: they go on for longer than the troubles. */
const MOST_PAUSE_MS = 60;

/** `tell` hears what happens, line by line; `planted` makes nodes with bugs, for tests. */
export async function simulateLiving(
  run: LivingRun,
  tell: (line: string) => void = () => {},
  planted: Pick<SimulatedNodeOptions, "makeService"> = {},
): Promise<LivingReport> {
  const simulation = new LivingSimulation(run, tell, planted);
  try {
    return await simulation.run();
  } finally {
    await simulation.close();
  }
}

class LivingSimulation {
  readonly #run: LivingRun;
  readonly #fabric: SimulatedFabric;
  readonly #cluster: LivingNodes;
  readonly #workload: Workload;
  readonly #clients: SimulatedClient[] = [];
  readonly #procedures = new Set<{ node: SimulatedNode; worker: Worker }>();
  readonly #problems: string[] = [];
  #failure: unknown;
  #working = 0;
  #workers = 0;
  #copied = 0;

  readonly #tell: (line: string) => void;

  constructor(
    run: LivingRun,
    tell: (line: string) => void,
    planted: Pick<SimulatedNodeOptions, "makeService">,
  ) {
    this.#run = run;
    const fabric = new SimulatedFabric({ seed: run.seed });
    this.#fabric = fabric;
    this.#tell = (line) => tell(`${(fabric.nowUs / 1e3).toFixed(1)} ms: ${line}`);
    const { nodes, protocol, isLogged, closesSlowly } = run;
    this.#cluster = new LivingNodes(fabric, {
      nodes,
      backups: Math.min(2, nodes - 1),
      partitions: PARTITIONS,
      protocol,
      isLogged,
      closesSlowly,
      ...planted,
      ...(run.workload === "calls" ? { procedures: PROCEDURES } : {}),
      tell: this.#tell,
      ended: (node) => this.#ended(node),
    });
    const witness: Witness = {
      get nowUs() {
        return fabric.nowUs;
      },
      note: (text) => fabric.note(text),
    };
    this.#workload =
      run.workload === "calls" ? new CallsWorkload(witness) : newWorkload(run.workload, witness);
  }

  async run(): Promise<LivingReport> {
    const { clients } = this.#run;
    await this.#until("the cluster begins", () => this.#cluster.illness() === undefined);
    await this.#load();
    const troubles = new Troubles(this.#fabric, this.#cluster, this.#run, this.#tell);
    troubles.begin();
    for (let i = 0; i < clients; i++) this.#employ();
    await this.#until("workers end", () => this.#working === 0);
    troubles.end();
    await this.#until("the cluster gets well", () => this.#isWell());
    await this.#inspect();
    return this.#report(troubles.episodes);
  }

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
    await this.#until("a workload is loaded", () => isLoaded);
  }

  #newClient(): { client: SimulatedClient; worker: Worker } {
    const number = this.#workers++;
    const client = new SimulatedClient(this.#fabric, {
      number,
      configuration: this.#cluster.configuration,
      timeoutMs: TIMEOUT_MS,
      protocol: this.#run.protocol,
      follows: true,
    });
    this.#clients.push(client);
    const random = this.#fabric.random(`worker ${number}`);
    const worker = new Worker(number, random, client.db, client.endpoint.clock, MOST_PAUSE_MS);
    return { client, worker };
  }

  /** One more worker: a client mostly, else a procedure at a node. */
  #employ(): void {
    const up = this.#cluster.nodes.filter(({ isUp }) => isUp);
    if (this.#workers % 4 === 0 && up.length > 0) {
      const number = this.#workers++;
      const random = this.#fabric.random(`worker ${number}`);
      const node = up[random.below(up.length)];
      const db = node.database(`procedure ${number}`, random, TIMEOUT_MS);
      const worker = new Worker(number, random, db, node.clock, MOST_PAUSE_MS);
      const procedure = { node, worker };
      this.#procedures.add(procedure);
      this.#start(
        worker,
        () => db.openTables(this.#workload.tables),
        async () => {
          this.#procedures.delete(procedure);
        },
      );
      return;
    }
    const { client, worker } = this.#newClient();
    this.#start(
      worker,
      () => client.arrive(this.#workload.tables),
      async () => client.db.close(),
    );
  }

  #start(worker: Worker, arrive: () => Promise<void>, leave: () => Promise<void>): void {
    this.#working++;
    const run = async (): Promise<void> => {
      await worker.insist(arrive);
      await this.#workload.work(worker, this.#run.transactions);
      this.#working--;
      if (!worker.isGone) await leave();
    };
    run().catch((error: unknown) => this.#fail(error));
  }

  /** Procedures die with their node; others come in their places. */
  #ended(node: SimulatedNode): void {
    this.#copied += node.service.copying!.progress().rows;
    for (const procedure of [...this.#procedures]) {
      if (procedure.node !== node) continue;
      this.#procedures.delete(procedure);
      procedure.worker.killed();
      this.#employ();
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
  }

  /** Runs until something holds; what does not in the end is a problem. */
  async #until(what: string, holds: () => boolean): Promise<void> {
    const untilUs = this.#fabric.nowUs + LONGEST_US;
    await this.#fabric.settle(() => this.#failure !== undefined || holds(), untilUs);
    if (this.#failure !== undefined) throw this.#failure;
    if (holds()) return;
    const { nodes, configurationId } = this.#cluster.configuration;
    const members = nodes.map(({ id }) => id).join(", ");
    this.#problems.push(
      `in ${LONGEST_US / 1e6} s of virtual time not: ${what}; configuration ${configurationId} of ${members}; ` +
        `${this.#working} workers; ${this.#cluster.illness() ?? ""}; ${leftOvers(this.#up).join("; ")}`,
    );
  }

  get #up(): SimulatedNode[] {
    return this.#cluster.nodes.filter(({ isUp }) => isUp);
  }

  #isWell(): boolean {
    const isQuiet = this.#up.every(
      ({ service, running }) =>
        service.participant.prepared === 0 &&
        service.backup!.logged === 0 &&
        service.coordinator.open === 0 &&
        running === 0,
    );
    return isQuiet && this.#cluster.illness() === undefined;
  }

  async #inspect(): Promise<void> {
    const problems = this.#problems;
    if (problems.length > 0) return;
    assert(this.#isWell(), "it is well by now");
    const placement = new ClusterPlacement(this.#cluster.configuration);
    const { tables } = this.#workload;
    const nodes = this.#up;
    problems.push(...leftOvers(nodes));
    problems.push(...disagreements(nodes, tables, placement));
    problems.push(...this.#workload.check((table) => primaryRows(nodes, table, placement)));
    if (problems.length === 0) problems.push(...(await unsound(nodes)));
  }

  #report(episodes: number): LivingReport {
    const cluster = this.#cluster;
    for (const { service } of this.#up) this.#copied += service.copying!.progress().rows;
    return {
      run: this.#run,
      counts: this.#workload.counts,
      crashes: cluster.crashes,
      episodes,
      configurations: cluster.configuration.configurationId,
      committed: cluster.committed,
      copied: this.#copied,
      virtualMs: this.#fabric.nowUs / 1e3,
      traceHash: this.#fabric.traceHash(),
      problems: this.#problems,
    };
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.vanish();
    for (const node of this.#cluster.nodes) {
      if (node.isUp) node.service.copying!.stop();
      await node.close();
    }
  }
}
