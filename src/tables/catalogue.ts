/**
 * The catalogue: which tables the store has, as objects like all else. Its root is found in the
 * control segment and has a pointer for each table; a table's entry holds its schema and where its
 * rows and indexes are rooted. Tables are added by ordinary transactions, so two processes that
 * open the store with a new table at once agree on one. A table keeps its number for ever; an
 * entry that changes is replaced by a new object. The entry of a table that was dropped stays, with
 * what is left to be freed of it, and is used again when there is no room for another.
 *
 *   root   word 0 tables; then for each table: region id + 1, word
 *   entry  words 0–1 root of the rows (region id + 1, word), word 2 bytes of the schema, then JSON
 */

import type { Executor } from "../engine/executor.ts";
import { readAtSnapshot, runReadOnly, runSync } from "../engine/run.ts";
import type { Snapshot } from "../engine/snapshots/snapshot.ts";
import { Transaction } from "../engine/transaction.ts";
import { type Address, addressOf, regionIdOf, wordOf } from "../memory/address.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD } from "../memory/control.ts";
import { SituError } from "../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS, MAX_SCHEMA_BYTES, MAX_TABLES } from "../runtime/limits.ts";
import { uniqueId } from "../runtime/random.ts";
import { withFormat } from "./changes/format.ts";
import { structuresOf } from "./indexes/forms.ts";
import { type RowValues, Structure } from "./indexes/structure.ts";
import { type CatalogueTable, TableStore } from "./indexes/table-store.ts";
import { harmfulDifferences, indexDifferences } from "./migrations/declaration.ts";
import {
  isStoredSchema,
  type Schema,
  type StoredSchema,
  schemaOf,
  statsOfTables,
  type TableStats,
} from "./schema.ts";
import type { Table } from "./table.ts";

export const ROOT_WORDS = 2 + 2 * MAX_TABLES;
export const ROOT_TABLES = 2;
export const ENTRY_SCHEMA = 4;

/** Makes the empty catalogue of a new store. */
export function createCatalogue(executor: Executor): void {
  const { control } = executor.memory;
  const tx = new Transaction(executor);
  const [regionId, word] = runSync(
    executor,
    tx,
    DEFAULT_TIMEOUT_MS,
    () => {
      const entry = tx.allocate(ROOT_WORDS * 4);
      return [tx.set.regionIdOf(entry), tx.set.wordOf(entry)] as const;
    },
    undefined,
  );
  control.i32[CATALOGUE_REGION] = regionId + 1;
  control.i32[CATALOGUE_WORD] = word;
}

/**
 * Finds or makes the table in the store, and refuses one with a schema that this declaration cannot be
 * used with. A new table has its indexes from the start; those that a table in the store has not are
 * left to build.ts.
 */
export function openTable(executor: Executor, table: Table): TableStore {
  const tx = new Transaction(executor);
  const structure = new Structure(table as Table<RowValues>);
  const indexes = table.indexes.map((index) => structuresOf(table, index));
  const wanted = schemaOf(table);
  const found = runSync(
    executor,
    tx,
    DEFAULT_TIMEOUT_MS,
    (): CatalogueTable => {
      tx.subject = `table ${table.name}`;
      const { tables, catalogue } = readAll(tx);
      const known = findTable(tables, table.name);
      if (known !== undefined) {
        refuseOther(known.schema, wanted);
        return known;
      }
      const root = structure.create(tx);
      const schema: StoredSchema = {
        ...wanted,
        indexes: wanted.indexes.map((index, i) => ({
          ...index,
          state: "ready",
          roots: indexes[i].map((part) => part.create(tx)),
          build: "",
        })),
        leftovers: [],
      };
      return addEntry(tx, catalogue, tables, schema, root);
    },
    undefined,
  );
  return new TableStore(executor, table, found);
}

/** The table with a name, or that once had it; a table that was dropped is not there. */
export function findTable(
  tables: readonly CatalogueTable[],
  name: string,
): CatalogueTable | undefined {
  const there = tables.filter(({ schema }) => schema.state !== "dropped");
  return (
    there.find(({ schema }) => schema.name === name) ??
    there.find(({ schema }) => schema.formerNames?.includes(name))
  );
}

