/** An open store. Start reading here: everything a user does begins with one of these methods. */

import { clearInterval, setInterval } from "node:timers";
import type { Executor } from "../engine/executor.ts";
import { readObject } from "../engine/objects.ts";
import { runSync } from "../engine/run.ts";
import { COUNTERS, type Counter, counterSum } from "../engine/slot.ts";
import { Transaction as EngineTransaction } from "../engine/transaction.ts";
import type { Pointer } from "../memory/pointer.ts";
import { AssertionError } from "../runtime/assert.ts";
import { type Holder, SituError } from "../runtime/errors.ts";
import { MAX_TIMEOUT_MS, SWEEP_MS, UNIT_BYTES } from "../runtime/limits.ts";
import type { Store } from "../stores/store.ts";
import type { AsyncTransaction } from "./async-transaction.ts";
import { openTable, readCatalogue } from "./catalogue.ts";
import { AsyncRunner, isInsideTransaction } from "./run-async.ts";
import type { StoredSchema } from "./schema.ts";
import type { Table } from "./table.ts";
import { ENDED, type Stores, Transaction } from "./transaction.ts";

/** Under this part of free blocks, the background gives empty ones back for other sizes. */
const LOW_MEMORY = 0.1;

export interface TransactSyncOptions {
  /** How long to retry and to wait for others before giving up. */
  readonly timeoutMs?: number;
}

export interface TransactOptions extends TransactSyncOptions {
  readonly signal?: AbortSignal;
}

export interface Stats {
  /** Who has the store open. */
  readonly executors: readonly Holder[];
  readonly epoch: number;
  readonly memory: {
    readonly limitBytes: number;
    /** Memory that the system has given to the store so far. */
    readonly reservedBytes: number;
    /** Of that, what is not handed to any executor. */
    readonly freeBytes: number;
  };
  readonly tables: readonly StoredSchema[];
  /** Summed over all executors that the store ever had. */
  readonly counters: Readonly<Record<Counter, number>>;
}

export class Database implements Stores {
  readonly path: string;
  readonly #executor: Executor;
  readonly #timeoutMs: number;
  /** By a table's ordinal. */
  readonly #stores: (Store<unknown, unknown> | undefined)[] = [];
  readonly #opened: Store<unknown, unknown>[] = [];
  readonly #engineTx: EngineTransaction;
  readonly #tx: Transaction;
  readonly #async: AsyncRunner;
  readonly #sweeper: NodeJS.Timeout;
  readonly #running = new Set<Promise<unknown>>();
  #insideSync = false;
  #closed = false;
  #closing: Promise<void> | undefined;
  /** Whether looking for the context of a body is worth while: it costs more than a get. */
  #asyncSeen = false;

