// YCSB on lmdb. Reads are `get` outside of a transaction, from the snapshot of this turn of the event
// loop, or of the last change here if that was later: that is how lmdb-js reads.
import type { YcsbRow, YcsbStore, YcsbTable } from "../../../workloads/ycsb/store.ts";
import type { LmdbTables } from "./tables.ts";
import type { InTransaction } from "./transactions.ts";

export function lmdbYcsb(
  tables: LmdbTables,
  inTransaction: InTransaction,
  table: YcsbTable,
): YcsbStore {
  const rows = tables.rows<YcsbRow>(table);
  return {
    read: (key) => rows.get(key),

    update: inTransaction((key, field, value) => {
      const row = rows.get(key);
      if (row === undefined) return false;
      row[field] = value;
      rows.putSync(key, row);
      return true;
    }),

    insert: inTransaction((row) => {
      rows.putSync(row.key, row);
    }),

    scan(key, count) {
      const found: YcsbRow[] = [];
      for (const { value } of rows.getRange({ start: key, limit: count })) found.push(value);
      return found;
    },

    readModifyWrite: inTransaction((key, field, value) => {
      const row = rows.get(key);
      if (row === undefined) return undefined;
      const before = row[field];
      row[field] = value;
      rows.putSync(key, row);
      // The caller gets what was read; the row is encoded already.
      row[field] = before;
      return row;
    }),
  };
}
