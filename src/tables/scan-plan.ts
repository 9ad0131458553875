/** What a scan consists of: rows that a cursor finds, read through a transaction or a snapshot. */

import type { Transaction as EngineTransaction } from "../engine/transaction.ts";
import type { Cursor } from "../stores/store.ts";

/** What a scan reads through: a transaction, or a snapshot. */
export interface ScanSource {
  /** Runs one step of a cursor. A snapshot may run it again after a conflict. */
  run<A, T>(step: (tx: EngineTransaction, argument: A) => T, argument: A): T;
  /** Throws if no more rows may be given out, not even those that were read already. */
  check(): void;
  /** The iteration has ended or was left. */
  release(): void;
}

export interface ScanPlan<Row> {
  cursor(): Cursor<Row>;
  readonly limit: number;
}
