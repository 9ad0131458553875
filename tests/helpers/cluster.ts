/**
 * A cluster of real processes: `situ node` as a user runs it, from the bundle. Whatever happens, no
 * process, no memory and no folder of it is left.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { attach } from "../../src/attach/attach.ts";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import {
  type ConnectOptions,
  destroy,
  open,
  type RemoteDatabase,
  type Table,
} from "../../src/index.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { BACKUP_LOG } from "../../src/tables/own-tables.ts";
import type { Placement } from "../../src/tables/partitions.ts";
import { StoreRecordLog } from "../../src/tables/served/record-log.ts";
import { PATIENCE_MS } from "./patience.ts";
import { compiled } from "./project-root.ts";

const CLI = compiled("situ-cli.js");
export const PROCEDURES = compiled("tests/cluster/procedures.js");
const MEMORY_BYTES = 64 * 2 ** 20;

export interface ClusterOptions {
  readonly nodes?: number;
  readonly backups?: number;
  readonly protocol?: "rpc" | "one-sided" | "nam" | "xenic";
  /** Of memory servers, and of nodes with the protocol "xenic". */
  readonly memory?: Readonly<Record<string, unknown>>;
  readonly place?: "nic" | "host";
  readonly places?: Readonly<Record<string, string>>;
  readonly secret?: string;
  readonly durability?: "sync" | "lazy" | "none";
  readonly procedures?: boolean;
  /** Each node's memory in a folder of its own: to lose it is to lose the machine's power. */
  readonly hasOwnMemory?: boolean;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `situ` to its end. */
export async function situ(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn(process.execPath, [CLI, ...args], { env: { ...process.env, ...env } });
  const heard = listen(child);
  await once(child, "close");
  return { code: child.exitCode, ...heard };
}

function listen(child: ChildProcess): { stdout: string; stderr: string } {
  const heard = { stdout: "", stderr: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    heard.stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    heard.stderr += text;
  });
  return heard;
}

/** One node's process. */
export class NodeProcess {
  readonly id: number;
  readonly path: string;
  readonly config: string;
  /** Where its memory is, if not where it usually is. */
  memoryDir: string | undefined;
  child: ChildProcess | undefined;
  heard = { stdout: "", stderr: "" };

  constructor(id: number, path: string, config: string) {
    this.id = id;
    this.path = path;
    this.config = config;
  }

