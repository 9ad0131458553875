// `npm run bench -- memory`: Situ beside lmdb, SQLite and Redis on one machine, and beside bare
// loops that show what the memory itself allows.
import { tmpdir } from "node:os";
import { parseBenchArguments } from "../harness/bench-options.ts";
import { describeMachine } from "../harness/machine.ts";
import { createProgress } from "../harness/progress.ts";
import { randomKeys, randomPairs } from "../harness/random.ts";
import { printReport } from "../harness/report.ts";
import { releaseAll, temporaryFolder } from "../harness/resources.ts";
import { type Contestant, measureRounds } from "../harness/rounds.ts";
import { bareMemory, bareRead, bareRow, bareTransfer } from "./bare.ts";
import { bareNotes, countedFigures, processFigure, speedFigures } from "./figures.ts";
import { closePeers, describePeers, openPeers } from "./peers.ts";
import { rowBytes } from "./rows.ts";
import { Account, checkBank, loadBank, openBank, situGet } from "./situ.ts";
import { situCallbacks } from "./situ-transact.ts";
import { situTransfer } from "./situ-transfer.ts";
import { measureTwoProcesses } from "./two-processes.ts";

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";

/** Few enough for the cache of one core. */
const cachedRows = 1_000;

async function main(): Promise<void> {
  const { options } = parseBenchArguments(process.argv.slice(2));
  const { quick, json, seed, rounds, roundMs } = options;
  const rows = quick ? 200_000 : 1_000_000;
  const machine = describeMachine();
  const progress = createProgress();

  progress.show("counting");
  const counted = await countedFigures();
  const keys = { single: randomKeys(rows, seed), pairs: randomPairs(rows, seed, 1) };
  progress.show("loading situ");
  const place = { path: temporaryFolder(tmpdir()), memoryDir: temporaryFolder(memoryFolder) };
  const db = await openBank(place);
  loadBank(db, rows);
  const peers = await openPeers(memoryFolder, rows, keys, progress);
  const { lmdb, sqlite, redis } = peers;
  const words = bareMemory(rows);

  const situ = { get: situGet(db, keys.single), transfer: situTransfer(db, Account, keys.pairs) };
  const gets: Contestant[] = [situ.get];
  if (lmdb.available) gets.push(lmdb.value.get);
  if (sqlite.available) gets.push(sqlite.value.get);
  if (redis.available) gets.push(redis.value.get);
  gets.push(bareRead(words, keys.single), bareRow(words, keys.single));

  const transfers: Contestant[] = [situ.transfer];
  if (lmdb.available) transfers.push(lmdb.value.transfer);
  if (sqlite.available) transfers.push(sqlite.value.transfer);
  transfers.push(bareTransfer(words, keys.pairs));

  const timings = [
    ...(await measureRounds(gets, options, progress)),
    ...(await measureRounds(transfers, options, progress)),
  ];
  // The same loops on rows that stay in the processor's cache: what is left is instructions.
  keys.single.set(randomKeys(cachedRows, seed));
  keys.pairs.set(randomPairs(cachedRows, seed, 1));
  const cached: Contestant[] = [
    { ...situ.get, name: "situ get, cached" },
    { ...situ.transfer, name: "situ transfer, cached" },
  ];
  const callbacks = situCallbacks(db, Account, keys.pairs);
  cached.push(callbacks.sync, callbacks.async);
  timings.push(...(await measureRounds(cached, options, progress)));
  const scaling = await measureTwoProcesses(place, rows, seed, options, progress);

  progress.show("checking that no money was lost");
  checkBank(db, rows);
  await db.close();
  await closePeers(peers);
  progress.clear();

  const conditions = [
    ...machine,
    ...describePeers(peers),
    `${rows.toLocaleString("en")} rows of ${rowBytes} bytes, uniformly random, seed ${seed}`,
    `${rounds} rounds of ${roundMs} ms each, interleaved; medians; a ratio is taken per round`,
  ];
  const figures = [...speedFigures(timings, peers), processFigure(scaling.situ), ...counted];
  const notes = bareNotes(timings, scaling.bare);
  printReport({ bench: "memory", conditions, timings, figures, notes }, json);
}

try {
  await main();
} finally {
  // Also after a failure: Redis, the children and the folders in /dev/shm must not stay.
  releaseAll();
}
