/**
 * The catalogue: which tables the store has, as objects like all else. Its root is found in the
 * control segment and has a pointer for each table; a table's entry holds its schema and where its
 * rows are rooted. Tables are added by ordinary transactions, so two processes that open the store
 * with a new table at once agree on one.
 *
 *   root   word 0 tables; then for each table: region id + 1, word
 *   entry  words 0–1 root of the rows (region id + 1, word), word 2 bytes of the schema, then JSON
 */

import type { Executor } from "../engine/executor.ts";
import { runSync } from "../engine/run.ts";
import { Transaction } from "../engine/transaction.ts";
import { addressOf, regionIdOf, wordOf } from "../memory/address.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD } from "../memory/control.ts";
import { SituError } from "../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS, MAX_SCHEMA_BYTES, MAX_TABLES } from "../runtime/limits.ts";
import { Hopscotch } from "../stores/hopscotch/hopscotch.ts";
import type { Store } from "../stores/store.ts";
import { codecOf } from "./codec/codec.ts";
import { differences, type StoredSchema, schemaOf } from "./schema.ts";
import type { Table } from "./table.ts";

const ROOT_WORDS = 2 + 2 * MAX_TABLES;
const ROOT_TABLES = 2;
const ENTRY_SCHEMA = 4;

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

/** Finds or makes the table in the store, and refuses one with another schema. */
export function openTable<Row, Key>(executor: Executor, table: Table<Row, Key>): Store<Row, Key> {
  const tx = new Transaction(executor);
  const codec = codecOf(table);
  const wanted = schemaOf(table);
  const root = runSync(
    executor,
    tx,
    DEFAULT_TIMEOUT_MS,
    () => {
      tx.subject = `table ${table.name}`;
      const { entries, catalogue } = readRoot(executor, tx);
      for (const found of entries) {
        const { schema, root } = readEntry(executor, tx, found);
        if (schema.name !== table.name) continue;
        const lines = differences(schema, wanted);
        if (lines.length === 0) return root;
        throw new SituError(
          "SITU_SCHEMA",
          `table ${table.name} is in the store with another schema:\n  ${lines.join("\n  ")}`,
        );
      }
      const root = Hopscotch.create(tx, codec.fixedWords);
      addEntry(tx, catalogue, entries.length, wanted, regionIdOf(root), wordOf(root));
      return root;
    },
    undefined,
  );
  return new Hopscotch(executor, codec, root);
}

/** The schemas of all tables in the store. */
export function readCatalogue(executor: Executor): StoredSchema[] {
  const tx = new Transaction(executor);
  return runSync(
    executor,
    tx,
    DEFAULT_TIMEOUT_MS,
    () => readRoot(executor, tx).entries.map((entry) => readEntry(executor, tx, entry).schema),
    undefined,
  );
}

interface Place {
  readonly regionId: number;
  readonly word: number;
}

function readRoot(executor: Executor, tx: Transaction): { entries: Place[]; catalogue: number } {
  const { i32: control } = executor.memory.control;
  const region = executor.memory.region(control[CATALOGUE_REGION] - 1);
  const catalogue = tx.open(region, control[CATALOGUE_WORD]);
  tx.depend(catalogue);
  const { i32 } = tx.views;
  const entries: Place[] = [];
  const count = Math.min(i32[tx.at], MAX_TABLES);
  for (let index = 0; index < count; index++) {
    const at = tx.at + ROOT_TABLES + 2 * index;
    entries.push({ regionId: i32[at] - 1, word: i32[at + 1] });
  }
  if (!tx.settle(catalogue)) tx.conflict(catalogue);
  return { entries, catalogue };
}

function readEntry(
  executor: Executor,
  tx: Transaction,
  { regionId, word }: Place,
): { schema: StoredSchema; root: ReturnType<typeof addressOf> } {
  const entry = tx.open(executor.memory.region(regionId), word);
  tx.depend(entry);
  const { i32, bytes } = tx.views;
  const root = addressOf(i32[tx.at] - 1, i32[tx.at + 1]);
  const start = (tx.at + ENTRY_SCHEMA) * 4;
  const text = bytes.toString("utf8", start, start + Math.min(i32[tx.at + 2], MAX_SCHEMA_BYTES));
  if (!tx.settle(entry)) tx.conflict(entry);
  return { schema: JSON.parse(text) as StoredSchema, root };
}

function addEntry(
  tx: Transaction,
  catalogue: number,
  index: number,
  schema: StoredSchema,
  rootRegionId: number,
  rootWord: number,
): void {
  if (index >= MAX_TABLES) {
    throw new SituError("SITU_FULL", `the store has ${MAX_TABLES} tables, which is the most`);
  }
  const text = Buffer.from(JSON.stringify(schema));
  if (text.length > MAX_SCHEMA_BYTES) {
    throw new SituError("SITU_TOO_LARGE", `the schema of ${schema.name} is ${text.length} bytes`);
  }
  const { set } = tx;
  const entry = tx.allocate(ENTRY_SCHEMA * 4 + text.length);
  const at = set.bufferOf(entry);
  set.arena.i32[at] = rootRegionId + 1;
  set.arena.i32[at + 1] = rootWord;
  set.arena.i32[at + 2] = text.length;
  set.arena.u8.set(text, (at + ENTRY_SCHEMA) * 4);
  const rootAt = tx.writable(catalogue, ROOT_WORDS);
  set.arena.i32[rootAt] = index + 1;
  set.arena.i32[rootAt + ROOT_TABLES + 2 * index] = set.regionIdOf(entry) + 1;
  set.arena.i32[rootAt + ROOT_TABLES + 2 * index + 1] = set.wordOf(entry);
  set.markDirty(catalogue, 0, ROOT_TABLES + 2 * index + 2);
}
