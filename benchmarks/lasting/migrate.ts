// Adding a field to a million rows: how many transfers others commit meanwhile, against before, and how
// long the longest of them takes.
import { cpus } from "node:os";
import * as situ from "situ";
import { counted } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "../trust/measure.ts";
import type { Slice } from "./migrate-process.ts";
import { Account, type MigrateTask, openAccounts, WithLevel } from "./migrate-store.ts";

const manyRows = 1_000_000;
const quickRows = 50_000;
const sliceMs = 500;
const slicesBefore = 8;
const quickSlicesBefore = 3;
const rowsPerTransaction = 1_000;

type Worker = MeasuringProcess<{ readonly ms: number }, Slice>;

export const migrate: TrustMeasure = {
  name: "migrate",
  async run({ options, progress, memoryFolder }: TrustContext): Promise<TrustResult> {
    const rows = options.quick ? quickRows : manyRows;
    const path = temporaryFolder(memoryFolder);
    const place = { path, memoryDir: path, rows };
    const db = await openAccounts(place);
    progress.show(`filling ${rows} rows`);
    for (let from = 0; from < rows; from += rowsPerTransaction) {
      db.transactSync((tx) => {
        for (let id = from; id < from + rowsPerTransaction; id++) {
          tx.insert(Account, { id, owner: `owner ${id % 1_000}`, balance: 100n });
        }
      });
    }
    // One core is left to the process that migrates.
    const processCount = Math.max(1, Math.min(4, cpus().length - 1));
    const script = new URL("./migrate-process.js", import.meta.url);
    const workers: Worker[] = [];
    for (let number = 0; number < processCount; number++) {
      const task: MigrateTask = { ...place, number, seed: options.seed };
      workers.push(await MeasuringProcess.start(script, task));
    }
    progress.show("transfers before");
    await slice(workers);
    const before: Slice[] = [];
    const count = options.quick ? quickSlicesBefore : slicesBefore;
    for (let n = 0; n < count; n++) before.push(await slice(workers));
    progress.show("transfers while a field is added");
    const startMs = performance.now();
    let endMs = 0;
    const step = situ.addField(WithLevel, "level", { default: 1 });
    const migrating = db.migrate([step]).then(() => {
      endMs = performance.now();
    });
    const meanwhile: Slice[] = [];
    while (endMs === 0) {
      const next = await slice(workers);
      // The last one goes on after the migration has ended.
      if (endMs === 0 || meanwhile.length === 0) meanwhile.push(next);
    }
    await migrating;
    await Promise.all(workers.map((each) => each.stop()));
    await db.close();
    const [rateBefore, rate] = [rateOf(before), rateOf(meanwhile)];
    return {
      figures: [
        counted(
          `transfers of others while a field is added to ${rows} rows, against before`,
          { atLeast: 0.7 },
          rate / rateBefore,
          "times",
        ),
        counted(
          "the longest stall of a transfer meanwhile",
          { atMost: 50 },
          stallOf(meanwhile),
          "ms",
        ),
      ],
      notes: [
        `migrate: ${processCount} processes, ${Math.round(rateBefore)} transfers per second before, ` +
          `${Math.round(rate)} meanwhile; ${((endMs - startMs) / 1_000).toFixed(1)} s for ${rows} rows; ` +
          `longest stall before ${stallOf(before).toFixed(1)} ms`,
      ],
    };
  },
};

async function slice(workers: readonly Worker[]): Promise<Slice> {
  const all = await Promise.all(workers.map((each) => each.ask({ ms: sliceMs })));
  return {
    commits: all.reduce((sum, { commits }) => sum + commits, 0),
    ms: Math.max(...all.map(({ ms }) => ms)),
    stallMs: Math.max(...all.map(({ stallMs }) => stallMs)),
  };
}

function rateOf(slices: readonly Slice[]): number {
  const commits = slices.reduce((sum, each) => sum + each.commits, 0);
  return (1_000 * commits) / slices.reduce((sum, { ms }) => sum + ms, 0);
}

function stallOf(slices: readonly Slice[]): number {
  return Math.max(...slices.map(({ stallMs }) => stallMs));
}
