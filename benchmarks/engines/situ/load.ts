// Filling a store of this machine: some hundred rows to a transaction, which is far from the limit
// of 4 MiB even with rows of 1 KB, and many enough that beginning and ending one does not count.
import type { Database, Transaction } from "situ";
import type { InitialRow } from "../../../workloads/workload.ts";

const rowsPerTransaction = 256;

export function loadRows(db: Database, rows: Iterable<InitialRow>): void {
  let batch: InitialRow[] = [];
  const body = (tx: Transaction): void => {
    for (const { table, row } of batch) tx.insert(table, row);
  };
  for (const row of rows) {
    batch.push(row);
    if (batch.length < rowsPerTransaction) continue;
    db.transactSync(body);
    batch = [];
  }
  db.transactSync(body);
}
