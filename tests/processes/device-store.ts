/** The store of the crash tests of device tables. Every round writes all rows anew. */

import { localDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { type Database, i32, open, str, table, u32 } from "../../src/index.ts";
import { type DeviceWork, workOf } from "../../src/tables/device/device-work.ts";

export const Item = table(
  "item",
  { id: u32(), round: u32(), text: str() },
  { key: "id", storage: "device" },
);
export const ITEMS = 40;

export function openItems(path: string, mediaLog?: string): Promise<Database> {
  return open({
    path,
    tables: [Item],
    memoryBytes: 16 * 2 ** 20,
    durability: "lazy",
    lagMs: 10_000,
    timeoutMs: 120_000,
    ...(mediaLog === undefined ? {} : { mediaLog }),
  });
}

/** Rows of some pages; one of them, or all, have a run of pages. */
export function writeRound(db: Database, round: number, chars = 500): void {
  db.transactSync((tx) => {
    for (let id = 0; id < ITEMS; id++) {
      tx.put(Item, { id, round, text: "x".repeat(id === 0 ? 20_000 : chars) });
    }
  });
}

export function workIn(db: Database): DeviceWork {
  return workOf(knownDevice(localDatabase(db).executor)!)[0];
}

/** Moves all rows to pages, then has the space of earlier rounds looked after. */
export function moveAll(db: Database): void {
  const { mover, collector, table: shared } = workIn(db);
  mover.move(Number.POSITIVE_INFINITY);
  shared.writtenPages = 2 ** 30;
  while (collector.work(Number.POSITIVE_INFINITY));
  collector.work(Number.POSITIVE_INFINITY);
}

export const Account = table(
  "account",
  { id: u32(), amount: i32(), pad: str() },
  { key: "id", storage: "device", ordered: true },
);
export const ACCOUNTS = 150;

export async function openAccounts(path: string): Promise<Database> {
  const size = { memoryBytes: 16 * 2 ** 20, durability: "lazy" as const };
  const db = await open({ path, tables: [Account], ...size, timeoutMs: 120_000 });
  if (db.count(Account) > 0) return db;
  db.transactSync((tx) => {
    for (let id = 0; id < ACCOUNTS; id++) {
      tx.put(Account, { id, amount: 0, pad: "p".repeat(300) });
    }
  });
  return db;
}

export function sumOf(rows: Iterable<{ readonly amount: number }>): number {
  let sum = 0;
  for (const { amount } of rows) sum += amount;
  return sum;
}
