/**
 * An index with one entry for each row. Ordered: the entry's key is the indexed values and, so
 * that rows with the same values have entries of their own, the rest of the row's key. Unique:
 * the indexed values alone lead to the row's key. Rows with a null among these have no entry: null is
 * not the same as null, so many rows may have it.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Views } from "../../memory/views.ts";
import type { KeyRange, OrderedCodec, RowStore, Store } from "../../stores/store.ts";
import { fieldCopyOf } from "../codec/field-copy.ts";
import { layoutOf } from "../codec/layout.ts";
import type { Table } from "../table.ts";
import type { IndexDefinition, IndexState, StoredIndex } from "./definition.ts";
import { type Index, type KeyWalk, keyIn, projector, sameValues } from "./entries.ts";
import { indexRange } from "./ranges.ts";
import type { CheckedScan } from "./read-options.ts";
import { hiddenStructure, pick, type RowValues, restOfKey, type Structure } from "./structure.ts";

export function entryStructures(
  table: Table,
  definition: IndexDefinition,
): Structure<RowValues, unknown>[] {
  const { on, unique } = definition;
  const all = [...on, ...restOfKey(table, definition)];
  return [hiddenStructure(table, definition, pick(table.fields, all), unique ? on : all)];
}

/** The fields of a unique index whose nulls keep a row out of it. */
export function leftOutIfNull(table: Table, { on, unique }: IndexDefinition): string[] {
  return unique ? on.filter((name) => table.fields[name].nullable) : [];
}

export function hasNull(row: RowValues, names: readonly string[]): boolean {
  for (let i = 0; i < names.length; i++) if (row[names[i]] === null) return true;
  return false;
}

export class EntryIndex implements Index {
  readonly definition: IndexDefinition;
  readonly state: IndexState;
  readonly #table: Table;
  readonly #structure: Structure<RowValues, unknown>;
  readonly #store: RowStore<RowValues, unknown>;
  /** The same entries, of which only the key of the row is read: no text is made in vain. */
  readonly #keys: Store<RowValues, unknown>;
  /** The fields that may be null, if the index is unique. */
  readonly #nullable: readonly string[];
  readonly #entryOf: (row: RowValues) => RowValues;
  readonly mayRefuse: boolean;
  readonly addEncoded: ((tx: Transaction, row: Views) => void) | undefined;

