// A cluster of our own on loopback, with its configuration in an etcd of our own. The rows are accounts. Whoever
// transfers money notes what was acknowledged, so that every commit that was lost or done twice is found when the
// cluster is closed.

import { setTimeout as sleep } from "node:timers/promises";
import * as situ from "situ";
import type { Configuration } from "../../src/cluster/configuration.ts";
import { EtcdGateway } from "../../src/cluster/etcd/gateway.ts";
import { EtcdRecord } from "../../src/cluster/etcd/record.ts";
import { accountTable, makeRow } from "../fabric/accounts.ts";
import { type EtcdServer, startEtcd } from "../harness/etcd-server.ts";
import { freePorts } from "../harness/free-ports.ts";
import { loopback } from "../harness/server-process.ts";
import { BenchNode } from "./node.ts";

export const Account = accountTable(situ);
export type Bank = situ.RemoteDatabase;

export const COPIES = 3;
export const NODES = 4;
const CLUSTER = "bench";
const ROWS_PER_TRANSACTION = 100;
const READS_AT_ONCE = 256;
const POLL_MS = 20;
/** For what does not depend on this machine's speed by so much. */
const PATIENCE_MS = 240_000;
/** Longer than any pause that is measured. */
const TIMEOUT_MS = 60_000;

export interface ClusterOptions {
  readonly rows: number;
  readonly nodes?: number;
  /** As many as by default, if it does not say. */
  readonly partitions?: number;
  readonly memoryBytes?: number;
  readonly memoryFolder: string;
  readonly durability?: "none" | "lazy";
}

export class BenchCluster {
  readonly nodes: BenchNode[] = [];
  readonly rows: number;
  /** What acknowledged transfers have added to the balance of each row. */
  readonly ledger: Int32Array;
  readonly etcd: EtcdServer;
  readonly etcdVersion: string;
  readonly #options: ClusterOptions;
  readonly #gateway: EtcdGateway;
  readonly #metrics: number[] = [];
  #db: Bank | undefined;

  private constructor(options: ClusterOptions, etcd: EtcdServer, version: string) {
    this.rows = options.rows;
    this.ledger = new Int32Array(options.rows);
    this.etcd = etcd;
    this.etcdVersion = version;
    this.#options = options;
    this.#gateway = new EtcdGateway({ endpoints: etcd.urls });
  }

