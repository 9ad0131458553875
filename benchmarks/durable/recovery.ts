// Recovery after a crash, from a checkpoint of all rows and a log of as many updates. The crash is made
// once on each side; what it left on disk is kept, brought back before each round, and read from
// the system's cache. Both sides have it synced before the clock starts.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { BenchOptions } from "../harness/bench-options.ts";
import type { Peer } from "../harness/peers.ts";
import {
  createCluster,
  type PostgresCluster,
  type PostgresPrograms,
} from "../harness/postgres-server.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { monotonicNs } from "../harness/timed-run.ts";
import { totalOf } from "../memory/rows.ts";
import type { StorePlace } from "../memory/situ.ts";
import type { Checkpoint } from "./bank-process.ts";
import { startBankProcess } from "./bank-processes.ts";
import { loadAccounts, updateAccounts } from "./postgres.ts";
import type { RecoveryTask, Reopened } from "./recovery-process.ts";

export interface RecoveryMeasured {
  readonly updates: number;
  /** One entry per round. */
  readonly situ: readonly Reopened[];
  /** The same from the start of the process: with Node's own beginning. */
  readonly situFromStartMs: readonly number[];
  readonly postgres: readonly PostgresRecovered[];
  readonly postgresLogBytes: number;
  /** Opening after a crash of all processes that left memory whole. */
  readonly joined: Reopened;
  /** The checkpoint that Situ's recovery begins with. */
  readonly checkpoint: Checkpoint | undefined;
}

export interface PostgresRecovered {
  /** From the start of the server until a row was read. */
  readonly ms: number;
  readonly redoMs: number;
  readonly checkpointMs: number;
}

interface CrashedStore extends Pick<RecoveryMeasured, "joined" | "checkpoint"> {
  readonly task: RecoveryTask;
  readonly image: string;
}

interface CrashedCluster {
  readonly cluster: PostgresCluster;
  readonly image: string;
  readonly logBytes: number;
}

export async function measureRecovery(
  folder: string,
  memoryFolder: string,
  postgres: Peer<PostgresPrograms>,
  rows: number,
  { rounds, seed }: BenchOptions,
  progress: Progress,
): Promise<RecoveryMeasured> {
  const updates = rows;
  const turns = Math.min(rounds, 5);
  progress.show("recovery: loading and crashing situ");
  const place = { path: temporaryFolder(folder), memoryDir: temporaryFolder(memoryFolder) };
  const store = await crashStore(place, folder, rows, updates, seed);
  progress.show("recovery: loading and crashing postgres");
  const server = postgres.available
    ? await crashCluster(postgres.value, folder, rows, updates)
    : undefined;
  const situ: Reopened[] = [];
  const situFromStartMs: number[] = [];
  const recovered: PostgresRecovered[] = [];
  for (let round = 0; round < turns; round++) {
    progress.show(`round ${round + 1} of ${turns}: recovery, situ`);
    forgetMemory(place);
    bringBack(store.image, place.path);
    const startNs = monotonicNs();
    const { reopened, endNs } = await reopen(store.task);
    situ.push(reopened);
    situFromStartMs.push((endNs - startNs) / 1e6);
    if (server === undefined) continue;
    progress.show(`round ${round + 1} of ${turns}: recovery, postgres`);
    bringBack(server.image, server.cluster.dataFolder);
    recovered.push(await restart(server.cluster, rows, updates));
  }
  const { joined, checkpoint } = store;
  const postgresLogBytes = server?.logBytes ?? 0;
  const found = { joined, checkpoint, postgresLogBytes };
  return { updates, situ, situFromStartMs, postgres: recovered, ...found };
}

/** Loads, takes a checkpoint, updates, and is killed. */
async function crashStore(
  place: StorePlace,
  folder: string,
  rows: number,
  updates: number,
  seed: number,
): Promise<CrashedStore> {
  const durable = { ...place, durability: "lazy", noCheckpoints: true } as const;
  const process = await startBankProcess({ ...durable, first: 0, rows, seed });
  await process.ask({ kind: "load" });
  const { lastCheckpoint } = await process.ask({ kind: "checkpoint" });
  const { log } = await process.ask({ kind: "update", updates });
  if (log.records !== updates) throw new Error(`${log.records} records for ${updates} updates`);
  await process.ask({ kind: "die" }).then(
    () => {
      throw new Error("the process has survived SIGKILL");
    },
    () => {},
  );
  const image = join(temporaryFolder(folder), "image");
  copy(place.path, image);
  const task = { ...durable, rows, updates };
  const { reopened } = await reopen(task);
  return { task, image, joined: reopened, checkpoint: lastCheckpoint };
}

async function reopen(task: RecoveryTask): Promise<{ reopened: Reopened; endNs: number }> {
  const script = new URL("./recovery-process.js", import.meta.url);
  const process = await MeasuringProcess.start<"tell", Reopened>(script, task);
  const endNs = monotonicNs();
  const reopened = await process.ask("tell");
  await process.stop();
  return { reopened, endNs };
}

async function crashCluster(
  programs: PostgresPrograms,
  folder: string,
  rows: number,
  updates: number,
): Promise<CrashedCluster> {
  const cluster = await createCluster(programs, folder);
  const client = await cluster.start();
  await loadAccounts(client, rows);
  const logBytes = await updateAccounts(client, rows, updates);
  await cluster.crash();
  const image = `${cluster.dataFolder}-image`;
  copy(cluster.dataFolder, image);
  return { cluster, image, logBytes };
}

async function restart(
  cluster: PostgresCluster,
  rows: number,
  updates: number,
): Promise<PostgresRecovered> {
  const startNs = monotonicNs();
  const client = await cluster.start();
  await client.query(`SELECT * FROM account WHERE id = ${rows >> 1}`);
  const ms = (monotonicNs() - startNs) / 1e6;
  const [[total]] = await client.query("SELECT sum(balance) FROM account");
  const wanted = totalOf(rows) + BigInt(updates);
  if (BigInt(total) !== wanted) throw new Error(`postgres: ${total}, not ${wanted}`);
  await client.close();
  await cluster.crash();
  const log = cluster.log();
  const redo = /redo done at .* elapsed: ([\d.]+) s/.exec(log);
  const checkpoint = /checkpoint complete: .* total=([\d.]+) s/.exec(log);
  if (redo === null) throw new Error(`postgres had nothing to recover:\n${log}`);
  return { ms, redoMs: 1000 * Number(redo[1]), checkpointMs: 1000 * Number(checkpoint?.[1] ?? 0) };
}

/** As a reboot does. */
function forgetMemory({ memoryDir }: StorePlace): void {
  for (const name of readdirSync(memoryDir)) {
    rmSync(join(memoryDir, name), { recursive: true, force: true });
  }
}

function bringBack(image: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  copy(image, folder);
}

/** With owners and times, and on disk when it returns. */
function copy(from: string, to: string): void {
  for (const [command, ...args] of [["cp", "-a", from, to], ["sync"]]) {
    const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  }
}
