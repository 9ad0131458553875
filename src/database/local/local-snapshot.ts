/** The snapshots of a local database. Each operation is a read-only transaction at the snapshot. */

import type { Executor } from "../../engine/executor.ts";
import { readAtSnapshot } from "../../engine/run.ts";
import type { Snapshot as EngineSnapshot } from "../../engine/snapshots/snapshot.ts";
import type { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Store } from "../../stores/store.ts";
import { planProgram } from "../../tables/bulk/count-rows.ts";
import type { Plan } from "../../tables/bulk/plan.ts";
import {
  aggregateProgram,
  explainedProgram,
  placeOf,
  selectProgram,
} from "../../tables/bulk/requests.ts";
import { ownKey } from "../../tables/copied-key.ts";
import type { ElementPool } from "../../tables/device/elements/element-pool.ts";
import { refuseUnlessShippable } from "../../tables/device/elements/shippable.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../../tables/indexes/read-options.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";
import type { ScanSource } from "../../tables/scan-plan.ts";
import type { Table } from "../../tables/table.ts";
import { listOf } from "../row-errors.ts";
import { limitOf, planOf } from "../run/bulk-run.ts";
import { pagedRows } from "../run/paged-source.ts";
import { CursorBatches, countRows, type OpenedScan, RowScan } from "../run/row-scan.ts";
import type { Scan } from "../scan.ts";
import type { Snapshot } from "../snapshot.ts";
import { aggregateOver, selectScan } from "./bulk-reads.ts";
import { DeviceScan } from "./device-scan.ts";
import type { TableSet } from "./table-set.ts";

/** What a snapshot needs of its database. */
export interface SnapshotHost {
  readonly executor: Executor;
  /** A transaction for reads outside of transactions; free between two operations. */
  readonly reader: EngineTransaction;
  /** The threads of the device. */
  readonly elements: ElementPool;
  /** Throws if the database is closed. */
  check(): void;
  isClosed(): boolean;
  closed(snapshot: LocalSnapshot): void;
}

export class LocalSnapshot implements Snapshot {
  readonly #host: SnapshotHost;
  readonly #snapshot: EngineSnapshot;
  /** As they were then: a table that is migrated later is still seen as it was. */
  readonly #tables: TableSet;
  #closed = false;