function refuseOther(stored: StoredSchema, wanted: Schema): void {
  if (stored.state !== undefined) {
    throw new SituError("SITU_SCHEMA", `table ${wanted.name} is being dropped: try again later`);
  }
  const seen = stored.successor?.state === "switching" ? stored.successor.schema : stored;
  const lines = [...harmfulDifferences(seen, wanted), ...indexDifferences(seen, wanted)];
  if (lines.length === 0) return;
  const { successor } = stored;
  const isComing =
    successor !== undefined && harmfulDifferences(successor.schema, wanted).length === 0;
  const hint = isComing
    ? `, and is being migrated by process ${successor.owner.pid}; open it with migrate: true to wait`
    : "; docs/MIGRATIONS.md tells how to change it";
  throw new SituError(
    "SITU_SCHEMA",
    `table ${wanted.name} is in the store with another schema${hint}:\n  ${lines.join("\n  ")}`,
  );
}

/** The open tables as they are in the store by now. */
export function refreshTables(executor: Executor, tables: readonly TableStore[]): TableStore[] {
  const found = runReadOnly(executor, new Transaction(executor), readPositions, tables);
  return tables.map((table, i) => refreshed(executor, table, found[i]));
}

/** The same as a snapshot sees them. */
export function tablesAt(
  executor: Executor,
  snapshot: Snapshot,
  tables: readonly TableStore[],
): TableStore[] {
  const tx = new Transaction(executor);
  const found = readAtSnapshot(executor, tx, snapshot, readPositions, tables);
  return tables.map((table, i) => refreshed(executor, table, found[i]));
}

function readPositions(tx: Transaction, tables: readonly TableStore[]): CatalogueTable[] {
  const { places } = readRoot(tx);
  return tables.map(({ position }) => ({ ...readEntry(tx, places[position]), position }));
}

function refreshed(executor: Executor, table: TableStore, found: CatalogueTable): TableStore {
  return table.isCurrent(found) ? table : new TableStore(executor, table.table, found, table);
}

/** The schemas of all tables in the store. */
export function readCatalogue(executor: Executor): TableStats[] {
  return statsOfTables(readSchemas(executor).map(({ schema }) => schema));
}

/** All that the catalogue has, in its order: tables, and places of tables that were dropped. */
export function readSchemas(executor: Executor): CatalogueTable[] {
  const all = (tx: Transaction): CatalogueTable[] => readAll(tx).tables;
  return runReadOnly(executor, new Transaction(executor), all, undefined);
}

/** The schema of a table, as part of a transaction. */
export function readSchema(tx: Transaction, position: number): StoredSchema {
  return readTable(tx, position).schema;
}

/** The same with the place of its rows. */
export function readTable(tx: Transaction, position: number): CatalogueTable {
  return { ...readEntry(tx, readRoot(tx).places[position]), position };
}

/** Replaces the schema of a table, and the place of its rows if another one is given. */
export function writeSchema(
  tx: Transaction,
  position: number,
  schema: StoredSchema,
  newRoot?: Address,
): void {
  const { places, catalogue } = readRoot(tx);
  const { entry, root } = readEntry(tx, places[position]);
  try {
    tx.free(entry);
    setEntry(tx, catalogue, position, places.length, withFormat(schema), newRoot ?? root);
  } catch (error) {
    tx.failHalfWay(error);
  }
}

function readAll(tx: Transaction): { tables: CatalogueTable[]; catalogue: number } {
  const { places, catalogue } = readRoot(tx);
  const tables = places.map((place, position) => ({ ...readEntry(tx, place), position }));
  return { tables, catalogue };
}

interface Place {
  readonly regionId: number;
  readonly word: number;
}

