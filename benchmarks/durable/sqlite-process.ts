// A process with the accounts in SQLite on the disk, opened as the suite does it: transfers one after another, each synced.
import { join } from "node:path";
import { pragmasFor } from "../engines/sqlite/settings.ts";
import { needPeer } from "../harness/peers.ts";
import { serve, taskOf } from "../harness/process-side.ts";
import { randomKeys, randomPairs } from "../harness/random.ts";
import { runEach, type TimedEach } from "../harness/timed-run.ts";
import { rowBytes } from "../memory/rows.ts";
import { openSqliteBank, type SqliteModule } from "../memory/sqlite.ts";

export interface SqliteTask {
  readonly folder: string;
  readonly rows: number;
  readonly seed: number;
}

export interface RunSqlite {
  readonly ms: number;
}

const { folder, rows, seed } = taskOf<SqliteTask>();
const bank = openSqliteBank(
  needPeer<SqliteModule>("better-sqlite3"),
  rows,
  { single: randomKeys(rows, seed), pairs: randomPairs(rows, seed, 0) },
  join(folder, "accounts.sqlite"),
  pragmasFor({ durability: "sync", processes: 1, inFlight: 1, bytes: rows * rowBytes }),
);

serve<RunSqlite, TimedEach>({
  handle: ({ ms }, answer) => answer(runEach(bank.transfer, ms)),
  close: async () => {
    bank.check();
    bank.close();
  },
});
