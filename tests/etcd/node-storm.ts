/**
 * The storm of nodes: four real nodes with three copies of each row, a real etcd, and clients at work, while nodes are
 * killed at random moments and started again: one, the manager, two at once, all at once; before or after copies are
 * restored; some are stopped for a while instead, and so is etcd. After each blow all workers must commit again
 * once enough nodes are back. In the end the history is checked, all nodes must have all copies, and these must be equal.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { streamOf } from "../../simulation/fabric/streams.ts";
import type { Table } from "../../src/index.ts";
import type { Random } from "../../src/runtime/random.ts";
import { copiesApplied, eventually, type NodeProcess } from "../helpers/cluster.ts";
import { LivingCluster, type LivingOptions } from "../helpers/living-cluster.ts";
import type { StormOptions } from "../helpers/process-storm.ts";
import { NodeWork, openAccounts, WORK_TABLES } from "./node-work.ts";

export interface NodeStormReport {
  readonly seed: number;
  readonly options: LivingOptions;
  readonly kills: number;
  readonly stops: number;
  readonly committed: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly codes: Readonly<Record<string, number>>;
  readonly said: Readonly<Record<string, string>>;
  readonly configurations: number;
  /** Longest time after a blow until all workers had committed again, in ms. */
  readonly longestMs: number;
  readonly problems: readonly string[];
}

export interface NodeStormOptions extends StormOptions {
  /** What the seed does not decide. */
  readonly cluster?: LivingOptions;
  readonly durability?: LivingOptions["durability"] | undefined;
}

const NODES = 4;
const CLIENTS = 3;
const WORKERS_PER_CLIENT = 3;
const TIMEOUT_MS = 20_000;
/** Of the client that looks at everything in the end: as long as anything may take. */
const CHECK_TIMEOUT_MS = 120_000;
/** Each worker commits so often after a blow before the next one. */
const PROGRESS = 3;

export async function runNodeStorm(options: NodeStormOptions): Promise<NodeStormReport> {
  // Of small seeds that follow each other, the first numbers of a plain generator are all alike.
  const random = streamOf(options.seed, "cluster");
  const drawn: LivingOptions = {
    nodes: NODES,
    backups: 2,
    procedures: true,
    protocol: random.below(2) === 0 ? "rpc" : "one-sided",
    place: random.below(4) === 0 ? "host" : "nic",
    durability: (["none", "lazy", "sync"] as const)[random.below(3)],
    leaseMs: [250, 500, 1_000][random.below(3)],
    ...(options.durability && { durability: options.durability }),
    ...options.cluster,
  };
  const cluster = await LivingCluster.start(drawn);
  const storm = new NodeStorm(cluster, streamOf(options.seed, "blows"), options);
  try {
    return await storm.run(drawn);
  } finally {
    await storm.end();
  }
}

class NodeStorm {
  readonly #cluster: LivingCluster;
  readonly #random: Random;
  readonly #options: NodeStormOptions;
  readonly #work = new NodeWork();
  readonly #problems: string[] = [];
  /** Nodes that were killed, and come back then. */
  readonly #down = new Map<NodeProcess, number>();
  #starting: Promise<void>[] = [];
  #kills = 0;
  #stops = 0;
  #longestMs = 0;

  constructor(cluster: LivingCluster, random: Random, options: NodeStormOptions) {
    this.#cluster = cluster;
    this.#random = random;
    this.#options = options;
  }

