/** Tables as maps from the text of a key to its row. */

import type { Table } from "situ";
import type { InitialRow, ReadRows } from "../../workloads/workload.ts";

export type ModelRow = Readonly<Record<string, unknown>>;

export class ModelTables {
  readonly #tables = new Map<Table, Map<string, ModelRow>>();

  load(rows: Iterable<InitialRow>): void {
    for (const { table, row } of rows) {
      if (this.get(table, ...table.key.map((name) => (row as ModelRow)[name])) !== undefined) {
        throw new Error(`${table.name} begins with two rows of one key: ${JSON.stringify(row)}`);
      }
      this.put(table, row as ModelRow);
    }
  }

  get(table: Table, ...key: readonly unknown[]): ModelRow | undefined {
    return this.#of(table).get(key.join(" "));
  }

  put(table: Table, row: ModelRow): void {
    this.#of(table).set(table.key.map((name) => row[name]).join(" "), row);
  }

  delete(table: Table, ...key: readonly unknown[]): boolean {
    return this.#of(table).delete(key.join(" "));
  }

  /** All rows by the text of their key. */
  all(table: Table): ReadonlyMap<string, ModelRow> {
    return this.#of(table);
  }

  readonly rows: ReadRows = async function* (this: ModelTables, table: Table) {
    yield* this.#of(table).values();
  }.bind(this) as ReadRows;

  #of(table: Table): Map<string, ModelRow> {
    let rows = this.#tables.get(table);
    if (rows === undefined) {
      rows = new Map();
      this.#tables.set(table, rows);
    }
    return rows;
  }
}

/** What an engine has in a table, to compare with `all`. */
export async function rowsByKey(read: ReadRows, table: Table): Promise<Map<string, ModelRow>> {
  const rows = new Map<string, ModelRow>();
  for await (const row of read(table)) {
    rows.set(table.key.map((name) => row[name]).join(" "), { ...row });
  }
  return rows;
}
