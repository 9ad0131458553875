/**
 * Money in two tables, a hashed and an ordered one, whose sum never changes; and all the ways to
 * count it: by keys, by a scan, through an index. In one snapshot all of them say the same.
 */

import type { Snapshot, Transaction } from "../../src/index.ts";
import { type Database, i32, open, str, type Table, table, u32 } from "../../src/index.ts";

export interface Account {
  id: number;
  owner: number;
  balance: number;
  memo: string;
}
export type Accounts = Table<Account, number, Partial<Omit<Account, "id">>>;

const account = { id: u32(), owner: u32(), balance: i32(), memo: str() };
const Hashed = table("hashed", account, {
  key: "id",
  indexes: { byOwner: { on: ["owner"], kind: "hash" } },
});
const Ordered = table("ordered", account, {
  key: "id",
  ordered: true,
  indexes: { byOwner: { on: ["owner"] } },
});
export const TABLES: readonly Accounts[] = [Hashed, Ordered];

/** Every other id has an account in the beginning; they come and go. */
export const IDS = 800;
export const OWNERS = 20;
const FIRST_BALANCE = 100;
export const TOTAL = (TABLES.length * IDS * FIRST_BALANCE) / 2;
/** So little that old versions move, are collected, and snapshots are released. */
const VERSION_BYTES = 1;

export function openBank(path: string, maxSnapshotMs = 60_000): Promise<Database> {
  return open({
    path,
    tables: TABLES,
    memoryBytes: 64 * 2 ** 20,
    versionBytes: VERSION_BYTES,
    timeoutMs: 120_000,
    maxSnapshotMs,
  });
}

export function fillBank(db: Database): void {
  for (const accounts of TABLES) {
    db.transactSync((tx) => {
      for (let id = 0; id < IDS; id += 2) {
        tx.insert(accounts, { id, owner: id % OWNERS, balance: FIRST_BALANCE, memo: "" });
      }
    });
  }
}

export type Reader = Pick<Transaction, "get" | "getMany" | "scan" | "count"> | Snapshot;

/** The money in one table, and a sum that depends on which row has how much of it. */
export interface Sum {
  rows: number;
  money: number;
  check: number;
}

function sumOf(rows: Iterable<Account | undefined>): Sum {
  const sum: Sum = { rows: 0, money: 0, check: 0 };
  for (const row of rows) {
    if (row === undefined) continue;
    sum.rows++;
    sum.money += row.balance;
    sum.check = (sum.check + (row.id + 1) * (row.balance + 7 * row.owner + 1)) % 1_000_000_007;
  }
  return sum;
}

const ALL_IDS = Array.from({ length: IDS }, (_, id) => id);

function* byOwner(reader: Reader, accounts: Accounts): Generator<Account> {
  for (let owner = 0; owner < OWNERS; owner++) {
    for (const row of reader.scan(accounts, { index: "byOwner", eq: owner })) {
      if (row.owner !== owner) throw new Error(`owner ${row.owner} found as ${owner}`);
      yield row;
    }
  }
}

export const ROUTES: Readonly<Record<string, (reader: Reader, accounts: Accounts) => Sum>> = {
  scan: (reader, accounts) => sumOf(reader.scan(accounts)),
  keys: (reader, accounts) => sumOf(reader.getMany(accounts, ALL_IDS)),
  index: (reader, accounts) => sumOf(byOwner(reader, accounts)),
  array: (reader, accounts) => sumOf(reader.scan(accounts).toArray()),
};

/** Counts the money of both tables along a route; complains by throwing. */
export function audit(reader: Reader, route: string): string {
  const sums = TABLES.map((accounts) => ROUTES[route](reader, accounts));
  const money = sums.reduce((sum, each) => sum + each.money, 0);
  const what = sums.map(({ rows, check }) => `${rows} rows ${check}`).join(", ");
  if (money !== TOTAL) throw new Error(`${route}: ${money} instead of ${TOTAL} (${what})`);
  for (const [i, accounts] of TABLES.entries()) {
    const counted = reader.count(accounts);
    if (counted !== sums[i].rows) throw new Error(`${route}: ${what}, counted as ${counted}`);
  }
  return what;
}

/** All routes, which must lead to the same. */
export function auditAll(reader: Reader): string {
  const seen = Object.keys(ROUTES).map((route) => `${audit(reader, route)}`);
  for (const each of seen) {
    if (each !== seen[0]) throw new Error(`the routes differ: ${JSON.stringify(seen)}`);
  }
  return seen[0];
}
