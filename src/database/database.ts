/** A database, as its users see it: what `open` returns. Start reading here. */

import type { Recovered } from "../log/recovery/rebuild.ts";
import type { Pointer } from "../memory/pointer.ts";
import type { SelectOptions } from "../tables/bulk/requests.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../tables/indexes/read-options.ts";
import type { MigrationPlan } from "../tables/migrations/run.ts";
import type { MigrationStep } from "../tables/migrations/steps.ts";
import type { InferRow, InsertedKey, InsertOf, Opened, PutOf, Table } from "../tables/table.ts";
import type { Copied } from "../tools/files/copy.ts";
import type { FileToolOptions } from "../tools/files/pauses.ts";
import type { InspectedTable } from "../tools/tables/inspect.ts";
import type { Verification, VerifyOptions } from "../tools/tables/verify.ts";
import type {
  AsyncTransaction,
  InteractiveTransaction,
  LocalTransaction,
} from "./async-transaction.ts";
import type { BulkDatabase, Selected } from "./bulk.ts";
import type { Stats } from "./local/stats.ts";
import type { MigrateOptions } from "./migrate-options.ts";
import type { AsyncScan, Scan } from "./scan.ts";
import type { RemoteSnapshot, Snapshot } from "./snapshot.ts";
import type { SyncResult, TransactOptions, TransactSyncOptions } from "./transact-options.ts";
import type { Transaction } from "./transaction.ts";
import type { ChangeOf, Watch, WatchOptions } from "./watch.ts";

/**
 * What local and remote databases have in common. Code that awaits the results of `get` and `count`,
 * and reads scans with `for await`, runs on both.
 */
export interface AnyDatabase<Names extends string = string>
  extends AsyncDisposable,
    BulkDatabase<Names> {
  /** Reads a row by its key, outside of any transaction; `undefined` if there is none. */
  get<Row, Key>(
    table: Opened<Names, Row, Key>,
    key: NoInfer<Key>,
  ): Row | undefined | Promise<Row | undefined>;

  /** Reads the rows of several keys, in the order of the keys. All are of one state. */
  getMany<Row, Key>(
    table: Opened<Names, Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): (Row | undefined)[] | Promise<(Row | undefined)[]>;

  /**
   * Adds a row, in a transaction of its own. Fails with SITU_EXISTS if there is one with its key. Of a
   * table with an `autoIncrement()` key, returns the key.
   */
  insert<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): InsertedKey<Writes> | Promise<InsertedKey<Writes>>;

  /** Adds a row, or replaces the one with its key, in a transaction of its own. */
  put<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): void | Promise<void>;

  /**
   * Changes fields of a row, in a transaction of its own; those that are undefined stay as they are.
   * Fails with SITU_MISSING if there is no row with this key.
   */
  update<Row, Key, Changes>(
    table: Opened<Names, Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): void | Promise<void>;

  /** Removes a row, in a transaction of its own. Returns whether there was one. */
  delete<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): boolean | Promise<boolean>;

  /** The rows within bounds, in the order of the key or of an index. */
  scan<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row> | AsyncScan<Row>;

  /** The number of rows that `scan` would return. */
  count<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number | Promise<number>;

  /**
   * Runs `callback` as a strictly serializable transaction, and commits it when the callback has
   * returned. If another transaction gets in between, the callback is run again, so it should do
   * nothing but use `tx`. If it throws, nothing is changed.
   */
  transact<T>(
    callback: (tx: AsyncTransaction<Names>) => T | PromiseLike<T>,
    options?: TransactOptions,
  ): Promise<Awaited<T>>;

  /**
   * Begins a transaction that you end with `commit` or `rollback`. It is not retried: operations and
   * `commit` fail with ConflictError if another transaction gets in between. Prefer `transact`.
   */
  begin(options?: TransactOptions): Promise<InteractiveTransaction<AsyncTransaction<Names>>>;

  /** Closes the database. Waits for transactions that are running, and rolls interactive ones back. */
  close(): Promise<void>;
}

/** A store in the memory of this machine, shared by all processes that have it open. */
export interface Database<Names extends string = string> extends AnyDatabase<Names> {
  /** The folder of the store. */
  readonly path: string;
  /** What `open` recovered from disk; `undefined` if the store was in memory, or is new. */
  readonly recovered: Recovered | undefined;

  /**
   * Reads a row by its key, without a lock and without holding up writers. It waits only for a commit
   * that is being written to memory at this moment, and fails with SITU_TIMEOUT if the committing
   * process is stopped there: after the `timeoutMs` of `open`, or half a second if that has none.
   */
  get<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Row | undefined;
  /** Reads a row by the values of a unique index. */
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Row | undefined;

  getMany<Row, Key>(
    table: Opened<Names, Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): (Row | undefined)[];

