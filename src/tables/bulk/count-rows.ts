/**
 * Counts rows for the planner: to the end, or until there are so many that it does not matter how many more. The
 * count of a table is remembered for a second: many plans in a row need not count anew.
 */

import type { Executor } from "../../engine/executor.ts";
import { tryReadOnly } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { nowMs } from "../../runtime/clock.ts";
import { PLAN_COUNT_MS, PLAN_RANGE_ROWS, PLAN_TABLE_ROWS } from "../../runtime/limits.ts";
import type { Cursor, KeyRange, PlacedCursor, PlacedStore } from "../../stores/store.ts";
import type { Program } from "../expressions/program.ts";
import { IndexCursor } from "../indexes/entries.ts";
import { keyRange } from "../indexes/ranges.ts";
import type { TableStore } from "../indexes/table-store.ts";
import type { ScanSource } from "../scan-plan.ts";
import { inTurn, rangeCursors } from "./cursor.ts";
import { FULL_SCAN, type Path, pathsOf } from "./paths.ts";
import { type Choice, choose, type RowCount, type RowCounter } from "./plan.ts";

/** What the planner reads through. Undefined if others are in the way: then it goes by guesses. */
export type Peek = Pick<ScanSource, "run"> | Executor;

interface Counting {
  readonly cursor: Cursor<unknown>;
  readonly most: number;
  rows: number;
  isExact: boolean;
}

const readers = new WeakMap<Executor, Transaction>();
const counted = new WeakMap<TableStore, RowCount & { readonly atMs: number }>();

class Counter implements RowCounter {
  readonly #store: TableStore;
  readonly #peek: Peek;

  constructor(store: TableStore, peek: Peek) {
    this.#store = store;
    this.#peek = peek;
  }

  table(): RowCount {
    const before = counted.get(this.#store);
    const atMs = nowMs();
    if (before !== undefined && atMs - before.atMs < PLAN_COUNT_MS) return before;
    const { rows, isExact } = this.#count(FULL_SCAN, PLAN_TABLE_ROWS);
    const count = { rows, isExact, atMs };
    counted.set(this.#store, count);
    return count;
  }

  path(path: Path): RowCount {
    return this.#count(path, PLAN_RANGE_ROWS);
  }

  #count(path: Path, most: number): RowCount {
    const placed = path === FULL_SCAN ? placedCursor(this.#store) : undefined;
    const cursor = placed?.cursor ?? inTurn(countCursors(this.#store, path));
    const counting: Counting = { cursor, most, rows: 0, isExact: false };
    const peek = this.#peek;
    if ("run" in peek) {
      while (counting.rows < most && !counting.isExact) peek.run(countSome, counting);
      return estimated(counting, placed);
    }
    const tx = readers.get(peek) ?? new Transaction(peek);
    readers.set(peek, tx);
    tryReadOnly(peek, tx, 1, () => {
      while (counting.rows < most && !counting.isExact) countSome(tx, counting);
    });
    return estimated(counting, placed);
  }
}

/** To see which rows of a device table have expired, pages would have to be read: there, all are counted. */
function countCursors(store: TableStore, path: Path): Cursor<unknown>[] {
  const { table, isProjected } = store;
  if (isProjected || table.storage === undefined || table.expires === undefined) {
    return rangeCursors(store, path);
  }
  const { index, ranges } = path;
  if (index !== undefined) {
    return ranges.map((bounds) => new IndexCursor(store.indexWalk(index, bounds), () => true));
  }
  const rows = store.openForm(() => true);
  return ranges.map((bounds) => rows.cursor(keyRange(table, bounds), false));
}

interface Placed {
  readonly cursor: PlacedCursor<unknown>;
  /** Where the places end. */
  readonly places: number;
}

/** A walk over a hashed table knows how far it is. */
function placedCursor(store: TableStore): Placed | undefined {
  if (store.isProjected || store.table.ordered || store.table.expires !== undefined)
    return undefined;
  const rows = store.openForm(() => true);
  const { places } = rows as unknown as Partial<PlacedStore<unknown>>;
  if (places === undefined) return undefined;
  return { places, cursor: rows.cursor(FULL_RANGE, false) as PlacedCursor<unknown> };
}

const FULL_RANGE: KeyRange = { from: undefined, to: undefined };

/** All rows, by those of the part that was walked over. */
function estimated({ rows, isExact }: Counting, placed: Placed | undefined): RowCount {
  if (isExact || placed === undefined || placed.cursor.place === 0) return { rows, isExact };
  return { rows: Math.round((rows * placed.places) / placed.cursor.place), isExact };
}

function countSome(tx: Transaction, counting: Counting): void {
  const passed = counting.cursor.skip(tx);
  counting.rows += passed;
  counting.isExact = passed === 0;
}

/** How a program finds its rows in a table. A transaction's own source would add to its read set. */
export function planProgram(
  store: TableStore,
  program: Program,
  peek: Peek,
  tellsAll = false,
): Choice {
  const paths = pathsOf(store.table, store.readyIndexes(), program.where);
  return choose(program, paths, new Counter(store, peek), tellsAll);
}
