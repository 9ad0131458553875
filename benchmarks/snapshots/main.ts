// `npm run bench -- snapshots`: what snapshots cost those who write, and how ordered tables do beside
// lmdb and SQLite.
import { tmpdir } from "node:os";
import { parseBenchArguments } from "../harness/bench-options.ts";
import { describeMachine } from "../harness/machine.ts";
import { createProgress } from "../harness/progress.ts";
import { printReport } from "../harness/report.ts";
import { releaseAll, temporaryFolder } from "../harness/resources.ts";
import { describeEmbedded } from "../memory/peers.ts";
import { rowBytes } from "../memory/rows.ts";
import { checkBank, loadBank } from "../memory/situ.ts";
import { measureBesideScanner } from "./beside-scanner.ts";
import { measureBuilds } from "./builds.ts";
import { measureEmbedded } from "./embedded.ts";
import { buildsFigure, embeddedFigures, notesOf, scannerFigures } from "./figures.ts";
import { checkRange, rangeRows } from "./ranges.ts";
import { Ledger, openSnapshotBank } from "./situ.ts";

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";

async function main(): Promise<void> {
  const { options } = parseBenchArguments(process.argv.slice(2));
  const { quick, json, seed, rounds, roundMs } = options;
  const rows = quick ? 200_000 : 1_000_000;
  const machine = describeMachine();
  const progress = createProgress();

  progress.show("loading situ");
  const place = { path: temporaryFolder(tmpdir()), memoryDir: temporaryFolder(memoryFolder) };
  const db = await openSnapshotBank(place);
  loadBank(db, rows);
  loadBank(db, rows, Ledger);
  const middle = rows >> 1;
  checkRange("situ", middle, db.scan(Ledger, { gte: middle, limit: rangeRows }));

  const builds = await measureBuilds(place, rows, options, progress);
  const beside = await measureBesideScanner(db, place, rows, options, progress);
  progress.show("checking that no money was lost");
  checkBank(db, rows);
  const embedded = await measureEmbedded(db, rows, memoryFolder, options, progress);
  await db.close();
  progress.clear();

  const conditions = [
    ...machine,
    ...describeEmbedded(embedded),
    `${rows.toLocaleString("en")} rows of ${rowBytes} bytes, seed ${seed}`,
    `${rounds} rounds, interleaved; medians; a ratio is taken per round. ${roundMs} ms each, four ` +
      "times as long beside the scanner; with and without versions, four processes a round",
  ];
  const figures = [buildsFigure(builds), ...scannerFigures(beside), ...embeddedFigures(embedded)];
  const notes = notesOf(builds, beside, embedded);
  const { timings } = embedded;
  printReport({ bench: "snapshots", conditions, timings, figures, notes }, json);
}

try {
  await main();
} finally {
  // Also after a failure: the children and the folders in /dev/shm must not stay.
  releaseAll();
}