  /**
   * Adds a row: `transactSync` with this one operation. Fails with SITU_EXISTS if there is a row with
   * its key. Of a table with an `autoIncrement()` key, returns the key.
   */
  insert<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): InsertedKey<Writes>;

  /** Adds a row, or replaces the one with its key: `transactSync` with this one operation. */
  put<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): void;

  /**
   * Changes fields of a row: `transactSync` with this one operation. Fields that are undefined stay as
   * they are. Fails with SITU_MISSING if there is no row with this key.
   */
  update<Row, Key, Changes>(
    table: Opened<Names, Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): void;

  /** Removes a row: `transactSync` with this one operation. Returns whether there was one. */
  delete<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): boolean;

  /** The rows within bounds, in the order of the key or of an index. All are of one state. */
  scan<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row>;

  count<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number;

  /** The rows that match, in no particular order. All are of one state. */
  select<Row, Key, Columns extends keyof Row = keyof Row>(
    table: Opened<Names, Row, Key>,
    options?: SelectOptions<Row, Columns>,
  ): Scan<Selected<Row, Columns>>;

  /**
   * Takes a snapshot: the store as it is now, for reading. Takes some microseconds; waits for commits
   * that are being written to memory at this moment. Close it: `using snapshot = db.snapshot()`.
   */
  snapshot(): Snapshot<Names>;

  /** Returns a copy of an object's bytes, without a lock. */
  readObject(pointer: Pointer): Uint8Array;

  /**
   * Runs `callback` as a strictly serializable transaction, and commits it, before it returns. If
   * another transaction gets in between, the callback is run again, so it should do nothing but use
   * `tx`. The event loop is blocked meanwhile, so other processes are waited for only for half a
   * second, unless `timeoutMs` is given here or to `open`.
   */
  transactSync<T>(
    callback: (tx: Transaction<Names>) => SyncResult<T>,
    options?: TransactSyncOptions,
  ): T;

  /**
   * The same for a callback that awaits. Other transactions of this thread may run in between. The
   * event loop keeps turning, also while this waits for others: for up to `timeoutMs`, by default 5 s.
   */
  transact<T>(
    callback: (tx: LocalTransaction<Names>) => T | PromiseLike<T>,
    options?: TransactOptions,
  ): Promise<Awaited<T>>;

  begin(options?: TransactOptions): Promise<InteractiveTransaction<LocalTransaction<Names>>>;

  /** Waits until everything that was committed before the call, by any process, is on disk. */
  durable(options?: { readonly timeoutMs?: number }): Promise<void>;

  /** Writes a checkpoint, and waits for it. Recovery does not need the log before it. */
  checkpoint(): Promise<void>;

  /** Checks all structures in memory, and indexes against rows. Other transactions go on meanwhile. */
  verify(options?: VerifyOptions): Promise<Verification>;

  /** Describes a table: its rows, the shape of its structures, and the memory they use. */
  inspect(table: string): Promise<InspectedTable>;

  /**
   * Changes how much memory rows and indexes may use, while others go on using the store; returns the size that
   * the store has then, which is a whole number of regions. It holds for all processes, and after a
   * restart. Making it smaller gives memory back that is not in use, and fails with a `ResizeError` if that
   * is not enough. "auto" lets the store grow by itself.
   */
  resize(memoryBytes: number | "auto"): Promise<number>;

  /** Copies the store, with everything committed before the call, to an empty folder: see `restore`. */
  backup(folder: string, options?: FileToolOptions): Promise<Copied>;

  /**
   * Follows a table, or several: an async iterable of what transactions of all processes do to its rows, in
   * the order of their commits, told when it is on disk. Changes of a table are recorded from its first
   * watch on, also while nobody reads them: see `unwatch`. Needs a store with a log.
   */
  watch<const T extends Opened<Names, unknown> | readonly Opened<Names, unknown>[]>(
    tables: T,
    options?: WatchOptions<InferRow<T extends readonly (infer One)[] ? One : T>>,
  ): Watch<ChangeOf<T extends readonly (infer One)[] ? One : T>>;

  /** Stops recording the changes of a table. Watches of it end with SITU_GAP. Whether they were recorded. */
  unwatch(table: Opened<Names, unknown>): boolean;

  /**
   * Changes the tables of the store while others use them, and returns what was to be done. A table whose rows
   * do not allow its change, or for whose copy there is no room, stays as it was; tables before it have been changed.
   * What was interrupted is finished by whoever migrates next.
   */
  migrate(steps?: readonly MigrationStep[], options?: MigrateOptions): Promise<MigrationPlan>;

  /** Statistics of the store, for all processes that have it open. */
  stats(): Stats;
}

/** What `call` takes. */
export interface CallOptions {
  /** How long the call may take, including retries. Default: the `timeoutMs` of `open`. */
  readonly timeoutMs?: number;
  /** Runs the procedure at the node that has this row. Default: what the procedure itself says. */
  readonly near?: readonly [table: Table, key: unknown];
}

/**
 * A database on a cluster. The data is not in this machine's memory, so reads are promises, and there is
 * no `transactSync`.
 */
export interface RemoteDatabase<Names extends string = string> extends AnyDatabase<Names> {
  /** Reads a row by its key: one round trip to the node that has it. Linearizable. */
  get<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Promise<Row | undefined>;

  getMany<Row, Key>(
    table: Opened<Names, Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]>;

  insert<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): Promise<InsertedKey<Writes>>;

  put<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): Promise<void>;

  update<Row, Key, Changes>(
    table: Opened<Names, Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void>;

  delete<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Promise<boolean>;

  /**
   * The rows within bounds. Up to 4096 rows are all of one state. A longer scan returns rows while it
   * goes and fails at its end, with SITU_CONFLICT, if others have changed what it read.
   */
  scan<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row>;

  count<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number>;

  /** The rows that match, in no particular order, with the promises of `scan`. */
  select<Row, Key, Columns extends keyof Row = keyof Row>(
    table: Opened<Names, Row, Key>,
    options?: SelectOptions<Row, Columns>,
  ): AsyncScan<Selected<Row, Columns>>;

  /**
   * Takes a snapshot of all nodes: what is committed now, for reading. Takes two or three round trips; waits for
   * transactions that are being committed at this moment. Close it: `await using snapshot = await db.snapshot()`.
   */
  snapshot(): Promise<RemoteSnapshot<Names>>;

  /** Runs a procedure at a node, next to the data, and returns what it returned. */
  call(name: string, values?: readonly unknown[], options?: CallOptions): Promise<unknown>;
}

/** Whether a database is in this machine's memory. */
export function isLocal(db: AnyDatabase): db is Database {
  return "stats" in db;
}
