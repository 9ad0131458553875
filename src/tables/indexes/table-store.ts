/**
 * A table as one database has it open: the rows, the indexes that the store has, and the ways to
 * find rows through them. Transactions, snapshots and the database itself plan their scans here.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { SituError } from "../../runtime/errors.ts";
import type { RowStore, Store } from "../../stores/store.ts";
import type { StoredChanges } from "../changes/format.ts";
import { RecordingStore } from "../changes/recording-store.ts";
import type { ScanPlan } from "../scan-plan.ts";
import type { Table } from "../table.ts";
import type { StoredIndex } from "./definition.ts";
import { type Index, IndexCursor, withoutRow } from "./entries.ts";
import { openIndex } from "./forms.ts";
import { IndexedStore } from "./indexed-store.ts";
import { type CheckedScan, checkedGet, checkedScan } from "./options.ts";
import { checkIndexScan, rowRange, unknownIndex } from "./scan-rules.ts";
import type { Structure, Values } from "./structure.ts";

export class TableStore {
  readonly table: Table;
  /** Which one of the catalogue's tables it is. */
  readonly position: number;
  readonly rows: RowStore<Values, unknown>;
  readonly structure: Structure<Values, unknown>;
  /** Where the rows are rooted. */
  readonly root: Address;
  /** Whether what happens to rows is recorded, for those who watch the table. */
  isRecording = false;
  readonly #executor: Executor;
  #store: Store<Values, unknown>;
  #stored: readonly StoredIndex[] = [];
  #indexes: readonly Index[] = [];
  /** Those that are declared here, by name: only they can be asked for. */
  #named = new Map<string, Index>();

  constructor(
    executor: Executor,
    structure: Structure<Values, unknown>,
    position: number,
    root: Address,
  ) {
    this.#executor = executor;
    this.structure = structure;
    this.root = root;
    this.table = structure.table;
    this.position = position;
    this.rows = structure.open(executor, root);
    this.#store = this.rows;
  }

  /** What rows are read and changed through; another one after `adopt`. */
  get store(): Store<Values, unknown> {
    return this.#store;
  }

  /** Whether all indexes that are declared here are ready. */
  get isComplete(): boolean {
    return this.table.indexes.every(({ name }) => this.#named.get(name)?.state === "ready");
  }

  /** Takes over the indexes that the store has now, and whether changes are recorded. */
  adopt(stored: readonly StoredIndex[], changes?: StoredChanges): void {
    const before = new Map(this.#stored.map((each, i) => [JSON.stringify(each), this.#indexes[i]]));
    this.#indexes = stored.map(
      (each) => before.get(JSON.stringify(each)) ?? openIndex(this.#executor, this.table, each),
    );
    this.#stored = stored;
    const declared = new Set(this.table.indexes.map(({ name }) => name));
    this.#named = new Map(
      this.#indexes
        .filter(({ definition }) => declared.has(definition.name))
        .map((index) => [index.definition.name, index]),
    );
    const store =
      stored.length === 0
        ? this.rows
        : new IndexedStore(this.#executor, this.structure, this.root, this.rows, this.#indexes);
    this.isRecording = changes !== undefined && this.#executor.durability.isLogged;
    this.#store = this.isRecording
      ? new RecordingStore(this.#executor, this.structure, this.root, this.position, store)
      : store;
  }

  /** An index as it stands in the store. */
  storedIndex(name: string): StoredIndex {
    const { definition } = this.#index(name);
    return this.#stored.find((each) => each.name === definition.name)!;
  }

  /** The unique index that the options of a `get` name; undefined for the key. */
  indexOf(options: unknown): Index | undefined {
    const name = checkedGet(this.table.name, options);
    if (name === undefined) return undefined;
    const index = this.#index(name);
    if (index.definition.unique) return index;
    throw new SituError(
      "SITU_TYPE",
      `index ${name} of table ${this.table.name} is not unique and leads to many rows: use scan`,
    );
  }

  /** A row by the values of a unique index, or by its key. */
  lookup(tx: Transaction, key: unknown, index: Index | undefined): Values | undefined {
    if (index === undefined) return this.rows.read(tx, key);
    const found = index.find(tx, key);
    if (found === undefined) return undefined;
    return this.rows.read(tx, found) ?? withoutRow(tx);
  }

  /** Checks the options of a scan or count, and says how to carry it out. */
  plan<Row>(call: "scan" | "count", options: unknown): ScanPlan<Row> {
    const scan = checkedScan(call, this.table.name, options);
    const { limit } = scan;
    const plan =
      scan.index === undefined ? this.#planRows(scan) : this.#planIndex(scan.index, scan);
    return { ...(plan as ScanPlan<Row>), limit };
  }

  #planRows(scan: CheckedScan): ScanPlan<Values> {
    const { reverse, limit } = scan;
    const range = rowRange(this.table, scan);
    return { limit, cursor: () => this.rows.cursor(range, reverse) };
  }

  #planIndex(name: string, scan: CheckedScan): ScanPlan<Values> {
    const index = this.#index(name);
    const { limit } = scan;
    checkIndexScan(this.table, index.definition, scan);
    const walk = index.walk(scan);
    const read = (tx: Transaction, key: unknown): Values | undefined => this.rows.read(tx, key);
    return { limit, cursor: () => new IndexCursor(walk(), read) };
  }

  #index(name: unknown): Index {
    const index = typeof name === "string" ? this.#named.get(name) : undefined;
    if (index !== undefined) return index;
    throw unknownIndex(this.table, name, [...this.#named.keys()]);
  }
}
