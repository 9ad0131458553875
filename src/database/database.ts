/** An open store. Start reading here: everything a user does begins with one of these methods. */

import { sealIfLast } from "../attach/attach.ts";
import type { Executor } from "../engine/executor.ts";
import { readObject } from "../engine/objects.ts";
import { runReadOnly, runSync, tryReadOnly } from "../engine/run.ts";
import { Snapshot as EngineSnapshot } from "../engine/snapshots/snapshot.ts";
import { Transaction as EngineTransaction } from "../engine/transaction.ts";
import type { Identity } from "../folder/store-files.ts";
import type { Recovered } from "../log/recovery/rebuild.ts";
import { type Control, SCHEMA_GENERATION } from "../memory/control.ts";
import { loadAcquire } from "../memory/ordering.ts";
import type { Pointer } from "../memory/pointer.ts";
import { AssertionError } from "../runtime/assert.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { MAX_SNAPSHOTS, SCAN_BATCH_ROWS } from "../runtime/limits.ts";
import { coded } from "../runtime/system-errors.ts";
import type { Store } from "../stores/store.ts";
import { openTable, refreshTables } from "../tables/catalogue.ts";
import { ownKey } from "../tables/copied-key.ts";
import { buildIndexes } from "../tables/indexes/build.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  ScanOptions,
  UniqueName,
} from "../tables/indexes/options.ts";
import type { TableStore } from "../tables/indexes/table-store.ts";
import type { ScanPlan, ScanSource } from "../tables/scan-plan.ts";
import type { Table } from "../tables/table.ts";
import type { Copied } from "../tools/files/copy.ts";
import type { FileToolOptions } from "../tools/files/pauses.ts";
import { type InspectedTable, inspectTable } from "../tools/tables/inspect.ts";
import { type Verification, type VerifyOptions, verifyTables } from "../tools/tables/verify.ts";
import {
  type InteractiveTransaction,
  LOCAL_OPERATIONS,
  type LocalTransaction,
} from "./async-transaction.ts";
import type { LocalAsyncTransaction } from "./local/async-transaction.ts";
import { Upkeep } from "./local/background-work.ts";
import { DatabaseDurability } from "./local/database-durability.ts";
import { LocalExecution, type LocalLimits, LocalTransactions } from "./local/local-execution.ts";
import { DatabaseMetrics } from "./local/metrics.ts";
import { SnapshotTransaction } from "./local/snapshot-transaction.ts";
import { type Stats, statsOf } from "./local/stats.ts";
import { folderOf, isDuration, notADuration, type Settings } from "./open-options.ts";
import { ENDED } from "./run/ended.ts";
import { handleOf } from "./run/interactive.ts";
import { TransactionRunner } from "./run/runner.ts";
import { isInsideTransaction } from "./run/transaction-context.ts";
import { CursorBatches, countRows, readWhole, Scan, WholeBatch } from "./scan.ts";
import { Snapshot, type SnapshotHost, SnapshotSource } from "./snapshot.ts";
import {
  checkOptions,
  nested,
  notAFunction,
  type TransactOptions,
  type TransactSyncOptions,
  unknownTable,
} from "./transact-options.ts";
import { type Stores, Transaction } from "./transaction.ts";

/** How often a short scan is tried without a snapshot. */
const SHORT_SCAN_ATTEMPTS = 3;

/** What `open` found. */
export interface Found {
  readonly identity?: Identity | undefined;
  readonly recovered?: Recovered | undefined;
}