  constructor(host: SnapshotHost, snapshot: EngineSnapshot, tables: TableSet) {
    this.#host = host;
    this.#snapshot = snapshot;
    this.#tables = tables;
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Row | undefined;
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Row | undefined;
  get(table: Table, given: unknown, options?: object): unknown {
    const tableStore = this.#tableStore(table);
    const key = ownKey(given);
    if (options === undefined) return this.#read((tx) => tableStore.reader.read(tx, key));
    const index = tableStore.indexOf(options);
    return this.#read((tx) => tableStore.lookup(tx, key, index));
  }

  getMany<Row, Key>(table: Table<Row, Key>, keys: Iterable<NoInfer<Key>>): (Row | undefined)[] {
    const { reader } = this.#tableStore(table);
    // One by one: the copies of old versions need not all be held at once.
    return listOf(table, keys).map((given) => {
      const key = ownKey(given);
      return this.#read((tx) => reader.read(tx, key)) as Row | undefined;
    });
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    const { reader } = this.#tableStore(table);
    const own = ownKey(key);
    return this.#read((tx) => reader.has(tx, own));
  }

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row> {
    const plan = this.#tableStore(table).plan<Row>("scan", options);
    const open = (): OpenedScan<Row> => ({ source: this.#source(), plan });
    return new RowScan<Row>(() => new CursorBatches(open), this.#paged(table, open));
  }

  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number {
    const plan = this.#tableStore(table).plan<Row>("count", options);
    return countRows(this.#source(), plan);
  }

  select(table: Table, options?: unknown): Scan<never> {
    const program = selectProgram(table, options, true);
    const store = this.#tableStore(table);
    if (placeOf(options) === "device") {
      refuseUnlessShippable("select", store);
      const open = (): AsyncGenerator<readonly unknown[], undefined> => {
        this.check();
        return this.#host.elements.select(store, program, this.#snapshot);
      };
      return new DeviceScan(open, limitOf(options));
    }
    const openScan = (): OpenedScan<never> => {
      const source = this.#source();
      return { source, plan: selectScan(store, program, source, limitOf(options)) };
    };
    return new RowScan<never>(() => new CursorBatches(openScan), this.#paged(table, openScan));
  }

  /** How rows on the device are read by those who await them. */
  #paged<Row>(
    { storage }: { readonly storage?: unknown },
    open: () => OpenedScan<Row>,
  ): (() => AsyncIterableIterator<Row>) | undefined {
    return storage === "device" ? () => pagedRows(this.#host.executor, open) : undefined;
  }

  async aggregate(table: Table, options: unknown): Promise<never> {
    const program = aggregateProgram(table, options, true);
    const store = this.#tableStore(table);
    if (placeOf(options) === "device") {
      refuseUnlessShippable("aggregate", store);
      return (await this.#host.elements.aggregate(store, program, this.#snapshot)) as never;
    }
    return (await aggregateOver(this.#host.executor, this.#source(), store, program)) as never;
  }

  async explain(table: Table, options?: unknown): Promise<Plan> {
    const program = explainedProgram(table, options);
    return planOf(program, planProgram(this.#tableStore(table), program, this.#source(), true));
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // Of a closed database the snapshots are released, and the memory is gone.
    if (!this.#host.isClosed()) this.release();
    this.#host.closed(this);
  }

  /** For the database, which may be closing. */
  release(): void {
    this.#closed = true;
    this.#snapshot.release();
  }

  /** For the database: whether the store has released it already, because of its age or for room. */
  get isReleased(): boolean {
    return !this.#snapshot.isRegistered;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #source(): ScanSource {
    this.check();
    return new SnapshotSource(this.#host, this.#snapshot, this);
  }

  #read<T>(body: (tx: EngineTransaction) => T): T {
    this.check();
    const { executor, reader } = this.#host;
    return readAtSnapshot(executor, reader, this.#snapshot, body, undefined);
  }

  /** For graphs: an operation on their objects, with the table that leads to these. */
  operate<Row, Key, T>(
    table: Table<Row, Key>,
    run: (tx: EngineTransaction, store: Store<Row, Key>) => T,
  ): T {
    const { reader } = this.#tableStore(table);
    return this.#read((tx) => run(tx, reader as Store<Row, Key>));
  }

  #tableStore(table: Table): TableStore {
    this.check();
    return this.#tables.tableOf(table);
  }

  /** Throws if the snapshot, or its database, is closed. */
  check(): void {
    this.#host.check();
    if (this.#closed) {
      throw new SituError("SITU_CLOSED", "this snapshot is closed: take a new one");
    }
  }
}

/** What a scan reads through: a snapshot that somebody holds, or one of its own. */
export class SnapshotSource implements ScanSource {
  readonly #host: SnapshotHost;
  readonly #snapshot: EngineSnapshot;
  readonly #owner: LocalSnapshot | undefined;

  constructor(host: SnapshotHost, snapshot: EngineSnapshot, owner?: LocalSnapshot) {
    this.#host = host;
    this.#snapshot = snapshot;
    this.#owner = owner;
  }

  run<A, T>(step: (tx: EngineTransaction, argument: A) => T, argument: A): T {
    this.#host.check();
    this.#owner?.check();
    const { executor, reader } = this.#host;
    return readAtSnapshot(executor, reader, this.#snapshot, step, argument);
  }

  check(): void {
    // For every row of a scan: a database that closes has closed its snapshots.
    if (this.#owner === undefined) this.#host.check();
    else if (this.#owner.isClosed) this.#owner.check();
  }

  release(): void {
    if (this.#owner === undefined && !this.#host.isClosed()) this.#snapshot.release();
  }
}
