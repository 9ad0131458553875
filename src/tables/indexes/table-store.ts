/**
 * A table as one database has it open: the declaration of the caller, and what the store has by now.
 * Transactions, snapshots and the database itself read, change and plan their scans here. It does not
 * change: when the store's schema does, another one takes its place, and whoever reads an earlier state,
 * such as a snapshot, keeps the one that belongs to it.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import type { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";
import type { AnyCodec } from "../../stores/kind.ts";
import type { RowStore, Store } from "../../stores/store.ts";
import { RecordingStore } from "../changes/recording-store.ts";
import { ExpiringStore } from "../expiry/expiring-store.ts";
import { EXPIRY_INDEX, expiredBounds, isLive, LiveCursor, momentOf } from "../expiry/expiry.ts";
import { harmfulDifferences, isSameRows, storedField } from "../migrations/declaration.ts";
import {
  ProjectedStore,
  Projection,
  RefusedStore,
  SwitchingStore,
} from "../migrations/projected-store.ts";
import type { BuiltSchema } from "../migrations/stored.ts";
import { Successor } from "../migrations/successor.ts";
import type { ScanPlan } from "../scan-plan.ts";
import { type StoredSchema, schemaOf } from "../schema.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { type IndexDefinition, type StoredIndex, sameDefinition } from "./definition.ts";
import { type Index, IndexCursor, type KeyWalk, withoutRow } from "./entries.ts";
import { type CheckedScan, checkedGet, checkedScan } from "./read-options.ts";
import { checkIndexScan, rowRange, unknownIndex } from "./scan-rules.ts";
import { StoredTable } from "./stored-table.ts";
import type { RowValues, Structure } from "./structure.ts";

/** A table of the catalogue. */
export interface CatalogueTable {
  readonly schema: StoredSchema;
  /** Where the rows are rooted. */
  readonly root: Address;
  /** Which one of the catalogue's tables it is. */
  readonly position: number;
}

export class TableStore {
  readonly table: Table;
  readonly position: number;
  /** Of the catalogue's table: see `StoredSchema`. */
  readonly id: string | undefined;
  /** Whether what happens to rows is recorded, for those who watch the table. */
  readonly isRecording: boolean;
  /** What rows are changed through. */
  readonly store: Store<RowValues, unknown>;
  /** What rows are read through. */
  readonly reader: Store<RowValues, unknown>;
  /** The same, with rows that have expired. */
  readonly #all: Store<RowValues, unknown> | undefined;
  /** If rows expire: what removes them. */
  readonly #expiring: ExpiringStore | undefined;
  /** Why the table cannot be used as it is declared, if it cannot. */
  readonly refusal: SituError | undefined;
  /** Whether rows are shown through a declaration that is not the store's own. */
  readonly isProjected: boolean;
  readonly #executor: Executor;
  readonly #text: string;
  /** The schema of what is read. */
  readonly #seen: BuiltSchema;
  readonly #written: StoredTable | undefined;
  readonly #read: StoredTable | undefined;
  /** The indexes that are declared here, by name: only they can be asked for. */
  readonly #named = new Map<string, Index>();

