/**
 * Programs on their way: each step reads some rows, a few hundred at most, and does with them what is to be done. Between
 * two steps whoever runs it may let the event loop turn.
 *
 * A step reads first and changes then. One that is cut short, for a page of the device, is repeated: it goes on with the row
 * that it could not change. What a cursor has read stays as it was: changes of the rows behind it do not move
 * it, and rows that are found by an index whose entries would move are gathered before the first is changed.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { SCAN_BATCH_ROWS } from "../../runtime/limits.ts";
import type { Cursor } from "../../stores/store.ts";
import { resultsOf } from "../expressions/accumulate.ts";
import type { Instance } from "../expressions/compile.ts";
import { Failure } from "../expressions/library.ts";
import type { Program } from "../expressions/program.ts";
import type { ScanPlan, ScanSource } from "../scan-plan.ts";
import type { Table } from "../table.ts";
import type { ProgramCursor } from "./cursor.ts";

/** What `updateWhere` returns. */
export interface Updated {
  /** Rows for which the condition was true. */
  readonly matched: number;
  /** Those of them that have another value in some field now. */
  readonly changed: number;
  /** Where it was done. */
  readonly place: "host" | "device";
}

/** What `deleteWhere` returns. */
export interface Deleted {
  /** Rows for which the condition was true; they are gone. */
  readonly matched: number;
  /** Where it was done. */
  readonly place: "host" | "device";
}

class Reading {
  readonly taken: unknown[] = [];
  readonly #source: ScanSource;
  readonly #cursor: Cursor<unknown>;

  constructor(source: ScanSource, cursor: Cursor<unknown>) {
    this.#source = source;
    this.#cursor = cursor;
  }

  /** Reads on; false at the end. */
  read(): boolean {
    return this.#source.run(Reading.#next, this as Reading);
  }

  skip(): number {
    return this.#source.run(Reading.#skip, this as Reading);
  }

  static #next(tx: Transaction, reading: Reading): boolean {
    return reading.#cursor.next(tx, reading.taken, SCAN_BATCH_ROWS);
  }

  static #skip(tx: Transaction, reading: Reading): number {
    return reading.#cursor.skip(tx);
  }
}

/** What an update or delete found in a row. */
export interface Taken {
  readonly key: unknown;
  readonly changes?: object;
}

/** Where changes go. */
export interface Changes {
  apply(taken: Taken): void;
  /** After some were applied: ends the transaction, for what is done cannot be undone alone. */
  failHalfWay(error: unknown): never;
}

export class ChangeRun {
  matched = 0;
  changed = 0;
  readonly #reading: Reading;
  readonly #changes: Changes;
  /** What was found, if all is to be found first. */
  readonly #gathered: Taken[] | undefined;
  #applied = 0;
  #isRead = false;
  /** Whether rows were read that are being looked at, and the first that was not yet. */
  #isTaking = false;
  #at = 0;

  constructor(source: ScanSource, cursor: ProgramCursor, changes: Changes, gathersFirst: boolean) {
    this.#reading = new Reading(source, cursor.cursor);
    this.#changes = changes;
    this.#gathered = gathersFirst ? [] : undefined;
  }

  /** False when all is done. */
  step(): boolean {
    try {
      if (this.#isRead) return this.#applyGathered();
      if (!this.#isTaking && !this.#reading.read()) {
        this.#isRead = true;
        return this.#gathered !== undefined;
      }
      this.#isTaking = true;
      this.#take(this.#reading.taken);
      this.#isTaking = false;
      this.#at = 0;
      return true;
    } catch (error) {
      if (this.changed > 0) this.#changes.failHalfWay(error);
      throw error;
    }
  }

  #take(all: readonly unknown[]): void {
    for (; this.#at < all.length; this.#at++) {
      const taken = all[this.#at];
      if (taken === false) continue;
      if (taken instanceof Failure) throw taken.error;
      if (taken !== true) {
        if (this.#gathered !== undefined) this.#gathered.push(taken as Taken);
        else this.#apply(taken as Taken);
      }
      this.matched++;
    }
  }

  #applyGathered(): boolean {
    const gathered = this.#gathered!;
    const end = Math.min(gathered.length, this.#applied + SCAN_BATCH_ROWS);
    for (; this.#applied < end; this.#applied++) this.#apply(gathered[this.#applied]);
    return this.#applied < gathered.length;
  }

  #apply(taken: Taken): void {
    this.#changes.apply(taken);
    this.changed++;
  }
}

export class AggregateRun {
  readonly #reading: Reading;
  readonly #instance: Instance<unknown>;
  readonly #table: Table;
  readonly #task: Program["task"] & { kind: "aggregate" };
  /** Only rows are counted: none needs to be looked at. */
  readonly #onlyCounts: boolean;
  #rows = 0;

  constructor(
    source: ScanSource,
    { cursor, instance }: ProgramCursor,
    table: Table,
    program: Program,
  ) {
    this.#reading = new Reading(source, cursor);
    this.#instance = instance;
    this.#table = table;
    this.#task = program.task as Program["task"] & { kind: "aggregate" };
    const { groupBy, values } = this.#task;
    const countsRows = groupBy.length === 0 && values.every(({ of }) => of === undefined);
    this.#onlyCounts = countsRows && program.where === undefined && table.expires === undefined;
  }

  /** False at the end. */
  step(): boolean {
    if (this.#onlyCounts) {
      const passed = this.#reading.skip();
      this.#rows += passed;
      return passed > 0;
    }
    if (!this.#reading.read()) return false;
    const { taken } = this.#reading;
    this.#instance.add(taken, taken.length);
    return true;
  }

  /** One object; with `groupBy`, a list of them. */
  result(): unknown {
    const { groupBy, values } = this.#task;
    if (this.#onlyCounts) return Object.fromEntries(values.map(({ as }) => [as, this.#rows]));
    const results = resultsOf(this.#table, this.#task, this.#instance.accumulated);
    return groupBy.length === 0 ? results[0] : results;
  }
}

/** The rows that match, as a scan gives them out. A step that found none returns none, and there may be more. */
export function selectPlan(open: () => ProgramCursor, limit: number): ScanPlan<unknown> {
  return { limit, cursor: () => new MatchCursor(open().cursor) };
}

class MatchCursor implements Cursor<unknown> {
  readonly #cursor: Cursor<unknown>;
  /** Rows that were read and not given out. */
  #left: unknown[] = [];

  constructor(cursor: Cursor<unknown>) {
    this.#cursor = cursor;
  }

  next(tx: Transaction, rows: unknown[], most: number): boolean {
    let found = this.#left;
    if (found.length === 0) {
      const read: unknown[] = [];
      if (!this.#cursor.next(tx, read, SCAN_BATCH_ROWS)) {
        rows.length = 0;
        return false;
      }
      found = matchesIn(read);
    }
    const given = found.slice(0, most);
    rows.length = given.length;
    for (let i = 0; i < given.length; i++) rows[i] = given[i];
    this.#left = found.slice(given.length);
    return true;
  }

  skip(tx: Transaction): number {
    const rows: unknown[] = [];
    while (this.next(tx, rows, SCAN_BATCH_ROWS)) if (rows.length > 0) return rows.length;
    return 0;
  }
}

function matchesIn(taken: readonly unknown[]): unknown[] {
  const rows: unknown[] = [];
  for (const row of taken) {
    if (row instanceof Failure) throw row.error;
    if (row !== false) rows.push(row);
  }
  return rows;
}