function readRoot(tx: Transaction): { places: Place[]; catalogue: number } {
  const { memory } = tx.executor;
  const { i32: control } = memory.control;
  const catalogue = tx.open(memory.region(control[CATALOGUE_REGION] - 1), control[CATALOGUE_WORD]);
  tx.depend(catalogue);
  const { i32 } = tx.views;
  const places: Place[] = [];
  const count = Math.min(i32[tx.at], MAX_TABLES);
  for (let index = 0; index < count; index++) {
    const at = tx.at + ROOT_TABLES + 2 * index;
    places.push({ regionId: i32[at] - 1, word: i32[at + 1] });
  }
  if (!tx.settle(catalogue)) tx.conflict(catalogue);
  return { places, catalogue };
}

function readEntry(
  tx: Transaction,
  { regionId, word }: Place,
): { schema: StoredSchema; root: Address; entry: number } {
  const entry = tx.open(tx.executor.memory.region(regionId), word);
  tx.depend(entry);
  const { i32, bytes } = tx.views;
  const root = addressOf(i32[tx.at] - 1, i32[tx.at + 1]);
  const start = (tx.at + ENTRY_SCHEMA) * 4;
  const text = bytes.toString("utf8", start, start + Math.min(i32[tx.at + 2], MAX_SCHEMA_BYTES));
  if (!tx.settle(entry)) tx.conflict(entry);
  // Text that is none was replaced since the root was read; the error is not believed then.
  return { schema: parsed(text, regionId, word), root, entry };
}

function parsed(text: string, regionId: number, word: number): StoredSchema {
  let cause: unknown;
  try {
    const schema = JSON.parse(text) as StoredSchema;
    if (isStoredSchema(schema)) return schema;
  } catch (error) {
    cause = error;
  }
  throw new SituError(
    "SITU_CORRUPT",
    `the schema at word ${word} of region ${regionId} makes no sense: run verify`,
    { cause },
  );
}

/** Adds a table behind the others; when the catalogue is full, in the place of one that was dropped. */
function addEntry(
  tx: Transaction,
  catalogue: number,
  tables: readonly CatalogueTable[],
  schema: StoredSchema,
  root: Address,
): CatalogueTable {
  const position = tables.length;
  if (position < MAX_TABLES) {
    setEntry(tx, catalogue, position, position + 1, schema, root);
    return { schema, root, position };
  }
  const free = tables.find(({ schema: each }) => each.state === "dropped" && isCleared(each));
  if (free === undefined) {
    throw new SituError("SITU_FULL", `the store has ${MAX_TABLES} tables, which is the most`);
  }
  const renewed = { ...schema, id: uniqueId() };
  writeSchema(tx, free.position, renewed, root);
  return { schema: renewed, root, position: free.position };
}

function isCleared({ remains = [], leftovers }: StoredSchema): boolean {
  return remains.length === 0 && leftovers.length === 0;
}

function setEntry(
  tx: Transaction,
  catalogue: number,
  position: number,
  tables: number,
  schema: StoredSchema,
  root: Address,
): void {
  const text = Buffer.from(JSON.stringify(schema));
  if (text.length > MAX_SCHEMA_BYTES) {
    throw new SituError("SITU_TOO_LARGE", `the schema of ${schema.name} is ${text.length} bytes`);
  }
  const { set } = tx;
  const entry = tx.allocate(ENTRY_SCHEMA * 4 + text.length);
  const at = set.bufferOf(entry);
  set.arena.i32[at] = regionIdOf(root) + 1;
  set.arena.i32[at + 1] = wordOf(root);
  set.arena.i32[at + 2] = text.length;
  set.arena.u8.set(text, (at + ENTRY_SCHEMA) * 4);
  const rootAt = tx.writable(catalogue, ROOT_WORDS);
  set.arena.i32[rootAt] = tables;
  set.arena.i32[rootAt + ROOT_TABLES + 2 * position] = set.regionIdOf(entry) + 1;
  set.arena.i32[rootAt + ROOT_TABLES + 2 * position + 1] = set.wordOf(entry);
  set.markDirty(catalogue, 0, ROOT_TABLES + 2 * position + 2);
}