  /** What the state `before` had open, and is still the same, is not opened again. */
  constructor(executor: Executor, table: Table, found: CatalogueTable, before?: TableStore) {
    const { schema, root, position } = found;
    this.isRecording = schema.changes !== undefined && executor.durability.isLogged;
    this.#executor = executor;
    this.table = table;
    this.position = position;
    this.id = before === undefined ? schema.id : before.id;
    this.#text = textOf(found);
    const seen = schema.successor?.state === "switching" ? schema.successor.schema : schema;
    this.#seen = seen;
    this.isProjected = !isSameRows(seen, schemaOf(table));
    const lines = harmfulDifferences(seen, schemaOf(table));
    if (schema.state !== undefined || lines.length > 0 || this.id !== schema.id) {
      this.refusal = refusalOf(table, schema, lines);
      const refused = new RefusedStore(() => refusalOf(table, schema, lines));
      this.store = refused;
      this.reader = refused;
      return;
    }
    const written = before === undefined ? undefined : before.#written;
    const read = before === undefined ? undefined : before.#read;
    const old = storedTableOf(table, schema, [written, read]);
    const { successor: stored } = schema;
    if (stored?.state === "switching") {
      // Its indexes follow, but what is refused is up to the successor.
      const indexes = schema.indexes.map((each) => ({ ...each, state: "retired" as const }));
      this.#written = new StoredTable(executor, old, root, indexes, undefined, written);
      const known = read?.root === stored.root ? read : undefined;
      const next = storedTableOf(table, stored.schema, [known]);
      const { schema: shown } = stored;
      this.#read = new StoredTable(executor, next, stored.root, shown.indexes, undefined, known);
      const changing = this.#recorded(executor, this.#read);
      this.#expiring = expiringOver(executor, this.#read, changing);
      this.#all = projected(this.#read.rows, table, next, shown);
      this.reader = this.#expiring ? projected(this.#expiring, table, next, shown) : this.#all;
      this.store = new SwitchingStore(
        projected(this.#expiring ?? changing, table, next, shown),
        projected(this.#written.store, table, old, schema),
      );
    } else {
      const successorOf =
        stored &&
        ((rows: RowStore<RowValues, unknown>) =>
          new Successor(executor, old, rows, stored, written?.successor));
      const known = [written, read].find((each) => each?.root === root);
      this.#written = new StoredTable(executor, old, root, schema.indexes, successorOf, known);
      this.#read = this.#written;
      const changing = this.#recorded(executor, this.#written);
      this.#expiring = expiringOver(executor, this.#written, changing);
      this.#all = projected(this.#written.rows, table, old, schema);
      this.reader = this.#expiring ? projected(this.#expiring, table, old, schema) : this.#all;
      this.store = projected(this.#expiring ?? changing, table, old, schema);
    }
    for (const index of this.#read.indexes) {
      const { definition, state } = index;
      if (state !== "retired" && this.#declares(definition)) {
        this.#named.set(definition.name, index);
      }
    }
  }

  /** What changes the rows of a table, and records that if it is watched. */
  #recorded(executor: Executor, stored: StoredTable): Store<RowValues, unknown> {
    if (!this.isRecording) return stored.store;
    return new RecordingStore(executor, stored.structure, stored.root, this.position, stored.store);
  }

  /** Whether the catalogue still says the same. */
  isCurrent(found: CatalogueTable): boolean {
    return this.#text === textOf(found);
  }

  /** The rows as they are in the store. */
  get rows(): RowStore<RowValues, unknown> {
    return this.#stored.rows;
  }

  get structure(): Structure<RowValues, unknown> {
    return this.#stored.structure;
  }

  /** Where the rows are rooted. */
  get root(): Address {
    return this.#stored.root;
  }

  /** Whether all indexes that are declared here are ready. */
  get isComplete(): boolean {
    if (this.refusal !== undefined) return true;
    return this.table.indexes.every(({ name }) => this.#named.get(name)?.state === "ready");
  }

  /** The indexes that are declared here, with the names that their fields have in the store. */
  declaredIndexes(): IndexDefinition[] {
    return this.table.indexes.map((index) => ({ ...index, on: this.#storedNames(index.on) }));
  }

  /** Keys of rows that have ended by a moment, the first ones; none while their index is being built. */
  expiredKeys(tx: Transaction, momentMs: number, most: number): readonly unknown[] {
    const index = this.#named.get(EXPIRY_INDEX);
    if (index?.state !== "ready") return [];
    const bounds = expiredBounds(this.table, momentMs);
    const walk = index.walk(
      checkedScan("scan", this.table.name, { index: EXPIRY_INDEX, ...bounds }),
    )();
    const keys: unknown[] = [];
    const some: unknown[] = [];
    while (keys.length < most && walk.look(tx, some, most - keys.length)) {
      keys.push(...some);
      walk.moveOn();
    }
    return keys;
  }

  /** Removes a row if it has ended; whether it did. */
  evict(tx: Transaction, key: unknown): boolean {
    return this.#expiring?.evict(tx, key) ?? false;
  }

  /** All indexes that the store has, whoever has declared them. */
  get storedIndexes(): readonly StoredIndex[] {
    return this.#stored.stored;
  }

  /** An index as it stands in the store. */
  storedIndex(name: string): StoredIndex {
    const { definition } = this.#index(name);
    return this.#stored.stored.find((each) => each.name === definition.name)!;
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
  lookup(tx: Transaction, key: unknown, index: Index | undefined): RowValues | undefined {
    if (index === undefined) return this.reader.read(tx, key);
    const found = index.find(tx, key);
    if (found === undefined) return undefined;
    const { rows, table } = this.#shown;
    if (table.expires === undefined) return this.reader.read(tx, found) ?? withoutRow(tx);
    const row = rows.read(tx, found) ?? withoutRow(tx);
    return isLive(row, table.expires, momentOf(tx)) ? this.reader.read(tx, found) : undefined;
  }

  /** The indexes that are declared here, and have an entry for each row by now. */
  readyIndexes(): IndexDefinition[] {
    return this.table.indexes.filter(({ name }) => this.#named.get(name)?.state === "ready");
  }

  /** The rows in another form, of tables that are not projected; with those that have expired. */
  openForm<Form>(
    decode: (views: Views, at: number, words: number) => Form,
  ): RowStore<Form, unknown> {
    const { structure, root } = this.#shown;
    const codec = { ...structure.codec, decode } as unknown as AnyCodec<Form, unknown>;
    return structure.openWith(this.#executor, root, codec);
  }

  /** The keys that an index has within bounds. */
  indexWalk(name: string, bounds: object): KeyWalk {
    const index = this.#index(name);
    const scan = checkedScan("scan", this.table.name, { index: name, ...bounds });
    checkIndexScan(this.#shown.table, index.definition, scan);
    return index.walk(scan)();
  }

  /** Checks the options of a scan or count, and says how to carry it out. */
  plan<Row>(call: "scan" | "count", options: unknown): ScanPlan<Row> {
    return this.planChecked(checkedScan(call, this.table.name, options));
  }

  /** The same for options that were checked before. */
  planChecked<Row>(scan: CheckedScan): ScanPlan<Row> {
    const plan =
      scan.index === undefined ? this.#planRows(scan) : this.#planIndex(scan.index, scan);
    return plan as ScanPlan<Row>;
  }

  get #stored(): StoredTable {
    if (this.#written === undefined) throw this.refusal;
    return this.#written;
  }

  get #shown(): StoredTable {
    if (this.#read === undefined) throw this.refusal;
    return this.#read;
  }

  #planRows(scan: CheckedScan): ScanPlan<RowValues> {
    const { reverse, limit } = scan;
    const range = rowRange(this.#shown.table, scan);
    return { limit, cursor: () => this.reader.cursor(range, reverse) };
  }

  #planIndex(name: string, scan: CheckedScan): ScanPlan<RowValues> {
    const index = this.#index(name);
    const { limit } = scan;
    checkIndexScan(this.#shown.table, index.definition, scan);
    const walk = index.walk(scan);
    const all = this.#all!;
    const read = (tx: Transaction, key: unknown): RowValues | undefined => all.read(tx, key);
    const ends = this.#shown.table.expires;
    // A declaration without that field, from before rows expired, sees them until they are swept.
    const field =
      ends && Object.keys(this.table.fields).find((each) => storedField(this.#seen, each) === ends);
    return {
      limit,
      cursor: () => {
        const cursor = new IndexCursor(walk(), read);
        return field === undefined ? cursor : new LiveCursor(cursor, field);
      },
    };
  }

  #index(name: unknown): Index {
    const index = typeof name === "string" ? this.#named.get(name) : undefined;
    if (index !== undefined) return index;
    if (this.refusal !== undefined) throw this.refusal;
    if (this.table.indexes.some((each) => each.name === name)) {
      throw new SituError(
        "SITU_SCHEMA",
        `index ${String(name)} of table ${this.table.name} was dropped or changed in the store ` +
          `after this process had opened it: open the store again with the new declaration`,
      );
    }
    throw unknownIndex(this.table, name, [...this.#named.keys()]);
  }

  /** Whether an index of the store is one that is declared here. */
  #declares(index: IndexDefinition): boolean {
    const own = this.table.indexes.find(({ name }) => name === index.name);
    return own !== undefined && sameDefinition(index, { ...own, on: this.#storedNames(own.on) });
  }

  #storedNames(names: readonly string[]): string[] {
    return names.map((name) => storedField(this.#seen, name) ?? name);
  }
}

function expiringOver(
  executor: Executor,
  { table, structure, root, indexes }: StoredTable,
  changing: Store<RowValues, unknown>,
): ExpiringStore | undefined {
  if (table.expires === undefined) return undefined;
  return new ExpiringStore(executor, structure, root, changing, indexes);
}

function textOf({ schema, root }: CatalogueTable): string {
  return `${root} ${JSON.stringify(schema)}`;
}

/** The table as it is in the store; keys are written as the declaration has it. */
function storedTableOf(
  declared: Table,
  schema: BuiltSchema,
  before: readonly (StoredTable | undefined)[],
): Table {
  if (isSameTable(schema, schemaOf(declared))) return declared;
  const known = before.find((each) => each && isSameTable(schema, schemaOf(each.table)));
  if (known !== undefined) return known.table;
  return Object.freeze({ ...tableFromSchema(schema), singleKey: declared.singleKey });
}

function isSameTable(schema: BuiltSchema, wanted: ReturnType<typeof schemaOf>): boolean {
  const isSameLayout = schema.ordered === wanted.ordered && schema.layout === wanted.layout;
  const isSameTable = isSameLayout && schema.name === wanted.name;
  return isSameTable && schema.expires === wanted.expires && isSameRows(schema, wanted);
}

/** The store as the declaration shows it. */
function projected(
  store: Store<RowValues, unknown>,
  declared: Table,
  stored: Table,
  schema: BuiltSchema,
): Store<RowValues, unknown> {
  if (isSameRows(schema, schemaOf(declared))) return store;
  return new ProjectedStore(store, new Projection(declared, stored, schema));
}

function refusalOf(table: Table, schema: StoredSchema, lines: readonly string[]): SituError {
  const { name } = table;
  if (schema.state !== undefined || lines.length === 0) {
    return new SituError("SITU_SCHEMA", `table ${name} was dropped from the store`);
  }
  return new SituError(
    "SITU_SCHEMA",
    `table ${name} was migrated, and cannot be used with the declaration that this process has; ` +
      `open the store with the new one:\n  ${lines.join("\n  ")}`,
  );
}
