/**
 * A node of a cluster, put together: the store, which the host's thread has open, with its log and
 * checkpoints as everywhere, and the NIC worker, which serves it to the others.
 */

import { LeaseGate } from "../cluster/membership/lease-gate.ts";
import type { LocalDatabase } from "../database/local/local-database.ts";
import { openStore } from "../database/open.ts";
import { settingsOf } from "../database/open-options.ts";
import type { Executor } from "../engine/executor.ts";
import { makeChannel } from "../fabric/rings/channel.ts";
import { SituError } from "../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS, FIRST_SYNC_MS, JOIN_ATTEMPTS } from "../runtime/limits.ts";
import { raiseLife } from "../tables/served/lives.ts";
import { Host } from "./host.ts";
import { joinedNode, type Waiting } from "./joining.ts";
import type { NicStats } from "./nic.ts";
import { NicThread } from "./nic-worker.ts";
import type { NodeConfiguration, NodeFile } from "./node-configuration.ts";
import { Procedures } from "./procedures.ts";
import { ServingGate } from "./serving-gate.ts";

/** What ends a node while it runs. */
export interface NodeListener extends Waiting {
  /** It cannot go on. */
  died(error: Error): void;
  /**
   * The cluster goes on without it: it was taken for dead, or was to leave (`wasDrained`). All that is left
   * is to close it. Started again, it joins anew, unless it was to leave.
   */
  removed?(wasDrained: boolean): void;
}

interface Parts {
  readonly database: LocalDatabase;
  readonly nic: NicThread;
  readonly host: Host;
  readonly gate: ServingGate | undefined;
}

export class SituNode {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  /** What it was started with, and the configuration in which it began to serve. */
  readonly configuration: NodeConfiguration;
  /** Its own store. */
  readonly database: LocalDatabase;
  readonly #nic: NicThread;
  readonly #host: Host;
  readonly #gate: ServingGate | undefined;
  /** How to close its parts, in the order in which they were opened. */
  readonly #closing: (() => unknown)[];

  private constructor(configuration: NodeConfiguration, parts: Parts, closing: (() => unknown)[]) {
    const { id, cluster } = configuration;
    this.id = id;
    this.configuration = configuration;
    this.host = cluster.nodes.find((node) => node.id === id)!.host;
    this.port = parts.nic.port;
    this.database = parts.database;
    this.#nic = parts.nic;
    this.#host = parts.host;
    this.#gate = parts.gate;
    this.#closing = closing;
  }

  /** With etcd: resolves when the node is a member, and may serve. */
  static async start(file: NodeFile, listener: NodeListener): Promise<SituNode> {
    for (let attempt = 1; ; attempt++) {
      const node = await SituNode.#start(file, listener, attempt === JOIN_ATTEMPTS);
      if (node !== "id taken") return node;
    }
  }

  /** Nodes that join at the same time may choose the same free id: one of them has to choose again. */
  static async #start(
    file: NodeFile,
    listener: NodeListener,
    isLast: boolean,
  ): Promise<SituNode | "id taken"> {
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
    let mayChooseAgain = false;
    try {
      const db = await openStore({ ...settings, isAlone: true });
      closing.push(() => db.close());
      const joined = "etcd" in file ? await joinedNode(file, listener) : undefined;
      const configuration = joined?.configuration ?? (file as NodeConfiguration);
      const { executor } = db;
      // A node that comes back is in a later configuration: so is one that has its id, and another store.
      const others = joined === undefined ? 0 : configuration.cluster.configurationId;
      const life = await beginLife(executor, others);
      const [here, there] = makeChannel();
      const lease = joined && new LeaseGate();
      const died = (error: Error): void => listener.died(error);
      const task = { configuration, life, end: there, gate: lease?.buffer };
      const nic = await NicThread.start(task, died);
      closing.push(() => nic.close());
      const { instance } = nic;
      const gate = lease && new ServingGate(lease);
      const host = new Host({
        configuration,
        procedures,
        instance,
        life,
        executor,
        end: here,
        gate,
      });
      closing.push(() => host.close());
      const parts = { database: db, nic, host, gate };
      if (joined === undefined) return new SituNode(configuration, parts, closing);
      const { candidate, admitted, left, hasFreeId } = joined;
      mayChooseAgain = hasFreeId && !isLast;
      const serving = nic.join(candidate, (wasDrained) => {
        host.leave();
        if (wasDrained) left();
        listener.removed?.(wasDrained);
      });
      const cluster = await unlessAborted(serving, listener.signal);
      mayChooseAgain = false;
      admitted();
      return new SituNode({ ...configuration, cluster }, parts, closing);
    } catch (error) {
      await closeAll(closing);
      if (mayChooseAgain && error instanceof SituError && error.code === "SITU_CONFIG") {
        return "id taken";
      }
      throw error;
    }
  }

  /** Of both threads. */
  async stats(): Promise<NicStats> {
    const nic = await this.#nic.stats();
    const { counters, open } = this.#host.service.coordinator;
    return {
      ...nic,
      committed: nic.committed + counters.committed,
      aborted: nic.aborted + counters.aborted,
      open: nic.open + open,
    };
  }

  /** Whether it has its lease in a configuration that is committed; a fixed cluster has none. */
  get mayServe(): boolean {
    const { configurationId } = this.#host.service.view.current;
    return this.#gate?.mayServe(configurationId) ?? true;
  }

  async close(): Promise<void> {
    await closeAll(this.#closing);
  }
}

/** Before anything is sent: what has a log has the number on disk, whatever commits wait for. */
async function beginLife(executor: Executor, others: number): Promise<number> {
  const life = raiseLife(executor, others);
  const { durability, committer } = executor;
  if (durability.isLogged) await durability.await(committer.lastEpoch, FIRST_SYNC_MS);
  return life;
}

/** The last one first: what was opened later uses what was opened before. */
async function closeAll(closing: (() => unknown)[]): Promise<void> {
  for (let close = closing.pop(); close !== undefined; close = closing.pop()) await close();
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let abort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