  async start(): Promise<void> {
    const { memoryDir, config } = this;
    const env = { ...process.env, ...(memoryDir && { SITU_MEMORY_DIR: memoryDir }) };
    const child = spawn(process.execPath, [CLI, "node", "--config", config, "--json"], { env });
    this.child = child;
    this.heard = listen(child);
    while (!this.heard.stdout.includes("\n")) {
      const ended = child.exitCode !== null || child.signalCode !== null;
      if (ended) throw new Error(`node ${this.id} ended: ${this.heard.stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  get isRunning(): boolean {
    const { child } = this;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  /** Stops it where it is, and waits until every thread of it has stopped. */
  async halt(): Promise<void> {
    this.signal("SIGSTOP");
    const tasks = `/proc/${this.child?.pid}/task`;
    await eventually(`node ${this.id} is stopped`, async () =>
      readdirSync(tasks).every((task) =>
        /\) T /.test(readFileSync(join(tasks, task, "stat"), "utf8")),
      ),
    );
  }

  /** Ends it, and waits for that. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    const { child } = this;
    if (child === undefined || !this.isRunning) return child?.exitCode ?? null;
    const ended = once(child, "close");
    child.kill(signal);
    // One that is stopped does not hear SIGTERM.
    child.kill("SIGCONT");
    await ended;
    return child.exitCode;
  }
}

export class RealCluster {
  readonly folder: string;
  readonly nodes: readonly NodeProcess[];
  readonly connect: readonly string[];
  readonly configuration: Configuration;
  readonly placement: ClusterPlacement;
  readonly options: ClusterOptions;
  readonly #clients = new Set<RemoteDatabase>();

  private constructor(folder: string, ports: readonly number[], options: ClusterOptions) {
    const { protocol = "rpc", place = "nic", secret, durability = "none" } = options;
    const { backups = ports.length - 1, procedures = false } = options;
    const isInMemory = protocol === "nam" || protocol === "xenic";
    const cluster = {
      nodes: ports.map((port, id) => ({ id, host: "127.0.0.1", port })),
      backups,
    };
    this.folder = folder;
    this.options = options;
    this.configuration = configurationOf(cluster, "test");
    this.placement = new ClusterPlacement(this.configuration);
    this.connect = ports.map((port) => `127.0.0.1:${port}`);
    this.nodes = ports.map((_, id) => {
      const config = join(folder, `node-${id}.json`);
      const path = join(folder, `node-${id}`);
      const ofMemory = {
        id,
        cluster,
        protocol,
        memoryBytes: 4 * MEMORY_BYTES,
        ...(secret === undefined ? {} : { secret }),
        ...(secret === undefined || protocol === "nam"
          ? {}
          : { nodeSecret: `${secret}, of nodes` }),
        ...options.memory,
      };
      const ofNode = {
        id,
        path,
        cluster,
        protocol,
        place,
        ...(options.places === undefined ? {} : { places: options.places }),
        durability,
        memoryBytes: MEMORY_BYTES,
        ...(secret === undefined ? {} : { secret, nodeSecret: `${secret}, of nodes` }),
        ...(procedures ? { procedures: [PROCEDURES] } : {}),
      };
      writeFileSync(config, JSON.stringify(isInMemory ? ofMemory : ofNode));
      const node = new NodeProcess(id, path, config);
      if (options.hasOwnMemory) {
        node.memoryDir = join(folder, `memory-${id}`);
        mkdirSync(node.memoryDir);
      }
      return node;
    });
  }

  static async start(options: ClusterOptions = {}): Promise<RealCluster> {
    const folder = mkdtempSync(join(tmpdir(), "situ-cluster-test-"));
    const ports = await freePorts(options.nodes ?? 3);
    const cluster = new RealCluster(folder, ports, options);
    try {
      await Promise.all(cluster.nodes.map((node) => node.start()));
      return cluster;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  async client(
    tables: readonly Table[],
    options: Partial<ConnectOptions> = {},
  ): Promise<RemoteDatabase> {
    const { secret } = this.options;
    const connect = this.connect;
    const db = await open({
      connect,
      tables,
      // Meant to succeed; those that are to give up say when.
      timeoutMs: PATIENCE_MS,
      ...(secret === undefined ? {} : { secret }),
      ...options,
    });
    this.#clients.add(db);
    return db;
  }

  /** A client to close with the cluster. */
  keep(db: RemoteDatabase): void {
    this.#clients.add(db);
  }

  /** The primary of a key. */
  primaryOf(table: Table, key: unknown): NodeProcess {
    const remote = new RemoteTable(table, this.placement);
    return this.nodes[remote.primaryOf(remote.partitionOf(key))];
  }

  /** Waits until backups have applied all that is committed; at rest that is all that they have. */
  copiesApplied(): Promise<void> {
    return copiesApplied(this.nodes);
  }

  async closeClients(): Promise<void> {
    for (const client of this.#clients) await client.close();
    this.#clients.clear();
  }

  /** Closes clients and nodes. Codes of the nodes that still ran. */
  async close(): Promise<(number | null)[]> {
    await this.closeClients();
    return Promise.all(this.nodes.map((node) => node.stop()));
  }

  /** What is wrong with the stores of the closed nodes, which must have been at rest. */
  problems(tables: readonly Table[]): Promise<string[]> {
    return problemsOf(this.nodes, this.placement, tables);
  }

  async remove(): Promise<void> {
    try {
      // The nodes first: a client waits for what it has asked them.
      for (const node of this.nodes) await node.stop("SIGKILL");
      for (const client of this.#clients) await client.close().catch(() => {});
      for (const { path, memoryDir } of this.nodes) if (!memoryDir) await destroy(path);
    } finally {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }
}

/** Waits until backups have applied all that is committed; at rest that is all that they have. */
export async function copiesApplied(nodes: readonly NodeProcess[]): Promise<void> {
  for (const { id, path } of nodes) {
    await eventually(`node ${id} has applied its copies`, async () => {
      // As a thread of the node would join it: others are refused while it runs.
      const settings = { ...settingsOf({ path }), isNode: true };
      const executor = await attach(settings, (attached) => attached.executor);
      try {
        return [...new StoreRecordLog(executor, BACKUP_LOG).all()].length === 0;
      } finally {
        executor.close();
      }
    });
  }
}

/**
 * What is wrong with the stores of the closed nodes: structure, locks, copies that differ. Records
 * that a backup has not applied are applied by nobody: the nodes must have been at rest. Nobody has rows of others,
 * unless they may have more.
 */
export async function problemsOf(
  nodes: readonly NodeProcess[],
  placement: Placement,
  tables: readonly Table[],
  mayHaveMore = false,
): Promise<string[]> {
  const problems: string[] = [];
  const rows = new Map<string, { key: unknown; table: Table; byNode: Map<number, string> }>();
  for (const node of nodes) {
    const db = await open({ path: node.path, tables, timeoutMs: 5_000 });
    try {
      const verified = await db.verify();
      problems.push(...verified.problems.map((each) => `node ${node.id}: ${each}`));
      for (const table of tables) {
        const remote = new RemoteTable(table, placement);
        for (const row of db.transactSync((tx) => [...tx.scan(table)])) {
          const key = remote.keyOf(row as never);
          const name = `${table.name} ${text(key)}`;
          const found = rows.get(name) ?? { key, table, byNode: new Map<number, string>() };
          found.byNode.set(node.id, text(row));
          rows.set(name, found);
        }
      }
    } finally {
      await db.close();
    }
  }
  for (const [name, { key, table, byNode }] of rows) {
    const remote = new RemoteTable(table, placement);
    const partition = remote.partitionOf(key);
    const primary = placement.primaryOf(partition);
    const wanted = [primary, ...placement.backupsOf(partition)].sort();
    for (const node of byNode.keys()) {
      if (mayHaveMore && !wanted.includes(node)) byNode.delete(node);
    }
    const has = [...byNode.keys()].sort();
    if (has.length === 0) continue;
    const isSame = new Set(byNode.values()).size === 1;
    if (isSame && wanted.join() === has.join()) continue;
    problems.push(`${name} (primary ${primary}): ${text([...byNode])}`);
  }
  return problems;
}

function text(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "bigint" ? `${part}n` : part,
  );
}

/** Waits until something holds, within a time that is far too long on any machine. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited too long for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
