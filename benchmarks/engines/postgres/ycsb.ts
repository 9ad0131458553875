// YCSB on PostgreSQL: each operation is one statement.
import {
  FIELD_COUNT,
  type FieldName,
  type YcsbRow,
  type YcsbStore,
  type YcsbTable,
} from "../../../workloads/ycsb/store.ts";
import { columnNames, columnsOf } from "../tables.ts";
import type { Statement } from "./connection.ts";
import type { Database } from "./database.ts";

export function postgresYcsb(database: Database, table: YcsbTable): YcsbStore {
  return new PostgresYcsb(database, table);
}

class PostgresYcsb implements YcsbStore {
  readonly #database: Database;
  readonly #read: Statement;
  readonly #insert: Statement;
  readonly #scan: Statement;
  /** One for each field. */
  readonly #updates = {} as Record<FieldName, Statement>;
  readonly #readModifyWrites = {} as Record<FieldName, Statement>;

  constructor(database: Database, table: YcsbTable) {
    this.#database = database;
    const { name } = table;
    const columns = columnNames(table);
    const places = Array.from({ length: FIELD_COUNT + 1 }, (_, index) => `$${index + 1}`);
    this.#read = { name: "read", text: `SELECT ${columns} FROM ${name} WHERE key = $1` };
    this.#insert = { name: "insert", text: `INSERT INTO ${name} VALUES (${places.join(", ")})` };
    this.#scan = {
      name: "scan",
      text: `SELECT ${columns} FROM ${name} WHERE key >= $1 ORDER BY key LIMIT $2`,
    };
    for (const column of columnsOf(table)) {
      if (column.isKey) continue;
      const field = column.name as FieldName;
      this.#updates[field] = {
        name: `update_${field}`,
        text: `UPDATE ${name} SET ${field} = $2 WHERE key = $1`,
      };
      // The row as it was, which RETURNING alone cannot give. No one can get in between: then the
      // transaction would fail, as it is serializable.
      this.#readModifyWrites[field] = {
        name: `read_modify_write_${field}`,
        text: `UPDATE ${name} AS changed SET ${field} = $2 FROM ${name} AS old
          WHERE changed.key = $1 AND old.key = $1 RETURNING old.*`,
      };
    }
  }

  async read(key: string): Promise<YcsbRow | undefined> {
    const { rows } = await this.#database.read(this.#read, [key]);
    return rows[0] as YcsbRow | undefined;
  }

  async update(key: string, field: FieldName, value: string): Promise<boolean> {
    return (await this.#database.write(this.#updates[field], [key, value])).rowCount === 1;
  }

  async insert(row: YcsbRow): Promise<void> {
    await this.#database.write(this.#insert, [
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
    ]);
  }

  async scan(key: string, count: number): Promise<readonly YcsbRow[]> {
    const { rows } = await this.#database.read(this.#scan, [key, count]);
    return rows as unknown as YcsbRow[];
  }

  async readModifyWrite(
    key: string,
    field: FieldName,
    value: string,
  ): Promise<YcsbRow | undefined> {
    const { rows } = await this.#database.write(this.#readModifyWrites[field], [key, value]);
    return rows[0] as YcsbRow | undefined;
  }
}
