/**
 * Rows one after the other. A scan is only a plan: every iteration opens its source anew, reads
 * rows in batches while it goes, and lets go of the source when it ends or is left.
 */

import { PAGE_MISS } from "../../engine/signals.ts";
import type { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { SCAN_BATCH_ROWS } from "../../runtime/limits.ts";
import type { Cursor } from "../../stores/store.ts";
import type { ScanPlan, ScanSource } from "../../tables/scan-plan.ts";
import type { AsyncScan, Scan } from "../scan.ts";

/** One iteration: the batch that is being given out, and the way to the next one. */
export interface Batches<Row> {
  /** Replaced by every `read`. */
  readonly rows: readonly Row[];
  /** Brings the next rows; false at the end, and then there are none. */
  read(): boolean;
  check(): void;
  end(): void;
}

/** A source, and the plan of a scan for what is read through it. */
export interface OpenedScan<Row> {
  readonly source: ScanSource;
  readonly plan: ScanPlan<Row>;
}

/** Reads step by step through a source. */
export class CursorBatches<Row> implements Batches<Row> {
  rows: Row[] = [];
  readonly #open: () => OpenedScan<Row>;
  /** From the first read on: who never begins holds nothing. */
  #source: ScanSource | undefined;
  #cursor: Cursor<Row> | undefined;
  #left = 0;
  #most = 0;
  #ended = false;

  constructor(open: () => OpenedScan<Row>) {
    this.#open = open;
  }

  #begin(): void {
    const { source, plan } = this.#open();
    this.#source = source;
    this.#cursor = plan.cursor();
    this.#left = plan.limit;
  }

  read(): boolean {
    if (this.#ended) return false;
    try {
      if (this.#source === undefined) this.#begin();
    } catch (error) {
      this.end();
      throw error;
    }
    const source = this.#source!;
    this.#most = Math.min(this.#left, SCAN_BATCH_ROWS);
    // A new list each time: storing new rows into an old list costs V8 a note for each.
    this.rows = new Array<Row>(this.#most);
    try {
      if (this.#most > 0 && source.run(CursorBatches.#step, this as CursorBatches<unknown>)) {
        this.#left -= this.rows.length;
        return true;
      }
    } catch (error) {
      // One that waits for a page is repeated.
      if (error !== PAGE_MISS) this.end();
      throw error;
    }
    this.end();
    return false;
  }

  check(): void {
    this.#source?.check();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.rows.length = 0;
    this.#source?.release();
  }

  // One function for all, and no closure: V8 keeps what it has optimized for it.
  static #step(tx: EngineTransaction, batches: CursorBatches<unknown>): boolean {
    return batches.#cursor!.next(tx, batches.rows, batches.#most);
  }
}

/** All rows of a short scan, read at once by the first `read`. */
export class WholeBatch<Row> implements Batches<Row> {
  rows: readonly Row[] = [];
  readonly check: () => void;
  readonly #readAll: () => readonly Row[];
  #read = false;

  constructor(readAll: () => readonly Row[], check: () => void) {
    this.#readAll = readAll;
    this.check = check;
  }

  read(): boolean {
    this.rows = this.#read ? [] : this.#readAll();
    this.#read = true;
    return this.rows.length > 0;
  }

  end(): void {
    this.#read = true;
    this.rows = [];
  }
}

/** All rows of a plan that one transaction sees. */
export function readWhole<Row>(tx: EngineTransaction, plan: ScanPlan<Row>): Row[] {
  const cursor = plan.cursor();
  const all: Row[] = [];
  if (plan.limit === 0 || !cursor.next(tx, all, plan.limit)) return [];
  const more: Row[] = [];
  while (all.length < plan.limit && cursor.next(tx, more, plan.limit - all.length)) {
    for (const row of more) all.push(row);
  }
  return all;
}

class RowIterator<Row> implements IterableIterator<Row> {
  readonly #batches: Batches<Row>;
  #at = 0;

  constructor(batches: Batches<Row>) {
    this.#batches = batches;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Row, undefined> {
    const batches = this.#batches;
    if (this.#at === batches.rows.length) {
      this.#at = 0;
      // A batch of a selection may have no row that matches, and others may follow.
      do {
        if (!batches.read()) return { done: true, value: undefined };
      } while (batches.rows.length === 0);
    } else {
      batches.check();
    }
    return { done: false, value: batches.rows[this.#at++] };
  }

  return(): IteratorResult<Row, undefined> {
    this.#at = 0;
    this.#batches.end();
    return { done: true, value: undefined };
  }
}

/** Reads the next batch of an asynchronous iteration, in this turn or later. */
type ReadBatch<Row> = (batches: Batches<Row>) => boolean | Promise<boolean>;

export class AsyncRowIterator<Row> implements AsyncIterableIterator<Row> {
  readonly #batches: Batches<Row>;
  readonly #read: ReadBatch<Row>;
  #at = 0;
  /** The step that runs; calls that do not wait for each other queue up behind it. */
  #running: Promise<unknown> | undefined;

  constructor(batches: Batches<Row>, read: ReadBatch<Row>) {
    this.#batches = batches;
    this.#read = read;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Row, undefined>> {
    const isAtHand = this.#running === undefined && this.#at < this.#batches.rows.length;
    if (isAtHand && !isTurnDue()) {
      try {
        this.#batches.check();
      } catch (error) {
        return Promise.reject(error);
      }
      return Promise.resolve({ done: false, value: this.#batches.rows[this.#at++] });
    }
    const after = this.#running ?? Promise.resolve();
    const step = after.then(() => this.#step());
    const settled: Promise<void> = step.then(
      () => this.#hasRun(settled),
      () => this.#hasRun(settled),
    );
    this.#running = settled;
    return step;
  }

  return(): Promise<IteratorResult<Row, undefined>> {
    this.#at = 0;
    this.#batches.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  #hasRun(step: Promise<unknown>): void {
    if (this.#running === step) this.#running = undefined;
  }

  async #step(): Promise<IteratorResult<Row, undefined>> {
    if (isTurnDue()) {
      await nextTurn();
      this.#batches.check();
    }
    while (this.#at === this.#batches.rows.length) {
      this.#at = 0;
      if (!(await this.#read(this.#batches))) return { done: true, value: undefined };
      // A batch of a selection may have no row that matches, and others may follow.
      if (this.#batches.rows.length === 0 && isTurnDue()) await nextTurn();
    }
    return { done: false, value: this.#batches.rows[this.#at++] };
  }
}

export class RowScan<Row> implements Scan<Row> {
  readonly #open: () => Batches<Row>;
  readonly #openLater: (() => AsyncIterableIterator<Row>) | undefined;

  /** `openLater` is for those who await their rows, where these come in another way. */
  constructor(open: () => Batches<Row>, openLater?: () => AsyncIterableIterator<Row>) {
    this.#open = open;
    this.#openLater = openLater;
  }

  [Symbol.iterator](): IterableIterator<Row> {
    return new RowIterator(this.#open());
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Row> {
    if (this.#openLater !== undefined) return this.#openLater();
    return new AsyncRowIterator(this.#open(), (batches) => batches.read());
  }

  toArray(): Row[] {
    const all: Row[] = [];
    const batches = this.#open();
    while (batches.read()) for (const row of batches.rows) all.push(row);
    return all;
  }

  /** For iterations that read their batches in a way of their own. */
  batches(): Batches<Row> {
    return this.#open();
  }
}

/** An iteration in which every read is an operation of the transaction's queue. */
export function queuedRows<Row>(
  scan: RowScan<Row>,
  enqueue: <T>(run: () => T) => Promise<T>,
): AsyncIterableIterator<Row> {
  return new AsyncRowIterator(scan.batches(), (batches) => enqueue(() => batches.read()));
}

/** The same where every read is a promise. */
export class AsyncRowScan<Row> implements AsyncScan<Row> {
  readonly #open: () => AsyncIterableIterator<Row>;

  constructor(open: () => AsyncIterableIterator<Row>) {
    this.#open = open;
  }

  /** For those who forget the `await`. */
  [Symbol.iterator](): never {
    throw new SituError("SITU_TYPE", "read this scan with for await, or with await scan.toArray()");
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Row> {
    return this.#open();
  }

  async toArray(): Promise<Row[]> {
    const all: Row[] = [];
    for await (const row of this) all.push(row);
    return all;
  }
}

/** Counts the rows of a plan step by step, without reading them where that is possible. */
export class RowCount {
  rows = 0;
  readonly #source: ScanSource;
  readonly #cursor: Cursor<unknown>;

  constructor(source: ScanSource, plan: ScanPlan<unknown>) {
    this.#source = source;
    this.#cursor = plan.cursor();
  }

  /** False at the end. */
  step(): boolean {
    const passed = this.#source.run(skip, this.#cursor);
    this.rows += passed;
    return passed > 0;
  }
}

/** Counts all of them at once. */
export function countRows(source: ScanSource, plan: ScanPlan<unknown>): number {
  try {
    const counting = new RowCount(source, plan);
    while (counting.step());
    return counting.rows;
  } finally {
    source.release();
  }
}

function skip(tx: EngineTransaction, cursor: Cursor<unknown>): number {
  return cursor.skip(tx);
}

/**
 * An iteration of nothing, for ever alive. With the last object of a class V8 throws away the code
 * that it has optimized for it, and every scan would begin slowly again.
 */
export const kept = new RowIterator(
  new CursorBatches(() => ({
    source: {
      run: (step, argument) => step(undefined as never, argument),
      check() {},
      release() {},
    },
    plan: { limit: 0, cursor: () => ({ next: () => false, skip: () => 0 }) },
  })),
);
