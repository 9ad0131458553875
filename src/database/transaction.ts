/** What the body of `transactSync` gets: rows by key, and FaRM's objects. */

import {
  allocateArray,
  allocateObject,
  freeInTransaction,
  readInTransaction,
  writeInTransaction,
} from "../engine/objects.ts";
import { CONFLICT } from "../engine/signals.ts";
import type { Transaction as EngineTransaction } from "../engine/transaction.ts";
import type { Pointer } from "../memory/pointer.ts";
import { nowMs } from "../runtime/clock.ts";
import { SituError, TimeoutError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { show, showKey } from "../runtime/show.ts";
import type { Store } from "../stores/store.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  ScanOptions,
  UniqueName,
} from "../tables/indexes/options.ts";
import type { TableStore } from "../tables/indexes/table-store.ts";
import type { ScanSource } from "../tables/scan-plan.ts";
import type { Table } from "../tables/table.ts";
import { ENDED } from "./run/ended.ts";
import { CursorBatches, countRows, RowCount, Scan } from "./scan.ts";

/** How often a body's operations look at the clock. */
const CLOCK_MASK = 0xff;

export interface AllocOptions {
  /** An object that the new one should lie close to. */
  readonly near?: Pointer;
}

const ALLOC = ["near"] as const;

function nearOf(call: string, options: AllocOptions): Pointer | undefined {
  refuseUnknownOptions(call, options, ALLOC);
  return options.near;
}

/** What a transaction needs of its database. */
export interface Stores {
  storeOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key>;
  /** The same for one who will change rows: with all indexes that the store has by now. */
  currentStoreOf<Row, Key>(table: Table<Row, Key>): Store<Row, Key>;
  tableOf(table: Table): TableStore;
}

export class Transaction {
  readonly #stores: Stores;
  readonly #tx: EngineTransaction;
  #operations = 0;
  #timeoutMs = 0;
  #deadlineMs = 0;
  #ended: SituError | undefined;

