/** The open tables of a database in one state of the store's catalogue. */

import type { Snapshot as EngineSnapshot } from "../../engine/snapshots/snapshot.ts";
import type { Store } from "../../stores/store.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";
import type { Sequence } from "../../tables/sequence.ts";
import type { Table } from "../../tables/table.ts";
import { unknownTable } from "../transact-options.ts";

export class TableSet {
  readonly tables: readonly TableStore[];
  /** By a table's ordinal. */
  readonly stores: readonly (Store<unknown, unknown> | undefined)[];
  readonly byOrdinal: readonly (TableStore | undefined)[];

  constructor(tables: readonly TableStore[]) {
    const length = Math.max(0, ...tables.map(({ table }) => table.ordinal + 1));
    const stores = new Array<Store<unknown, unknown> | undefined>(length).fill(undefined);
    const byOrdinal = new Array<TableStore | undefined>(length).fill(undefined);
    for (const each of tables) {
      stores[each.table.ordinal] = each.store as Store<unknown, unknown>;
      byOrdinal[each.table.ordinal] = each;
    }
    this.tables = tables;
    this.stores = stores;
    this.byOrdinal = byOrdinal;
  }

  storeOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    const store = this.stores[table?.ordinal];
    if (store === undefined) throw unknownTable(table, this.tables);
    return store as Store<Row, Key>;
  }

  tableOf(table: Table): TableStore {
    const found = this.byOrdinal[table?.ordinal];
    if (found === undefined) throw unknownTable(table, this.tables);
    return found;
  }
}

/** What a transaction needs of its database. */
export interface Stores {
  /** What rows are read through. */
  storeOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key>;
  /** The same for one who will change rows: as the store is by now. */
  currentStoreOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key>;
  tableOf(table: Table): TableStore;
  /** The numbers for the keys of a table that fills them in. */
  sequenceOf(table: Table): Sequence;
  /** The tables as they are now; `undefined` if the catalogue has to be read for that. */
  currentSet(): TableSet | undefined;
  /** The tables as a snapshot sees them. */
  setAt(snapshot: EngineSnapshot): TableSet;
}

/**
 * The same for transactions that read from a snapshot: they read the tables as they were then, and
 * change them as they are now. To be made, or bound, as soon as the snapshot is registered: if nothing
 * was announced by then, the tables of now are those of the snapshot.
 */
export class SnapshotStores implements Stores {
  readonly #stores: Stores;
  #snapshot: EngineSnapshot | undefined;
  #set: TableSet | undefined;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  bind(snapshot: EngineSnapshot): this {
    this.#snapshot = snapshot;
    this.#set = this.#stores.currentSet();
    return this;
  }

  storeOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    return this.#bound().storeOf(table);
  }

  currentStoreOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    return this.#stores.currentStoreOf(table);
  }

  tableOf(table: Table): TableStore {
    return this.#bound().tableOf(table);
  }

  sequenceOf(table: Table): Sequence {
    return this.#stores.sequenceOf(table);
  }

  currentSet(): TableSet {
    return this.#bound();
  }

  setAt(snapshot: EngineSnapshot): TableSet {
    return this.#stores.setAt(snapshot);
  }

  #bound(): TableSet {
    this.#set ??= this.#stores.setAt(this.#snapshot!);
    return this.#set;
  }
}
