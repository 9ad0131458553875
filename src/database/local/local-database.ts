/** An open store: what `open` returns for a folder (../database.ts says what each method is for). */

import { sealIfLast } from "../../attach/attach.ts";
import { resizeStore } from "../../attach/resize.ts";
import { knownDevice } from "../../device/device.ts";
import type { Executor } from "../../engine/executor.ts";
import { readObject } from "../../engine/objects.ts";
import { runReadOnly, runSync, tryReadOnly } from "../../engine/run.ts";
import { Snapshot as EngineSnapshot } from "../../engine/snapshots/snapshot.ts";
import { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import type { MemoryBytes } from "../../folder/memory-size.ts";
import { type Identity, memoryFolder } from "../../folder/store-files.ts";
import type { Recovered } from "../../log/recovery/rebuild.ts";
import { type Control, SCHEMA_GENERATION } from "../../memory/control.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Pointer } from "../../memory/pointer.ts";
import { passOver } from "../../runtime/background-errors.ts";
import { nowMs, pause, sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { MAX_SNAPSHOTS, SCAN_BATCH_ROWS } from "../../runtime/limits.ts";
import { coded } from "../../runtime/system-errors.ts";
import type { Store } from "../../stores/store.ts";
import { planProgram } from "../../tables/bulk/count-rows.ts";
import type { Choice, Plan } from "../../tables/bulk/plan.ts";
import {
  aggregateProgram,
  deleteProgram,
  explainedProgram,
  placeOf,
  selectProgram,
  updateProgram,
} from "../../tables/bulk/requests.ts";
import type { Deleted, Updated } from "../../tables/bulk/runs.ts";
import { openTable, refreshTables, tablesAt } from "../../tables/catalogue.ts";
import { turnOffChanges } from "../../tables/changes/turn-on.ts";
import { ownKey } from "../../tables/copied-key.ts";
import type { DeviceTable } from "../../tables/device/device-table.ts";
import type { Changed } from "../../tables/device/elements/change-job.ts";
import { ElementPool } from "../../tables/device/elements/element-pool.ts";
import { refuseUnlessShippable } from "../../tables/device/elements/shippable.ts";
import { type ChosenPlace, choosePlace, placeFacts } from "../../tables/device/place-cost.ts";
import { removeStaleFiles } from "../../tables/device/stale-files.ts";
import type { Program } from "../../tables/expressions/program.ts";
import { buildIndexes } from "../../tables/indexes/build.ts";
import {
  type CheckedScan,
  type CountOptions,
  checkedScan,
  type GetOptions,
  type IndexKey,
  type IndexName,
  type ScanOptions,
  type UniqueIndex,
} from "../../tables/indexes/read-options.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";
import type { MigrationContext } from "../../tables/migrations/context.ts";
import { clearRemains, hasRemains } from "../../tables/migrations/remains.ts";
import {
  finishMigrations,
  type MigrationPlan,
  planMigration,
  runMigration,
} from "../../tables/migrations/run.ts";
import type { MigrationStep } from "../../tables/migrations/steps.ts";
import type { ScanPlan, ScanSource } from "../../tables/scan-plan.ts";
import { Sequence } from "../../tables/sequence.ts";
import type { InferRow, InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import type { Copied } from "../../tools/files/copy.ts";
import type { FileToolOptions } from "../../tools/files/pauses.ts";
import type { InspectedTable } from "../../tools/tables/inspect.ts";
import type { Verification, VerifyOptions } from "../../tools/tables/verify.ts";
import {
  type InteractiveTransaction,
  LOCAL_OPERATIONS,
  type LocalTransaction,
} from "../async-transaction.ts";
import type { Database } from "../database.ts";
import { checkedMigration, type MigrateOptions } from "../migrate-options.ts";
import {
  folderOf,
  isDuration,
  memoryBytesOf,
  notADuration,
  type Settings,
} from "../open-options.ts";
import { listOf } from "../row-errors.ts";
import { limitOf, planOf } from "../run/bulk-run.ts";
import { ENDED } from "../run/ended.ts";
import { handleOf } from "../run/interactive.ts";
import { pagedRows } from "../run/paged-source.ts";
import {
  CursorBatches,
  countRows,
  type OpenedScan,
  RowScan,
  readWhole,
  WholeBatch,
} from "../run/row-scan.ts";
import { TransactionRunner } from "../run/runner.ts";
import type { Scan } from "../scan.ts";
import type { Snapshot } from "../snapshot.ts";
import {
  besideTransaction,
  checkOptions,
  nested,
  notAFunction,
  type SyncResult,
  type TransactOptions,
  type TransactSyncOptions,
  unknownTable,
} from "../transact-options.ts";
import type { Transaction } from "../transaction.ts";
import type { ChangeOf, Watch, WatchOptions } from "../watch.ts";
import type { LocalAsyncTransaction } from "./async-transaction.ts";
import { Upkeep } from "./background-work.ts";
import { aggregateOver, selectScan } from "./bulk-reads.ts";
import { DatabaseDurability } from "./database-durability.ts";
import { DeviceKeeper } from "./device-keeper.ts";
import { DeviceScan } from "./device-scan.ts";
import { ExpirySweeper } from "./expiry-sweeper.ts";
import { LocalExecution, type LocalLimits, LocalTransactions } from "./local-execution.ts";
import { LocalSnapshot, type SnapshotHost, SnapshotSource } from "./local-snapshot.ts";
import { LocalWatch } from "./local-watch.ts";
import { DatabaseMetrics } from "./metrics.ts";
import { SnapshotTransaction } from "./snapshot-transaction.ts";
import { type Stats, statsOf } from "./stats.ts";
import { SyncTransaction } from "./sync-transaction.ts";
import { SnapshotStores, type Stores, TableSet } from "./table-set.ts";

/** After a failure of work in the background. */
const MIGRATION_RETRY_MS = 1_000;
/** How often a short scan is tried without a snapshot. */
const SHORT_SCAN_ATTEMPTS = 3;

const OPEN = 0;
/** The callback of `transactSync` is running. */
const INSIDE_SYNC = 1;
const CLOSED = 2;

/** What `open` found. */
export interface Found {
  readonly identity?: Identity | undefined;
  readonly recovered?: Recovered | undefined;
}

export class LocalDatabase implements Database, Stores {
  readonly path: string;
  readonly recovered: Recovered | undefined;
  /** What is counted; for gateways. `stats()` has most of it in a handier form. */
  readonly metrics: DatabaseMetrics;
  /** Removes expired rows; for tests, which do not wait for it. */
  readonly expiry: ExpirySweeper;
  /** Moves rows of device tables out of memory; for tests, which do not wait for it. */
  readonly device: DeviceKeeper;
  /** The threads of the device. */
  readonly elements: ElementPool;
  readonly #executor: Executor;
  readonly #identity: Identity | undefined;
  readonly #control: Control;
  readonly #timeoutMs: number;
  /** For calls that hold the event loop while they wait. */
  readonly #syncTimeoutMs: number;
  readonly #maxSnapshotMs: number;
  readonly #sequences = new Map<Table, Sequence>();
  /** The tables, as they are in this schema generation, or a later one. */
  #set = new TableSet([]);
  #generation: number;
  /** By a table's ordinal. */
  #stores: readonly (Store<unknown, unknown> | undefined)[] = [];
  readonly #engineTx: EngineTransaction;
  /** For reads outside of transactions that take more than one look. */
  readonly #reader: EngineTransaction;
  readonly #tx: SyncTransaction;
  readonly #snapshotStores: SnapshotStores;
  readonly #snapshotTx: SyncTransaction;
  readonly #runner: TransactionRunner<LocalAsyncTransaction, LocalLimits>;
  readonly #upkeep: Upkeep;
  readonly #durability: DatabaseDurability;
  /** Whether transactions wait for the disk, unless they say otherwise. */
  readonly #waits: boolean;
  readonly #snapshots = new Set<LocalSnapshot>();
  readonly #watches = new Set<LocalWatch>();
  readonly #snapshotHost: SnapshotHost;
  /** What may be done now: OPEN in one comparison, which is all that a `get` makes. */
  #state: typeof OPEN | typeof INSIDE_SYNC | typeof CLOSED = OPEN;
  #clearing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  /** Of transactions that name no options. */
  readonly #usualLimits: LocalLimits;

  /** Use `open`. */
  constructor(executor: Executor, settings: Settings, found: Found = {}) {
    const { path, tables, timeoutMs, syncTimeoutMs, maxSnapshotMs } = settings;
    this.path = path;
    this.recovered = found.recovered;
    this.#executor = executor;
    this.#identity = found.identity;
    this.#control = executor.memory.control;
    this.#timeoutMs = timeoutMs;
    this.#syncTimeoutMs = syncTimeoutMs;
    this.#maxSnapshotMs = maxSnapshotMs;
    executor.timeoutMs = syncTimeoutMs;
    executor.diskMs = timeoutMs;
    this.#generation = this.#currentGeneration();
    this.device = new DeviceKeeper(executor);
    const { identity } = found;
    this.elements = new ElementPool(executor, identity && memoryFolder(identity));
    // Tables that are to be migrated are opened when they have been.
    if (settings.migrate === undefined) this.openTables(tables);
    this.#reader = new EngineTransaction(executor);
    this.#engineTx = new EngineTransaction(executor);
    this.#tx = new SyncTransaction(this, this.#engineTx);
    this.#snapshotStores = new SnapshotStores(this);
    this.#snapshotTx = new SnapshotTransaction(this.#snapshotStores, this.#engineTx);
    this.metrics = new DatabaseMetrics(executor, path);
    const { transactions } = this.metrics;
    const host = new LocalTransactions(executor, this, transactions, this.#maintain);
    this.#runner = new TransactionRunner((limits: LocalLimits) => new LocalExecution(host, limits));
    this.#snapshotHost = {
      executor,
      reader: this.#reader,
      elements: this.elements,
      check: () => this.#check(),
      isClosed: () => this.#state === CLOSED,
      closed: (snapshot) => this.#snapshots.delete(snapshot),
    };
    this.expiry = new ExpirySweeper(executor, () => {
      this.#refreshIfNeeded();
      return this.#set.tables;
    });
    this.#upkeep = new Upkeep(executor, this.expiry, this.device);
    this.#durability = new DatabaseDurability(executor, settings, found.identity);
    this.#waits = this.#durability.mode === "sync";
    this.#usualLimits = { timeoutMs, signal: undefined, snapshotMs: 0, waits: this.#waits };
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Row | undefined;
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Row | undefined;
  get<Row, Key>(table: Table<Row, Key>, key: Key, options?: unknown): Row | undefined {
    this.#checkRead();
    if (options !== undefined) return this.#lookup(table, key, options);
    let row: Row | undefined;
    try {
      row = this.storeOf(table).get(key);
    } catch (error) {
      if (this.#currentGeneration() === this.#generation) throw error;
      return this.#getAgain(table, key);
    }
    // Nobody waits for one who reads without a transaction: what it has read from may be gone.
    return this.#currentGeneration() === this.#generation ? row : this.#getAgain(table, key);
  }

  #getAgain<Row, Key>(table: Table<Row, Key>, key: Key): Row | undefined {
    const read = (tx: EngineTransaction) => this.storeOf(table).read(tx, key);
    return runReadOnly(this.#executor, this.#reader, read, undefined);
  }

  getMany<Row, Key>(table: Table<Row, Key>, keys: Iterable<NoInfer<Key>>): (Row | undefined)[] {
    this.#checkRead();
    const store = this.storeOf(table);
    const wanted = listOf(table, keys).map((key) => ownKey(key) as Key);
    const read = (tx: EngineTransaction) => {
      tx.subject = table.name;
      for (let i = 0; i < wanted.length; i++) store.touch(tx, wanted[i]);
      return wanted.map((key) => store.read(tx, key));
    };
    return runReadOnly(this.#executor, this.#reader, read, undefined);
  }

  insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): InsertedKey<Writes> {
    return this.transactSync((tx) => tx.insert(table, row) as SyncResult<InsertedKey<Writes>>);
  }

  put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): void {
    this.transactSync((tx) => tx.put(table, row));
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): void {
    this.transactSync((tx) => tx.update(table, key, changes));
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    return this.transactSync((tx) => tx.delete(table, key));
  }

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row> {
    this.#checkRead();
    const planned = this.#planOf<Row>("scan", table, options);
    const openLater = (): AsyncIterableIterator<Row> =>
      pagedRows(this.#executor, () => this.#openScan(planned));
    return new RowScan(
      () =>
        planned.limit <= SCAN_BATCH_ROWS
          ? new WholeBatch(
              () => this.#readWhole(planned),
              () => this.#checkRead(),
            )
          : new CursorBatches(() => this.#openScan(planned)),
      table.storage === "device" ? openLater : undefined,
    );
  }

  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number {
    this.#checkRead();
    const { source, plan } = this.#openScan(this.#planOf<Row>("count", table, options));
    return countRows(source, plan);
  }

  select(table: Table, options?: unknown): Scan<never> {
    this.#checkRead();
    const program = selectProgram(table, options, true);
    this.tableOf(table);
    if (placeOf(options) === "device") {
      return new DeviceScan(() => this.#selectOnDevice(table, program), limitOf(options));
    }
    const open = (): OpenedScan<never> => {
      const { source, store } = this.#openTable(table);
      return { source, plan: selectScan(store, program, source, limitOf(options)) };
    };
    const openLater = (): AsyncIterableIterator<never> => {
      this.#checkRead();
      if (this.#placeOf(options, table, program) === "host") return pagedRows(this.#executor, open);
      const batches = () => this.#selectOnDevice(table, program);
      return new DeviceScan(batches, limitOf(options))[Symbol.asyncIterator]();
    };
    // Rows that are read synchronously cannot come from another thread: only who awaits them leaves the choice.
    const isOnDevice = table.storage === "device";
    return new RowScan<never>(() => new CursorBatches(open), isOnDevice ? openLater : undefined);
  }

  async aggregate(table: Table, options: unknown): Promise<never> {
    this.#checkRead();
    const program = aggregateProgram(table, options, true);
    if (this.#placeOf(options, table, program) === "device") {
      return (await this.#runner.track(this.#aggregateOnDevice(table, program))) as never;
    }
    const { source, store } = this.#openTable(table);
    return (await this.#runner.track(
      aggregateOver(this.#executor, source, store, program),
    )) as never;
  }

  async #aggregateOnDevice(table: Table, program: Program): Promise<unknown> {
    const { snapshot, store } = this.#openForDevice("aggregate", table);
    try {
      return await this.elements.aggregate(store, program, snapshot);
    } finally {
      this.#release(snapshot);
    }
  }

  async *#selectOnDevice(
    table: Table,
    program: Program,
  ): AsyncGenerator<readonly unknown[], undefined> {
    const { snapshot, store } = this.#openForDevice("select", table);
    try {
      yield* this.elements.select(store, program, snapshot);
    } finally {
      this.#release(snapshot);
    }
  }

  /** A table as the threads of the device can read it, in a snapshot for them. */
  #openForDevice(call: string, table: Table): { snapshot: EngineSnapshot; store: TableStore } {
    this.#refreshIfNeeded();
    const snapshot = this.#takeForScan();
    try {
      const store = this.#tablesAt(snapshot).tableOf(table);
      refuseUnlessShippable(call, store);
      return { snapshot, store };
    } catch (error) {
      this.#release(snapshot);
      throw error;
    }
  }

  #release(snapshot: EngineSnapshot): void {
    // One that closes gives back all of its snapshots.
    if (this.#state !== CLOSED) snapshot.release();
  }

  async updateWhere(
    table: Table,
    options: unknown,
    transaction?: TransactOptions,
  ): Promise<Updated> {
    const program = updateProgram(table, options, true);
    if (this.#placeOf(options, table, program) === "host") {
      return (await this.#change(table, program, transaction)) as Updated;
    }
    const { matched, changed } = await this.#changeOnDevice(table, program, transaction);
    return { matched, changed, place: "device" };
  }

  async deleteWhere(
    table: Table,
    options: unknown,
    transaction?: TransactOptions,
  ): Promise<Deleted> {
    const program = deleteProgram(table, options, true);
    if (this.#placeOf(options, table, program) === "host") {
      return (await this.#change(table, program, transaction)) as Deleted;
    }
    const { matched } = await this.#changeOnDevice(table, program, transaction);
    return { matched, place: "device" };
  }

  async #changeOnDevice(
    table: Table,
    program: Program,
    options: TransactOptions | undefined,
  ): Promise<Changed> {
    const { timeoutMs, signal, waits } = this.#limitsOf("transact", options);
    const store = this.tableOf(table);
    refuseUnlessShippable(`${program.task.kind}Where`, store);
    const changing = this.elements.change(store, program, { timeoutMs, signal, waits });
    const changed = await this.#runner.track(changing);
    // Pages that the rows have left are looked after here.
    if (this.#state !== CLOSED) this.device.noteWritten(store.root, changed.pages);
    return changed;
  }

  async explain(table: Table, options?: unknown): Promise<Plan> {
    this.#checkRead();
    const program = explainedProgram(table, options, true);
    const { source, store } = this.#openTable(table);
    try {
      const choice = planProgram(store, program, source, true);
      const chosen = this.#chosenPlace(store, program, choice);
      if (chosen === undefined) return planOf(program, choice);
      const wanted = placeOf(options);
      const place = wanted === "auto" ? chosen.place : wanted;
      return planOf(program, choice, { ...chosen, place });
    } finally {
      source.release();
    }
  }

  /** Where an operation runs. What may be read synchronously does not come here. */
  #placeOf(options: unknown, table: Table, program: Program): "host" | "device" {
    const wanted = placeOf(options);
    if (wanted !== "auto") return wanted;
    if (table.storage !== "device") return "host";
    const store = this.tableOf(table);
    if (store.refusal !== undefined) return "host";
    const choice = planProgram(store, program, this.#executor, true);
    return this.#chosenPlace(store, program, choice)?.place ?? "host";
  }

  #chosenPlace(store: TableStore, program: Program, choice: Choice): ChosenPlace | undefined {
    const shared = knownDevice(this.#executor)?.tables.get(store.root) as DeviceTable | undefined;
    if (store.table.storage !== "device" || shared === undefined) return undefined;
    const { size, isStarted } = this.elements;
    return choosePlace(store, program, placeFacts(shared, choice, size, isStarted));
  }

  #change(table: Table, program: Program, options: TransactOptions = {}): Promise<unknown> {
    const run = (tx: LocalTransaction): Promise<unknown> =>
      (tx as LocalAsyncTransaction).runProgram(table, program);
    return this.transact(run, options);
  }

  snapshot(): Snapshot {
    this.#check();
    const taken = EngineSnapshot.take(this.#executor, this.#maxSnapshotMs, this.#syncTimeoutMs);
    const snapshot = new LocalSnapshot(this.#snapshotHost, taken, this.#tablesAt(taken));
    if (this.#snapshots.size >= MAX_SNAPSHOTS) this.#forgetReleased();
    this.#snapshots.add(snapshot);
    this.#upkeep.lookAfterVersions();
    return snapshot;
  }

  readObject(pointer: Pointer): Uint8Array {
    this.#checkRead();
    return readObject(this.#executor, pointer);
  }

  transactSync<T>(body: (tx: Transaction) => SyncResult<T>, options?: TransactSyncOptions): T {
    this.#check();
    if (this.#state !== OPEN || this.#runner.callbacks.isInside()) throw nested();
    if (typeof body !== "function") throw notAFunction("transactSync", body);
    let timeoutMs = this.#syncTimeoutMs;
    let diskMs = this.#timeoutMs;
    let snapshotMs = 0;
    let waits = this.#waits;
    if (options !== undefined) {
      checkOptions("transactSync", options);
      if (options.timeoutMs !== undefined) timeoutMs = diskMs = this.#timeoutOf(options);
      snapshotMs = this.#snapshotMsOf(options);
      waits = this.#durability.waits(options.durability);
    }
    // Only asynchronous transactions can be under way here: one whose stack overflowed is not.
    if (this.#runner.isIdle) this.#executor.forgetRunning();
    const { transactions } = this.metrics;
    const startMs = transactions.beginSync(waits);
    let result: T;
    try {
      result = this.#runSync(body, timeoutMs, diskMs, snapshotMs, waits);
    } catch (error) {
      transactions.failSync(startMs, waits, snapshotMs > 0, error);
      throw error;
    }
    if (startMs > 0) transactions.endSync(startMs, waits, snapshotMs > 0);
    return result;
  }

  #runSync<T>(
    body: (tx: Transaction) => SyncResult<T>,
    timeoutMs: number,
    diskMs: number,
    snapshotMs: number,
    waits: boolean,
  ): T {
    const tx = snapshotMs > 0 ? this.#snapshotTx : this.#tx;
    const executor = this.#executor;
    const engineTx = this.#engineTx;
    let result: T;
    this.#state = INSIDE_SYNC;
    try {
      // The body's own work is no waiting for others.
      tx.begin(diskMs);
      const run = snapshotMs > 0 ? this.#atSnapshot(body) : body;
      result = runSync(executor, engineTx, timeoutMs, run, tx, snapshotMs, waits, diskMs);
    } finally {
      this.#state = OPEN;
      tx.end(ENDED);
      this.#maintain();
    }
    if (waits) executor.durability.awaitSync(engineTx.epoch, diskMs);
    return result;
  }

  /** The same body, which reads the tables as the snapshot of its attempt sees them. */
  #atSnapshot<T>(body: (tx: Transaction) => T): (tx: Transaction) => T {
    return (tx) => {
      this.#snapshotStores.bind(this.#engineTx.snapshot!);
      return body(tx);
    };
  }

  transact<T>(
    body: (tx: LocalTransaction) => T | PromiseLike<T>,
    options?: TransactOptions,
  ): Promise<Awaited<T>> {
    // Not an asynchronous function: that would be one promise more than there is to wait for.
    try {
      const limits = this.#limitsOf("transact", options);
      if (typeof body !== "function") throw notAFunction("transact", body);
      return this.#runner.run(body, limits);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async begin(options?: TransactOptions): Promise<InteractiveTransaction<LocalTransaction>> {
    return handleOf(await this.#runner.begin(this.#limitsOf("begin", options)), LOCAL_OPERATIONS);
  }

  #limitsOf(call: "transact" | "begin", options: TransactOptions | undefined): LocalLimits {
    this.#check();
    if (this.#state !== OPEN || this.#runner.callbacks.isInside()) throw nested();
    if (options === undefined) return this.#usualLimits;
    checkOptions(call, options);
    const limits = {
      timeoutMs: this.#timeoutOf(options),
      signal: options.signal,
      snapshotMs: this.#snapshotMsOf(options),
      waits: this.#durability.waits(options.durability),
    };
    if (limits.snapshotMs > 0) this.#upkeep.lookAfterVersions();
    return limits;
  }

  async durable(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#check();
    refuseUnknownOptions("durable", options, ["timeoutMs"]);
    await this.#runner.track(this.#durability.durable(this.#timeoutOf(options)));
  }

  async checkpoint(): Promise<void> {
    this.#check();
    await this.#runner.track(this.#durability.checkpoint(() => this.#state === CLOSED));
  }

  async verify(options: VerifyOptions = {}): Promise<Verification> {
    this.#check();
    refuseUnknownOptions("verify", options, ["signal", "onProgress", "mostProblems"]);
    const loading = import("../../tools/tables/verify.ts");
    return this.#runner.track(
      loading.then(({ verifyTables }) => verifyTables(this.#executor, options)),
    );
  }

  async inspect(table: string): Promise<InspectedTable> {
    this.#check();
    const loading = import("../../tools/tables/inspect.ts");
    return this.#runner.track(
      loading.then(({ inspectTable }) => inspectTable(this.#executor, table)),
    );
  }

  async backup(folder: string, options: FileToolOptions = {}): Promise<Copied> {
    this.#check();
    refuseUnknownOptions("backup", options, ["signal", "onProgress"]);
    const target = folderOf("the folder of the backup", folder);
    const copying = coded(target, () => this.#durability.backup(this.path, target, options));
    return this.#runner.track(copying);
  }

  async resize(memoryBytes: MemoryBytes): Promise<number> {
    this.#check();
    const wanted = memoryBytesOf("resize", memoryBytes);
    const path = this.#identity === undefined ? undefined : this.path;
    return this.#runner.track(coded(this.path, () => resizeStore(path, this.#executor, wanted)));
  }

  watch<const T extends Table | readonly Table[]>(
    tables: T,
    options: WatchOptions<InferRow<T extends readonly (infer One)[] ? One : T>> = {},
  ): Watch<ChangeOf<T extends readonly (infer One)[] ? One : T>> {
    this.#check();
    this.#checkNotInside();
    this.#durability.checkLogged("watch()");
    const given: readonly Table[] = Array.isArray(tables) ? tables : [tables];
    const host = {
      executor: this.#executor,
      path: this.path,
      timeoutMs: this.#timeoutMs,
      ended: (watch: LocalWatch) => this.#watches.delete(watch),
    };
    const stores = given.map((each) => this.tableOf(each));
    const watch = new LocalWatch(host, stores, options as WatchOptions<never>);
    this.#watches.add(watch);
    return watch as unknown as Watch<never>;
  }

  unwatch(table: Table): boolean {
    this.#check();
    this.#checkNotInside();
    return turnOffChanges(this.#executor, this.tableOf(table), this.#timeoutMs);
  }

  stats(): Stats {
    this.#check();
    return statsOf(this.#executor, this.#durability);
  }

  async close(): Promise<void> {
    this.#checkNotInside();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#state = CLOSED;
    this.#upkeep.stop();
    for (const snapshot of this.#snapshots) snapshot.release();
    for (const watch of this.#watches) watch.end(this.#closedError());
    // Not by waiting for the promise: the timers that it waits for keep no process alive.
    while (this.#clearing !== undefined) await sleep(1);
    const ending = this.elements.close();
    await this.#runner.close(this.#closedError());
    await ending;
    await this.device.stop();
    const failure = await this.#durability.stop(this.#timeoutMs);
    const isLast = this.#executor.close();
    if (failure !== undefined) throw failure;
    if (!isLast || this.#identity === undefined) return;
    // Closed it is all the same: without a seal the next one who opens the store cannot check it.
    await sealIfLast(this.path, this.#identity).catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** For graphs, which read on their own: fails where `get` would. */
  checkRead(): void {
    this.#checkRead();
  }

  /** For gateways, which run transactions of their own. */
  get executor(): Executor {
    this.#check();
    return this.#executor;
  }

  /**
   * For transactions: the store behind a table, with all that the catalogue says by now. Whoever
   * changes the catalogue announces that by the generation and then waits for the transactions that
   * had begun: one that begins later, and looks here, knows of it.
   */
  storeOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    this.#refreshIfNeeded();
    const store = this.#stores[table?.ordinal];
    if (store === undefined) throw unknownTable(table, this.#set.tables);
    return store as Store<Row, Key>;
  }

  currentStoreOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    return this.storeOf(table);
  }

  /** For transactions: the table with its indexes. */
  tableOf(table: Table): TableStore {
    this.#refreshIfNeeded();
    return this.#set.tableOf(table);
  }

  currentSet(): TableSet | undefined {
    return this.#currentGeneration() === this.#generation ? this.#set : undefined;
  }

  /** The tables for a snapshot that was taken just now. */
  #tablesAt(snapshot: EngineSnapshot): TableSet {
    try {
      return this.currentSet() ?? this.setAt(snapshot);
    } catch (error) {
      snapshot.release();
      throw error;
    }
  }

  setAt(snapshot: EngineSnapshot): TableSet {
    return new TableSet(tablesAt(this.#executor, snapshot, this.#set.tables));
  }

  /** Opens more tables. */
  openTables(tables: readonly Table[]): void {
    const opened = tables.map((table) => openTable(this.#executor, table));
    for (const each of opened) {
      if (each.table.autoKey === undefined) continue;
      this.#sequences.set(each.table, new Sequence(this.#executor, each));
    }
    this.#use(new TableSet([...this.#set.tables, ...opened]));
    this.device.start();
  }

  /** For transactions: numbers for the keys of a table that is open here. */
  sequenceOf(table: Table): Sequence {
    return this.#sequences.get(table)!;
  }

  /** For `open`: builds the indexes that are declared here and not ready in the store. */
  async buildIndexes(): Promise<void> {
    const executor = this.#executor;
    const timeoutMs = this.#timeoutMs;
    const source = (): ScanSource => this.#buildSource();
    for (;;) {
      const unfinished = this.#unfinished();
      if (unfinished.length === 0) return;
      // Nothing is built in a table that is being migrated.
      const positions = unfinished.map(({ position }) => position);
      await finishMigrations(this.#migrationContext(), positions);
      this.#refresh();
      let isDone = true;
      for (const table of this.#unfinished()) {
        isDone = (await buildIndexes({ executor, table, timeoutMs, source })) && isDone;
      }
      this.#refresh();
      if (isDone) return;
    }
  }

  #unfinished(): TableStore[] {
    return this.#set.tables.filter(({ isComplete }) => !isComplete);
  }

  async migrate(
    steps: readonly MigrationStep[] = [],
    options: MigrateOptions = {},
  ): Promise<MigrationPlan> {
    this.#check();
    this.#checkNotInside();
    const { tables = [], dryRun = false, onProgress, signal } = checkedMigration(steps, options);
    const context = this.#migrationContext(onProgress, signal);
    const plan = planMigration(context, tables, steps);
    if (dryRun) return plan;
    try {
      await this.#runner.track(runMigration(context, tables, steps));
      return plan;
    } finally {
      if (this.#state !== CLOSED) this.clearRemains();
    }
  }

  get #isClosed(): boolean {
    return this.#state === CLOSED;
  }

  /** Frees, in the background, what migrations have left behind and nobody else looks after. */
  clearRemains(): void {
    this.#clearing ??= this.#clearRemains().finally(() => {
      this.#clearing = undefined;
    });
  }

  /** Waits until that is done, but not for longer than this. */
  async hasCleared(mostMs: number): Promise<void> {
    const endMs = nowMs() + mostMs;
    while (this.#clearing !== undefined && nowMs() < endMs) await sleep(1);
  }

  /** Whether that is under way. */
  get isClearing(): boolean {
    return this.#clearing !== undefined;
  }

  async #clearRemains(): Promise<void> {
    const context = this.#migrationContext();
    while (!this.#isClosed) {
      try {
        if (!hasRemains(context)) {
          removeStaleFiles(this.#executor);
          return;
        }
        await clearRemains(context);
      } catch (error) {
        if (this.#isClosed) return;
        passOver(error, "freeing what a migration has left");
        await pause(MIGRATION_RETRY_MS);
      }
    }
  }

  #migrationContext(
    onProgress: MigrationContext["onProgress"] = () => {},
    signal?: AbortSignal,
  ): MigrationContext {
    return {
      executor: this.#executor,
      timeoutMs: this.#timeoutMs,
      source: () => this.#buildSource(),
      check: () => {
        this.#check();
        if (signal?.aborted) throw migrationAborted(signal);
      },
      onProgress,
    };
  }

  #refreshIfNeeded(): void {
    if (this.#currentGeneration() !== this.#generation) this.#refresh();
  }

  #currentGeneration(): number {
    return loadAcquire(this.#control.i32, SCHEMA_GENERATION);
  }

  #refresh(): void {
    const generation = this.#currentGeneration();
    this.#use(new TableSet(refreshTables(this.#executor, this.#set.tables)));
    this.#generation = generation;
  }

  #use(set: TableSet): void {
    this.#set = set;
    this.#stores = set.stores;
  }

  #lookup<Row, Key>(table: Table<Row, Key>, given: unknown, options: unknown): Row | undefined {
    const key = ownKey(given);
    const read = (tx: EngineTransaction) => {
      const store = this.tableOf(table);
      return store.lookup(tx, key, store.indexOf(options));
    };
    return runReadOnly(this.#executor, this.#reader, read, undefined) as Row | undefined;
  }

  /** Snapshots that nobody closes, but that the store has released by now. */
  #forgetReleased(): void {
    for (const snapshot of this.#snapshots) {
      if (snapshot.isReleased) this.#snapshots.delete(snapshot);
    }
  }

  #takeForScan(): EngineSnapshot {
    this.#checkRead();
    const snapshot = EngineSnapshot.take(this.#executor, this.#maxSnapshotMs, this.#syncTimeoutMs);
    this.#upkeep.lookAfterVersions();
    return snapshot;
  }

  /** Checks the options of a scan or count. */
  #planOf<Row>(call: "scan" | "count", table: Table, options: unknown): Planned<Row> {
    const store = this.tableOf(table);
    const scan = checkedScan(call, table.name, options);
    return { table, scan, store, plan: store.planChecked<Row>(scan), limit: scan.limit };
  }

  /** A scan, with a snapshot of its own, of the table as it is by then. */
  #openScan<Row>(planned: Planned<Row>): OpenedScan<Row> {
    const snapshot = this.#takeForScan();
    const source = new SnapshotSource(this.#snapshotHost, snapshot);
    const tables = this.#tablesAt(snapshot);
    try {
      const store = tables.tableOf(planned.table);
      return { source, plan: planFor(planned, store) };
    } catch (error) {
      source.release();
      throw error;
    }
  }

  /** A table as it is now, in a snapshot of its own. */
  #openTable(table: Table): { source: ScanSource; store: TableStore } {
    this.#refreshIfNeeded();
    const snapshot = this.#takeForScan();
    const source = new SnapshotSource(this.#snapshotHost, snapshot);
    const tables = this.#tablesAt(snapshot);
    try {
      return { source, store: tables.tableOf(table) };
    } catch (error) {
      source.release();
      throw error;
    }
  }

  /** A short scan is one read-only transaction; only where others get in between, a snapshot. */
  #readWhole<Row>(planned: Planned<Row>): Row[] {
    this.#checkRead();
    let rows: Row[] = [];
    const done = tryReadOnly(this.#executor, this.#reader, SHORT_SCAN_ATTEMPTS, (tx) => {
      rows = readWhole(tx, planFor(planned, this.tableOf(planned.table)));
    });
    if (done) return rows;
    const { source, plan } = this.#openScan(planned);
    try {
      return source.run(readWhole<Row>, plan);
    } finally {
      source.release();
    }
  }

  /** What the builder of an index reads through: every step sees the state of its moment. */
  #buildSource(): ScanSource {
    return {
      run: (step, argument) => {
        const source = new SnapshotSource(this.#snapshotHost, this.#takeForScan());
        try {
          return source.run(step, argument);
        } finally {
          source.release();
        }
      },
      check: () => this.#check(),
      release: () => {},
    };
  }

  #check(): void {
    if (this.#state !== CLOSED) return;
    throw this.#closedError();
  }

  /** The same for reads that are no part of a transaction: inside of one they are a mistake. */
  #checkRead(): void {
    if (this.#state === OPEN) return;
    throw this.#state === CLOSED ? this.#closedError() : besideTransaction();
  }

  /** For calls that are made rarely: they may take their time to find out where they come from. */
  #checkNotInside(): void {
    if (this.#state === INSIDE_SYNC || this.#runner.callbacks.isSurelyInside()) throw nested();
  }

  #closedError(): SituError {
    return new SituError("SITU_CLOSED", `the database at ${this.path} is closed: open it again`);
  }

  #timeoutOf(options: { readonly timeoutMs?: number }): number {
    const { timeoutMs = this.#timeoutMs } = options;
    if (isDuration(timeoutMs)) return timeoutMs;
    throw new SituError("SITU_CONFIG", notADuration("timeoutMs", timeoutMs));
  }

  #snapshotMsOf({ isolation }: TransactSyncOptions): number {
    return isolation === "snapshot" ? this.#maxSnapshotMs : 0;
  }

  /** Its failure is not the failure of the transaction that came before it. */
  readonly #maintain = (): void => {
    try {
      const { tables } = this.#set;
      for (let i = 0; i < tables.length; i++) tables[i].store.maintain();
    } catch (error) {
      passOver(error, "maintaining a table after a commit");
    }
  };
}

/** A scan whose options were checked, and how it would be carried out now. */
interface Planned<Row> {
  readonly table: Table;
  readonly scan: CheckedScan;
  readonly store: TableStore;
  readonly plan: ScanPlan<Row>;
  readonly limit: number;
}

function migrationAborted({ reason }: AbortSignal): SituError {
  return new SituError(
    "SITU_ABORTED",
    "the migration was aborted by its signal; the next one who migrates goes on with what was begun",
    { cause: reason },
  );
}

/** The plan for a table as it is when the scan begins, which may be much later. */
function planFor<Row>(planned: Planned<Row>, store: TableStore): ScanPlan<Row> {
  return store === planned.store ? planned.plan : store.planChecked<Row>(planned.scan);
}

/** For gateways and tools, which use what is not for users. */
export function localDatabase(db: Database): LocalDatabase {
  if (db instanceof LocalDatabase) return db;
  throw new SituError("SITU_TYPE", "pass a local database: what open({ path }) returns");
}
