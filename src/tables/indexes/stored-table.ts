/** A table as it is in the store: its rows and all of its indexes, whoever has declared what. */

import type { Executor } from "../../engine/executor.ts";
import type { Address } from "../../memory/address.ts";
import type { RowStore } from "../../stores/store.ts";
import type { Successor } from "../migrations/successor.ts";
import type { Table } from "../table.ts";
import type { StoredIndex } from "./definition.ts";
import type { Index } from "./entries.ts";
import { openIndex } from "./forms.ts";
import { IndexedStore } from "./indexed-store.ts";
import { type RowValues, Structure } from "./structure.ts";

export class StoredTable {
  readonly table: Table;
  readonly structure: Structure<RowValues, unknown>;
  /** Where the rows are rooted. */
  readonly root: Address;
  readonly rows: RowStore<RowValues, unknown>;
  readonly stored: readonly StoredIndex[];
  readonly indexes: readonly Index[];
  readonly successor: Successor | undefined;
  /** What rows are changed through, so that the indexes and the successor follow. */
  readonly store: RowStore<RowValues, unknown>;

  /** What the state `before` had open, and is still the same, is not opened again. */
  constructor(
    executor: Executor,
    table: Table,
    root: Address,
    stored: readonly StoredIndex[],
    successorOf?: (rows: RowStore<RowValues, unknown>) => Successor,
    before?: StoredTable,
  ) {
    const known = before?.root === root && before.table === table ? before : undefined;
    this.table = table;
    this.root = root;
    this.structure = known?.structure ?? new Structure(table as Table<RowValues>);
    this.rows = known?.rows ?? this.structure.open(executor, root);
    const opened = new Map(known?.stored.map((each, i) => [textOf(each), known.indexes[i]]));
    this.stored = stored;
    this.indexes = stored.map(
      (each) => opened.get(textOf(each)) ?? openIndex(executor, table, each),
    );
    const successor = successorOf?.(this.rows);
    this.successor = successor;
    this.store =
      stored.length === 0 && successor === undefined
        ? this.rows
        : new IndexedStore(executor, this.structure, root, this.rows, this.indexes, successor);
  }
}

function textOf(index: StoredIndex): string {
  return JSON.stringify(index);
}
