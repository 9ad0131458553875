/**
 * Going over all rows of a table while others write to it, to bring them into something that is new: an
 * index, or the table's successor. Keys are read in batches, from the state of the moment, and each
 * batch is a transaction that reads its rows again. Rows that change meanwhile are the writers' business:
 * they know of what is new.
 */

import type { Executor } from "../engine/executor.ts";
import { runSync, tryRun } from "../engine/run.ts";
import type { Transaction } from "../engine/transaction.ts";
import { turn } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { BUILD_BATCH_ROWS } from "../runtime/limits.ts";
import type { Cursor, PlacedCursor, RowStore } from "../stores/store.ts";
import { keyIn } from "./indexes/entries.ts";
import type { RowValues, Structure } from "./indexes/structure.ts";
import type { ScanSource } from "./scan-plan.ts";

/** Attempts for a whole batch; smaller ones meet fewer writers. */
const BATCH_ATTEMPTS = 2;

/** Where to go on: a place of a hashed walk, or a key in its ordered form. */
export type FillPlace = number | readonly number[];

export interface Filled {
  readonly rows: RowStore<RowValues, unknown>;
  readonly structure: Structure<RowValues, unknown>;
}

export interface KeyBatch {
  readonly keys: readonly unknown[];
  /** Where the next batch begins, if that can be told. */
  readonly place: FillPlace | undefined;
}

/** The keys of all rows, in batches, letting the event loop turn in between. */
export async function* keyBatches(
  { rows: store, structure }: Filled,
  open: () => ScanSource,
  from?: FillPlace,
): AsyncGenerator<KeyBatch> {
  const { key, singleKey } = structure.table;
  const cursor = cursorFrom(store, from);
  const rows: RowValues[] = [];
  const source = open();
  try {
    // Whole groups of rows: then the place of a hashed walk does not depend on a row.
    const step = (tx: Transaction) => cursor.next(tx, rows, Number.POSITIVE_INFINITY);
    while (source.run(step, undefined)) {
      for (let at = 0; at < rows.length; at += BUILD_BATCH_ROWS) {
        const batch = rows.slice(at, at + BUILD_BATCH_ROWS);
        const isLast = at + batch.length === rows.length;
        yield {
          keys: batch.map((row) => keyIn(row, key, singleKey)),
          place: isLast ? placeAfter(cursor, structure, rows[rows.length - 1]) : undefined,
        };
        await turn();
      }
    }
  } finally {
    source.release();
  }
}

function cursorFrom(
  store: RowStore<RowValues, unknown>,
  from: FillPlace | undefined,
): Cursor<RowValues> {
  const isKey = typeof from === "object";
  const range = { from: isKey ? Int32Array.from(from) : undefined, to: undefined };
  const cursor = store.cursor(range, false);
  if (typeof from === "number") (cursor as PlacedCursor<RowValues>).place = from;
  return cursor;
}

function placeAfter(
  cursor: Cursor<RowValues>,
  { ordered }: Structure<RowValues, unknown>,
  last: RowValues,
): FillPlace {
  if (ordered === undefined) return (cursor as PlacedCursor<RowValues>).place;
  const words = ordered.stageOrderedOf(last);
  // One word more, 0, is the least key that is greater.
  return [...ordered.ordered.subarray(0, words), 0];
}

/** Brings batches of keys in, and if others keep getting in between, smaller parts of them. */
export class BatchRunner {
  readonly #executor: Executor;
  readonly #tx: Transaction;
  readonly #timeoutMs: number;
  /** Brings rows in by their keys, in one transaction; false if that is no longer wanted. */
  readonly #add: (keys: readonly unknown[]) => boolean;
  /** How many rows the next transaction brings in. */
  #most = BUILD_BATCH_ROWS;

  constructor(
    executor: Executor,
    tx: Transaction,
    timeoutMs: number,
    add: (keys: readonly unknown[]) => boolean,
  ) {
    this.#executor = executor;
    this.#tx = tx;
    this.#timeoutMs = timeoutMs;
    this.#add = add;
  }

  /** In as large parts as get through: where others write much, they are small for a while. */
  run(keys: readonly unknown[]): boolean {
    let isWanted = true;
    for (let from = 0; isWanted && from < keys.length; ) {
      const part = keys.slice(from, from + this.#most);
      const body = (): void => {
        isWanted = this.#add(part);
      };
      if (part.length === 1) {
        runSync(this.#executor, this.#tx, this.#timeoutMs, body, undefined);
      } else if (!this.#tryAll(body)) {
        this.#most = part.length >> 1;
        continue;
      }
      from += part.length;
      this.#most = Math.min(BUILD_BATCH_ROWS, this.#most + 1);
    }
    return isWanted;
  }

  #tryAll(body: () => void): boolean {
    try {
      return tryRun(this.#executor, this.#tx, BATCH_ATTEMPTS, body);
    } catch (error) {
      // It may be the transaction that is too large, and not a key. And others may be in the way
      // for longer than this attempt waits: a smaller part will wait its time.
      const code = error instanceof SituError ? error.code : undefined;
      if (code === "SITU_TOO_LARGE" || code === "SITU_TIMEOUT") return false;
      throw error;
    }
  }
}
