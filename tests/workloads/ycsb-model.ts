/** YCSB in a map, as plainly as it can be said: what every engine's store must agree with. */

import type { FieldName, YcsbRow, YcsbStore, YcsbTable } from "../../workloads/ycsb/store.ts";
import { ModelTables } from "./model-tables.ts";

export class YcsbModel extends ModelTables implements YcsbStore {
  readonly #table: YcsbTable;

  constructor(table: YcsbTable) {
    super();
    this.#table = table;
  }

  read(key: string): YcsbRow | undefined {
    return this.get(this.#table, key) as YcsbRow | undefined;
  }

  update(key: string, field: FieldName, value: string): boolean {
    const row = this.read(key);
    if (row !== undefined) this.put(this.#table, { ...row, [field]: value });
    return row !== undefined;
  }

  insert(row: YcsbRow): void {
    if (this.read(row.key) !== undefined) throw new Error(`${row.key} is there`);
    this.put(this.#table, row);
  }

  scan(key: string, count: number): YcsbRow[] {
    const keys = [...this.all(this.#table).keys()].filter((each) => each >= key).sort();
    return keys.slice(0, count).map((each) => this.read(each)!);
  }

  readModifyWrite(key: string, field: FieldName, value: string): YcsbRow | undefined {
    const row = this.read(key);
    this.update(key, field, value);
    return row;
  }
}