  constructor(executor: Executor, table: Table, stored: StoredIndex) {
    this.definition = stored;
    this.state = stored.state;
    this.#table = table;
    [this.#structure] = entryStructures(table, stored);
    this.#store = this.#structure.open(executor, stored.roots[0]);
    this.#keys =
      this.#structure.ordered === undefined
        ? this.#structure.openPart(executor, stored.roots[0], table.key)
        : this.#store;
    this.#nullable = leftOutIfNull(table, stored);
    this.#entryOf = projector(Object.keys(this.#structure.table.fields));
    // Keys of one size are never too long.
    this.mayRefuse = stored.unique || (this.#structure.ordered?.orderedWords ?? 0) === 0;
    this.addEncoded = this.#encodedAdder();
  }

  #encodedAdder(): ((tx: Transaction, row: Views) => void) | undefined {
    const layout = layoutOf(this.#structure.table);
    const copy = fieldCopyOf(layoutOf(this.#table), layout);
    if (copy === undefined || this.mayRefuse) return undefined;
    const store = this.#store;
    const { scratch } = this.#structure.codec;
    const words = layout.fixedBytes / 4;
    return (tx, row) => {
      copy(row, scratch);
      if (!store.insertEncoded(tx, words) && this.state === "ready") tx.conflict(-1);
    };
  }

  check(row: RowValues): void {
    if (this.mayRefuse) this.#structure.checkKeyOf(this.#entryOf(row));
  }

  holderOf(tx: Transaction, row: RowValues): unknown {
    if (!this.definition.unique || hasNull(row, this.#nullable)) return undefined;
    return this.find(tx, this.#entryKey(row));
  }

  add(tx: Transaction, row: RowValues): void {
    if (hasNull(row, this.#nullable)) return;
    const added = this.#store.insert(tx, this.#entryOf(row));
    if (!added && this.state === "ready") tx.conflict(-1);
  }

  remove(tx: Transaction, row: RowValues): void {
    if (hasNull(row, this.#nullable)) return;
    const key = this.#entryKey(row);
    const isOwn = !this.definition.unique || this.#isOwn(this.#keys.read(tx, key), row);
    const removed = isOwn && this.#store.remove(tx, key);
    if (!removed && this.state === "ready") tx.conflict(-1);
  }

  find(tx: Transaction, values: unknown): unknown {
    const entry = this.#keys.read(tx, values);
    return entry && this.#keyOf(entry);
  }

  walk(scan: CheckedScan): () => KeyWalk {
    const { ordered, codec } = this.#structure;
    const keyOf = (entry: RowValues): unknown => this.#keyOf(entry);
    if (ordered !== undefined) {
      const range = indexRange(this.#table, this.definition, scan.bounds);
      return () => new OrderedWalk(this.#store, ordered, range, scan.reverse, keyOf);
    }
    codec.stageKey(scan.bounds.eq);
    return () => new SingleWalk((tx) => this.find(tx, scan.bounds.eq));
  }

  maintain(): void {
    this.#store.maintain();
  }

  #entryKey(row: RowValues): unknown {
    const { key, singleKey } = this.#structure.table;
    return keyIn(row, key, singleKey);
  }

  #keyOf(entry: RowValues): unknown {
    return keyIn(entry, this.#table.key, this.#table.singleKey);
  }

  #isOwn(entry: RowValues | undefined, row: RowValues): boolean {
    return entry !== undefined && sameValues(entry, row, this.#table.key);
  }
}

/** Entries in their order. Its place is a key, so a look can be repeated. */
class OrderedWalk implements KeyWalk {
  readonly #store: Store<RowValues, unknown>;
  readonly #codec: OrderedCodec<RowValues, unknown>;
  readonly #reverse: boolean;
  readonly #keyOf: (entry: RowValues) => unknown;
  readonly #entries: RowValues[] = [];
  #range: KeyRange;
  #counter: { skip(tx: Transaction): number } | undefined;

  constructor(
    store: Store<RowValues, unknown>,
    codec: OrderedCodec<RowValues, unknown>,
    range: KeyRange,
    reverse: boolean,
    keyOf: (entry: RowValues) => unknown,
  ) {
    this.#store = store;
    this.#codec = codec;
    this.#range = range;
    this.#reverse = reverse;
    this.#keyOf = keyOf;
  }

  look(tx: Transaction, keys: unknown[], most: number): boolean {
    keys.length = 0;
    const entries = this.#entries;
    const cursor = this.#store.cursor(this.#range, this.#reverse);
    if (!cursor.next(tx, entries, most)) return false;
    for (let i = 0; i < entries.length; i++) keys.push(this.#keyOf(entries[i]));
    return true;
  }

  moveOn(): void {
    const { from, to } = this.#range;
    const words = this.#codec.stageOrderedOf(this.#entries[this.#entries.length - 1]);
    // One word more, 0, is the least key that is greater.
    const place = new Int32Array(this.#reverse ? words : words + 1);
    place.set(this.#codec.ordered.subarray(0, words));
    this.#range = this.#reverse ? { from, to: place } : { from: place, to };
  }

  skip(tx: Transaction): number {
    this.#counter ??= this.#store.cursor(this.#range, this.#reverse);
    return this.#counter.skip(tx);
  }
}

/** The one key that a unique hash index may lead to. */
class SingleWalk implements KeyWalk {
  readonly #find: (tx: Transaction) => unknown;
  #done = false;

  constructor(find: (tx: Transaction) => unknown) {
    this.#find = find;
  }

  look(tx: Transaction, keys: unknown[], most: number): boolean {
    keys.length = 0;
    const key = this.#done || most === 0 ? undefined : this.#find(tx);
    if (key !== undefined) keys.push(key);
    return keys.length > 0;
  }

  moveOn(): void {
    this.#done = true;
  }

  skip(tx: Transaction): number {
    if (this.#done || this.#find(tx) === undefined) return 0;
    this.#done = true;
    return 1;
  }
}
