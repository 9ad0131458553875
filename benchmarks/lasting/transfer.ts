// How fast rows come in and go out as text, against the engine's own inserts of the same rows in transactions of
// the same size. Each round inserts, dumps and loads the same rows, one after the other.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { bool, destroy, dump, f64, load, open, str, table, u32 } from "../../src/index.ts";
import { timesFaster } from "../harness/figures.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { summarize } from "../harness/statistics.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "../trust/measure.ts";

const Visit = table(
  "visit",
  { id: u32(), page: str(80), seconds: f64(), again: bool() },
  { key: "id" },
);
const ROWS = 1_000_000;
const QUICK_ROWS = 20_000;
const BATCH = 256;
const MEMORY_BYTES = 512 * 2 ** 20;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** The engine's part: rows that exist already as objects. */
async function insertAll(path: string, memoryDir: string, rows: number): Promise<number> {
  await using db = await open({
    path,
    memoryDir,
    tables: [Visit],
    durability: "none",
    memoryBytes: MEMORY_BYTES,
  });
  return timed(async () => {
    for (let from = 0; from < rows; from += BATCH) {
      db.transactSync((tx) => {
        for (let id = from; id < Math.min(from + BATCH, rows); id++) {
          const page = `https://example.org/articles/${id % 1000}/page-${id}`;
          tx.insert(Visit, { id, page, seconds: id / 7, again: id % 3 === 0 });
        }
      });
    }
  });
}

async function run({ options, progress, memoryFolder }: TrustContext): Promise<TrustResult> {
  const memoryDir = temporaryFolder(memoryFolder);
  const rows = options.quick ? QUICK_ROWS : ROWS;
  const rounds = Math.min(options.rounds, 3);
  const times: Record<"insert" | "dump" | "load", number[]> = { insert: [], dump: [], load: [] };
  for (let round = 0; round < rounds; round++) {
    progress.show(`transfer ${round + 1}/${rounds}`);
    const [from, to, text] = ["from", "to", "text"].map((name) => join(memoryDir, name));
    times.insert.push(await insertAll(from, memoryDir, rows));
    times.dump.push(await timed(() => dump(from, text)));
    const settings = { memoryBytes: MEMORY_BYTES, memoryDir, durability: "none" } as const;
    times.load.push(await timed(() => load(text, to, settings)));
    await destroy(from);
    await destroy(to);
    for (const folder of [from, to, text]) rmSync(folder, { recursive: true, force: true });
  }
  const [insert, dumped, loaded] = [times.insert, times.dump, times.load].map(
    (all) => summarize(all).median,
  );
  const perRow = (name: string, all: readonly number[]) => ({
    name,
    values: all.map((ms) => (ms * 1e6) / rows),
  });
  const inserts = perRow("inserts", times.insert);
  const perSecond = (ms: number): string => Math.round((rows / ms) * 1000).toLocaleString("en-US");
  return {
    figures: [
      timesFaster("dump-vs-inserts", { atLeast: 0.5 }, perRow("dump", times.dump), inserts),
      timesFaster("load-vs-inserts", { atLeast: 0.5 }, perRow("load", times.load), inserts),
    ],
    notes: [
      `transfer: ${rows} rows; inserted ${perSecond(insert)} a second, dumped ${perSecond(dumped)}, ` +
        `loaded ${perSecond(loaded)} (JSON lines; medians of ${rounds} rounds)`,
    ],
  };
}

export const transfer: TrustMeasure = { name: "transfer", run };
