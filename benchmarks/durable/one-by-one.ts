// Transfers one after another, each on disk before the next begins, beside a bare loop that writes
// and syncs as many bytes: what the disk allows, whatever the database. And beside SQLite.
import type { BenchOptions } from "../harness/bench-options.ts";
import { loadPeer, mapPeer, type Peer } from "../harness/peers.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import { perSecond, type TimedEach, type TimedRun } from "../harness/timed-run.ts";
import type { StorePlace } from "../memory/situ.ts";
import type { Outcome } from "./bank-process.ts";
import { inBankProcess } from "./bank-processes.ts";
import type { BareFile, RunBare } from "./bare-process.ts";
import type { RunSqlite, SqliteTask } from "./sqlite-process.ts";

export interface OneByOneMeasured {
  /** Per second, one entry per round. */
  readonly situ: readonly number[];
  /** What half of the transfers take at most, one entry per round. */
  readonly situP50Ns: readonly number[];
  readonly sqlite: Peer<readonly number[]>;
  readonly bare: Readonly<Record<BareFile, readonly number[]>>;
  /** That one commit writes. */
  readonly bytes: number;
}

/** A hundred syncs or so: the loop is compiled soon. */
const warmUpMs = 500;

export async function measureOneByOne(
  place: StorePlace,
  folder: string,
  rows: number,
  { rounds, roundMs, seed }: BenchOptions,
  progress: Progress,
): Promise<OneByOneMeasured> {
  const ms = 3 * roundMs;
  const situ: number[] = [];
  const situP50Ns: number[] = [];
  const sqlite = mapPeer(loadPeer("better-sqlite3"), (): number[] => []);
  const bare: Record<BareFile, number[]> = { preallocated: [], appended: [] };
  const files = Object.keys(bare) as BareFile[];
  let bytes = 0;
  const loop = await MeasuringProcess.start<RunBare, TimedRun>(
    new URL("./bare-process.js", import.meta.url),
    { folder },
  );
  progress.show("loading SQLite on the disk");
  const peer = sqlite.available
    ? await MeasuringProcess.start<RunSqlite, TimedEach>(
        new URL("./sqlite-process.js", import.meta.url),
        { folder, rows, seed } satisfies SqliteTask,
      )
    : undefined;
  for (let round = 0; round < rounds; round++) {
    progress.show(`round ${round + 1} of ${rounds}: transfers one after another`);
    const task = { ...place, durability: "sync", first: 0, rows, seed: seed + round } as const;
    const { run, log } = await inBankProcess(task, async (process) => {
      const transfers = (forMs: number): Promise<Outcome> =>
        process.ask({ kind: "transfer-one-by-one", ms: forMs });
      await transfers(warmUpMs);
      return transfers(ms);
    });
    situ.push(perSecond(run));
    situP50Ns.push((run as TimedEach).p50Ns);
    if (peer !== undefined && sqlite.available) {
      progress.show(`round ${round + 1} of ${rounds}: SQLite's transfers`);
      if (round === 0) await peer.ask({ ms: warmUpMs });
      sqlite.value.push((await peer.ask({ ms })).p50Ns);
    }
    bytes = Math.round(log.logBytes / run.operations);
    for (const file of files) {
      progress.show(`round ${round + 1} of ${rounds}: write and sync, ${file}`);
      if (round === 0) await loop.ask({ file, bytes, ms: warmUpMs });
      bare[file].push(perSecond(await loop.ask({ file, bytes, ms })));
    }
  }
  await loop.stop();
  await peer?.stop();
  return { situ, situP50Ns, sqlite, bare, bytes };
}
