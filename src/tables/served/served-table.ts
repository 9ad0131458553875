/** A table of a node's store, as messages speak of it: rows as words, keys as values. */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_INLINE_ROW_BYTES, MAX_ROW_BYTES } from "../../runtime/limits.ts";
import type { RowPlace, Store } from "../../stores/store.ts";
import type { Values } from "../indexes/structure.ts";
import type { TableStore } from "../indexes/table-store.ts";
import type { Placement } from "../partitions.ts";
import { partitionOf, tableId } from "../partitions.ts";
import type { ServedTable } from "./contract.ts";
import { RawRows, rawCodec } from "./raw-codec.ts";
import { PUT, type PutRequest, type ScanStep, type WriteRequest } from "./requests.ts";
import { TableScans } from "./scan.ts";

export class NodeTable implements ServedTable {
  readonly name: string;
  readonly id: number;
  /** Whether rows lie in their buckets, and nothing else changes with them. */
  readonly #hasPlaces: boolean;
  readonly table: TableStore;
  readonly #partitions: number;
  readonly #raw: Store<true, unknown>;
  readonly #rows = new RawRows();
  readonly #executor: Executor;
  #scans: TableScans | undefined;

  constructor(executor: Executor, table: TableStore, { partitions }: Placement) {
    const { structure, root } = table;
    this.table = table;
    this.name = table.table.name;
    this.id = tableId(this.name);
    this.#partitions = partitions;
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
      this.#checkPartition(hash, request.partition);
    }
    return hash ^ this.id;
  }

  #rowOf({ views, at, words, partition }: PutRequest): Values {
    const { codec } = this.table.structure;
    const fits = codec.fixedWords > 0 ? words === codec.fixedWords : words * 4 <= MAX_ROW_BYTES;
    if (!fits)
      throw new SituError("SITU_PROTOCOL", `a row of table ${this.name} has ${words} words`);
    const row = codec.decode(views, at, words);
    this.#checkPartition(codec.stageKeyOf(row), partition);
    return row;
  }

  #checkPartition(hash: number, partition: number): void {
    if (partitionOf(this.id, hash, this.#partitions) === partition) return;
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
    this.#scans ??= new TableScans(this.#executor, this, this.#partitions);
    this.#scans.step(tx, step, out, isPrimary);
  }

  maintain(): void {
    this.table.store.maintain();
  }
}
