/**
 * The cursor that a program reads its rows through: of the path that was chosen, with the program's function in the place of
 * the table's decoder, so that a row that does not match is never turned into an object.
 *
 * Where the declaration of the table is not the store's own, rows are decoded and translated first, and the
 * program runs on objects.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Cursor, KeyRange } from "../../stores/store.ts";
import { momentOf } from "../expiry/expiry.ts";
import { type Context, type Instance, Programs } from "../expressions/compile.ts";
import type { Program } from "../expressions/program.ts";
import { IndexCursor } from "../indexes/entries.ts";
import { keyRange } from "../indexes/ranges.ts";
import { checkedScan } from "../indexes/read-options.ts";
import type { TableStore } from "../indexes/table-store.ts";
import type { Table } from "../table.ts";
import type { Path } from "./paths.ts";

const EVERYTHING: KeyRange = { from: undefined, to: undefined };

const known = new WeakMap<Table, Programs>();

/** What this thread has compiled for a table. */
export function programsOf(table: Table): Programs {
  const programs = known.get(table) ?? new Programs(table);
  known.set(table, programs);
  return programs;
}

type Read = (tx: Transaction, key: unknown) => unknown;

/** A cursor over what a program makes of rows, and the instance that does it. */
export interface ProgramCursor {
  readonly cursor: Cursor<unknown>;
  readonly instance: Instance<unknown>;
}

export function programCursor(store: TableStore, program: Program, path: Path): ProgramCursor {
  return store.isProjected ? objectCursor(store, program, path) : wordCursor(store, program, path);
}

/** Over the words of stored rows. */
function wordCursor(store: TableStore, program: Program, path: Path): ProgramCursor {
  const { table } = store;
  const instance = programsOf(table).forWords(program);
  const rows = store.openForm(instance.take);
  const read: Read = (tx, key) => rows.read(tx, key);
  const overRange = (range: KeyRange): Cursor<unknown> => rows.cursor(range, false);
  const cursors =
    path.by === "index"
      ? path.ranges.map((bounds) => new IndexCursor(store.indexWalk(path.index!, bounds), read))
      : path.keys !== undefined
        ? [new KeyCursor(path.keys, read)]
        : path.by === "key"
          ? path.ranges.map((bounds) => overRange(keyRange(table, bounds)))
          : [overRange(EVERYTHING)];
  return { cursor: new PreparedCursor(inTurn(cursors), instance.context), instance };
}

/** Over row objects. */
function objectCursor(store: TableStore, program: Program, path: Path): ProgramCursor {
  const { table, reader } = store;
  const instance = programsOf(table).forRows(program);
  const take = instance.take as (row: unknown) => unknown;
  const cursors =
    path.by !== "index" && path.keys !== undefined
      ? [new KeyCursor(path.keys, (tx, key) => reader.read(tx, key))]
      : rangeCursors(store, path);
  const cursor = new TakingCursor(inTurn(cursors), take);
  return { cursor: new PreparedCursor(cursor, instance.context), instance };
}

/** Cursors over the rows of a path as the table shows them. */
export function rangeCursors(store: TableStore, { index, ranges }: Path): Cursor<unknown>[] {
  return ranges.map((bounds) => {
    const options = index === undefined ? bounds : { index, ...bounds };
    return store.planChecked(checkedScan("scan", store.table.name, options)).cursor();
  });
}

export function inTurn(cursors: readonly Cursor<unknown>[]): Cursor<unknown> {
  return cursors.length === 1 ? cursors[0] : new ChainCursor(cursors);
}

/**
 * Tells the program what moment a transaction sees, and empties its columns. Positions that a cursor has kept from an
 * earlier call stay good: it gives them out before it reads on.
 */
class PreparedCursor implements Cursor<unknown> {
  readonly #cursor: Cursor<unknown>;
  readonly #context: Context;

  constructor(cursor: Cursor<unknown>, context: Context) {
    this.#cursor = cursor;
    this.#context = context;
  }

  next(tx: Transaction, rows: unknown[], most: number): boolean {
    this.#context.momentMs = momentOf(tx);
    this.#context.next = 0;
    return this.#cursor.next(tx, rows, most);
  }

  skip(tx: Transaction): number {
    return this.#cursor.skip(tx);
  }
}

/** One cursor after the other. */
class ChainCursor implements Cursor<unknown> {
  readonly #cursors: readonly Cursor<unknown>[];
  #at = 0;

  constructor(cursors: readonly Cursor<unknown>[]) {
    this.#cursors = cursors;
  }

  next(tx: Transaction, rows: unknown[], most: number): boolean {
    rows.length = 0;
    while (this.#at < this.#cursors.length) {
      if (this.#cursors[this.#at].next(tx, rows, most)) return true;
      this.#at++;
    }
    return false;
  }

  skip(tx: Transaction): number {
    while (this.#at < this.#cursors.length) {
      const passed = this.#cursors[this.#at].skip(tx);
      if (passed > 0) return passed;
      this.#at++;
    }
    return 0;
  }
}

/** The rows of some keys, as far as they are there. */
class KeyCursor implements Cursor<unknown> {
  readonly #keys: readonly unknown[];
  readonly #read: Read;
  #at = 0;

  constructor(keys: readonly unknown[], read: Read) {
    this.#keys = keys;
    this.#read = read;
  }

  next(tx: Transaction, rows: unknown[], most: number): boolean {
    rows.length = 0;
    let at = this.#at;
    while (at < this.#keys.length && rows.length < most) {
      const row = this.#read(tx, this.#keys[at++]);
      if (row !== undefined) rows.push(row);
    }
    this.#at = at;
    return rows.length > 0;
  }

  skip(tx: Transaction): number {
    const rows: unknown[] = [];
    return this.next(tx, rows, this.#keys.length) ? rows.length : 0;
  }
}

/** What a program makes of row objects. */
class TakingCursor implements Cursor<unknown> {
  readonly #rows: Cursor<unknown>;
  readonly #take: (row: unknown) => unknown;

  constructor(rows: Cursor<unknown>, take: (row: unknown) => unknown) {
    this.#rows = rows;
    this.#take = take;
  }

  next(tx: Transaction, rows: unknown[], most: number): boolean {
    if (!this.#rows.next(tx, rows, most)) return false;
    for (let i = 0; i < rows.length; i++) rows[i] = this.#take(rows[i]);
    return true;
  }

  skip(tx: Transaction): number {
    return this.#rows.skip(tx);
  }
}
