/**
 * Removes rows that have expired, of all tables that this database has open. Nobody sees such rows any more, so
 * nothing depends on when that happens.
 *
 * One of the processes that have the store open works at a time, whoever has its slot in the word
 * EXPIRY_SWEEPER; the word is freed when a dead holder is recovered. What there is to do is in the tables' index
 * by the time, is looked up outside of a transaction, and looked at again inside the one that does it. So a
 * death at any step leaves rows that the next sweeper finds, and whatever others do meanwhile is seen or
 * is a conflict. Each transaction removes a few rows, with their index entries; a row of a watched table
 * that is swept is told as a delete.
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly, tryRun } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { EXPIRY_SWEEPER } from "../../memory/control.ts";
import { nowMs, wallClockMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { EXPIRED_ROWS_AT_ONCE } from "../../runtime/limits.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";

/** Attempts for one transaction; then it is left for another time. */
const ATTEMPTS = 3;

/** What may happen where others are at work: it is done another time. */
const LATER: ReadonlySet<string> = new Set(["SITU_TIMEOUT", "SITU_CONFLICT", "SITU_FULL"]);

export class ExpirySweeper {
  /** Rows that were removed here. */
  swept = 0;
  readonly #executor: Executor;
  readonly #open: () => readonly TableStore[];
  readonly #tx: Transaction;

  /** `open` returns the open tables, as the catalogue has them by now. */
  constructor(executor: Executor, open: () => readonly TableStore[]) {
    this.#executor = executor;
    this.#open = open;
    this.#tx = new Transaction(executor);
  }

  get #tables(): readonly TableStore[] {
    return this.#open().filter(({ table, refusal }) => table.expires !== undefined && !refusal);
  }

  /** Whether there is any table with rows that expire. */
  get isNeeded(): boolean {
    return this.#tables.length > 0;
  }

  /** Works for about so long, if nobody else does; says whether there is more to do. */
  sweep(mostMs: number): boolean {
    const { i32 } = this.#executor.memory.control;
    const mine = this.#executor.slot + 1;
    const holder = Atomics.compareExchange(i32, EXPIRY_SWEEPER, 0, mine);
    // Ours already: an overflowing stack once kept us from giving it back.
    if (holder !== 0 && holder !== mine) return false;
    try {
      const endMs = nowMs() + mostMs;
      let hasMore = false;
      let failure: unknown;
      // What is in the way in one table is none of the others' business.
      for (const table of this.#tables) {
        try {
          hasMore = this.#sweepTable(table, endMs) || hasMore;
        } catch (error) {
          hasMore = true;
          if (!(error instanceof SituError && LATER.has(error.code))) failure ??= error;
        }
      }
      if (failure !== undefined) throw failure;
      return hasMore;
    } finally {
      Atomics.store(i32, EXPIRY_SWEEPER, 0);
    }
  }

  /** At least one transaction, so that no table waits for another for ever. */
  #sweepTable(table: TableStore, endMs: number): boolean {
    for (;;) {
      const most = EXPIRED_ROWS_AT_ONCE;
      const keys = this.#find(table, most);
      if (keys.length > 0 && !this.#removeAll(table, keys)) return true;
      if (keys.length < most) return false;
      if (nowMs() >= endMs) return true;
    }
  }

  #find(table: TableStore, most: number): readonly unknown[] {
    const find = (tx: Transaction) => table.expiredKeys(tx, wallClockMs(), most);
    return runReadOnly(this.#executor, this.#tx, find, undefined);
  }

  /** False if others were in the way. */
  #removeAll(table: TableStore, keys: readonly unknown[]): boolean {
    let removed = 0;
    const body = (tx: Transaction): void => {
      removed = 0;
      const current = this.#tables.find((each) => each.table === table.table);
      if (current === undefined) return;
      for (const key of keys) if (current.evict(tx, key)) removed++;
    };
    try {
      if (!tryRun(this.#executor, this.#tx, ATTEMPTS, body)) return false;
    } catch (error) {
      const isLarge = error instanceof SituError && error.code === "SITU_TOO_LARGE";
      if (!isLarge || keys.length === 1) throw error;
      const middle = keys.length >> 1;
      return (
        this.#removeAll(table, keys.slice(0, middle)) && this.#removeAll(table, keys.slice(middle))
      );
    }
    this.swept += removed;
    table.store.maintain();
    return true;
  }
}
