/**
 * YCSB on Situ. On a store of this machine each operation runs to its end in one call; bodies are
 * made once and find their parameters in variables, and so are the objects that say what to change.
 * Across machines, and where commits wait for the disk, the same as promises.
 */

import { type Database, type RemoteDatabase, SituError, type Transaction } from "situ";
import type { Result } from "../workload.ts";
import type { FieldName, OrderedUserTable, YcsbRow, YcsbStore, YcsbTable } from "./store.ts";
import { fieldNames } from "./values.ts";

/** What both kinds of database have; one answers at once. */
interface Reader {
  get(table: YcsbTable, key: string): Result<YcsbRow | undefined>;
}

type Changes = { [Name in FieldName]?: string };

export function situYcsb(db: Database, table: YcsbTable): YcsbStore {
  let key = "";
  let changes: Changes = {};
  let row: YcsbRow | undefined;
  /** One object for each field: one shape each, and nothing to make in a call. */
  const changesOf = prepareChanges();

  const update = (tx: Transaction): void => tx.update(table, key, changes);
  const insert = (tx: Transaction): void => tx.insert(table, row!);
  const readModifyWrite = (tx: Transaction): YcsbRow | undefined => {
    const found = tx.get(table, key);
    if (found !== undefined) tx.update(table, key, changes);
    return found;
  };

  function setChanges(field: FieldName, value: string): void {
    changes = changesOf[field];
    changes[field] = value;
  }

  return {
    read: (wanted) => db.get(table, wanted),
    update(wanted, field, value) {
      key = wanted;
      setChanges(field, value);
      try {
        db.transactSync(update);
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
      return true;
    },
    insert(added) {
      row = added;
      db.transactSync(insert);
    },
    scan: (first, count) => db.scan(orderedOne(table), { gte: first, limit: count }).toArray(),
    readModifyWrite(wanted, field, value) {
      key = wanted;
      setChanges(field, value);
      return db.transactSync(readModifyWrite);
    },
  };
}

export function situYcsbAsync(db: Database | RemoteDatabase, table: YcsbTable): YcsbStore {
  const reader: Reader = db;
  return {
    read: (key) => reader.get(table, key),
    async update(key, field, value) {
      try {
        await db.transact((tx) => tx.update(table, key, { [field]: value }));
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
      return true;
    },
    insert: (row) => db.transact((tx) => tx.insert(table, row)),
    scan: (key, count) => db.scan(orderedOne(table), { gte: key, limit: count }).toArray(),
    readModifyWrite: (key, field, value) =>
      db.transact(async (tx) => {
        const row = await tx.get(table, key);
        if (row !== undefined) await tx.update(table, key, { [field]: value });
        return row;
      }),
  };
}

function prepareChanges(): Record<FieldName, Changes> {
  const entries = fieldNames.map((field) => [field, { [field]: "" }]);
  return Object.fromEntries(entries) as Record<FieldName, Changes>;
}

/** E is the only one that scans, and has this table. On another one Situ itself refuses. */
function orderedOne(table: YcsbTable): typeof OrderedUserTable {
  return table as typeof OrderedUserTable;
}

function isMissing(error: unknown): boolean {
  return error instanceof SituError && error.code === "SITU_MISSING";
}
