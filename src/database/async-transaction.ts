/**
 * The transactions of `transact` and `begin`, as their users see them: operations are promises.
 *
 * In local memory an operation is carried out when it is issued. On a remote database those that are issued
 * without waiting for each other, as with `Promise.all`, form one batch: one message to each node.
 */

import type { Pointer } from "../memory/pointer.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../tables/indexes/read-options.ts";
import type { InsertedKey, InsertOf, Opened, PutOf } from "../tables/table.ts";
import type { BulkTransaction } from "./bulk.ts";
import type { TransactionEnd } from "./run/interactive.ts";
import type { AsyncScan } from "./scan.ts";
import type { AllocOptions } from "./transaction.ts";

/** Rows, in a transaction of a local or a remote database. */
export interface AsyncTransaction<Names extends string = string> extends BulkTransaction<Names> {
  /** Reads a row by its key; `undefined` if there is none. */
  get<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Promise<Row | undefined>;
  /** Reads a row by the values of a unique index. Local databases only. */
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Promise<Row | undefined>;

  /**
   * Reads a row that the transaction will write. In procedures of a cluster whose protocol is "rpc" the
   * row is locked by the message that reads it, which saves a round trip; elsewhere it is `get`.
   */
  getForUpdate<Row, Key>(
    table: Opened<Names, Row, Key>,
    key: NoInfer<Key>,
  ): Promise<Row | undefined>;

  /** Reads the rows of several keys, in the order of the keys. */
  getMany<Row, Key>(
    table: Opened<Names, Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]>;

  /** Whether there is a row with this key. */
  has<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Promise<boolean>;

  /**
   * Adds a row. Fails with SITU_EXISTS if there is one with its key. Of a table with an
   * `autoIncrement()` key, returns the key.
   */
  insert<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): Promise<InsertedKey<Writes>>;

  /** Adds a row, or replaces the one with its key. */
  put<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): Promise<void>;

  /**
   * Changes fields of a row; those that are undefined stay as they are. Fails with SITU_MISSING if
   * there is no row with this key.
   */
  update<Row, Key, Changes>(
    table: Opened<Names, Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void>;

  /** Removes a row. Returns whether there was one. */
  delete<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Promise<boolean>;

  /**
   * The rows within bounds, in the order of the key or of an index, for `for await`. The transaction
   * does not commit if another one adds a row to the range, or removes or changes one in it.
   */
  scan<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row>;

  /** The number of rows that `scan` would return. */
  count<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number>;
}

/** A transaction of a local database: rows, and objects that are reached by pointers. */
export interface LocalTransaction<Names extends string = string> extends AsyncTransaction<Names> {
  /** Allocates an object of `size` zeroed bytes. */
  alloc(size: number, options?: AllocOptions): Promise<Pointer>;
  /** Allocates `count` objects of `size` bytes next to each other; `pointer.at(i)` points to each. */
  allocArray(size: number, count: number, options?: AllocOptions): Promise<Pointer>;
  /** Returns a copy of an object's bytes. Fails with SITU_FREED if the object was freed. */
  read(pointer: Pointer): Promise<Uint8Array>;
  /** Replaces the first `data.length` bytes of an object. */
  write(pointer: Pointer, data: Uint8Array): Promise<void>;
  /** Frees an object. */
  free(pointer: Pointer): Promise<void>;
}

/**
 * A transaction that its caller ends: see `begin`. Unlike the callback of `transact` it is not run again
 * when it meets another transaction: operations and `commit` then fail with ConflictError, and the
 * transaction is rolled back.
 */
export type InteractiveTransaction<Tx extends AsyncTransaction = AsyncTransaction> = Tx &
  TransactionEnd;

const ROWS = {
  get: true,
  getForUpdate: true,
  getMany: true,
  has: true,
  insert: true,
  put: true,
  update: true,
  delete: true,
  scan: true,
  count: true,
  select: true,
  aggregate: true,
  updateWhere: true,
  deleteWhere: true,
  explain: true,
} satisfies Record<keyof AsyncTransaction, true>;
const ROWS_AND_OBJECTS = {
  ...ROWS,
  alloc: true,
  allocArray: true,
  read: true,
  write: true,
  free: true,
} satisfies Record<keyof LocalTransaction, true>;

/** The names of all operations, of which an interactive transaction is made. */
export const ROW_OPERATIONS = Object.keys(ROWS) as (keyof AsyncTransaction)[];
export const LOCAL_OPERATIONS = Object.keys(ROWS_AND_OBJECTS) as (keyof LocalTransaction)[];
