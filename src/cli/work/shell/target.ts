/**
 * What statements about rows are carried out on: the store itself, each statement a transaction of
 * its own, or the transaction between begin and commit.
 */

import type { AsyncTransaction } from "../../../database/async-transaction.ts";
import type { Database } from "../../../database/database.ts";
import type { AnyCountOptions, AnyScanOptions } from "../../../tables/indexes/read-options.ts";
import type { Table } from "../../../tables/table.ts";

export type Row = Readonly<Record<string, unknown>>;

export interface Target {
  get(table: Table, key: unknown, index: string | undefined): Promise<Row | undefined>;
  /** Rows as they come: they may be more than memory holds. */
  scan(table: Table, options: AnyScanOptions): AsyncIterable<Row>;
  count(table: Table, options: AnyCountOptions): Promise<number>;
  insert(table: Table, row: Row): Promise<void>;
  put(table: Table, row: Row): Promise<void>;
  update(table: Table, key: unknown, changes: Row): Promise<void>;
  delete(table: Table, key: unknown): Promise<boolean>;
}

/** Nothing is known of these tables at compile time. */
type AnyTable = Table<Row, unknown, unknown>;

export class StoreTarget implements Target {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async get(table: Table, key: unknown, index: string | undefined): Promise<Row | undefined> {
    if (index === undefined) return this.#db.get(table as AnyTable, key);
    return this.#db.get(table as AnyTable, key as never, { index: index as never });
  }

  scan(table: Table, options: AnyScanOptions): AsyncIterable<Row> {
    return this.#db.scan(table as AnyTable, options);
  }

  async count(table: Table, options: AnyCountOptions): Promise<number> {
    return this.#db.count(table as AnyTable, options);
  }

  insert(table: Table, row: Row): Promise<void> {
    return this.#db.transact((tx) => tx.insert(table as AnyTable, row));
  }

  put(table: Table, row: Row): Promise<void> {
    return this.#db.transact((tx) => tx.put(table as AnyTable, row));
  }

  update(table: Table, key: unknown, changes: Row): Promise<void> {
    return this.#db.transact((tx) => tx.update(table as AnyTable, key, changes));
  }

  delete(table: Table, key: unknown): Promise<boolean> {
    return this.#db.transact((tx) => tx.delete(table as AnyTable, key));
  }
}

export class TransactionTarget implements Target {
  readonly #tx: AsyncTransaction;

  constructor(tx: AsyncTransaction) {
    this.#tx = tx;
  }

  get(table: Table, key: unknown, index: string | undefined): Promise<Row | undefined> {
    if (index === undefined) return this.#tx.get(table as AnyTable, key);
    return this.#tx.get(table as AnyTable, key as never, { index: index as never });
  }

  scan(table: Table, options: AnyScanOptions): AsyncIterable<Row> {
    return this.#tx.scan(table as AnyTable, options);
  }

  count(table: Table, options: AnyCountOptions): Promise<number> {
    return this.#tx.count(table as AnyTable, options);
  }

  insert(table: Table, row: Row): Promise<void> {
    return this.#tx.insert(table as AnyTable, row);
  }

  put(table: Table, row: Row): Promise<void> {
    return this.#tx.put(table as AnyTable, row);
  }

  update(table: Table, key: unknown, changes: Row): Promise<void> {
    return this.#tx.update(table as AnyTable, key, changes);
  }

  delete(table: Table, key: unknown): Promise<boolean> {
    return this.#tx.delete(table as AnyTable, key);
  }
}
