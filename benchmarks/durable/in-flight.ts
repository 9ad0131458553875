// Many transfers at a time, each acknowledged when it is on disk: beside PostgreSQL with as many
// clients, driven by its own pgbench.
import type { BenchOptions } from "../harness/bench-options.ts";
import type { Peer } from "../harness/peers.ts";
import type { PostgresClient } from "../harness/postgres-client.ts";
import {
  createCluster,
  type PostgresCluster,
  type PostgresPrograms,
} from "../harness/postgres-server.ts";
import type { Progress } from "../harness/progress.ts";
import { perSecond } from "../harness/timed-run.ts";
import type { StorePlace } from "../memory/situ.ts";
import type { Outcome } from "./bank-process.ts";
import { inBankProcess } from "./bank-processes.ts";
import {
  checkAccounts,
  loadAccounts,
  pgbenchTransfers,
  type TransferWay,
  touchAllPages,
} from "./postgres.ts";

export interface InFlightMeasured {
  /** Transfers per second, one entry per round. */
  readonly situ: readonly number[];
  readonly postgres: Readonly<Record<TransferWay, readonly number[]>>;
  /** Transfers that went to disk together, one entry per round. */
  readonly perSync: readonly number[];
}

export const clients = 64;
const warmUpMs = 1_000;

export async function measureInFlight(
  place: StorePlace,
  postgres: Peer<PostgresPrograms>,
  folder: string,
  rows: number,
  { quick, rounds, seed }: BenchOptions,
  progress: Progress,
): Promise<InFlightMeasured> {
  const seconds = quick ? 2 : 4;
  const situ: number[] = [];
  const perSync: number[] = [];
  const rates: Record<TransferWay, number[]> = { "one by one": [], pipelined: [] };
  const ways = Object.keys(rates) as TransferWay[];

  const runSitu = async (round: number): Promise<void> => {
    progress.show(`round ${round + 1} of ${rounds}: ${clients} transfers in flight, situ`);
    const task = { ...place, durability: "sync", first: 0, rows, seed: seed + round } as const;
    const { run, log } = await inBankProcess(task, async (process) => {
      const transfers = (ms: number): Promise<Outcome> =>
        process.ask({ kind: "transfer-in-flight", ms, clients });
      await transfers(warmUpMs);
      return transfers(1000 * seconds);
    });
    situ.push(perSecond(run));
    perSync.push(log.records / log.batches);
  };

  const server = postgres.available
    ? await startBank(postgres.value, folder, rows, progress)
    : undefined;
  for (let round = 0; round < rounds; round++) {
    await runSitu(round);
    if (server === undefined) continue;
    for (const way of ways) {
      progress.show(`round ${round + 1} of ${rounds}: ${clients} clients of postgres, ${way}`);
      const transfers = { clients, seconds, rows, seed: seed + round };
      rates[way].push(await pgbenchTransfers(server.cluster, way, transfers));
    }
  }
  if (server !== undefined) {
    await checkAccounts(server.client, rows);
    await server.client.close();
    await server.cluster.stop();
  }
  return { situ, postgres: rates, perSync };
}

async function startBank(
  programs: PostgresPrograms,
  folder: string,
  rows: number,
  progress: Progress,
): Promise<{ cluster: PostgresCluster; client: PostgresClient }> {
  progress.show("loading postgres");
  const cluster = await createCluster(programs, folder);
  const client = await cluster.start();
  await loadAccounts(client, rows);
  await touchAllPages(client);
  for (const way of ["one by one", "pipelined"] as const) {
    await pgbenchTransfers(cluster, way, { clients, seconds: 1, rows, seed: 1 });
  }
  return { cluster, client };
}
