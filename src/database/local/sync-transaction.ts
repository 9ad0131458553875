/** The transactions of `transactSync`. Asynchronous ones use the same operations, one after the other. */

import {
  allocateArray,
  allocateObject,
  freeInTransaction,
  readInTransaction,
  writeInTransaction,
} from "../../engine/objects.ts";
import { CONFLICT } from "../../engine/signals.ts";
import type { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import type { Pointer } from "../../memory/pointer.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError, TimeoutError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { show } from "../../runtime/show.ts";
import type { Store } from "../../stores/store.ts";
import { planProgram } from "../../tables/bulk/count-rows.ts";
import { type ProgramCursor, programCursor } from "../../tables/bulk/cursor.ts";
import type { Choice, Plan } from "../../tables/bulk/plan.ts";
import {
  aggregateProgram,
  deleteProgram,
  explainedProgram,
  isForUpdate,
  selectProgram,
  updateProgram,
} from "../../tables/bulk/requests.ts";
import {
  AggregateRun,
  ChangeRun,
  type Changes,
  type Deleted,
  selectPlan,
  type Updated,
} from "../../tables/bulk/runs.ts";
import { unknownField, wrongType } from "../../tables/codec/values.ts";
import { ownKey } from "../../tables/copied-key.ts";
import type { Program } from "../../tables/expressions/program.ts";
import type {
  CountOptions,
  GetOptions,
  IndexKey,
  IndexName,
  ScanOptions,
  UniqueIndex,
} from "../../tables/indexes/read-options.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";
import type { ScanPlan, ScanSource } from "../../tables/scan-plan.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import { exists, keyOf, listOf, missing } from "../row-errors.ts";
import { finish, limitOf, planOf, resultOf } from "../run/bulk-run.ts";
import { ENDED } from "../run/ended.ts";
import { CursorBatches, countRows, RowCount, RowScan } from "../run/row-scan.ts";
import type { AllocOptions, Transaction } from "../transaction.ts";
import type { Stores } from "./table-set.ts";

/** How often a body's operations look at the clock. */
const CLOCK_MASK = 0xff;

const ALLOC = ["near"] as const;

function nearOf(call: string, options: AllocOptions): Pointer | undefined {
  refuseUnknownOptions(call, options, ALLOC);
  return options.near;
}

export class SyncTransaction implements Transaction {
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
  get<Row, Key, Changes, Ways, Name extends IndexName<Ways>>(
    table: Table<Row, Key, Changes, Ways>,
    key: NoInfer<IndexKey<Ways, Name>>,
    options: GetOptions<Name & UniqueIndex<Ways, Name>>,
  ): Row | undefined;
  get<Row, Key>(table: Table<Row, Key>, key: Key, options?: unknown): Row | undefined {
    if (options !== undefined) return this.#lookup(table, key, options);
    const store = this.#enter(table);
    const from = this.#tx.set.end;
    const wanted = this.#tx.trace === undefined ? key : (ownKey(key) as Key);
    const row = store.read(this.#tx, wanted);
    this.#trace(table, wanted, from);
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

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): RowScan<Row> {
    this.#check();
    const plan = this.#stores.tableOf(table).plan<Row>("scan", options);
    const source = new TransactionSource(this, this.#tx.lives, table);
    const opened = { source, plan };
    return new RowScan(() => new CursorBatches(() => opened));
  }

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

  select(table: Table, options?: unknown): RowScan<never> {
    const program = selectProgram(table, options);
    this.#check();
    if (isForUpdate(options)) this.#tx.isForUpdate = true;
    const store = this.#stores.tableOf(table);
    const source = new TransactionSource(this, this.#tx.lives, table);
    const open = (): ProgramCursor =>
      programCursor(store, program, this.#plan(store, program).path);
    const plan = selectPlan(open, limitOf(options)) as ScanPlan<never>;
    return new RowScan(() => new CursorBatches(() => ({ source, plan })));
  }

  aggregate(table: Table, options: unknown): never {
    const program = aggregateProgram(table, options);
    return resultOf(program, finish(this.running(table, program))) as never;
  }

  updateWhere(table: Table, options: unknown): Updated {
    const program = updateProgram(table, options);
    return resultOf(program, finish(this.running(table, program))) as Updated;
  }

  deleteWhere(table: Table, options: unknown): Deleted {
    const program = deleteProgram(table, options);
    return resultOf(program, finish(this.running(table, program))) as Deleted;
  }

  explain(table: Table, options?: unknown): Plan {
    const program = explainedProgram(table, options);
    this.#check();
    return planOf(program, this.#plan(this.#stores.tableOf(table), program, true));
  }

  /** A program, to be run step by step. */
  running(table: Table, program: Program): AggregateRun | ChangeRun {
    this.#check();
    const store = this.#stores.tableOf(table);
    const { path, gathersFirst } = this.#plan(store, program);
    const source = new TransactionSource(this, this.#tx.lives, table);
    const cursor = programCursor(store, program, path);
    if (program.task.kind === "aggregate") return new AggregateRun(source, cursor, table, program);
    const changes: Changes = {
      apply: ({ key, changes: fields }) => {
        if (fields === undefined) this.delete(table, key);
        else this.update(table, key, fields);
      },
      failHalfWay: (error) => this.#tx.failHalfWay(error),
    };
    return new ChangeRun(source, cursor, changes, gathersFirst);
  }

  /** What is counted for a plan is read beside the transaction, and no part of what it has read. */
  #plan(store: TableStore, program: Program, tellsAll = false): Choice {
    return planProgram(store, program, this.#tx.executor, tellsAll);
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    const store = this.#enter(table);
    const from = this.#tx.set.end;
    const wanted = this.#tx.trace === undefined ? key : (ownKey(key) as Key);
    const found = store.has(this.#tx, wanted);
    this.#trace(table, wanted, from);
    return found;
  }

  insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): InsertedKey<Writes> {
    const store = this.#enterToWrite(table);
    if (table.autoKey !== undefined) {
      return this.#insertCounted(table, table.autoKey, row) as InsertedKey<Writes>;
    }
    const from = this.#tx.set.end;
    const own = this.#tx.trace === undefined ? row : ownRow(table, row);
    const added = store.insert(this.#tx, own as Row);
    this.#trace(table, undefined, from, own);
    if (!added) throw exists(table, own);
    return undefined as InsertedKey<Writes>;
  }

  /** An insert into a table whose key is filled in, unless the caller has chosen one. */
  #insertCounted(table: Table, name: string, given: unknown): unknown {
    const store = this.#stores.currentStoreOf(table);
    const sequence = this.#stores.sequenceOf(table);
    const row = ownRow(table, given);
    const isChosen = row[name] !== undefined;
    for (let inUse = 0; ; inUse++) {
      if (!isChosen) row[name] = sequence.take();
      const from = this.#tx.set.end;
      const added = store.insert(this.#tx, row);
      this.#trace(table, undefined, from, row);
      if (!added && isChosen) throw exists(table, row);
      if (added) {
        if (isChosen) sequence.pass(row[name] as number);
        return row[name];
      }
      sequence.skip(inUse);
    }
  }

  put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): void {
    const store = this.#enterToWrite(table);
    const isCounted = table.autoKey !== undefined;
    const own = isCounted || this.#tx.trace !== undefined ? ownRow(table, row) : row;
    const from = this.#tx.set.end;
    store.put(this.#tx, own as Row);
    this.#trace(table, undefined, from, own);
    if (isCounted) this.#stores.sequenceOf(table).pass(keyOf(table, own) as number);
  }

  update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): void {
    const store = this.#enterToWrite(table);
    const from = this.#tx.set.end;
    // The error of a row that is missing shows it.
    const own = ownKey(key) as Key;
    const found = store.update(this.#tx, own, changes as Partial<Row>);
    this.#trace(table, own, from);
    if (!found) throw missing(table, own);
  }

  delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    const store = this.#enterToWrite(table);
    const from = this.#tx.set.end;
    const own = this.#tx.trace === undefined ? key : (ownKey(key) as Key);
    const removed = store.remove(this.#tx, own);
    this.#trace(table, own, from);
    return removed;
  }

  alloc(size: number, options: AllocOptions = {}): Pointer {
    this.#check();
    const near = nearOf("alloc", options);
    this.#tx.subject = `an object of ${show(size)} bytes`;
    return allocateObject(this.#tx, size, near);
  }

  allocArray(size: number, count: number, options: AllocOptions = {}): Pointer {
    this.#check();
    const near = nearOf("allocArray", options);
    this.#tx.subject = `an array of ${show(count)} objects of ${show(size)} bytes`;
    return allocateArray(this.#tx, size, count, near);
  }

  read(pointer: Pointer): Uint8Array {
    this.#check();
    return readInTransaction(this.#tx, pointer);
  }

  write(pointer: Pointer, data: Uint8Array): void {
    this.#check();
    writeInTransaction(this.#tx, pointer, data);
  }

  free(pointer: Pointer): void {
    this.#check();
    freeInTransaction(this.#tx, pointer);
  }

  /** For graphs: an operation on their objects, with the table that leads to these. */
  operate<Row, Key, T>(
    table: Table<Row, Key>,
    run: (tx: EngineTransaction, store: Store<Row, Key>) => T,
    key: unknown,
    changes: boolean,
  ): T {
    const store = changes ? this.#enterToWrite(table) : this.#enter(table);
    const from = this.#tx.set.end;
    const result = run(this.#tx, store);
    this.#trace(table, key ?? "(new object)", from);
    return result;
  }

  /** For asynchronous bodies: what it runs on, also when it has ended. */
  get own(): EngineTransaction {
    return this.#tx;
  }

  /** Fails if the transaction has ended. */
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
    const wanted = this.#tx.trace === undefined ? key : ownKey(key);
    const row = store.lookup(this.#tx, wanted, store.indexOf(options));
    this.#trace(table, wanted, from);
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
        `the callback of the transaction ran for more than ${this.#timeoutMs} ms; nothing was committed`,
      ),
    );
  }

  /** The key, or the row, is our own: code of the caller's runs before an operation, and not after it. */
  #trace(table: Table, key: unknown, from: number, row?: unknown): void {
    const { trace, set } = this.#tx;
    if (trace === undefined) return;
    const to = set.end;
    trace.push({ table: table.name, key: key ?? keyOf(table, row), from, to });
  }
}

/** What a scan reads through, until its transaction ends. */
class TransactionSource implements ScanSource {
  readonly #tx: SyncTransaction;
  readonly #life: number;
  readonly #table: Table;

  constructor(tx: SyncTransaction, life: number, table: Table) {
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

/** A copy of a caller's row, each field of which is read once; for the codec to check. */
function ownRow(table: Table, row: unknown): Record<string, unknown> {
  const own: Record<string, unknown> = {};
  const where = `table ${table.name}`;
  if (typeof row !== "object" || row === null) wrongType(where, "a row", row);
  const values = row as Record<string, unknown>;
  for (const name in values) {
    // Here it would be a prototype, whose properties were taken for fields.
    if (name === "__proto__") unknownField(where, name);
    own[name] = values[name];
  }
  // Accessors of a class are not enumerable.
  for (const name in table.fields) {
    if (Object.hasOwn(own, name)) continue;
    const value = values[name];
    if (value !== undefined) own[name] = value;
  }
  return own;
}

/** For gateways, which reach their keys inside a caller's transaction. */
export function engineOf(tx: Transaction): EngineTransaction {
  if (tx instanceof SyncTransaction) return tx.engine;
  throw new SituError("SITU_TYPE", "pass the tx of transactSync");
}