  /** With its rows, and all copies of them; or why there is none. */
  static async start(options: ClusterOptions): Promise<BenchCluster | string> {
    const etcd = await startEtcd(1, options.memoryFolder);
    if (!etcd.available) return etcd.missing;
    const cluster = new BenchCluster(options, etcd.value, etcd.version);
    for (let id = 0; id < (options.nodes ?? NODES); id++) (await cluster.addNode()).start();
    await Promise.all(cluster.nodes.map((node) => node.listening()));
    await cluster.whole();
    cluster.#db = await situ.open({
      connect: cluster.nodes.map(({ port }) => `${loopback}:${port}`),
      cluster: CLUSTER,
      tables: [Account],
      timeoutMs: TIMEOUT_MS,
    });
    await cluster.#load();
    return cluster;
  }

  /** One more, that is not started. */
  async addNode(): Promise<BenchNode> {
    const id = this.nodes.length;
    const [port, metrics] = await freePorts(2);
    const { memoryFolder, memoryBytes = 64 * 2 ** 20, durability = "lazy" } = this.#options;
    const { partitions } = this.#options;
    const more = partitions === undefined ? {} : { partitions };
    const file = {
      listen: { host: loopback, port },
      cluster: { cluster: CLUSTER, etcd: this.etcd.urls, backups: COPIES - 1, ...more },
      metrics: { host: loopback, port: metrics },
      durability,
      memoryBytes,
    };
    const node = new BenchNode({ id, port, file, memoryFolder });
    this.nodes.push(node);
    this.#metrics.push(metrics);
    return node;
  }

  get db(): Bank {
    return this.#db!;
  }

  /** The newest, as etcd has it; undefined while the first nodes come together. */
  async configuration(): Promise<Configuration | undefined> {
    return (await new EtcdRecord(this.#gateway, CLUSTER).read()).record?.configuration;
  }

  /** Waits until all nodes are members with their share of the partitions, and nothing is being moved. */
  async whole(): Promise<Configuration> {
    const wanted = this.nodes.filter(({ isRunning }) => isRunning).map(({ id }) => id);
    const deadlineMs = performance.now() + PATIENCE_MS;
    let last = 0;
    let sinceMs = 0;
    for (;;) {
      const nowMs = performance.now();
      const found = await this.configuration();
      if (found !== undefined && found.configurationId !== last) {
        last = found.configurationId;
        sinceMs = nowMs;
      }
      // The next step of a move comes a few leases after the last.
      const isStill = found !== undefined && nowMs - sinceMs > 6 * found.leaseMs;
      if (isStill && isWhole(found, wanted)) return found;
      if (nowMs > deadlineMs) throw new Error(`nodes ${wanted.join()} do not have all copies`);
      await sleep(POLL_MS);
    }
  }

  /** Waits until a node is no member any more. */
  async without(node: number): Promise<void> {
    while ((await this.configuration())!.nodes.some(({ id }) => id === node)) await sleep(POLL_MS);
  }

  /** A metric of every node that runs, by its id. */
  async metric(name: string): Promise<Map<number, number>> {
    const found = new Map<number, number>();
    for (const { id, isRunning } of this.nodes) {
      if (!isRunning) continue;
      const answer = await fetch(`http://${loopback}:${this.#metrics[id]}/metrics`);
      const line = new RegExp(`^${name} (\\d+)`, "m").exec(await answer.text());
      if (line === null) throw new Error(`node ${id} has no metric ${name}`);
      found.set(id, Number(line[1]));
    }
    return found;
  }

  /** Ends everything. Throws if the rows are not what was acknowledged. */
  async close(): Promise<void> {
    const wrong = await this.wrongRows();
    await this.db.close();
    await Promise.all(this.nodes.map((node) => node.stop()));
    this.#gateway.close();
    await this.etcd.stop();
    if (wrong > 0) throw new Error(`${wrong} rows are not what was acknowledged`);
  }

  /** Rows that have lost a transfer, or have it twice. Nothing may be under way. */
  async wrongRows(): Promise<number> {
    let wrong = 0;
    for (let first = 0; first < this.rows; first += READS_AT_ONCE) {
      const length = Math.min(READS_AT_ONCE, this.rows - first);
      const ids = Array.from({ length }, (_, i) => first + i);
      const found = await Promise.all(ids.map((id) => this.db.get(Account, id)));
      wrong += ids.filter((id, i) => found[i]?.balance !== this.#balanceOf(id)).length;
    }
    return wrong;
  }

  #balanceOf(id: number): bigint {
    return makeRow(id).balance + BigInt(this.ledger[id]);
  }

  /** One at a time: while a table is small and grows, bulk loads are in each other's way. */
  async #load(): Promise<void> {
    for (let first = 0; first < this.rows; first += ROWS_PER_TRANSACTION) {
      await this.db.transact((tx) => {
        const end = Math.min(first + ROWS_PER_TRANSACTION, this.rows);
        for (let id = first; id < end; id++) void tx.put(Account, makeRow(id));
      });
    }
  }
}

/** Whether these are the members, each row has all its copies, and each member is a primary of some. */
function isWhole({ nodes, placement = [] }: Configuration, wanted: readonly number[]): boolean {
  const members = nodes.map(({ id }) => id).sort((left, right) => left - right);
  if (members.join() !== [...wanted].sort((left, right) => left - right).join()) return false;
  const primaries = new Set(placement.map(({ primary }) => primary));
  return (
    primaries.size === members.length &&
    placement.every(({ backups, filling }) => filling.length === 0 && backups.length === COPIES - 1)
  );
}
