/**
 * Transactions on objects, on Situ. On a store of this machine each runs to its end in one call: a
 * body that is made once, and finds its parameters in variables. Across machines as promises.
 */

import type { AsyncTransaction, Database, RemoteDatabase, Transaction } from "situ";
import type { ObjectStore, ObjectTable } from "./store.ts";

export function situObjects(db: Database, table: ObjectTable): ObjectStore {
  let keys: readonly number[] = [];
  let reads = 0;
  let writes = 0;
  let stamp = 0;
  let text = "";
  /** For objects that are written and not read. */
  const changes = { stamp: 0, text: "" };

  const body = (tx: Transaction): number => {
    // Also those that are only written: Situ changes fields of a row that it has found, and this
    // way it waits for all of them together.
    const rows = tx.getMany(table, keys);
    let sum = 0;
    for (let index = 0; index < reads; index++) {
      const row = rows[index];
      if (row === undefined) throw lost(keys[index]);
      sum += row.count + row.text.length;
      if (index >= writes) continue;
      row.count++;
      row.stamp = stamp;
      row.text = text;
      tx.put(table, row);
    }
    for (let index = reads; index < writes; index++) {
      changes.stamp = stamp;
      changes.text = text;
      tx.update(table, keys[index], changes);
    }
    return sum;
  };

  return {
    access(someKeys, someReads, someWrites, newStamp, newText) {
      keys = someKeys;
      reads = someReads;
      writes = someWrites;
      if (reads === 1 && writes === 0) {
        const row = db.get(table, keys[0]);
        if (row === undefined) throw lost(keys[0]);
        return row.count + row.text.length;
      }
      stamp = newStamp;
      text = newText;
      return db.transactSync(body);
    },
  };
}

/** The callback of a transaction across machines. */
export async function accessObjects(
  tx: AsyncTransaction,
  table: ObjectTable,
  keys: readonly number[],
  reads: number,
  writes: number,
  stamp: number,
  text: string,
): Promise<number> {
  // What is begun in one tick travels together; one that fails ends the transaction.
  for (const key of keys.slice(reads, writes)) void tx.update(table, key, { stamp, text });
  const rows = await tx.getMany(table, keys.slice(0, reads));
  let sum = 0;
  for (const [index, row] of rows.entries()) {
    if (row === undefined) throw lost(keys[index]);
    sum += row.count + row.text.length;
    if (index < writes) void tx.put(table, { ...row, count: row.count + 1, stamp, text });
  }
  return sum;
}

export function situObjectsAsync(db: Database | RemoteDatabase, table: ObjectTable): ObjectStore {
  return {
    access: (keys, reads, writes, stamp, text) =>
      db.transact((tx) => accessObjects(tx, table, keys, reads, writes, stamp, text)),
  };
}

function lost(key: number): Error {
  return new Error(`there is no object ${key}`);
}
