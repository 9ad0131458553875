// `npm run bench -- durable`: what the log costs, what a commit costs that waits for the disk, and
// how long recovery takes; beside PostgreSQL and beside bare syncs.

import { parseBenchArguments } from "../harness/bench-options.ts";
import { describeMachine } from "../harness/machine.ts";
import { describePeer } from "../harness/peers.ts";
import { findPostgres } from "../harness/postgres-server.ts";
import { createProgress, type Progress } from "../harness/progress.ts";
import { renderText } from "../harness/report.ts";
import { releaseAll, temporaryFolder } from "../harness/resources.ts";
import { rowBytes } from "../memory/rows.ts";
import { checkBank, loadBank } from "../memory/situ.ts";
import { measureCheckpoints } from "./checkpoints.ts";
import { describeDisk, diskFolder } from "./disk.ts";
import { durableFigures, notesOf, reportedOf } from "./figures.ts";
import { measureInFlight } from "./in-flight.ts";
import { measureLogBytes } from "./log-bytes.ts";
import { type Mode, measureModes, type Stores } from "./modes.ts";
import { measureOneByOne } from "./one-by-one.ts";
import { measureRecovery } from "./recovery.ts";
import { openDurableBank } from "./situ.ts";

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";

async function main(): Promise<void> {
  const { options } = parseBenchArguments(process.argv.slice(2));
  const { quick, json, seed, rounds, roundMs } = options;
  const rows = quick ? 200_000 : 1_000_000;
  const machine = describeMachine();
  const progress = createProgress();
  const folder = diskFolder();
  const postgres = findPostgres();

  const place = () => ({
    path: temporaryFolder(folder),
    memoryDir: temporaryFolder(memoryFolder),
  });
  const stores: Stores = { none: place(), lazy: place() };
  for (const mode of ["none", "lazy"] as const) await loadStore(stores, mode, rows, progress);

  const modes = await measureModes(stores, rows, options, progress);
  const inFlight = await measureInFlight(stores.lazy, postgres, folder, rows, options, progress);
  const oneByOne = await measureOneByOne(
    stores.lazy,
    temporaryFolder(folder),
    rows,
    options,
    progress,
  );
  const checkpoints = await measureCheckpoints(stores.lazy, rows, options, progress);
  progress.show("checking that no money was lost");
  for (const mode of ["none", "lazy"] as const) await checkStore(stores, mode, rows);
  progress.show("counting log bytes");
  const logBytes = await measureLogBytes(stores.lazy, rows, options);
  const recovery = await measureRecovery(folder, memoryFolder, postgres, rows, options, progress);
  progress.clear();

  const conditions = [
    ...machine,
    describePeer("PostgreSQL", postgres, "benchmarks/peers/postgresql, fsync, unix socket"),
    describePeer("better-sqlite3", oneByOne.sqlite, "on the same disk, WAL, synchronous = FULL"),
    describeDisk(folder),
    `${rows.toLocaleString("en")} rows of ${rowBytes} bytes, uniformly random, seed ${seed}`,
    `${rounds} rounds, interleaved, new processes in each; medians; a ratio is taken per round; ` +
      `turns of ${4 * roundMs} ms, of ${quick ? 2 : 4} s with 64 in flight`,
  ];
  const measured = { modes, inFlight, oneByOne, recovery, logBytes, checkpoints };
  const figures = durableFigures(measured, postgres);
  const notes = notesOf(measured, postgres);
  console.log(renderText({ bench: "durable", conditions, timings: [], figures, notes }));
  if (json) {
    console.log(JSON.stringify({ bench: "durable", figures, reported: reportedOf(measured) }));
  }
}

async function loadStore(stores: Stores, mode: Mode, rows: number, progress: Progress) {
  progress.show(`loading situ, durability "${mode}"`);
  const db = await openDurableBank({ ...stores[mode], durability: mode });
  loadBank(db, rows);
  if (mode !== "none") await db.checkpoint();
  await db.close();
}

async function checkStore(stores: Stores, mode: Mode, rows: number): Promise<void> {
  const db = await openDurableBank({ ...stores[mode], durability: mode });
  checkBank(db, rows);
  await db.close();
}

try {
  await main();
} finally {
  // Also after a failure: the server, the children and the folders in /dev/shm must not stay.
  releaseAll();
}
