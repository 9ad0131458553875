/**
 * The transactions of `transact` and `begin` in local memory. All data is at hand, so an operation is
 * carried out when it is issued, and its promise is resolved already when its caller gets it.
 *
 * When a turn of the event loop is due (runtime/event-loop.ts), operations wait in a queue, and are carried
 * out after it. What is issued meanwhile joins the end of the queue, so the order stays. The same is done
 * with operations that are issued by code which another operation runs, such as the getters of a row.
 */

import type { Executor } from "../../engine/executor.ts";
import { isSignal, PAGE_MISS } from "../../engine/signals.ts";
import type { Pointer } from "../../memory/pointer.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { DEVICE_MISS_ROUNDS } from "../../runtime/limits.ts";
import type { Plan } from "../../tables/bulk/plan.ts";
import { aggregateProgram, deleteProgram, updateProgram } from "../../tables/bulk/requests.ts";
import type { AggregateRun, ChangeRun, Deleted, Updated } from "../../tables/bulk/runs.ts";
import type { Program } from "../../tables/expressions/program.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../../tables/indexes/read-options.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import type { LocalTransaction } from "../async-transaction.ts";
import { listOf } from "../row-errors.ts";
import { resultOf } from "../run/bulk-run.ts";
import { OperationQueue } from "../run/operation-queue.ts";
import { AsyncRowScan, queuedRows, type RowCount } from "../run/row-scan.ts";
import type { AsyncScan } from "../scan.ts";
import type { AllocOptions } from "../transaction.ts";
import type { SyncTransaction } from "./sync-transaction.ts";

/** Carries out an operation. False if a turn of the event loop is due before it can end: then again. */
type Queued = () => boolean;

/** What an operation returns that is to be called again, after a turn of the event loop. */
const NOT_DONE = Symbol("not done");
/** Keys of `getMany` that are read at a time. */
const KEYS_AT_ONCE = 64;
/** The clock is looked at when a transaction begins, and then after so many operations. */
const OPERATIONS_PER_LOOK = 8;

/** What an operation does with its arguments. */
type Operation<A, B, C, T> = (tx: SyncTransaction, a: A, b: B, c: C) => T | typeof NOT_DONE;

// Those that are used most.
const GET = (tx: SyncTransaction, table: Table, key: unknown, options: unknown): unknown =>
  tx.get(table, key as never, options as never);
const HAS = (tx: SyncTransaction, table: Table, key: unknown): boolean => tx.has(table, key);
const INSERT = (tx: SyncTransaction, table: Table, row: unknown): unknown =>
  tx.insert(table, row as never);
const PUT = (tx: SyncTransaction, table: Table, row: unknown): void => tx.put(table, row as never);
const UPDATE = (tx: SyncTransaction, table: Table, key: unknown, changes: unknown): void =>
  tx.update(table, key, changes as never);
const DELETE = (tx: SyncTransaction, table: Table, key: unknown): boolean => tx.delete(table, key);

/** The others. */
function runStep<T>(_tx: SyncTransaction, run: () => T | typeof NOT_DONE): T | typeof NOT_DONE {
  return run();
}

export class LocalAsyncTransaction extends OperationQueue<Queued> implements LocalTransaction {
  readonly #tx: SyncTransaction;
  readonly #executor: Executor;
  /** The next operation of the queue that is to be carried out. */
  #next = 0;
  /** Whether that one waits for pages of the device, and how often it has done so. */
  #isMissing = false;
  #misses = 0;
  /** Operations since the last look at the clock. */
  #unlooked = 0;