  async run(drawn: LivingOptions): Promise<NodeStormReport> {
    const { seed, kills, minutes, progress } = this.#options;
    const cluster = this.#cluster;
    const first = await cluster.client(WORK_TABLES, { timeoutMs: CHECK_TIMEOUT_MS });
    await openAccounts(first);
    for (let client = 0; client < CLIENTS; client++) {
      const db = await cluster.client(WORK_TABLES, { timeoutMs: TIMEOUT_MS });
      for (let i = 0; i < WORKERS_PER_CLIENT; i++) {
        this.#work.employ(db, seed * 1_000 + client * 10 + i);
      }
    }
    const endMs = performance.now() + minutes * 60_000;
    await this.#progress();
    while (this.#kills < kills && this.#problems.length === 0) {
      if (performance.now() > endMs) break;
      const what = await this.#blow();
      const tookMs = await this.#progress();
      this.#longestMs = Math.max(this.#longestMs, tookMs);
      progress?.(`${this.#kills} kills; ${what}: ${Math.round(tookMs)} ms`);
    }
    await this.#work.stop();
    if (this.#problems.length === 0) await this.#rest(first);
    const outcomes: Record<string, number> = {};
    for (const { outcome } of this.#work.history) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    const { configurationId } = await cluster.configuration();
    return {
      seed,
      options: drawn,
      kills: this.#kills,
      stops: this.#stops,
      committed: this.#work.done,
      outcomes,
      codes: this.#work.codes,
      said: this.#work.said,
      configurations: configurationId,
      longestMs: Math.round(this.#longestMs),
      problems: this.#problems,
    };
  }

  async end(): Promise<void> {
    await Promise.allSettled(this.#starting);
    // Workers end when nodes do, at the latest.
    const stopped = this.#work.stop();
    await this.#cluster.remove();
    await stopped;
  }

  get #up(): NodeProcess[] {
    return this.#cluster.nodes.filter((node) => !this.#down.has(node));
  }

  /** Something bad. */
  async #blow(): Promise<string> {
    const random = this.#random;
    await sleep(random.below(1_500));
    const up = this.#up;
    const kind = random.below(20);
    if (kind < 2) return this.#stop(up[random.below(up.length)]);
    if (kind === 2) {
      this.#cluster.etcd.pause(true);
      const killed = this.#kill(up[random.below(up.length)]);
      await sleep(random.below(4_000));
      this.#cluster.etcd.pause(false);
      return `${killed}, without etcd`;
    }
    if (kind === 3) return up.map((node) => this.#kill(node)).join(", ");
    if (kind < 7 && up.length > 1) {
      const one = random.below(up.length);
      const other = (one + 1 + random.below(up.length - 1)) % up.length;
      return `${this.#kill(up[one])}, ${this.#kill(up[other])}`;
    }
    if (kind < 10) {
      const { manager } = await this.#cluster.configuration();
      return this.#kill(this.#cluster.nodes[manager!]);
    }
    return this.#kill(up[random.below(up.length)]);
  }

  #kill(node: NodeProcess): string {
    if (this.#down.has(node)) return "nobody";
    this.#kills++;
    const inMs = this.#random.below(3_000);
    this.#down.set(node, inMs);
    this.#starting.push(this.#bringBack(node, inMs));
    return `node ${node.id} for ${inMs} ms`;
  }

  async #bringBack(node: NodeProcess, inMs: number): Promise<void> {
    let child: NodeProcess["child"];
    try {
      await node.stop("SIGKILL");
      await sleep(inMs);
      // It is there, though it may serve only later: others may be needed for that.
      this.#down.delete(node);
      const started = node.start();
      child = node.child;
      await started;
    } catch (error) {
      // One that is killed while it starts is started again by who killed it, or has been already.
      const isKilled = this.#down.has(node) || node.child !== child;
      if (!isKilled) this.#problems.push(`${(error as Error).message}`);
    }
  }

  async #stop(node: NodeProcess): Promise<string> {
    this.#stops++;
    const forMs = this.#random.below(3_000);
    node.signal("SIGSTOP");
    await sleep(forMs);
    node.signal("SIGCONT");
    return `node ${node.id} stopped for ${forMs} ms`;
  }

  /** All workers commit again; in how many ms. */
  async #progress(): Promise<number> {
    const before = performance.now();
    const marks = this.#work.marks();
    try {
      await eventually("all workers go on", async () => {
        if (this.#problems.length > 0 || this.#work.problems.length > 0) return true;
        this.#look();
        return this.#work.marks().every((done, i) => done >= marks[i] + PROGRESS);
      });
    } catch (error) {
      this.#problems.push(`${(error as Error).message}; ${await this.#state()}`);
    }
    this.#problems.push(...this.#work.problems.splice(0));
    return performance.now() - before;
  }

  /** No node ends by itself. */
  #look(): void {
    for (const node of this.#up) {
      const { child, heard } = node;
      if (child?.exitCode === null || child?.exitCode === undefined) continue;
      this.#problems.push(`node ${node.id} ended with ${child.exitCode}: ${heard.stderr}`);
    }
  }

  async #state(): Promise<string> {
    const { configurationId, nodes, manager } = await this.#cluster.configuration();
    const members = nodes.map(({ id }) => id).join(", ");
    const running = this.#cluster.nodes.filter(({ isRunning }) => isRunning).map(({ id }) => id);
    return (
      `configuration ${configurationId} of ${members}, manager ${manager}; running: ${running.join(", ")}; ` +
      `${JSON.stringify(this.#work.codes)}; ${JSON.stringify(this.#work.said)}; ${this.#cluster.nodes.map(({ heard }) => heard.stderr).join("; ")}`
    );
  }

  /** Everything heals; what is wrong then. */
  async #rest(db: Awaited<ReturnType<LivingCluster["client"]>>): Promise<void> {
    const cluster = this.#cluster;
    try {
      await Promise.all(this.#starting);
      await cluster.whole(cluster.nodes.map(({ id }) => id));
      this.#problems.push(...(await this.#work.check(db)));
      await copiesApplied(cluster.nodes);
      const configuration = await cluster.configuration();
      const codes = await cluster.close();
      if (codes.some((code) => code !== 0)) this.#problems.push(`nodes ended with ${codes}`);
      const tables = WORK_TABLES as readonly Table[];
      this.#problems.push(...(await cluster.problems(configuration, tables)).slice(0, 5));
    } catch (error) {
      this.#problems.push(`${(error as Error).message}; ${await this.#state()}`);
    }
  }
}
