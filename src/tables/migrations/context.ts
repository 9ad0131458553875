/** What those who carry out a migration work with. */

import type { Executor } from "../../engine/executor.ts";
import { runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { ScanSource } from "../scan-plan.ts";

/** Told while a table is migrated, by this process or another one. */
export interface MigrationProgress {
  readonly table: string;
  /** The process that does the work. */
  readonly pid: number;
  /** Rows that were copied, of about so many. */
  readonly rows: number;
  readonly total: number;
}

export interface MigrationContext {
  readonly executor: Executor;
  /** How long to wait for transactions of others, at each step. */
  readonly timeoutMs: number;
  /** What rows are read through: each step sees the state of its moment. */
  readonly source: () => ScanSource;
  /** Throws if the work is to end: the database is closed, or the caller has changed its mind. */
  readonly check: () => void;
  readonly onProgress: (progress: MigrationProgress) => void;
}

/** A transaction on the catalogue, or on structures that only a migration uses. */
export function transact<T>(
  { executor, timeoutMs }: MigrationContext,
  subject: string,
  body: (tx: Transaction) => T,
): T {
  const tx = new Transaction(executor);
  const run = (): T => {
    tx.subject = subject;
    return body(tx);
  };
  return runSync(executor, tx, timeoutMs, run, undefined);
}
