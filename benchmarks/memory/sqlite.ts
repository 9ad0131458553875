// SQLite in memory through better-sqlite3. Rows come as arrays and become objects here: measured a
// quarter faster than letting better-sqlite3 build them. The journal stays in memory rather than
// off, because without one a transaction cannot be rolled back.
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { type AccountRow, checkRow, checkTotal, type Keys, makeRow } from "./rows.ts";

export type SqliteModule = new (path: string) => SqliteDatabase;

interface SqliteDatabase {
  exec(sql: string): void;
  pragma(text: string): unknown;
  prepare(sql: string): SqliteStatement;
  transaction<A extends unknown[], R>(
    body: (...args: A) => R,
  ): ((...args: A) => R) & { readonly immediate: (...args: A) => R };
  close(): void;
}

export interface SqliteStatement {
  get(...parameters: unknown[]): unknown;
  all(...parameters: unknown[]): unknown[];
  run(...parameters: unknown[]): unknown;
  /** 64-bit integers as bigint, as everywhere in this comparison. */
  safeIntegers(): SqliteStatement;
  raw(): SqliteStatement;
}

type Columns = [balance: bigint, a: number, b: number, c: number, d: number, e: number];

export interface SqliteBank {
  readonly db: SqliteDatabase;
  readonly get: SyncContestant;
  readonly transfer: SyncContestant;
  check(): void;
  close(): void;
}

const IN_MEMORY = ["journal_mode = MEMORY", "synchronous = OFF", "locking_mode = EXCLUSIVE"];

export function openSqliteBank(
  Database: SqliteModule,
  rows: number,
  keys: Keys,
  path = ":memory:",
  settings: readonly string[] = IN_MEMORY,
): SqliteBank {
  const db = new Database(path);
  for (const setting of settings) db.pragma(setting);
  db.exec(`CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, a REAL NOT NULL,
    b REAL NOT NULL, c REAL NOT NULL, d REAL NOT NULL, e REAL NOT NULL)`);
  const insert = db.prepare("INSERT INTO account VALUES (?, ?, ?, ?, ?, ?, ?)");
  db.transaction(() => {
    for (let id = 0; id < rows; id++) {
      const { balance, a, b, c, d, e } = makeRow(id);
      insert.run(id, balance, a, b, c, d, e);
    }
  })();
  const select = db
    .prepare("SELECT balance, a, b, c, d, e FROM account WHERE id = ?")
    .safeIntegers()
    .raw();
  for (const id of [0, 1, rows >> 1, rows - 1]) checkRow("sqlite", read(select, id), id);
  return {
    db,
    get: sqliteGet(select, keys.single),
    transfer: sqliteTransfer(db, select, keys.pairs),
    check() {
      const sum = db.prepare("SELECT sum(balance) FROM account").safeIntegers().raw();
      checkTotal("sqlite", (sum.get() as [bigint])[0], rows);
    },
    close: () => db.close(),
  };
}

function read(select: SqliteStatement, id: number): AccountRow {
  const columns = select.get(id) as Columns | undefined;
  if (columns === undefined) throw new Error(`sqlite lost row ${id}`);
  return {
    id,
    balance: columns[0],
    a: columns[1],
    b: columns[2],
    c: columns[3],
    d: columns[4],
    e: columns[5],
  };
}

function sqliteGet(select: SqliteStatement, keys: Int32Array): SyncContestant {
  const seen = sink;
  const mask = keyMask;
  let kept = 0;
  return {
    name: "sqlite get",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        const row = read(select, keys[cursor]);
        cursor = (cursor + 1) & mask;
        seen.value = row;
        sum += row.id;
      }
      kept = cursor;
      return sum;
    },
  };
}

function sqliteTransfer(
  db: SqliteDatabase,
  select: SqliteStatement,
  keys: Int32Array,
): SyncContestant {
  const update = db.prepare("UPDATE account SET balance = ? WHERE id = ?");
  const transfer = db.transaction((from: number, to: number): number => {
    const payer = read(select, from);
    const payee = read(select, to);
    update.run(payer.balance - 1n, from);
    update.run(payee.balance + 1n, to);
    return payer.a;
  }).immediate;
  const mask = keyMask;
  let kept = 0;
  return {
    name: "sqlite transfer",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        sum += transfer(keys[cursor], keys[cursor + 1]);
        cursor = (cursor + 2) & mask;
      }
      kept = cursor;
      return sum;
    },
  };
}
