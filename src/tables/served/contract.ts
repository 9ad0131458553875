/** What protocols need of tables: who executes the requests (requests.ts) at a node. */

import type { Transaction } from "../../engine/transaction.ts";
import type { Writer } from "../../fabric/wire.ts";
import type { RowPlace } from "../../stores/store.ts";
import type { Walked } from "./partition-rows.ts";
import type { PutRequest, ScanStep, WriteRequest } from "./requests.ts";

/** A table of the node's store, as messages speak of it. */
export interface ServedTable {
  readonly name: string;
  /** Looks a key up, and appends its row: words, then from an even word on the row; 0 if absent. */
  read(tx: Transaction, key: unknown, out: Writer): boolean;
  /** Makes a row part of what the transaction writes, if it can be overwritten where it lies. */
  placeToWrite(tx: Transaction, key: unknown): RowPlace | undefined;
  /** Adds or replaces a row, or removes one. Checks that it belongs to the partition. */
  write(tx: Transaction, request: WriteRequest): void;
  /**
   * Throws what `write` would throw for what makes no sense, and does nothing. Gives a number that is the
   * same for all writes of one row, and seldom the same for others.
   */
  check(request: WriteRequest): number;
  /** A step of a scan over the rows of some partitions (scan.ts says what is appended). */
  scan(
    tx: Transaction,
    step: ScanStep,
    out: Writer,
    isPrimary: (partition: number) => boolean,
  ): void;
  /** Work that committed transactions have left. */
  maintain(): void;
}

export interface ServedTables {
  /** SITU_UNKNOWN_TABLE if it is not open at this node. */
  byId(id: number): ServedTable;
  /** Opens the table of a schema, and makes it if need be. Gives what a client must know of it. */
  open(schema: string): string;
}

/** A table whose partitions are copied from one node to another. */
export interface CopiedTable extends ServedTable {
  readonly id: number;
  /**
   * A piece of a walk over the rows of some partitions (partition-rows.ts): appends some of them as puts
   * (requests.ts), and says how many they are.
   */
  copyRows(
    tx: Transaction,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    out: Writer,
  ): Walked & { readonly rows: number };
  /** Adds a row, unless there is one with its key. */
  insert(tx: Transaction, request: PutRequest): boolean;
  /** A piece of a walk that removes the rows of some partitions, but for those that are kept. */
  clear(
    tx: Transaction,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    isKept: (partition: number, key: unknown) => boolean,
  ): Walked & { readonly rows: number };
  /** The key of the row that is written, in a form of its own that tells keys apart. */
  keyOf(request: WriteRequest): unknown;
}

export interface CopiedTables extends ServedTables {
  byId(id: number): CopiedTable;
  /** All tables that this node has. */
  all(): CopiedTable[];
  /** Their schemas, as `open` takes them, in the order in which they were made. */
  schemas(): string[];
  /** Told of a table that is not open here; true if others are asked for it. */
  learn: ((id: number) => boolean) | undefined;
}

/** Where a node keeps what its coordinators have decided: transactions that are committed. */
export interface DecisionLog {
  keep(coordinator: number, sequence: number): void;
  forget(coordinator: number, sequence: number): void;
  has(coordinator: number, sequence: number): boolean;
  all(): { readonly coordinator: number; readonly sequence: number }[];
}

/** Where a thread of a node keeps the records of transactions until they are installed: in its store. */
export interface RecordLog {
  /** Keeps a record, as a transaction of its own. The next arrival is one more, round a circle of 32 bits. */
  append(arrival: number, record: Int32Array): void;
  /** Puts another record in the place of one, in its order. */
  replace(arrival: number, before: Int32Array, record: Int32Array): void;
  /** Removes it as part of the transaction that installs it. */
  remove(tx: Transaction, arrival: number, record: Int32Array): void;
  /** Removes it as a transaction of its own: it is not to be installed. */
  drop(arrival: number, record: Int32Array): void;
  /**
   * Some that were installed last, as far as nothing has been written over them: after a restart. What is not among them
   * may have been installed, too.
   */
  installed(): Int32Array[];
  /** All that are kept, in the order of their arrival: after a restart. */
  all(): { readonly arrival: number; readonly record: Int32Array }[];
}
