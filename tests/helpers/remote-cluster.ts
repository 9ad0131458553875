/** A cluster of simulated nodes, with databases of clients that know nothing of it. */

import { SimulatedClient } from "../../simulation/cluster/client.ts";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import type { Fault } from "../../simulation/fabric/faults.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { sleep } from "../../src/runtime/clock.ts";
import type { Table } from "../../src/tables/table.ts";

const TIMEOUT_MS = 60_000;
/** Real time that nothing may happen in before a test is given up. */
const MAX_IDLE_MS = 5_000;

export interface ClusterPlan {
  readonly seed: number;
  readonly nodes?: number;
  readonly backups?: number;
  readonly faults?: Fault[];
}

export class RemoteCluster {
  readonly fabric: SimulatedFabric;
  readonly nodes: readonly SimulatedNode[];
  readonly #configuration;
  #clients = 0;

  constructor(plan: ClusterPlan) {
    const { seed, nodes = 3, backups = nodes - 1, faults = [] } = plan;
    this.fabric = new SimulatedFabric({ seed, faults });
    const members = Array.from({ length: nodes }, (_, id) => ({ id, host: "simulated", port: id }));
    this.#configuration = configurationOf({ nodes: members, backups }, "test");
    this.nodes = members.map(({ id }) => new SimulatedNode(this.fabric, id, this.#configuration));
  }

  /** A client that has opened some tables. */
  async client(tables: readonly Table[], readsByVerb = false): Promise<RemoteDatabase> {
    const client = new SimulatedClient(this.fabric, {
      number: this.#clients++,
      configuration: this.#configuration,
      timeoutMs: TIMEOUT_MS,
      protocol: readsByVerb ? "one-sided" : "rpc",
    });
    await this.run(() => client.arrive(tables));
    return client.db;
  }

  /** The same inside of a node, as its procedures have it: it coordinates, and locks what it reads. */
  async inside(id: NodeId, tables: readonly Table[]): Promise<RemoteDatabase> {
    const random = this.fabric.random(`node ${id}`);
    const db = this.nodes[id].database(`node ${id}`, random, TIMEOUT_MS);
    await this.run(() => db.openTables(tables));
    return db;
  }

  endpoint() {
    return this.fabric.endpoint({
      self: -1 - this.#clients++,
      configurationId: this.#configuration.configurationId,
    });
  }

  /** Runs a program of promises: virtual time goes on while it waits. */
  async run<T>(program: () => Promise<T>): Promise<T> {
    let isOver = false;
    const running = program().finally(() => {
      isOver = true;
    });
    running.catch(() => {});
    for (let idleMs = 0; !(await this.fabric.settle(() => isOver)); idleMs++) {
      // Nothing is left to happen in virtual time: the program waits for a local database.
      if (idleMs > MAX_IDLE_MS) {
        throw new Error("the cluster is at rest, and the program is not over");
      }
      await sleep(1);
    }
    return running;
  }

  async close(): Promise<void> {
    this.fabric.clearFaults();
    this.fabric.run();
    for (const node of this.nodes) await node.close();
  }
}
