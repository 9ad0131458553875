/**
 * A store whose rows have indexes: every change goes to the rows and to all of the indexes, in the
 * same transaction. What can be refused is refused before anything is changed, so that a body may
 * catch the error and go on.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Cursor, KeyRange, RowCodec, Store } from "../../stores/store.ts";
import type { Table } from "../table.ts";
import { type Index, keyIn, notUnique, sameValue, sameValues } from "./entries.ts";
import type { Values } from "./structure.ts";

export class IndexedStore implements Store<Values, unknown> {
  readonly #table: Table;
  readonly #codec: RowCodec<Values, unknown>;
  readonly #rows: Store<Values, unknown>;
  readonly #indexes: readonly Index[];
  /** The fields that some index is on. */
  readonly #indexed: ReadonlySet<string>;

  constructor(
    table: Table,
    codec: RowCodec<Values, unknown>,
    rows: Store<Values, unknown>,
    indexes: readonly Index[],
  ) {
    this.#table = table;
    this.#codec = codec;
    this.#rows = rows;
    this.#indexes = indexes;
    this.#indexed = new Set(indexes.flatMap(({ definition }) => definition.on));
  }

  get(key: unknown): Values | undefined {
    return this.#rows.get(key);
  }

  read(tx: Transaction, key: unknown): Values | undefined {
    return this.#rows.read(tx, key);
  }

  touch(tx: Transaction, key: unknown): void {
    this.#rows.touch(tx, key);
  }

  has(tx: Transaction, key: unknown): boolean {
    return this.#rows.has(tx, key);
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<Values> {
    return this.#rows.cursor(range, reverse);
  }

  insert(tx: Transaction, row: Values): boolean {
    // Checks the types of all fields, under the names of the table.
    this.#codec.encode(row);
    if (this.#rows.has(tx, this.#keyOf(row))) return false;
    this.#check(tx, undefined, row);
    try {
      this.#rows.insert(tx, row);
      this.#follow(tx, undefined, row);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  put(tx: Transaction, row: Values): void {
    this.#codec.encode(row);
    const before = this.#rows.read(tx, this.#keyOf(row));
    this.#check(tx, before, row);
    try {
      this.#rows.put(tx, row);
      this.#follow(tx, before, row);
    } catch (error) {
      tx.failHalfWay(error);
    }
  }

  update(tx: Transaction, key: unknown, changes: Partial<Values>): boolean {
    if (!this.#concernsIndexes(changes)) return this.#rows.update(tx, key, changes);
    const before = this.#rows.read(tx, key);
    if (before === undefined) return false;
    const after = this.#codec.merge(before, changes);
    this.#codec.encode(after);
    this.#check(tx, before, after);
    try {
      this.#rows.update(tx, key, changes);
      this.#follow(tx, before, after);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  remove(tx: Transaction, key: unknown): boolean {
    const before = this.#rows.read(tx, key);
    if (before === undefined) return false;
    try {
      this.#rows.remove(tx, key);
      this.#follow(tx, before, undefined);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return true;
  }

  maintain(): void {
    this.#rows.maintain();
    for (let i = 0; i < this.#indexes.length; i++) this.#indexes[i].maintain();
  }

  #keyOf(row: Values): unknown {
    return keyIn(row, this.#table.key, this.#table.singleKey);
  }

  #concernsIndexes(changes: Partial<Values>): boolean {
    for (const name in changes) if (this.#indexed.has(name)) return true;
    return false;
  }

  /** Whether all indexes can take the row. */
  #check(tx: Transaction, before: Values | undefined, after: Values): void {
    for (const index of this.#indexes) {
      if (index.state === "announced" || isSame(index, before, after)) continue;
      index.check(after);
      refuseTaken(tx, this.#table, index, after);
    }
  }

  /** Brings the indexes from one row to the other. */
  #follow(tx: Transaction, before: Values | undefined, after: Values | undefined): void {
    for (const index of this.#indexes) {
      if (isSame(index, before, after)) continue;
      if (before !== undefined) index.remove(tx, before);
      if (after !== undefined && index.state !== "announced") index.add(tx, after);
    }
  }
}

function isSame({ definition }: Index, before: Values | undefined, after: Values | undefined) {
  return before !== undefined && after !== undefined && sameValues(before, after, definition.on);
}

/** Fails if another row has the values of this one in a unique index. */
export function refuseTaken(tx: Transaction, table: Table, index: Index, row: Values): void {
  const holder = index.holderOf(tx, row);
  if (holder === undefined) return;
  const key = keyIn(row, table.key, table.singleKey);
  const isOwn = table.singleKey
    ? sameValue(holder, key)
    : (holder as unknown[]).every((part, i) => sameValue(part, (key as unknown[])[i]));
  if (!isOwn) throw notUnique(table, index.definition, row, holder);
}
