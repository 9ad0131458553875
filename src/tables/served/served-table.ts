/** A table of a node's store, as messages speak of it: rows as words, keys as values. */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { COPY_STEP_BYTES, MAX_INLINE_ROW_BYTES, MAX_ROW_BYTES } from "../../runtime/limits.ts";
import type { RowPlace, Store } from "../../stores/store.ts";
import { canonicalKey } from "../copied-key.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { TableStore } from "../indexes/table-store.ts";
import type { Placement } from "../partitions.ts";
import { Partitioner, tableId } from "../partitions.ts";
import type { CopiedTable } from "./contract.ts";
import { type FoundKey, PartitionRows, type Walked } from "./partition-rows.ts";
import { RawRows, rawCodec } from "./raw-codec.ts";
import { encodePut, PUT, type PutRequest, type ScanStep, type WriteRequest } from "./requests.ts";
import { TableScans } from "./scan.ts";

export class NodeTable implements CopiedTable {
  readonly name: string;
  readonly id: number;
  /** Whether rows lie in their buckets, and nothing else changes with them. */
  readonly #hasPlaces: boolean;
  readonly table: TableStore;
  readonly #partitioner: Partitioner;
  readonly #raw: Store<true, unknown>;
  readonly #rows = new RawRows();
  readonly #executor: Executor;
  #scans: TableScans | undefined;
  #partitionRows: PartitionRows | undefined;
  readonly #copied = new Writer();

  constructor(executor: Executor, table: TableStore, { partitions }: Placement) {
    const { structure, root } = table;
    this.table = table;
    this.name = table.table.name;
    this.id = tableId(this.name);
    this.#partitioner = new Partitioner(table.table, partitions);
    this.#executor = executor;
    const { codec } = structure;
    this.#raw = structure.openWith(executor, root, rawCodec(codec as never, this.#rows));
    this.#hasPlaces =
      codec.fixedWords > 0 &&
      codec.fixedWords * 4 <= MAX_INLINE_ROW_BYTES &&
      structure.kind.overwritesInPlace &&
      !table.isRecording &&
      table.table.indexes.length === 0;
  }

  read(tx: Transaction, key: unknown, out: Writer): boolean {
    const rows = this.#rows;
    rows.out = out;
    rows.start = out.at;
    if (this.#raw.read(tx, key) !== undefined) return true;
    out.at = rows.start;
    out.word(0);
    out.word(0);
    return false;
  }

  placeToWrite(tx: Transaction, key: unknown): RowPlace | undefined {
    return this.#hasPlaces ? this.table.rows.placeToWrite?.(tx, key) : undefined;
  }

  write(tx: Transaction, request: WriteRequest): void {
    if (request.code === PUT) {
      this.table.store.put(tx, this.#rowOf(request));
    } else {
      this.check(request);
      this.table.store.remove(tx, request.key);
    }
  }

  check(request: WriteRequest): number {
    const { codec } = this.table.structure;
    let hash: number;
    if (request.code === PUT) {
      const row = this.#rowOf(request);
      // What can be read of garbage cannot always be written.
      codec.encode(row);
      hash = codec.stageKeyOf(row);
    } else {
      hash = codec.stageKey(request.key);
      this.#checkPartition(this.#partitioner.ofKey(request.key, hash), request.partition);
    }
    return hash ^ this.id;
  }

  #rowOf({ views, at, words, partition }: PutRequest): RowValues {
    const { codec } = this.table.structure;
    const fits = codec.fixedWords > 0 ? words === codec.fixedWords : words * 4 <= MAX_ROW_BYTES;
    if (!fits)
      throw new SituError("SITU_PROTOCOL", `a row of table ${this.name} has ${words} words`);
    const row = codec.decode(views, at, words);
    this.#checkPartition(this.#partitioner.ofRow(row, codec.stageKeyOf(row)), partition);
    return row;
  }

  #checkPartition(own: number, partition: number): void {
    if (own === partition) return;
    throw new SituError(
      "SITU_PROTOCOL",
      `a key of table ${this.name} is not in partition ${partition}`,
    );
  }

  scan(
    tx: Transaction,
    step: ScanStep,
    out: Writer,
    isPrimary: (partition: number) => boolean,
  ): void {
    this.#scans ??= new TableScans(this.#executor, this, this.#partitioner);
    this.#scans.step(tx, step, out, isPrimary);
  }

  copyRows(
    tx: Transaction,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    out: Writer,
  ): Walked & { readonly rows: number } {
    const found: FoundKey[] = [];
    const walked = this.#walk(tx, place, isWanted, found);
    const start = out.at;
    let rows = 0;
    for (const [i, { key, partition, place: end }] of found.entries()) {
      const copied = this.#copied;
      copied.clear();
      if (!this.read(tx, key, copied)) tx.conflict(-1);
      const { i32 } = copied.views;
      encodePut(out, this.id, partition, i32, 2, i32[0]);
      rows++;
      const isFull = (out.at - start) * 4 >= COPY_STEP_BYTES;
      if (isFull && i + 1 < found.length && !isSamePlace(end, found[i + 1].place)) {
        return { place: end, isDone: false, rows };
      }
    }
    return { ...walked, rows };
  }

  insert(tx: Transaction, request: PutRequest): boolean {
    return this.table.store.insert(tx, this.#rowOf(request));
  }

  clear(
    tx: Transaction,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    isKept: (partition: number, key: unknown) => boolean,
  ): Walked & { readonly rows: number } {
    const found: FoundKey[] = [];
    const walked = this.#walk(tx, place, isWanted, found);
    let rows = 0;
    for (const [i, { key, partition, place: end }] of found.entries()) {
      const isLeft = isKept(partition, canonicalKey(this.table.table, key));
      if (!isLeft && this.table.store.remove(tx, key)) rows++;
      const isEnough = rows >= CLEARED_AT_ONCE && i + 1 < found.length;
      if (isEnough && !isSamePlace(end, found[i + 1].place)) {
        return { place: end, isDone: false, rows };
      }
    }
    return { ...walked, rows };
  }

  #walk(
    tx: Transaction,
    place: Int32Array,
    isWanted: (partition: number) => boolean,
    found: FoundKey[],
  ): Walked {
    this.#partitionRows ??= new PartitionRows(this.#executor, this.table, this.#partitioner);
    return this.#partitionRows.walk(tx, place, isWanted, found);
  }

  keyOf(request: WriteRequest): unknown {
    const { table } = this.table;
    if (request.code !== PUT) return canonicalKey(table, request.key);
    return canonicalKey(table, keyIn(this.#rowOf(request), table.key, table.singleKey));
  }

  maintain(): void {
    this.table.store.maintain();
  }
}

/** Rows that a transaction removes of those that a node must not have any more. */
const CLEARED_AT_ONCE = 64;

function isSamePlace(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((word, i) => word === b[i]);
}
