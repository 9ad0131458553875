// Filling a cluster: one transaction after the other. While tables grow, bulk loads are in each
// other's way: with eight in flight, five of six attempts were undone, and it took three times as
// long. Larger transactions save round trips; 256 rows of 1 KB are far from a message's 4 MiB.
import type { RemoteDatabase } from "situ";
import type { InitialRow } from "../../../workloads/workload.ts";

const rowsPerTransaction = 256;

export async function loadCluster(db: RemoteDatabase, rows: Iterable<InitialRow>): Promise<void> {
  let batch: InitialRow[] = [];
  for (const row of rows) {
    batch.push(row);
    if (batch.length < rowsPerTransaction) continue;
    await put(db, batch);
    batch = [];
  }
  await put(db, batch);
}

async function put(db: RemoteDatabase, rows: readonly InitialRow[]): Promise<void> {
  await db.transact((tx) => {
    for (const { table, row } of rows) void tx.put(table, row);
  });
}
