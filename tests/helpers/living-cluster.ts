/**
 * A cluster whose nodes may die, leave and join: real processes, with its configuration in a real etcd.
 * Whatever happens, nothing of it is left.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EtcdServer, startEtcd } from "../../benchmarks/harness/etcd-server.ts";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import type { Configuration } from "../../src/cluster/configuration.ts";
import { EtcdGateway } from "../../src/cluster/etcd/gateway.ts";
import { EtcdRecord } from "../../src/cluster/etcd/record.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { nextStep, type PlacedConfiguration } from "../../src/cluster/planning/planning.ts";
import {
  type ConnectOptions,
  destroy,
  open,
  type RemoteDatabase,
  type Table,
} from "../../src/index.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { eventually, NodeProcess, PROCEDURES, problemsOf } from "./cluster.ts";

export interface LivingOptions {
  readonly nodes?: number;
  readonly backups?: number;
  readonly partitions?: number;
  /** Longer than by default: threads of a busy machine may stand still. */
  readonly leaseMs?: number;
  readonly protocol?: "rpc" | "one-sided";
  readonly place?: "nic" | "host";
  readonly durability?: "sync" | "lazy" | "none";
  readonly secret?: string;
  readonly procedures?: boolean;
}

const CLUSTER = "living";

export class LivingCluster {
  readonly folder: string;
  readonly nodes: NodeProcess[] = [];
  readonly #options: LivingOptions;
  readonly #etcd: EtcdServer;
  readonly #gateway: EtcdGateway;
  readonly #clients = new Set<RemoteDatabase>();
  readonly #ports: number[] = [];

  private constructor(folder: string, etcd: EtcdServer, options: LivingOptions) {
    this.folder = folder;
    this.#options = options;
    this.#etcd = etcd;
    this.#gateway = new EtcdGateway({ endpoints: etcd.urls });
  }

  static async start(options: LivingOptions = {}): Promise<LivingCluster> {
    const folder = mkdtempSync(join(tmpdir(), "situ-living-test-"));
    const started = await startEtcd(1, folder);
    if (!started.available) throw new Error(started.missing);
    const cluster = new LivingCluster(folder, started.value, options);
    const { nodes = 4, backups = 2 } = options;
    try {
      const made: NodeProcess[] = [];
      for (let id = 0; id < nodes; id++) made.push(await cluster.make());
      // The first ones form it; the others join.
      await Promise.all(made.slice(0, backups + 1).map((node) => node.start()));
      await Promise.all(made.slice(backups + 1).map((node) => node.start()));
      return cluster;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  /** One more, that is not started. */
  async make(more: object = {}): Promise<NodeProcess> {
    const id = this.nodes.length;
    const { backups = 2, partitions = 32, leaseMs = 1_000, secret } = this.#options;
    const { protocol = "rpc", place = "nic", durability = "lazy", procedures } = this.#options;
    const [port] = await freePorts(1);
    const path = join(this.folder, `node-${id}`);
    mkdirSync(path);
    const config = join(this.folder, `node-${id}.json`);
    const given = {
      id,
      path,
      listen: { host: "127.0.0.1", port },
      cluster: { cluster: CLUSTER, etcd: this.#etcd.urls, backups, partitions, leaseMs },
      protocol,
      place,
      durability,
      memoryBytes: 64 * 2 ** 20,
      ...(secret === undefined ? {} : { secret, nodeSecret: `${secret}, of nodes` }),
      ...(procedures === true ? { procedures: [PROCEDURES] } : {}),
      ...more,
    };
    writeFileSync(config, JSON.stringify(given));
    const node = new NodeProcess(id, path, config);
    this.nodes.push(node);
    this.#ports.push(port);
    return node;
  }

  get connect(): string[] {
    return this.#ports.map((port) => `127.0.0.1:${port}`);
  }

  get etcd(): EtcdServer {
    return this.#etcd;
  }

  /** The newest, as etcd has it. */
  async configuration(): Promise<Configuration> {
    const { record } = await new EtcdRecord(this.#gateway, CLUSTER).read();
    return record!.configuration!;
  }

  async members(): Promise<number[]> {
    return (await this.configuration()).nodes.map(({ id }) => id);
  }

  /** The primary of a key, as etcd has it. */
  async primaryOf(table: Table, key: unknown): Promise<NodeProcess> {
    const remote = new RemoteTable(table, new ClusterPlacement(await this.configuration()));
    return this.nodes[remote.primaryOf(remote.partitionOf(key))];
  }

  /** Waits until all these are members, nobody else is, every row has all its copies, and nothing moves any more. */
  async whole(ids: readonly number[]): Promise<void> {
    await eventually(`nodes ${ids.join(", ")} have all copies`, async () => {
      const configuration = (await this.configuration()) as PlacedConfiguration;
      const { nodes, placement } = configuration;
      return (
        nodes.map(({ id }) => id).join() === [...ids].sort((a, b) => a - b).join() &&
        placement.every(
          ({ filling, backups }) =>
            filling.length === 0 &&
            backups.length >= Math.min(this.#options.backups ?? 2, nodes.length - 1),
        ) &&
        nextStep(configuration) === undefined
      );
    });
  }

  async client(
    tables: readonly Table[],
    options: Partial<ConnectOptions> = {},
  ): Promise<RemoteDatabase> {
    const { secret } = this.#options;
    const db = await open({
      connect: this.connect,
      cluster: CLUSTER,
      tables,
      ...(secret === undefined ? {} : { secret }),
      ...options,
    });
    this.#clients.add(db);
    return db;
  }

  /** Closes clients and nodes. Codes of the nodes that still ran. */
  async close(): Promise<(number | null)[]> {
    for (const client of this.#clients) await client.close();
    this.#clients.clear();
    return Promise.all(this.nodes.map((node) => node.stop()));
  }

  /**
   * What is wrong with the stores of members that are closed, as a configuration has them. What they have of partitions
   * that were moved away may not be cleared away yet.
   */
  async problems(configuration: Configuration, tables: readonly Table[]): Promise<string[]> {
    const members = configuration.nodes.map(({ id }) => this.nodes[id]);
    return problemsOf(members, new ClusterPlacement(configuration), tables, true);
  }

  async remove(): Promise<void> {
    try {
      for (const node of this.nodes) await node.stop("SIGKILL");
      for (const client of this.#clients) await client.close().catch(() => {});
      for (const { path } of this.nodes) await destroy(path);
      this.#gateway.close();
      await this.#etcd.stop();
    } finally {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }
}