  constructor(tx: SyncTransaction, executor: Executor) {
    super();
    this.#tx = tx;
    this.#executor = executor;
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined>;
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Promise<Row | undefined>;
  get<Row, Key>(table: Table<Row, Key>, key: Key, options?: unknown): Promise<Row | undefined> {
    return this.#issue(GET, table, key, options) as Promise<Row | undefined>;
  }

  getForUpdate<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return this.#issue(GET, table, key, undefined) as Promise<Row | undefined>;
  }

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    const scan = this.#tx.scan(table, options);
    return new AsyncRowScan(() => queuedRows(scan, (run) => this.#issueStep(run)));
  }

  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    let counting: RowCount | undefined;
    return this.#issueStep(() => {
      counting ??= this.#tx.counting(table, options);
      while (counting.step()) if (this.#hasStepped()) return NOT_DONE;
      return counting.rows;
    });
  }

  select(table: Table, options?: unknown): AsyncScan<never> {
    const scan = this.#tx.select(table, options);
    return new AsyncRowScan(() => queuedRows(scan, (run) => this.#enqueue(run)));
  }

  aggregate(table: Table, options: unknown): Promise<never> {
    return this.#program(table, () => aggregateProgram(table, options)) as Promise<never>;
  }

  updateWhere(table: Table, options: unknown): Promise<Updated> {
    return this.#program(table, () => updateProgram(table, options)) as Promise<Updated>;
  }

  deleteWhere(table: Table, options: unknown): Promise<Deleted> {
    return this.#program(table, () => deleteProgram(table, options)) as Promise<Deleted>;
  }

  explain(table: Table, options?: unknown): Promise<Plan> {
    return this.#enqueue(() => this.#tx.explain(table, options));
  }

  /** For the database, which has made the program before the transaction began. */
  runProgram(table: Table, program: Program): Promise<unknown> {
    return this.#program(table, () => program);
  }

  /** The caller's functions are called at once, and the steps are taken when their turn comes. */
  #program(table: Table, make: () => Program): Promise<unknown> {
    let program: Program;
    try {
      program = make();
    } catch (error) {
      return this.#enqueue(() => {
        throw error;
      });
    }
    let run: AggregateRun | ChangeRun | undefined;
    return this.#enqueue<unknown>(() => {
      run ??= this.#tx.running(table, program);
      while (run.step()) if (this.#hasStepped()) return NOT_DONE;
      return resultOf(program, run);
    });
  }

  getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    const wanted = listOf(table, keys);
    if (wanted.length <= KEYS_AT_ONCE)
      return this.#issueStep(() => this.#tx.getMany(table, wanted));
    const rows: (Row | undefined)[] = [];
    return this.#issueStep(() => {
      while (rows.length < wanted.length) {
        const some = wanted.slice(rows.length, rows.length + KEYS_AT_ONCE);
        for (const row of this.#tx.getMany(table, some)) rows.push(row);
        if (isTurnDue()) return NOT_DONE;
      }
      return rows;
    });
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#issue(HAS, table, key, undefined);
  }

  insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): Promise<InsertedKey<Writes>> {
    return this.#issue(INSERT, table, row, undefined) as Promise<InsertedKey<Writes>>;
  }

  put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): Promise<void> {
    return this.#issue(PUT, table, row, undefined);
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void> {
    return this.#issue(UPDATE, table, key, changes);
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#issue(DELETE, table, key, undefined);
  }

  alloc(size: number, options: AllocOptions = {}): Promise<Pointer> {
    return this.#issueStep(() => this.#tx.alloc(size, options));
  }

  allocArray(size: number, count: number, options: AllocOptions = {}): Promise<Pointer> {
    return this.#issueStep(() => this.#tx.allocArray(size, count, options));
  }

  read(pointer: Pointer): Promise<Uint8Array> {
    return this.#issueStep(() => this.#tx.read(pointer));
  }

  write(pointer: Pointer, data: Uint8Array): Promise<void> {
    return this.#issueStep(() => this.#tx.write(pointer, data));
  }

  free(pointer: Pointer): Promise<void> {
    return this.#issueStep(() => this.#tx.free(pointer));
  }

  /** For graphs. */
  operate<T>(run: (tx: SyncTransaction) => T): Promise<T> {
    return this.#issueStep(() => run(this.#tx));
  }

  /** All that has been issued, in as many turns of the event loop as that takes. */
  settle(): Promise<void> | undefined {
    return this.#flush() ? undefined : this.#drain();
  }

  protected flushAtEndOfTick(): void {
    if (!this.#flush()) void this.#drain();
  }

  /** False if a turn of the event loop is due before all is done. */
  #flush(): boolean {
    if (this.queue.length === 0) return true;
    if (isTurnDue()) return false;
    return this.#executor.hurry(LocalAsyncTransaction.#carryOut, this);
  }

  async #drain(): Promise<void> {
    while (!this.#flush()) {
      if (this.#isMissing) {
        this.#isMissing = false;
        await this.#executor.pageLoads?.load();
      } else await nextTurn();
    }
  }

  static #carryOut(tx: LocalAsyncTransaction): boolean {
    const { queue } = tx;
    for (let done = 1; ; done++) {
      if (!queue[tx.#next]()) return false;
      if (++tx.#next === queue.length) break;
      if (done % OPERATIONS_PER_LOOK === 0 && isTurnDue()) return false;
    }
    tx.queue = [];
    tx.#next = 0;
    return true;
  }

  /** An operation that may need pages of the device: when they are there, it is carried out again. */
  #runOnPages<T>(run: () => T | typeof NOT_DONE): T | typeof NOT_DONE {
    const loads = this.#executor.pageLoads!;
    // Where pages keep leaving before they are used, it waits for the disk itself.
    loads.beginOperation(this.#misses < DEVICE_MISS_ROUNDS, this.#tx.own);
    this.#isMissing = false;
    try {
      const result = run();
      if (result !== NOT_DONE) this.#misses = 0;
      return result;
    } catch (error) {
      if (error !== PAGE_MISS) throw error;
      this.#isMissing = true;
      this.#misses++;
      return NOT_DONE;
    } finally {
      loads.endOperation();
    }
  }

  /**
   * After a step of many, from whose end the operation goes on if the next one is cut short: that one may be
   * again, whatever this one has changed. Says whether a turn of the event loop is due.
   */
  #hasStepped(): boolean {
    this.#misses = 0;
    this.#executor.pageLoads?.beginOperation(true, this.#tx.own);
    return isTurnDue();
  }

  /** Carries out an operation now, if it need not wait. Its arguments are passed on: no closure is made. */
  #issue<A, B, C, T>(operation: Operation<A, B, C, T>, a: A, b: B, c: C): Promise<T> {
    const executor = this.#executor;
    // With pages of the device, each operation is one that may be carried out again.
    const mayMiss = executor.pageLoads !== undefined;
    if (mayMiss || this.queue.length > 0 || executor.isHurried || this.#isTurnDue()) {
      return this.#enqueue(() => operation(this.#tx, a, b, c));
    }
    executor.isHurried = true;
    try {
      const result = operation(this.#tx, a, b, c);
      if (result !== NOT_DONE) return Promise.resolve(result as T);
    } catch (error) {
      this.#cutShortBy(error);
      return this.failed(error);
    } finally {
      executor.isHurried = false;
    }
    return this.#enqueue(() => operation(this.#tx, a, b, c));
  }

  #issueStep<T>(run: () => T | typeof NOT_DONE): Promise<T> {
    return this.#issue(runStep<T>, run, undefined, undefined);
  }

  #isTurnDue(): boolean {
    if (++this.#unlooked < OPERATIONS_PER_LOOK) return false;
    this.#unlooked = 0;
    return isTurnDue();
  }

  #enqueue<T>(run: () => T | typeof NOT_DONE): Promise<T> {
    return this.enqueue<T>((resolve, fail) => () => {
      try {
        const result = this.#executor.pageLoads === undefined ? run() : this.#runOnPages(run);
        if (result === NOT_DONE) return false;
        resolve(result as T);
      } catch (error) {
        this.#cutShortBy(error);
        fail(error);
      }
      return true;
    });
  }

  /** Cut short where it would have had to wait: the attempt is over, even if the callback goes on. */
  #cutShortBy(error: unknown): void {
    if (isSignal(error)) this.#tx.cutShort();
  }
}
