/** The store of the starvation tests, and what their processes are told and report. */

import { type Database, i64, open, table, u32 } from "../../src/index.ts";

export const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });

export interface StarvationOrder {
  readonly path: string;
  readonly role: "writer" | "holder";
  /** Writes rows 0 to rows - 1. */
  readonly rows: number;
  /** What the holder does to itself in its turn. */
  readonly signal: "SIGKILL" | "SIGSTOP";
}

export interface StarvationReport {
  /** Transactions that were acknowledged. */
  readonly committed: number;
}

export function openStore(path: string): Promise<Database> {
  return open({ path, tables: [Account], memoryBytes: 64 * 2 ** 20, durability: "none" });
}
