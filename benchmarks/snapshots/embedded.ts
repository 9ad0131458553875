// Scans, ranges and gets of ordered rows, beside lmdb and SQLite in the same process.
import type { BenchOptions } from "../harness/bench-options.ts";
import { loadPeer, mapPeer, type Peer } from "../harness/peers.ts";
import type { Progress } from "../harness/progress.ts";
import { randomKeys, randomPairs } from "../harness/random.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { type Contestant, measureRounds, type Timing } from "../harness/rounds.ts";
import { type Bank, situGet } from "../memory/situ.ts";
import type { SqliteModule } from "../memory/sqlite.ts";
import { openOrderedLmdb, type RangeLmdbModule } from "./lmdb.ts";
import { bareScan, type OrderedBank, rangeStarts } from "./ranges.ts";
import { Ledger, ledgerRange, ledgerScan } from "./situ.ts";
import { openOrderedSqlite } from "./sqlite.ts";

export interface Embedded {
  readonly lmdb: Peer<OrderedBank>;
  readonly sqlite: Peer<OrderedBank>;
  readonly timings: readonly Timing[];
}

export async function measureEmbedded(
  db: Bank,
  rows: number,
  memoryFolder: string,
  options: BenchOptions,
  progress: Progress,
): Promise<Embedded> {
  const { seed } = options;
  const keys = { single: randomKeys(rows, seed), pairs: randomPairs(rows, seed, 1) };
  const starts = rangeStarts(rows, seed);
  progress.show("loading lmdb");
  const lmdb = mapPeer(loadPeer<RangeLmdbModule>("lmdb"), (module) =>
    openOrderedLmdb(module, temporaryFolder(memoryFolder), rows, keys, starts),
  );
  progress.show("loading sqlite");
  const sqlite = mapPeer(loadPeer<SqliteModule>("better-sqlite3"), (module) =>
    openOrderedSqlite(module, rows, keys, starts),
  );
  const peers = [lmdb, sqlite].flatMap((peer) => (peer.available ? [peer.value] : []));
  const groups: Contestant[][] = [
    [ledgerScan(db, rows), ...peers.map(({ scan }) => scan), bareScan(rows)],
    [situGet(db, keys.single, Ledger), ...peers.map(({ get }) => get)],
    [ledgerRange(db, starts), ...peers.map(({ range }) => range)],
  ];
  const timings: Timing[] = [];
  for (const group of groups) timings.push(...(await measureRounds(group, options, progress)));
  for (const peer of peers) await peer.close();
  return { lmdb, sqlite, timings };
}
