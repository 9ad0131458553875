/**
 * A random life of a cluster that copies partitions while rows are written: nodes join, die, come back with what
 * they had, and partitions move. Configurations change when no transaction is under way, but in the middle of
 * copies. In the end all copies are equal, and nobody has what he should not have.
 */

import { configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { COPY_TIMEOUT_MS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { disagreements, leftOvers, unsound } from "../cluster/rest.ts";
import { SimulatedNode } from "../cluster/sim-node.ts";
import { SimulatedFabric } from "../fabric/fabric.ts";
import type { Fault } from "../fabric/faults.ts";
import { CopyingNodes } from "./copying-nodes.ts";
import { RandomWrites, TABLES } from "./random-writes.ts";

export interface CopyingRun {
  readonly seed: number;
  readonly keys?: number;
  readonly events?: number;
  /** Whether nodes join, and partitions move, also while backups have not heard how transactions ended. */
  readonly isHasty?: boolean;
  /** For planted bugs: called with each life of a node. */
  readonly plant?: (nodes: CopyingNodes, node: SimulatedNode) => void;
}

export interface CopyingReport {
  readonly problems: readonly string[];
  readonly committed: number;
  readonly refused: number;
  /** Rows that were fetched; configurations; configurations that came while something was being copied. */
  readonly rows: number;
  readonly configurations: number;
  readonly interrupted: number;
}

const NODES = 5;
/** Rows arrive long after they were read, and twice. */
const FAULTS: readonly Fault[] = [
  { kind: "delay", probability: 0.2, maxUs: 10_000, frames: "replies" },
  { kind: "reorder", probability: 0.05, maxUs: 200 },
  { kind: "duplicate", probability: 0.02, maxUs: 5_000 },
];
/** All that is under way ends in this time, of virtual milliseconds. */
const PATIENCE_MS = 30_000;

export async function simulateCopying(run: CopyingRun): Promise<CopyingReport> {
  const cluster = new CopyingCluster(run);
  try {
    cluster.live(run.events ?? 8);
    const problems = await cluster.end();
    return { problems, ...cluster.report() };
  } finally {
    await cluster.close();
  }
}

class CopyingCluster {
  readonly #random: Random;
  readonly #fabric: SimulatedFabric;
  readonly #nodes: readonly SimulatedNode[];
  readonly #cluster: CopyingNodes;
  readonly #writes: RandomWrites;
  readonly #plant: (node: SimulatedNode) => void;
  readonly #isHasty: boolean;
  #configurations = 0;
  #interrupted = 0;
  #rows = 0;

  constructor({ seed, keys = 240, isHasty = false, plant }: CopyingRun) {
    this.#isHasty = isHasty;
    const random = new Random(seed);
    this.#random = random;
    this.#fabric = new SimulatedFabric({ seed, faults: seed % 4 === 0 ? [] : FAULTS });
    const members = [0, 1, 2].map((id) => ({ id, host: "simulated", port: id }));
    const configuration = configurationOf(
      { nodes: members, backups: 1 + random.below(2), partitions: 1 + random.below(12) },
      "the simulation",
    );
    this.#nodes = Array.from(
      { length: NODES },
      (_, id) => new SimulatedNode(this.#fabric, id, configuration),
    );
    this.#cluster = new CopyingNodes(this.#fabric, this.#nodes, configuration);
    this.#plant = (node) => plant?.(this.#cluster, node);
    for (const node of this.#nodes) this.#plant(node);
    this.#writes = new RandomWrites(this.#fabric, random, keys, 1 << (8 + random.below(5)));
    this.#pass(10);
    this.#writes.open(this.#cluster.up);
    this.#writes.fill(this.#cluster.up, this.#placement);
  }

  get #placement(): ClusterPlacement {
    return new ClusterPlacement(this.#cluster.configuration);
  }

  live(events: number): void {
    for (let left = events; left > 0; left--) {
      this.#change();
      this.#write(this.#random.below(30));
    }
  }

  /** Everything is filled and placed as it should be; sentences about what is wrong then. */
  async end(): Promise<string[]> {
    const endUs = this.#fabric.nowUs + PATIENCE_MS * 1e3;
    for (;;) {
      this.#quiet();
      if (!this.#cluster.count() && !this.#isCopying && !this.#cluster.balance()) break;
      this.#write(1);
      if (this.#fabric.nowUs > endUs) return [`copying does not end: ${this.#progress()}`];
    }
    this.#quiet();
    this.#fabric.clearFaults();
    // Messages to those who have died are given up.
    this.#pass(2 * COPY_TIMEOUT_MS);
    const { up } = this.#cluster;
    const placement = this.#placement;
    // One that has no partition has heard of no table.
    this.#writes.open(up);
    return [
      // A node that came back asks for what it left, also those that have died: as long as they are in the
      // configuration that it was started with.
      ...leftOvers(up).filter((each) => !each.endsWith("coroutines run")),
      ...disagreements(up, TABLES, placement),
      ...this.#writes.problems(up, placement),
      ...(await unsound(up)),
    ];
  }

  report() {
    for (const { id } of this.#nodes) this.#rows += this.#cluster.copyingAt(id).progress().rows;
    const { committed, refused } = this.#writes;
    return {
      committed,
      refused,
      rows: this.#rows,
      configurations: this.#configurations,
      interrupted: this.#interrupted,
    };
  }

  async close(): Promise<void> {
    for (const node of this.#nodes) {
      if (node.isUp) this.#cluster.copyingAt(node.id).stop();
      await node.close();
    }
  }

  get #isCopying(): boolean {
    if (this.#cluster.isFilling) return true;
    return this.#cluster.up.some(({ id }) => {
      const { filling, clearing } = this.#cluster.copyingAt(id).progress();
      return filling + clearing > 0;
    });
  }

  #progress(): string {
    const { up } = this.#cluster;
    return JSON.stringify(up.map(({ id }) => this.#cluster.copyingAt(id).progress()));
  }

  #change(): void {
    const kind = this.#random.below(6);
    const isDeath = kind === 2 || kind === 3;
    // What a coordinator has to tell those who die is not the concern of this simulation.
    if (isDeath || !this.#isHasty) this.#quiet();
    else this.#answered();
    if (this.#isCopying) this.#interrupted++;
    this.#configurations++;
    const cluster = this.#cluster;
    const { backups, nodes } = cluster.configuration;
    const members = new Set(nodes.map(({ id }) => id));
    const outside = this.#nodes.filter(({ id }) => !members.has(id));
    if (kind <= 1 && outside.length > 0) {
      const node = outside[this.#random.below(outside.length)];
      if (!node.isUp) {
        node.comeBack();
        cluster.begin(node);
        this.#plant(node);
      }
      cluster.join(node.id);
    } else if (isDeath && members.size > backups + 1) {
      const victim = this.#victim();
      if (victim === undefined) return;
      this.#rows += cluster.copyingAt(victim.id).progress().rows;
      cluster.crash(victim);
      cluster.fail();
    } else if (!cluster.count()) cluster.balance();
  }

  /** A node whose death loses nothing. */
  #victim(): SimulatedNode | undefined {
    const { placement } = this.#cluster.configuration;
    const mortal = this.#cluster.up.filter(({ id }) =>
      placement.every(({ primary, backups }) => primary !== id || backups.length > 0),
    );
    return mortal[this.#random.below(Math.max(mortal.length, 1))];
  }

  /** Transactions for so many milliseconds. */
  #write(ms: number): void {
    const endUs = this.#fabric.nowUs + ms * 1e3;
    while (this.#fabric.nowUs < endUs) {
      this.#writes.begin(this.#cluster.up, this.#placement);
      this.#fabric.run(this.#fabric.nowUs + 1 + this.#random.below(400));
    }
  }

  /** No transaction is under way any more; copies may be. */
  #quiet(): void {
    for (let left = PATIENCE_MS; left > 0; left--) {
      const isBusy = this.#cluster.up.some(({ service }) => {
        const { participant, backup, coordinator } = service;
        return participant.prepared + backup!.logged + coordinator.open > 0;
      });
      if (this.#writes.running === 0 && !isBusy) return;
      for (const { service } of this.#cluster.up) service.coordinator.flush();
      this.#pass(0.2);
    }
    throw new Error(`transactions do not end: ${leftOvers(this.#cluster.up).join("; ")}`);
  }

  /** All transactions have ended at their primaries, but not all backups know it. */
  #answered(): void {
    const { up } = this.#cluster;
    const isBusy = (): boolean =>
      this.#writes.running > 0 || up.some(({ service }) => service.participant.prepared > 0);
    for (let left = PATIENCE_MS; left > 0 && isBusy(); left--) this.#pass(0.1);
  }

  #pass(ms: number): void {
    this.#fabric.run(this.#fabric.nowUs + ms * 1e3);
  }
}
