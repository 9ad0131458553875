/**
 * A node of a cluster, put together: the store, which the host's thread has open, with its log and
 * checkpoints as everywhere, and the NIC worker, which serves it to the others.
 */

import { type Configurations, StaticConfiguration } from "../cluster/configuration.ts";
import { openStore } from "../database/open.ts";
import { settingsOf } from "../database/open-options.ts";
import type { Executor } from "../engine/executor.ts";
import { makeChannel } from "../fabric/rings/channel.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { raiseLife } from "../tables/served/lives.ts";
import { Host } from "./host.ts";
import { joinedNode, type Waiting } from "./joining.ts";
import type { NicStats } from "./nic.ts";
import { NicThread } from "./nic-worker.ts";
import type { NodeConfiguration, NodeFile } from "./node-configuration.ts";
import { Procedures } from "./procedures.ts";

export class SituNode {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  /** What it was started with; `configurations` has what holds now. */
  readonly configuration: NodeConfiguration;
  readonly configurations: Configurations;
  readonly #nic: NicThread;
  /** How to close its parts, in the order in which they were opened. */
  readonly #closing: (() => unknown)[];

  private constructor(
    configuration: NodeConfiguration,
    configurations: Configurations,
    nic: NicThread,
    closing: (() => unknown)[],
  ) {
    const { id, cluster } = configuration;
    this.id = id;
    this.configuration = configuration;
    this.configurations = configurations;
    this.host = cluster.nodes.find((node) => node.id === id)!.host;
    this.port = nic.port;
    this.#nic = nic;
    this.#closing = closing;
  }

  /** `died` is told if the node cannot go on. */
  static async start(
    file: NodeFile,
    died: (error: Error) => void = rethrow,
    waiting: Waiting = {},
  ): Promise<SituNode> {
    const { path, durability, memoryBytes } = file;
    const procedures = await Procedures.load(file.procedures);
    const settings = settingsOf({
      path,
      // What the host's thread serves with the executor of the store waits as long as at the NIC.
      timeoutMs: DEFAULT_TIMEOUT_MS,
      ...(durability === undefined ? {} : { durability }),
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
    });
    const closing: (() => unknown)[] = [];
    try {
      const db = await openStore({ ...settings, isAlone: true });
      closing.push(() => db.close());
      const joined = "etcd" in file ? await joinedNode(file, waiting) : undefined;
      closing.push(() => joined?.configurations.close());
      const configuration = joined?.configuration ?? (file as NodeConfiguration);
      const configurations =
        joined?.configurations ?? new StaticConfiguration(configuration.cluster);
      const life = await beginLife(db.executor);
      const [here, there] = makeChannel();
      const nic = await NicThread.start(configuration, life, there, died);
      closing.push(() => nic.close());
      const host = new Host(configuration, procedures, nic.instance, life, db.executor, here);
      closing.push(() => host.close());
      return new SituNode(configuration, configurations, nic, closing);
    } catch (error) {
      await closeAll(closing);
      throw error;
    }
  }

  stats(): Promise<NicStats> {
    return this.#nic.stats();
  }

  async close(): Promise<void> {
    await closeAll(this.#closing);
  }
}

/** Before anything is sent: what has a log has the number on disk, whatever commits wait for. */
async function beginLife(executor: Executor): Promise<number> {
  const life = raiseLife(executor);
  const { durability, committer } = executor;
  if (durability.isLogged) await durability.await(committer.lastEpoch, DEFAULT_TIMEOUT_MS);
  return life;
}

/** The last one first: what was opened later uses what was opened before. */
async function closeAll(closing: (() => unknown)[]): Promise<void> {
  for (let close = closing.pop(); close !== undefined; close = closing.pop()) await close();
}

function rethrow(error: Error): never {
  throw error;
}
