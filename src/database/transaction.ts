/** The transaction of `transactSync`, as its users see it. */

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
import type { SyncBulk } from "./bulk.ts";
import type { Scan } from "./scan.ts";

/** What `tx.alloc` and `tx.allocArray` take. */
export interface AllocOptions {
  /** An object that the new one should be placed close to, if there is room. */
  readonly near?: Pointer;
}

/** Rows by key, and objects that are reached by pointers. Of use only until the callback returns. */
export interface Transaction<Names extends string = string> extends SyncBulk<Names> {
  /** Reads a row by its key; `undefined` if there is none. */
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
  /**
   * The rows within bounds, in the order of the key or of an index. The transaction does not commit if
   * another one adds a row to the range, or removes or changes one in it.
   */
  scan<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row>;
  /** The number of rows that `scan` would return. */
  count<Row, Key, Changes, Ways>(
    table: Opened<Names, Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number;
  /** Whether there is a row with this key. */
  has<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): boolean;
  /**
   * Adds a row. Fails with SITU_EXISTS if there is one with its key. Of a table with an
   * `autoIncrement()` key, returns the key.
   */
  insert<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): InsertedKey<Writes>;
  /** Adds a row, or replaces the one with its key. */
  put<Row, Key, Writes>(
    table: Opened<Names, Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): void;
  /**
   * Changes fields of a row; those that are undefined stay as they are. Fails with SITU_MISSING if
   * there is no row with this key.
   */
  update<Row, Key, Changes>(
    table: Opened<Names, Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): void;
  /** Removes a row. Returns whether there was one. */
  delete<Row, Key>(table: Opened<Names, Row, Key>, key: NoInfer<Key>): boolean;
  /** Allocates an object of `size` zeroed bytes. */
  alloc(size: number, options?: AllocOptions): Pointer;
  /** Allocates `count` objects of `size` bytes next to each other; `pointer.at(i)` points to each. */
  allocArray(size: number, count: number, options?: AllocOptions): Pointer;
  /** Returns a copy of an object's bytes. Fails with SITU_FREED if the object was freed. */
  read(pointer: Pointer): Uint8Array;
  /** Replaces the first `data.length` bytes of an object. */
  write(pointer: Pointer, data: Uint8Array): void;
  /** Frees an object. */
  free(pointer: Pointer): void;
}
