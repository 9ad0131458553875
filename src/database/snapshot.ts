/** A snapshot of a store, as its users see it. */

import type { SelectOptions } from "../tables/bulk/requests.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../tables/indexes/read-options.ts";
import type { Opened } from "../tables/table.ts";
import type { BulkReads, BulkSelect, Selected } from "./bulk.ts";
import type { AsyncScan, Scan } from "./scan.ts";

/**
 * The store as it was at one point in time. Reading from it locks nothing, aborts nobody, and does not
 * fail because of what others do. A snapshot that is kept open for longer than `maxSnapshotMs`, or when
 * there is no room for old versions, is released: then reading fails with SITU_SNAPSHOT_TOO_OLD.
 */
export interface Snapshot<Names extends string = string>
  extends Disposable,
    BulkReads<Names>,
    BulkSelect<Names> {
  /** Whether `close` was called. */
  readonly isClosed: boolean;
  /** Reads a row by its key; `undefined` if there was none. */
  get<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Row | undefined;
  /** Reads a row by the values of a unique index. */
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Row | undefined;
  /** Reads the rows of several keys, in the order of the keys. */
  getMany<Row, Key>(
    table: Opened<Names, Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): (Row | undefined)[];
  /** Whether there was a row with this key. */
  has<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): boolean;
  /** The rows within bounds, in the order of the key or of an index. */
  scan<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row>;
  /** The number of rows that `scan` would return. */
  count<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number;
  /** Releases the snapshot, so that the store can forget the versions that only it needs. */
  close(): void;
}

/**
 * A cluster as it was at one point in time: all that was committed at all its nodes before the snapshot was asked for,
 * and of each transaction all or nothing. Reading from it locks nothing, aborts nobody, and does not fail because of
 * what others write. It is released when it is open for longer than `maxSnapshotMs`, when there is no room for old
 * versions, and when the nodes of the cluster change: then reading fails with SITU_SNAPSHOT_TOO_OLD.
 */
export interface RemoteSnapshot<Names extends string = string>
  extends AsyncDisposable,
    BulkReads<Names> {
  /** Whether `close` was called. */
  readonly isClosed: boolean;
  /** Reads a row by its key; `undefined` if there was none. */
  get<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Promise<Row | undefined>;
  /** Reads the rows of several keys, in the order of the keys: one message to each node that has some. */
  getMany<Row, Key>(
    table: Opened<Names, Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]>;
  /** Whether there was a row with this key. */
  has<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): Promise<boolean>;
  /** The rows within bounds, of all nodes, in the order of the key or of an index. However many: all are of one state. */
  scan<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row>;
  /** The number of rows that `scan` would return. */
  count<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number>;
  /** The rows that match, in no particular order. */
  select<Row, Key, Columns extends keyof Row = keyof Row>(
    table: Opened<Names, Row, Key>,
    options?: SelectOptions<Row, Columns>,
  ): AsyncScan<Selected<Row, Columns>>;
  /** Releases the snapshot, so that nodes can forget the versions that only it needs. */
  close(): Promise<void>;
}