export class Database implements Stores {
  readonly path: string;
  /** What `open` found on disk, if it had to rebuild the store's memory from there. */
  readonly recovered: Recovered | undefined;
  /** What is counted; for gateways. `stats()` has most of it in a handier form. */
  readonly metrics: DatabaseMetrics;
  readonly #executor: Executor;
  readonly #identity: Identity | undefined;
  readonly #control: Control;
  readonly #timeoutMs: number;
  /** For calls that hold the event loop while they wait. */
  readonly #syncTimeoutMs: number;
  readonly #maxSnapshotMs: number;
  /** By a table's ordinal. */
  readonly #stores: (Store<unknown, unknown> | undefined)[] = [];
  readonly #byOrdinal: (TableStore | undefined)[] = [];
  readonly #tables: TableStore[] = [];
  /** The index lists of the tables are those of this schema generation, or later ones. */
  #generation: number;
  readonly #engineTx: EngineTransaction;
  /** For reads outside of transactions that take more than one look. */
  readonly #reader: EngineTransaction;
  readonly #tx: Transaction;
  readonly #snapshotTx: Transaction;
  readonly #runner: TransactionRunner<LocalAsyncTransaction, LocalLimits>;
  readonly #upkeep: Upkeep;
  readonly #durability: DatabaseDurability;
  /** Whether transactions wait for the disk, unless they say otherwise. */
  readonly #waits: boolean;
  readonly #snapshots = new Set<Snapshot>();
  readonly #snapshotHost: SnapshotHost;
  #insideSync = false;
  #closed = false;
  #closing: Promise<void> | undefined;
  /** Whether looking for the context of a body is worth while: it costs more than a get. */
  #asyncSeen = false;

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
    this.#generation = this.#currentGeneration();
    for (const table of tables) this.#tables.push(openTable(executor, table));
    this.#placeStores();
    this.#reader = new EngineTransaction(executor);
    this.#engineTx = new EngineTransaction(executor);
    this.#tx = new Transaction(this, this.#engineTx);
    this.#snapshotTx = new SnapshotTransaction(this, this.#engineTx);
    this.metrics = new DatabaseMetrics(executor, path);
    const { transactions } = this.metrics;
    const host = new LocalTransactions(executor, this, transactions, this.#maintain);
    this.#runner = new TransactionRunner(
      this,
      (limits: LocalLimits) => new LocalExecution(host, limits),
    );
    this.#snapshotHost = {
      executor,
      reader: this.#reader,
      tableOf: (table) => this.tableOf(table),
      check: () => this.#check(),
      isClosed: () => this.#closed,
      closed: (snapshot) => this.#snapshots.delete(snapshot),
    };
    this.#upkeep = new Upkeep(executor);
    this.#durability = new DatabaseDurability(executor, settings, found.identity);
    this.#waits = this.#durability.mode === "sync";
  }

  /**
   * A row by its key: lock-free, never blocks a writer. It waits only for a commit that is just
   * being installed, and gives up with SITU_TIMEOUT if the committing process is stopped there: after
   * the `timeoutMs` of `open`, or half a second if that has none.
   */
  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Row | undefined;
  /** A row by the values of a unique index. */
  get<Row, Key, Changes, Ways, Name extends UniqueName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name>,
  ): Row | undefined;
  get<Row, Key>(table: Table<Row, Key>, key: Key, options?: unknown): Row | undefined {
    this.#check();
    if (options !== undefined) return this.#lookup(table, key, options);
    return this.storeOf(table).get(key);
  }

  /** The rows within bounds, in the order of the key or of an index. */
  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row> {
    this.#check();
    const plan = this.tableOf(table).plan<Row>("scan", options);
    return new Scan(() =>
      plan.limit <= SCAN_BATCH_ROWS
        ? new WholeBatch(
            () => this.#readWhole(plan),
            () => this.#check(),
          )
        : new CursorBatches(() => this.#scanSource(), plan),
    );
  }

  /** How many rows `scan` would give. */
  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number {
    this.#check();
    const plan = this.tableOf(table).plan<Row>("count", options);
    return countRows(this.#scanSource(), plan);
  }

  /**
   * The store as it is now, to be read for as long as the snapshot is open. Takes some
   * microseconds; waits for commits that are just being installed. Close it: `using snap = …`.
   */
  snapshot(): Snapshot {
    this.#check();
    const taken = EngineSnapshot.take(this.#executor, this.#maxSnapshotMs, this.#syncTimeoutMs);
    const snapshot = new Snapshot(this.#snapshotHost, taken);
    if (this.#snapshots.size >= MAX_SNAPSHOTS) this.#forgetReleased();
    this.#snapshots.add(snapshot);
    this.#upkeep.lookAfterVersions();
    return snapshot;
  }

  /** A copy of an object's bytes, lock-free. */
  readObject(pointer: Pointer): Uint8Array {
    this.#check();
    return readObject(this.#executor, pointer);
  }

  /**
   * Runs `body` as a strictly serializable transaction, to the end inside this turn. It is run
   * again when another transaction got in between, so it should do nothing but use `tx`. The event
   * loop does not turn meanwhile, so other processes are waited for only for half a second, unless
   * `timeoutMs` is given here or to `open`.
   */
  transactSync<T>(body: (tx: Transaction) => T, options?: TransactSyncOptions): T {
    this.#check();
    if (this.#insideSync || (this.#asyncSeen && isInsideTransaction(this))) throw nested();
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
    body: (tx: Transaction) => T,
    timeoutMs: number,
    diskMs: number,
    snapshotMs: number,
    waits: boolean,
  ): T {
    const tx = snapshotMs > 0 ? this.#snapshotTx : this.#tx;
    const executor = this.#executor;
    const engineTx = this.#engineTx;
    let result: T;
    this.#insideSync = true;
    try {
      // The body's own work is no waiting for others.
      tx.begin(diskMs);
      result = runSync(executor, engineTx, timeoutMs, body, tx, snapshotMs, waits, diskMs);
    } finally {
      this.#insideSync = false;
      tx.end(ENDED);
      this.#maintain();
    }
    if (waits) executor.durability.awaitSync(engineTx.epoch, diskMs);
    return result;
  }

  /**
   * The same for a body that awaits; other transactions of this thread may run in between. The event
   * loop keeps turning, also while this waits for others: up to `timeoutMs`, by default 5 s.
   */
  async transact<T>(
    body: (tx: LocalTransaction) => T | PromiseLike<T>,
    options: TransactOptions = {},
  ): Promise<Awaited<T>> {
    const limits = this.#limitsOf("transact", options);
    if (typeof body !== "function") throw notAFunction("transact", body);
    return await this.#runner.track(this.#runner.run(body, limits));
  }

  /**
   * Begins a transaction that its caller ends with `commit` or `rollback`: see docs/ISOLATION.md.
   * Prefer `transact`, which runs its callback again when it meets another transaction.
   */
  async begin(options: TransactOptions = {}): Promise<InteractiveTransaction<LocalTransaction>> {
    return handleOf(await this.#runner.begin(this.#limitsOf("begin", options)), LOCAL_OPERATIONS);
  }

  #limitsOf(call: "transact" | "begin", options: TransactOptions): LocalLimits {
    this.#check();
    this.#asyncSeen = true;
    if (this.#insideSync || isInsideTransaction(this)) throw nested();
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

  /** Waits until all that was committed before, by anyone, is on disk. */
  async durable(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#check();
    refuseUnknownOptions("durable", options, ["timeoutMs"]);
    await this.#runner.track(this.#durability.durable(this.#timeoutOf(options)));
  }

  /** Has a checkpoint taken now, and waits for it. The log before it is then not needed. */
  async checkpoint(): Promise<void> {
    this.#check();
    await this.#runner.track(this.#durability.checkpoint(() => this.#closed));
  }

  /** Looks for faults: all structures, and indexes against rows. Others go on meanwhile. */
  async verify(options: VerifyOptions = {}): Promise<Verification> {
    this.#check();
    refuseUnknownOptions("verify", options, ["signal", "onProgress", "mostProblems"]);
    return this.#runner.track(verifyTables(this.#executor, options));
  }

  /** What is in a table, by its name: rows, the shape of its structures, memory. */
  async inspect(table: string): Promise<InspectedTable> {
    this.#check();
    return this.#runner.track(inspectTable(this.#executor, table));
  }

  /** Copies the store, with all that was committed before, to an empty folder: see `restore`. */
  async backup(folder: string, options: FileToolOptions = {}): Promise<Copied> {
    this.#check();
    refuseUnknownOptions("backup", options, ["signal", "onProgress"]);
    const target = folderOf("the folder of the backup", folder);
    const copying = coded(target, () => this.#durability.backup(this.path, target, options));
    return this.#runner.track(copying);
  }

  stats(): Stats {
    this.#check();
    return statsOf(this.#executor, this.#durability);
  }

  /** Leaves the store, after the transactions that run; the store itself stays. */
  async close(): Promise<void> {
    if (this.#insideSync || isInsideTransaction(this)) throw nested();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#closed = true;
    this.#upkeep.stop();
    for (const snapshot of this.#snapshots) snapshot.release();
    await this.#runner.close(this.#closedError());
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

  /** For gateways, which run transactions of their own. */
  get executor(): Executor {
    this.#check();
    return this.#executor;
  }

  /** For transactions: the store behind a table. */
  storeOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    const store = this.#stores[table?.ordinal];
    if (store === undefined) throw unknownTable(table);
    return store as Store<Row, Key>;
  }

  /**
   * The same with all indexes that the store has by now. A builder of indexes announces a change
   * by the generation and then waits for the transactions that had begun: one that begins later,
   * and looks here, knows of it.
   */
  currentStoreOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    if (this.#currentGeneration() !== this.#generation) this.#refresh();
    return this.storeOf(table);
  }

  /** For transactions and snapshots: the table with its indexes. */
  tableOf(table: Table): TableStore {
    const found = this.#byOrdinal[table?.ordinal];
    if (found === undefined) throw unknownTable(table);
    return found;
  }

  /** For `open`: builds the indexes that are declared here and not ready in the store. */
  async buildIndexes(): Promise<void> {
    const unfinished = this.#tables.filter(({ isComplete }) => !isComplete);
    for (const table of unfinished) {
      await buildIndexes({
        executor: this.#executor,
        table,
        timeoutMs: this.#timeoutMs,
        source: () => this.#buildSource(),
      });
    }
    if (unfinished.length > 0) this.#refresh();
  }

  #currentGeneration(): number {
    return loadAcquire(this.#control.i32, SCHEMA_GENERATION);
  }

  #refresh(): void {
    const generation = this.#currentGeneration();
    refreshTables(this.#executor, this.#tables);
    this.#placeStores();
    this.#generation = generation;
  }

  #placeStores(): void {
    for (const each of this.#tables) {
      const { ordinal } = each.table;
      while (this.#stores.length <= ordinal) {
        this.#stores.push(undefined);
        this.#byOrdinal.push(undefined);
      }
      this.#stores[ordinal] = each.store;
      this.#byOrdinal[ordinal] = each;
    }
  }

  #lookup<Row, Key>(table: Table<Row, Key>, given: unknown, options: unknown): Row | undefined {
    const store = this.tableOf(table);
    const index = store.indexOf(options);
    const key = ownKey(given);
    const read = (tx: EngineTransaction) => store.lookup(tx, key, index);
    return runReadOnly(this.#executor, this.#reader, read, undefined) as Row | undefined;
  }

  /** Snapshots that nobody closes, but that the store has released by now. */
  #forgetReleased(): void {
    for (const snapshot of this.#snapshots) {
      if (snapshot.isReleased) this.#snapshots.delete(snapshot);
    }
  }

  /** What a scan outside of transactions reads through: a snapshot of its own. */
  #scanSource(): ScanSource {
    this.#check();
    const snapshot = EngineSnapshot.take(this.#executor, this.#maxSnapshotMs, this.#syncTimeoutMs);
    this.#upkeep.lookAfterVersions();
    return new SnapshotSource(this.#snapshotHost, snapshot);
  }

  /** A short scan is one read-only transaction; only where others get in between, a snapshot. */
  #readWhole<Row>(plan: ScanPlan<Row>): Row[] {
    this.#check();
    let rows: Row[] = [];
    const done = tryReadOnly(this.#executor, this.#reader, SHORT_SCAN_ATTEMPTS, (tx) => {
      rows = readWhole(tx, plan);
    });
    if (done) return rows;
    const source = this.#scanSource();
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
        const source = this.#scanSource();
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
    if (!this.#closed) return;
    throw this.#closedError();
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
      for (let i = 0; i < this.#tables.length; i++) this.#tables[i].store.maintain();
    } catch (error) {
      if (error instanceof AssertionError) throw error;
    }
  };
}
