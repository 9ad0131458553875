// YCSB on SQLite: one statement for each operation, and a transaction for `readModifyWrite`.
import {
  FIELD_COUNT,
  type FieldName,
  type YcsbRow,
  type YcsbStore,
  type YcsbTable,
} from "../../../workloads/ycsb/store.ts";
import { columnNames } from "../tables.ts";
import type { Connection } from "./connection.ts";
import type { Statement } from "./module.ts";

export function sqliteYcsb(connection: Connection, table: YcsbTable): YcsbStore {
  const { db } = connection;
  const columns = columnNames(table);
  const { name } = table;
  const select = db.prepare(`SELECT ${columns} FROM ${name} WHERE key = ?`).raw();
  const selectFrom = db
    .prepare(`SELECT ${columns} FROM ${name} WHERE key >= ? ORDER BY key LIMIT ?`)
    .raw();
  const updates = {} as Record<FieldName, Statement>;
  for (let index = 0; index < FIELD_COUNT; index++) {
    const field = `field${index}` as FieldName;
    updates[field] = db.prepare(`UPDATE ${name} SET ${field} = ? WHERE key = ?`);
  }
  const marks = Array(FIELD_COUNT + 1)
    .fill("?")
    .join(", ");
  const insert = db.prepare(`INSERT INTO ${name} (${columns}) VALUES (${marks})`);

  const read = (key: string): YcsbRow | undefined => {
    const values = select.get(key);
    return values === undefined ? undefined : rowOf(values as readonly string[]);
  };

  return {
    read: connection.retried(read),

    update: connection.retried((key, field, value) => updates[field].run(value, key).changes === 1),

    insert: connection.retried((row) => {
      insert.run(
        row.key,
        row.field0,
        row.field1,
        row.field2,
        row.field3,
        row.field4,
        row.field5,
        row.field6,
        row.field7,
        row.field8,
        row.field9,
      );
    }),

    scan: connection.retried((key, count) => {
      const lists = selectFrom.all(key, count) as (readonly string[])[];
      const rows: YcsbRow[] = [];
      for (const values of lists) rows.push(rowOf(values));
      return rows;
    }),

    readModifyWrite: connection.writing((key: string, field: FieldName, value: string) => {
      const row = read(key);
      if (row !== undefined) updates[field].run(value, key);
      return row;
    }),
  };
}

function rowOf(values: readonly string[]): YcsbRow {
  return {
    key: values[0],
    field0: values[1],
    field1: values[2],
    field2: values[3],
    field3: values[4],
    field4: values[5],
    field5: values[6],
    field6: values[7],
    field7: values[8],
    field8: values[9],
    field9: values[10],
  };
}
