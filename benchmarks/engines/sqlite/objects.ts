// Objects on SQLite. All that a transaction reads is one statement, and all that it writes is
// another, prepared once for each number of keys; only who does both needs BEGIN and COMMIT.
import type { ObjectStore, ObjectTable } from "../../../workloads/objects/store.ts";
import { columnNames } from "../tables.ts";
import type { Connection } from "./connection.ts";
import type { Statement, Value } from "./module.ts";

type Values = readonly [key: number, count: number, stamp: number, text: string];

export function sqliteObjects(connection: Connection, table: ObjectTable): ObjectStore {
  const { db } = connection;
  const { name } = table;
  const among = (keys: number): string => `key IN (${Array(keys).fill("?").join(", ")})`;
  const selects = eachPrepared((keys) =>
    db.prepare(`SELECT ${columnNames(table)} FROM ${name} WHERE ${among(keys)}`).raw(),
  );
  const counting = eachPrepared((keys) =>
    db.prepare(`UPDATE ${name} SET stamp = ?, text = ?, count = count + 1 WHERE ${among(keys)}`),
  );
  const writing = eachPrepared((keys) =>
    db.prepare(`UPDATE ${name} SET stamp = ?, text = ? WHERE ${among(keys)}`),
  );

  const read = (keys: readonly number[], reads: number): number => {
    const rows = selects(reads).all(...part(keys, 0, reads)) as Values[];
    if (rows.length !== reads) throw new Error(`${name}: ${rows.length} of ${reads} objects found`);
    let sum = 0;
    for (const row of rows) sum += row[1] + row[3].length;
    return sum;
  };

  const write = (statement: Statement, keys: readonly number[], stamp: number, text: string) => {
    const parameters: Value[] = [stamp, text, ...keys];
    if (statement.run(...parameters).changes !== keys.length) {
      throw new Error(`${name}: not all of ${keys.length} objects found`);
    }
  };

  const access = (
    keys: readonly number[],
    reads: number,
    writes: number,
    stamp: number,
    text: string,
  ): number => {
    const sum = reads === 0 ? 0 : read(keys, reads);
    const counted = Math.min(reads, writes);
    if (counted > 0) write(counting(counted), part(keys, 0, counted), stamp, text);
    if (writes > counted) {
      write(writing(writes - counted), part(keys, counted, writes), stamp, text);
    }
    return sum;
  };

  const readOnly = connection.retried(read);
  const inTransaction = connection.writing(access);
  return {
    access(keys, reads, writes, stamp, text) {
      if (writes === 0) return readOnly(keys, reads);
      return inTransaction(keys, reads, writes, stamp, text);
    },
  };
}

function part(keys: readonly number[], from: number, to: number): readonly number[] {
  return from === 0 && to === keys.length ? keys : keys.slice(from, to);
}

function eachPrepared(prepare: (keys: number) => Statement): (keys: number) => Statement {
  const prepared: (Statement | undefined)[] = [];
  return (keys) => {
    prepared[keys] ??= prepare(keys);
    return prepared[keys];
  };
}
