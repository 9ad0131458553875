/** A snapshot of a store, as its users see it. */

import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../tables/indexes/options.ts";
import type { Opened } from "../tables/table.ts";
import type { BulkReads, BulkSelect } from "./bulk.ts";
import type { Scan } from "./scan.ts";

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
