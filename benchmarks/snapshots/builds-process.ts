// A process with two builds of Situ, with and without versions, each an executor of the same store.
// They take turns of some milliseconds, much shorter than the machine's moods.
import { serve, taskOf } from "../harness/process-side.ts";
import { randomPairs } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { perSecond, runFor } from "../harness/timed-run.ts";
import { accountTable, type SituModule } from "../memory/account-table.ts";
import type { Bank, StorePlace } from "../memory/situ.ts";

export interface BuildsTask extends StorePlace {
  readonly rows: number;
  readonly seed: number;
  /** Which one opens the store first and gets the lower slot. */
  readonly first: BuildName;
}

export type BuildName = "situ" | "situ-unversioned";

export interface MeasureBuilds {
  readonly warmUpMs: number;
  readonly sliceMs: number;
  readonly pairs: number;
}

/** Transfers per second, one entry per pair of turns. */
export type BuildRates = Readonly<Record<BuildName, number[]>>;

type TransferModule = typeof import("../memory/situ-transfer.ts");

const task = taskOf<BuildsTask>();
const databases: Bank[] = [];

async function openBuild(name: BuildName): Promise<SyncContestant> {
  const build = (await import(new URL(`../../${name}.js`, import.meta.url).href)) as SituModule;
  // A loop of its own for each, by a name of its own: V8 must not mix what it learns of both.
  const loop = (await import(`../memory/situ-transfer.js?${name}`)) as TransferModule;
  const accounts = accountTable(build);
  const { path, memoryDir, rows, seed } = task;
  const db = await build.open({ path, memoryDir, tables: [accounts] });
  databases.push(db);
  // Other keys as well: the second would find the rows of the first in the cache.
  return loop.situTransfer(db, accounts, randomPairs(rows, seed, databases.length));
}

const names: readonly BuildName[] =
  task.first === "situ" ? ["situ", "situ-unversioned"] : ["situ-unversioned", "situ"];
const contestants = {} as Record<BuildName, SyncContestant>;
for (const name of names) contestants[name] = await openBuild(name);

function measure({ warmUpMs, sliceMs, pairs }: MeasureBuilds): BuildRates {
  const rates: BuildRates = { situ: [], "situ-unversioned": [] };
  const warmUpPairs = Math.ceil(warmUpMs / (2 * sliceMs));
  for (let pair = -warmUpPairs; pair < pairs; pair++) {
    // Who went second goes first next time.
    const order = pair % 2 === 0 ? names : [...names].reverse();
    for (const name of order) {
      const rate = perSecond(runFor(contestants[name], sliceMs));
      if (pair >= 0) rates[name].push(rate);
    }
  }
  return rates;
}

serve<MeasureBuilds, BuildRates>({
  handle: (message, answer) => answer(measure(message)),
  async close() {
    for (const db of databases) await db.close();
  },
});
