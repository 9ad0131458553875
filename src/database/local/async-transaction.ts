/**
 * The transactions of `transact` and `begin` in local memory: all data is at hand, and a batch of
 * operations is a loop.
 *
 * When a turn of the event loop is due (runtime/event-loop.ts), what is left of the queue is carried out
 * after it. Operations that are issued meanwhile join the end of the queue, so the order stays.
 */

import type { Executor } from "../../engine/executor.ts";
import { isSignal, PAGE_MISS } from "../../engine/signals.ts";
import type { Pointer } from "../../memory/pointer.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { DEVICE_MISS_ROUNDS } from "../../runtime/limits.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../../tables/indexes/options.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import type { LocalTransaction } from "../async-transaction.ts";
import { listOf } from "../row-errors.ts";
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
/** The clock is looked at before each batch, and in it after so many operations. */
const OPERATIONS_PER_LOOK = 4;

export class LocalAsyncTransaction extends OperationQueue<Queued> implements LocalTransaction {
  readonly #tx: SyncTransaction;
  readonly #executor: Executor;
  /** The next operation of the queue that is to be carried out. */
  #next = 0;
  /** Whether that one waits for pages of the device, and how often it has done so. */
  #isMissing = false;
  #misses = 0;

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
    return this.#enqueue(() => this.#tx.get(table, key as never, options as never));
  }

  getForUpdate<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return this.#enqueue(() => this.#tx.get(table, key));
  }

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    const scan = this.#tx.scan(table, options);
    return new AsyncRowScan(() => queuedRows(scan, (run) => this.#enqueue(run)));
  }

  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    let counting: RowCount | undefined;
    return this.#enqueue(() => {
      counting ??= this.#tx.counting(table, options);
      while (counting.step()) if (isTurnDue()) return NOT_DONE;
      return counting.rows;
    });
  }

  getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    const wanted = listOf(table, keys);
    if (wanted.length <= KEYS_AT_ONCE) return this.#enqueue(() => this.#tx.getMany(table, wanted));
    const rows: (Row | undefined)[] = [];
    return this.#enqueue(() => {
      while (rows.length < wanted.length) {
        const some = wanted.slice(rows.length, rows.length + KEYS_AT_ONCE);
        for (const row of this.#tx.getMany(table, some)) rows.push(row);
        if (isTurnDue()) return NOT_DONE;
      }
      return rows;
    });
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#enqueue(() => this.#tx.has(table, key));
  }

  insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): Promise<InsertedKey<Writes>> {
    return this.#enqueue(() => this.#tx.insert(table, row));
  }

  put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): Promise<void> {
    return this.#enqueue(() => this.#tx.put(table, row));
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): Promise<void> {
    return this.#enqueue(() => this.#tx.update(table, key, changes));
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#enqueue(() => this.#tx.delete(table, key));
  }

  alloc(size: number, options: AllocOptions = {}): Promise<Pointer> {
    return this.#enqueue(() => this.#tx.alloc(size, options));
  }

  allocArray(size: number, count: number, options: AllocOptions = {}): Promise<Pointer> {
    return this.#enqueue(() => this.#tx.allocArray(size, count, options));
  }

  read(pointer: Pointer): Promise<Uint8Array> {
    return this.#enqueue(() => this.#tx.read(pointer));
  }

  write(pointer: Pointer, data: Uint8Array): Promise<void> {
    return this.#enqueue(() => this.#tx.write(pointer, data));
  }

  free(pointer: Pointer): Promise<void> {
    return this.#enqueue(() => this.#tx.free(pointer));
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
    tx.batches++;
    return true;
  }

  /** An operation that may need pages of the device: when they are there, it is carried out again. */
  #runOnPages<T>(run: () => T | typeof NOT_DONE): T | typeof NOT_DONE {
    const loads = this.#executor.pageLoads!;
    // Where pages keep leaving before they are used, it waits for the disk itself.
    loads.beginOperation(this.#misses < DEVICE_MISS_ROUNDS, this.#tx.writes);
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

  #enqueue<T>(run: () => T | typeof NOT_DONE): Promise<T> {
    return this.enqueue<T>((resolve, fail) => () => {
      try {
        const result = this.#executor.pageLoads === undefined ? run() : this.#runOnPages(run);
        if (result === NOT_DONE) return false;
        resolve(result as T);
      } catch (error) {
        // Cut short where it would have had to wait: the attempt is over, even if the callback goes on.
        if (isSignal(error)) this.#tx.cutShort();
        fail(error);
      }
      return true;
    });
  }
}
