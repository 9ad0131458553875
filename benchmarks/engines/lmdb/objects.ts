// Objects on lmdb. Who only reads does so within one turn: all its gets see one snapshot.
import type { ObjectRow, ObjectStore, ObjectTable } from "../../../workloads/objects/store.ts";
import type { LmdbTables } from "./tables.ts";
import type { InTransaction } from "./transactions.ts";

export function lmdbObjects(
  tables: LmdbTables,
  inTransaction: InTransaction,
  table: ObjectTable,
): ObjectStore {
  const objects = tables.rows(table);
  const read: ObjectRow[] = [];

  const rowOf = (key: number): ObjectRow => {
    const row = objects.get(key);
    if (row === undefined) throw new Error(`lmdb lost object ${key}`);
    return row;
  };

  const readAll = (keys: readonly number[], reads: number): number => {
    let sum = 0;
    for (let i = 0; i < reads; i++) {
      const row = rowOf(keys[i]);
      read[i] = row;
      sum += row.count + row.text.length;
    }
    return sum;
  };

  const access = inTransaction(
    (keys: readonly number[], reads: number, writes: number, stamp: number, text: string) => {
      const sum = readAll(keys, reads);
      for (let i = 0; i < writes; i++) {
        const wasRead = i < reads;
        const row = wasRead ? read[i] : rowOf(keys[i]);
        if (wasRead) row.count++;
        row.stamp = stamp;
        row.text = text;
        objects.putSync(keys[i], row);
      }
      return sum;
    },
  );

  return {
    access(keys, reads, writes, stamp, text) {
      if (writes === 0) return readAll(keys, reads);
      return access(keys, reads, writes, stamp, text);
    },
  };
}
