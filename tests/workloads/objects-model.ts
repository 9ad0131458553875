/** Transactions on objects in a map: what every engine's store must agree with. */

import type { ObjectRow, ObjectStore, ObjectTable } from "../../workloads/objects/store.ts";
import { ModelTables } from "./model-tables.ts";

export class ObjectModel extends ModelTables implements ObjectStore {
  readonly #table: ObjectTable;

  constructor(table: ObjectTable) {
    super();
    this.#table = table;
  }

  access(
    keys: readonly number[],
    reads: number,
    writes: number,
    stamp: number,
    text: string,
  ): number {
    const rows = keys.map((key) => this.get(this.#table, key) as ObjectRow);
    let sum = 0;
    for (const row of rows.slice(0, reads)) sum += row.count + row.text.length;
    for (const [index, row] of rows.slice(0, writes).entries()) {
      const count = index < reads ? row.count + 1 : row.count;
      this.put(this.#table, { ...row, count, stamp, text });
    }
    return sum;
  }
}