  /** Use `open`. */
  constructor(path: string, executor: Executor, tables: readonly Table[], timeoutMs: number) {
    this.path = path;
    this.#executor = executor;
    this.#timeoutMs = timeoutMs;
    executor.timeoutMs = timeoutMs;
    for (const table of tables) this.#openTable(table);
    this.#engineTx = new EngineTransaction(executor);
    this.#tx = new Transaction(this, this.#engineTx);
    this.#async = new AsyncRunner(executor, this);
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  /**
   * A row by its key: lock-free, never blocks a writer. It waits only for a commit that is just
   * being installed, and gives up with SITU_TIMEOUT if the committing process is stopped there.
   */
  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Row | undefined {
    this.#check();
    return this.storeOf(table).get(key);
  }

  /** A copy of an object's bytes, lock-free. */
  readObject(pointer: Pointer): Uint8Array {
    this.#check();
    return readObject(this.#executor, pointer);
  }

  /**
   * Runs `body` as a strictly serializable transaction, to the end inside this turn. It is run
   * again when another transaction got in between, so it should do nothing but use `tx`.
   */
  transactSync<T>(body: (tx: Transaction) => T, options?: TransactSyncOptions): T {
    this.#check();
    if (this.#insideSync || (this.#asyncSeen && isInsideTransaction(this))) throw nested();
    if (typeof body !== "function") throw notAFunction("transactSync", body);
    let timeoutMs = this.#timeoutMs;
    if (options !== undefined) {
      checkOptions("transactSync", options, SYNC_OPTIONS);
      timeoutMs = this.#timeoutOf(options);
    }
    // Only asynchronous transactions can be under way here: one whose stack overflowed is not.
    if (this.#running.size === 0) this.#executor.forgetRunning();
    this.#insideSync = true;
    try {
      this.#tx.begin(timeoutMs);
      return runSync(this.#executor, this.#engineTx, timeoutMs, body, this.#tx);
    } finally {
      this.#insideSync = false;
      this.#tx.end(ENDED);
      this.#maintain();
    }
  }

  /** The same for a body that awaits; other transactions of this thread may run in between. */
  async transact<T>(
    body: (tx: AsyncTransaction) => T | PromiseLike<T>,
    options: TransactOptions = {},
  ): Promise<Awaited<T>> {
    this.#check();
    this.#asyncSeen = true;
    if (this.#insideSync || isInsideTransaction(this)) throw nested();
    if (typeof body !== "function") throw notAFunction("transact", body);
    checkOptions("transact", options, ASYNC_OPTIONS);
    const timeoutMs = this.#timeoutOf(options);
    const running = this.#async.run<T>(body, { timeoutMs, signal: options.signal });
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
      if (!this.#closed) this.#maintain();
    }
  }

  stats(): Stats {
    this.#check();
    const { control } = this.#executor.memory;
    const { blocks } = this.#executor.slabs;
    this.#executor.sweep();
    const counters = COUNTERS.map((name) => [name, counterSum(control, name)]);
    return {
      executors: this.#executor.holders(),
      epoch: this.#executor.epochs.current(),
      memory: {
        limitBytes: blocks.limit * UNIT_BYTES,
        reservedBytes: blocks.count * UNIT_BYTES,
        freeBytes: blocks.freeUnits() * UNIT_BYTES,
      },
      tables: readCatalogue(this.#executor),
      counters: Object.fromEntries(counters) as Record<Counter, number>,
    };
  }

  /** Leaves the store, after the transactions that run; the store itself stays. */
  async close(): Promise<void> {
    if (this.#insideSync || isInsideTransaction(this)) throw nested();
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    await Promise.allSettled(this.#running);
    this.#executor.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** For transactions: the store behind a table. */
  storeOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    const store = this.#stores[table?.ordinal];
    if (store === undefined) throw unknownTable(table);
    return store as Store<Row, Key>;
  }

  #openTable(table: Table): void {
    const store = openTable(this.#executor, table);
    while (this.#stores.length <= table.ordinal) this.#stores.push(undefined);
    this.#stores[table.ordinal] = store;
    this.#opened.push(store);
  }

  #check(): void {
    if (!this.#closed) return;
    throw new SituError("SITU_CLOSED", `the database at ${this.path} is closed: open it again`);
  }

  #timeoutOf(options: TransactSyncOptions): number {
    const { timeoutMs = this.#timeoutMs } = options;
    if (typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS) {
      return timeoutMs;
    }
    throw new SituError(
      "SITU_CONFIG",
      `timeoutMs is a number up to ${MAX_TIMEOUT_MS}, not ${String(timeoutMs)}`,
    );
  }

  /** Work that can wait. Its failure is not the failure of the transaction that came before it. */
  #maintain(): void {
    try {
      for (let i = 0; i < this.#opened.length; i++) this.#opened[i].maintain();
    } catch (error) {
      if (error instanceof AssertionError) throw error;
    }
  }

  /** The same for the timer, where nobody could catch it: the next round tries again. */
  #sweep(): void {
    try {
      this.#executor.sweep();
      const { blocks } = this.#executor.slabs;
      const free = blocks.limit - blocks.count + blocks.freeUnits();
      if (free < blocks.limit * LOW_MEMORY) this.#executor.slabs.releaseEmptyBlocks();
    } catch (error) {
      if (error instanceof AssertionError) throw error;
    }
  }
}

const SYNC_OPTIONS = ["timeoutMs"];
const ASYNC_OPTIONS = ["timeoutMs", "signal"];

function checkOptions(call: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) {
    throw new SituError(
      "SITU_CONFIG",
      `${call}: the options are an object, such as { timeoutMs: 500 }`,
    );
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const names = known.join(" and ");
    throw new SituError("SITU_CONFIG", `${call} has no option ${name}; it has ${names}`);
  }
  const { signal } = options as TransactOptions;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new SituError(
      "SITU_CONFIG",
      `${call}: signal is an AbortSignal, as in controller.signal`,
    );
  }
}

function notAFunction(call: string, body: unknown): SituError {
  return new SituError("SITU_TYPE", `${call} takes a function that gets tx, not ${typeof body}`);
}

function nested(): SituError {
  return new SituError(
    "SITU_NESTED",
    "a transaction is running here already: use its tx, transactions do not nest",
  );
}

function unknownTable(table: Table): SituError {
  const name = table?.name === undefined ? String(table) : table.name;
  return new SituError(
    "SITU_UNKNOWN_TABLE",
    `table ${name} is not open here: pass it to open({ tables: [...] })`,
  );
}
