/** The store of the bulk storm, and what its processes are told. */

import { type Database, i64, open, table, u32 } from "../../src/index.ts";

export const Account = table(
  "account",
  { id: u32(), branch: u32(), balance: i64(), round: u32() },
  { key: "id", indexes: { byBranch: { on: ["branch"] } } },
);

export const ACCOUNTS = 2_000;
export const BRANCHES = 20;
export const BALANCE = 100n;
export const TIMEOUT_MS = 120_000;

export interface BulkOrder {
  readonly path: string;
  /** Who moves single amounts, and who changes all rows at once. */
  readonly role: "transfers" | "bulk";
  readonly seed: number;
}

export function openStore(path: string): Promise<Database> {
  return open({ path, tables: [Account], memoryBytes: 64 * 2 ** 20, durability: "none" });
}
