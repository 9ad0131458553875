// Does a transaction that reads and writes 10,000 rows get through while four processes write single ones of
// these rows without pause, and what does it cost them? In each round the writers are counted alone, then while
// large transactions run one after the other in this process.
import { setTimeout as sleep } from "node:timers/promises";
import { counted, timesMore } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { Account, type Bank, loadBank, openBank } from "../memory/situ.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "./measure.ts";
import type { WriterTask, Written } from "./starvation-process.ts";

const rows = 10_000;
const writers = 4;
const timeoutMs = 2_000;
const transactionsPerRound = 5;

type Writer = MeasuringProcess<"count", Written>;

export const starvation: TrustMeasure = { name: "starvation", run };

async function run({ options, progress, memoryFolder }: TrustContext): Promise<TrustResult> {
  const rounds = options.quick ? 1 : 4;
  const roundMs = options.quick ? 500 : 2_000;
  const place = { path: temporaryFolder(memoryFolder), memoryDir: temporaryFolder(memoryFolder) };
  const db = await openBank(place);
  try {
    loadBank(db, rows);
    progress.show("starvation: starting the writers");
    const processes = await Promise.all(
      Array.from({ length: writers }, (_, index) =>
        startWriter({ ...place, rows, seed: options.seed + index }),
      ),
    );
    const alone: number[] = [];
    const meanwhile: number[] = [];
    const times: number[] = [];
    await sleep(roundMs / 4);
    for (let round = 0; round < rounds; round++) {
      progress.show(`starvation: round ${round + 1} of ${rounds}`);
      alone.push(await rateDuring(processes, () => sleep(roundMs)));
      meanwhile.push(await rateDuring(processes, async () => times.push(...(await runLarge(db)))));
    }
    await Promise.all(processes.map((process) => process.stop()));
    return result(alone, meanwhile, times);
  } finally {
    await db.close();
  }
}

function result(alone: number[], meanwhile: number[], times: readonly number[]): TrustResult {
  const inTime = times.filter((ms) => ms <= timeoutMs).length;
  const slowest = Math.round(Math.max(...times));
  return {
    figures: [
      counted(
        `of ${times.length} transactions over ${rows} rows against ${writers} writers, within ${timeoutMs} ms`,
        { atLeast: times.length },
        inTime,
        "transactions",
      ),
      timesMore(
        "single-row writers while such transactions run, against alone",
        { atLeast: 0.5 },
        { name: "meanwhile", values: meanwhile },
        { name: "alone", values: alone },
      ),
    ],
    notes: [
      `starvation: the slowest of the large transactions took ${slowest} ms; they follow each other without a pause`,
    ],
  };
}

function startWriter(task: WriterTask): Promise<Writer> {
  return MeasuringProcess.start(new URL("./starvation-process.js", import.meta.url), task);
}

/** What all writers together commit per second while something else happens. */
async function rateDuring(
  processes: readonly Writer[],
  work: () => Promise<unknown>,
): Promise<number> {
  const before = await Promise.all(processes.map((process) => process.ask("count")));
  await work();
  const after = await Promise.all(processes.map((process) => process.ask("count")));
  return after.reduce((sum, { operations, atNs }, index) => {
    const first = before[index];
    return sum + ((operations - first.operations) * 1e9) / (atNs - first.atNs);
  }, 0);
}

/** How long each took; infinitely long if it did not commit. */
async function runLarge(db: Bank): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < transactionsPerRound; i++) {
    const start = performance.now();
    times.push(commitsLarge(db) ? performance.now() - start : Number.POSITIVE_INFINITY);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return times;
}

function commitsLarge(db: Bank): boolean {
  try {
    db.transactSync(
      (tx) => {
        for (let id = 0; id < rows; id++) {
          const row = tx.get(Account, id);
          if (row === undefined) throw new Error(`situ lost row ${id}`);
          tx.update(Account, id, { balance: row.balance + 1n });
        }
      },
      { timeoutMs },
    );
    return true;
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "SITU_CONFLICT" || code === "SITU_TIMEOUT") return false;
    throw error;
  }
}
