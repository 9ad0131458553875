/** What a kind of table is, to those who make, open and describe tables (kinds.ts lists them). */

import type { Executor } from "../engine/executor.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Address } from "../memory/address.ts";
import type { RemoteStore, RemoteTable } from "./remote/remote.ts";
import type { OrderedCodec, RowCodec, RowStore } from "./store.ts";

export type AnyCodec<Row, Key> = RowCodec<Row, Key> | OrderedCodec<Row, Key>;

export interface StoreKind {
  /** Rows lie in the order of their keys, and scans have ranges. Its codecs are ordered ones. */
  readonly ordered: boolean;
  /** Inline rows can be overwritten where they lie: the store has `placeToWrite`. */
  readonly overwritesInPlace: boolean;
  /** Makes an empty structure and returns where it is rooted. */
  create<Row, Key>(tx: Transaction, codec: AnyCodec<Row, Key>): Address;
  open<Row, Key>(executor: Executor, codec: AnyCodec<Row, Key>, root: Address): RowStore<Row, Key>;
  /**
   * Frees a part of a structure that nobody uses any more, small enough for one transaction; true when
   * that was the last part, the root included. What is left can be freed by another call, in another
   * process too, but not be read as a table.
   */
  dismantle<Row, Key>(tx: Transaction, codec: AnyCodec<Row, Key>, root: Address): boolean;
  /** Lookups by others who can only read its memory; without it, they ask by messages. */
  readonly remote?: RemoteKind;
}

export interface RemoteKind {
  /** At the node that has the table: what others need to know of it. */
  describe(executor: Executor, fixedWords: number, root: Address): RemoteTable;
  /** Elsewhere: opens what a node has described. */
  open<Row, Key>(table: RemoteTable, codec: RowCodec<Row, Key>): RemoteStore<Key>;
}