  constructor(stores: Stores, tx: EngineTransaction) {
    this.#stores = stores;
    this.#tx = tx;
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Row | undefined;
  /** A row by the values of a unique index. */
  get<Row, Key, Changes, Ways, Name extends UniqueName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name>,
  ): Row | undefined;
  get<Row, Key>(table: Table<Row, Key>, key: Key, options?: unknown): Row | undefined {
    if (options !== undefined) return this.#lookup(table, key, options);
    const store = this.#enter(table);
    const from = this.#tx.set.end;
    const row = store.read(this.#tx, key);
    this.#trace(table, key, from);
    return row;
  }

  getMany<Row, Key>(table: Table<Row, Key>, keys: Iterable<NoInfer<Key>>): (Row | undefined)[] {
    const store = this.#enter(table);
    const wanted = Array.isArray(keys) ? (keys as readonly Key[]) : listOf(table, keys);
    // Once: what the keys run, if they have getters, may change the list.
    const count = wanted.length;
    // All are asked for before the first is waited for: memory is slow, but answers side by side.
    for (let i = 0; i < count; i++) store.touch(this.#tx, wanted[i]);
    const rows: (Row | undefined)[] = [];
    for (let i = 0; i < count; i++) rows.push(this.get(table, wanted[i] as NoInfer<Key>));
    return rows;
  }

  /**
   * The rows within bounds, in the order of the key or of an index. What is read is protected
   * against phantoms: no other transaction can add a row to it or take one away unnoticed.
   */
  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): Scan<Row> {
    this.#check();
    const plan = this.#stores.tableOf(table).plan<Row>("scan", options);
    const source = new TransactionSource(this, this.#tx.lives, table);
    return new Scan(() => new CursorBatches(() => source, plan));
  }

  /** How many rows `scan` would give. */
  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): number {
    this.#check();
    const plan = this.#stores.tableOf(table).plan<Row>("count", options);
    return countRows(new TransactionSource(this, this.#tx.lives, table), plan);
  }

  /** For asynchronous bodies: the same step by step. */
  counting(table: Table, options: unknown): RowCount {
    this.#check();
    const plan = this.#stores.tableOf(table).plan<unknown>("count", options);
    return new RowCount(new TransactionSource(this, this.#tx.lives, table), plan);
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    const store = this.#enter(table);
    const from = this.#tx.set.end;
    const found = store.has(this.#tx, key);
    this.#trace(table, key, from);
    return found;
  }

  /** Adds a row; fails with SITU_EXISTS if its key is taken. */
  insert<Row, Key>(table: Table<Row, Key>, row: NoInfer<Row>): void {
    const store = this.#enterToWrite(table);
    const from = this.#tx.set.end;
    const added = store.insert(this.#tx, row);
    this.#trace(table, undefined, from, row);
    if (!added) throw exists(table, row);
  }

  /** Adds a row, or replaces the one with its key. */
  put<Row, Key>(table: Table<Row, Key>, row: NoInfer<Row>): void {
    const store = this.#enterToWrite(table);
    const from = this.#tx.set.end;
    store.put(this.#tx, row);
    this.#trace(table, undefined, from, row);
  }

  /** Changes fields of a row; fails with SITU_MISSING if there is none. */
  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): void {
    const store = this.#enterToWrite(table);
    const from = this.#tx.set.end;
    const found = store.update(this.#tx, key, changes as Partial<Row>);
    this.#trace(table, key, from);
    if (!found) throw missing(table, key);
  }

  /** Removes a row; says whether there was one. */
  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    const store = this.#enterToWrite(table);
    const from = this.#tx.set.end;
    const removed = store.remove(this.#tx, key);
    this.#trace(table, key, from);
    return removed;
  }

  /** Allocates an object of `size` zeroed bytes, close to another one if that is possible. */
  alloc(size: number, options: AllocOptions = {}): Pointer {
    this.#check();
    const near = nearOf("alloc", options);
    this.#tx.subject = `an object of ${show(size)} bytes`;
    return allocateObject(this.#tx, size, near);
  }

  /** Allocates `count` objects of `size` bytes side by side; `pointer.at(i)` leads to each. */
  allocArray(size: number, count: number, options: AllocOptions = {}): Pointer {
    this.#check();
    const near = nearOf("allocArray", options);
    this.#tx.subject = `an array of ${show(count)} objects of ${show(size)} bytes`;
    return allocateArray(this.#tx, size, count, near);
  }

  /** A copy of the object's bytes; fails with SITU_FREED if it was freed. */
  read(pointer: Pointer): Uint8Array {
    this.#check();
    return readInTransaction(this.#tx, pointer);
  }

  /** Replaces the object's first `data.length` bytes. */
  write(pointer: Pointer, data: Uint8Array): void {
    this.#check();
    writeInTransaction(this.#tx, pointer, data);
  }

  free(pointer: Pointer): void {
    this.#check();
    freeInTransaction(this.#tx, pointer);
  }

  /** For gateways, whose stores take it: fails if this one has ended. */
  get engine(): EngineTransaction {
    this.#check();
    return this.#tx;
  }

  /** For the retry loop: a new transaction begins. */
  begin(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs;
    this.#deadlineMs = 0;
    this.#ended = undefined;
  }

  /** For the retry loop: no further operation is possible. */
  end(why: SituError): void {
    this.#ended = why;
  }

  /** For asynchronous bodies: an operation has met one for whom it must not wait here. */
  cutShort(): void {
    if (this.#ended === undefined) this.#tx.doom(this.#tx.executor.blockingLock);
  }

  #enter<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    this.#check();
    const store = this.#stores.storeOf(table);
    this.#tx.subject = table.name;
    return store;
  }

  #enterToWrite<Row, Key>(table: Table<Row, Key>): Store<Row, Key> {
    this.#check();
    const store = this.#stores.currentStoreOf(table);
    this.#tx.subject = table.name;
    return store;
  }

  #lookup<Row, Key>(table: Table<Row, Key>, key: unknown, options: unknown): Row | undefined {
    this.#enter(table);
    const from = this.#tx.set.end;
    const store = this.#stores.tableOf(table);
    const row = store.lookup(this.#tx, key, store.indexOf(options));
    this.#trace(table, key, from);
    return row as Row | undefined;
  }

  /** For scans: a step of one that began in this life of the transaction: an attempt is one. */
  runStep<A, T>(
    life: number,
    table: Table,
    step: (tx: EngineTransaction, argument: A) => T,
    argument: A,
  ): T {
    this.checkScan(life);
    this.#check();
    this.#tx.subject = table.name;
    const from = this.#tx.set.end;
    const result = step(this.#tx, argument);
    this.#trace(table, "(scan)", from);
    return result;
  }

  /** For scans: fails if their transaction has ended. */
  checkScan(life: number): void {
    if (life !== this.#tx.lives) throw ENDED;
    if (this.#ended !== undefined) throw this.#ended;
  }

  #check(): void {
    if (this.#ended !== undefined) throw this.#ended;
    // A body that swallowed a signal or an error must not go on with what is not there.
    if (this.#tx.doomed) throw this.#tx.fatal?.error ?? CONFLICT;
    if ((++this.#operations & CLOCK_MASK) === 0) this.#checkDeadline();
  }

  #checkDeadline(): void {
    const now = nowMs();
    if (this.#deadlineMs === 0) this.#deadlineMs = now + this.#timeoutMs;
    if (now < this.#deadlineMs) return;
    this.#tx.failHalfWay(
      new TimeoutError(
        `the body of the transaction ran for more than ${this.#timeoutMs} ms; nothing was committed`,
      ),
    );
  }

  #trace(table: Table, key: unknown, from: number, row?: unknown): void {
    const { trace, set } = this.#tx;
    if (trace === undefined) return;
    const to = set.end;
    trace.push({ table: table.name, key: key ?? keyOf(table, row), from, to });
  }
}

/** What a scan reads through, until its transaction ends. */
class TransactionSource implements ScanSource {
  readonly #tx: Transaction;
  readonly #life: number;
  readonly #table: Table;

  constructor(tx: Transaction, life: number, table: Table) {
    this.#tx = tx;
    this.#life = life;
    this.#table = table;
  }

  run<A, T>(step: (tx: EngineTransaction, argument: A) => T, argument: A): T {
    return this.#tx.runStep(this.#life, this.#table, step, argument);
  }

  check(): void {
    this.#tx.checkScan(this.#life);
  }

  release(): void {}
}

/** The keys that `getMany` was given, now, and not when their turn comes. */
export function listOf<Key>(table: Table, keys: Iterable<Key>): readonly Key[] {
  if (typeof keys === "object" && typeof keys?.[Symbol.iterator] === "function") return [...keys];
  throw new SituError("SITU_TYPE", `getMany(${table.name}, …) takes a list of keys`);
}

export function exists(table: Table, row: unknown): SituError {
  return new SituError(
    "SITU_EXISTS",
    `table ${table.name} has a row with key ${showKey(keyOf(table, row))}; put replaces it`,
  );
}

export function missing(table: Table, key: unknown): SituError {
  return new SituError(
    "SITU_MISSING",
    `table ${table.name} has no row with key ${showKey(key)}; insert or put adds one`,
  );
}

/** The key inside a row, as a caller would write it. */
function keyOf(table: Table, row: unknown): unknown {
  const values = row as Record<string, unknown>;
  const key = table.key.map((name) => values[name]);
  return table.singleKey ? key[0] : key;
}
