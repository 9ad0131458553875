/** The change feed of tables, as its users see it: what `db.watch` takes and returns (docs/WATCH.md). */

import type { Table } from "../tables/table.ts";

/** One change of a row, told when the transaction that made it is on disk. */
export interface Change<Row = unknown, Key = unknown> {
  readonly type: "insert" | "update" | "delete";
  /** The name of the table. */
  readonly table: string;
  /** The key of `row`, as `get` takes it. */
  readonly key: Key;
  /** The row after the change; of a delete, the row that was deleted. With the fields that are declared here. */
  readonly row: Row;
  /** Pass it to `watch` as `from` to go on after this change. */
  readonly position: string;
  /** When the log was written that holds the change, in milliseconds since 1970. */
  readonly time: number;
}

/** The changes of a table, or of one of several tables. */
export type ChangeOf<T> =
  T extends Table<infer Row, infer Key, infer _Changes, infer _Ways> ? Change<Row, Key> : never;

/** What `watch` takes. */
export interface WatchOptions<Row = unknown> {
  /**
   * Where to begin: "now" (the default), "start" for all that the log still has since the recording was last turned on,
   * or the position of a change, to go on after it. Fails with SITU_GAP if the log no longer has what follows the position.
   */
  readonly from?: "now" | "start" | (string & {});
  /** Only changes of rows for which this returns true are told. */
  readonly where?: (row: Row) => boolean;
  /** Ends the watch with SITU_ABORTED. */
  readonly signal?: AbortSignal;
}

/** A change feed: read it with `for await`. Leaving the loop ends it. */
export interface Watch<C> extends AsyncIterableIterator<C>, AsyncDisposable {
  /** All changes up to here were told: `watch` can go on from it, also in another process. */
  readonly position: string;
  /**
   * Resolves when every transaction of every process is in the feed. Only the first watch of a table
   * waits here, for transactions that were already running: a copy of the table that is read after
   * this, and all changes that follow, make up a complete picture.
   */
  ready(): Promise<void>;
  /** Ends the watch. */
  return(): Promise<IteratorResult<C, undefined>>;
}
