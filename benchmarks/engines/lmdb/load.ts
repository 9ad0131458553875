// Loads rows in transactions of many. How many matters for all that comes after: a commit frees the
// pages that it has copied, and LMDB keeps their numbers in one list. Rows that are scattered over
// the tree copy nearly all of it in each large transaction; later commits then read and write lists
// of tens of thousands of numbers: measured, 14 ms for a change instead of 10 µs. So only rows in the
// order of their keys, which copy few pages, come in large transactions.
import type { InitialRow } from "../../../workloads/workload.ts";
import type { LmdbKey } from "./module.ts";
import { type AnyRow, type LmdbTables, type OpenTable, putRow } from "./tables.ts";

const IN_ORDER_BATCH = 10_000;
const SCATTERED_BATCH = 32;

export function loadRows(tables: LmdbTables, rows: Iterable<InitialRow>): void {
  const lastKeys = new Map<OpenTable, LmdbKey>();
  let batch: [OpenTable, AnyRow][] = [];
  let most = IN_ORDER_BATCH;
  const write = (): void => {
    for (const [table, row] of batch) putRow(table, row);
  };
  for (const each of rows) {
    const table = tables.table(each.table);
    const row = each.row as AnyRow;
    const key = table.keyOf(row);
    const lastKey = lastKeys.get(table);
    if (lastKey !== undefined && key < lastKey) most = SCATTERED_BATCH;
    lastKeys.set(table, key);
    batch.push([table, row]);
    if (batch.length < most) continue;
    tables.env.transactionSync(write);
    batch = [];
    most = IN_ORDER_BATCH;
  }
  tables.env.transactionSync(write);
}
