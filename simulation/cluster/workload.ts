/** The contract of workloads: what workers do, and what must hold in the end. */

import type { RowValues } from "../../src/tables/indexes/structure.ts";
import type { Table } from "../../src/tables/table.ts";
import type { Ended, Worker } from "./worker.ts";

/** All rows of a table at rest, by the text of their keys, as their primaries have them. */
export type FinalRows = (table: Table) => ReadonlyMap<string, RowValues>;

export interface Counts {
  committed: number;
  /** Attempts. */
  aborted: number;
  unknown: number;
}

export interface Workload {
  readonly name: string;
  readonly tables: readonly Table[];
  readonly counts: Counts;
  /** Run by one worker before all others, without faults. */
  load(worker: Worker): Promise<void>;
  /** What one worker does until it has committed so many transactions. */
  work(worker: Worker, transactions: number): Promise<void>;
  /** Sentences about what is wrong. */
  check(rows: FinalRows): string[];
}

/** The virtual time, and a way to tell the trace what was seen. */
export interface Witness {
  readonly nowUs: number;
  note(text: string): void;
}

/** Counts a transaction that has ended, with all of its attempts. */
export function count(counts: Counts, { kind, attempts }: Ended<unknown>): void {
  counts.aborted += kind === "failed" ? attempts : Math.max(attempts - 1, 0);
  if (kind === "ok") counts.committed++;
  else if (kind === "unknown") counts.unknown++;
}
