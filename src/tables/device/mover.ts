/**
 * Flush and append: moves rows from the delta of a table to pages (the paper's §2.3.3). What is in the delta is
 * read outside of any transaction, written to pages, and given its new place in small transactions, each of
 * which looks whether the row is still what was written. So others write meanwhile as they like; what they
 * have changed stays in the delta until the next round. Moving rows needs no new memory: it is what makes
 * room when there is none.
 *
 * `move` holds the thread, for those who need room at once. `moveLater` writes and syncs while the event loop turns; it
 * is announced as a job, so that nobody takes its pages for free ones before rows lead to them.
 */

import { tryReadOnly, tryRun } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { Views } from "../../memory/views.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { DEVICE_FLUSH_BYTES, DEVICE_MOVE_ROWS, MAX_ROW_BYTES } from "../../runtime/limits.ts";
import type { AnyCodec } from "../../stores/kind.ts";
import type { Cursor, RowStore } from "../../stores/store.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { DeviceTable } from "./device-table.ts";
import { beginDeviceJob, endDeviceJob } from "./elements/device-jobs.ts";
import { DELTA_KIND } from "./hidden-tables.ts";
import { asKeeper, asKeeperSoon, beginFlush, endFlush, NOT_KEEPER } from "./keeper-role.ts";
import { PageWriter, type WrittenPlace } from "./page-writer.ts";

const ATTEMPTS = 3;
const ALL = { from: undefined, to: undefined };

/** A row of the delta, as it is stored. */
interface FoundRow {
  readonly key: unknown;
  readonly words: Int32Array;
}

export class Mover {
  /** Rows that were moved here. */
  moved = 0;
  readonly #table: DeviceTable;
  readonly #writer: PageWriter;
  readonly #tx: Transaction;
  readonly #raw: RowStore<Int32Array, unknown>;
  readonly #views = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

  constructor(table: DeviceTable) {
    this.#table = table;
    this.#writer = new PageWriter(table);
    this.#tx = new Transaction(table.executor);
    this.#tx.subject = `table ${table.table.name}`;
    this.#raw = DELTA_KIND.open(table.executor, wordsCodec(table.codec), table.root.delta);
  }

  get writer(): PageWriter {
    return this.#writer;
  }

  /**
   * Moves what is in the delta, for about so long, if no other executor is writing pages. Says whether rows
   * were moved. Errors of the disk are thrown; the rows stay where they are.
   */
  move(mostMs: number): boolean {
    const endMs = nowMs() + mostMs;
    const before = this.moved;
    const cursor = this.#raw.cursor(ALL, false);
    for (let isDone = false; !isDone; ) {
      const done = asKeeper(this.#table, () => this.#moveSome(cursor));
      if (done === NOT_KEEPER) return this.moved > before;
      isDone = done;
      if (isDone) this.#table.writtenBytes = 0;
      if (nowMs() >= endMs) break;
    }
    return this.moved > before;
  }

  /**
   * The same in the background, until all rows that were there are moved or `isEnding`. Nothing happens if another
   * executor is at it.
   */
  async moveLater(isEnding: () => boolean): Promise<boolean> {
    const table = this.#table;
    const { executor } = table;
    const before = this.moved;
    if (!beginFlush(executor)) return false;
    beginDeviceJob(executor);
    try {
      const bytes = table.writtenBytes;
      const cursor = this.#raw.cursor(ALL, false);
      while (!isEnding()) {
        const rows = await asKeeperSoon(table, isEnding, () => this.#collect(cursor));
        if (rows === NOT_KEEPER) break;
        if (rows.length === 0) {
          table.writtenBytes = Math.max(0, table.writtenBytes - bytes);
          break;
        }
        if (!(await this.#moveThese(rows, isEnding))) break;
      }
    } finally {
      endDeviceJob(executor);
      endFlush(executor);
    }
    return this.moved > before;
  }

  async #moveThese(found: readonly FoundRow[], isEnding: () => boolean): Promise<boolean> {
    let rows = [...found].sort((a, b) => a.words.length - b.words.length);
    while (rows.length > 0) {
      const words = rows.map((each) => each.words);
      const places = await this.#writer.writeLater(words, isEnding);
      if (places === undefined) return false;
      for (let from = 0; from < places.length; from += DEVICE_MOVE_ROWS) {
        if (isTurnDue()) await nextTurn();
        const to = Math.min(from + DEVICE_MOVE_ROWS, places.length);
        const given = await asKeeperSoon(this.#table, isEnding, () =>
          this.#give(rows.slice(from, to), places.slice(from, to)),
        );
        if (given === NOT_KEEPER) return false;
      }
      rows = rows.slice(places.length);
    }
    return true;
  }

  /** One batch; true if it was the last one. */
  #moveSome(cursor: Cursor<Int32Array>): boolean {
    let rows: readonly FoundRow[] = this.#collect(cursor);
    const isLast = rows.length === 0;
    // Short rows first: a batch of pages has either short or long ones.
    rows = [...rows].sort((a, b) => a.words.length - b.words.length);
    while (rows.length > 0) {
      const places = this.#writer.write(rows.map(({ words }) => words));
      this.#giveAll(rows.slice(0, places.length), places);
      rows = rows.slice(places.length);
    }
    return isLast;
  }

  #collect(cursor: Cursor<Int32Array>): FoundRow[] {
    const found: FoundRow[] = [];
    const some: Int32Array[] = [];
    let bytes = 0;
    while (bytes < DEVICE_FLUSH_BYTES) {
      let hasMore = false;
      // Not validated: what it finds is looked at again by the transaction that moves it.
      tryReadOnly(this.#table.executor, this.#tx, ATTEMPTS, (tx) => {
        hasMore = cursor.next(tx, some, DEVICE_MOVE_ROWS);
      });
      if (!hasMore) return found;
      for (const words of some) {
        found.push({ key: this.#keyOf(words), words });
        bytes += words.length * 4;
      }
    }
    return found;
  }

  #keyOf(words: Int32Array): unknown {
    this.#views.i32.set(words);
    return this.#table.keyAt(this.#views, 0, words.length);
  }

  #giveAll(rows: readonly FoundRow[], places: readonly WrittenPlace[]): void {
    for (let from = 0; from < rows.length; from += DEVICE_MOVE_ROWS) {
      this.#give(
        rows.slice(from, from + DEVICE_MOVE_ROWS),
        places.slice(from, from + DEVICE_MOVE_ROWS),
      );
    }
  }

  /** In one transaction, or if others are in the way, each half in one. */
  #give(rows: readonly FoundRow[], places: readonly WrittenPlace[]): void {
    let moved = 0;
    const body = (tx: Transaction): void => {
      moved = 0;
      for (let i = 0; i < rows.length; i++) if (this.#giveOne(tx, rows[i], places[i])) moved++;
    };
    if (this.#try(body)) {
      this.moved += moved;
      return;
    }
    // One row that others keep changing stays in the delta.
    if (rows.length === 1 || this.#tx.journalFull) return;
    const middle = rows.length >> 1;
    this.#give(rows.slice(0, middle), places.slice(0, middle));
    this.#give(rows.slice(middle), places.slice(middle));
  }

  #try(body: (tx: Transaction) => void): boolean {
    try {
      return tryRun(this.#table.executor, this.#tx, ATTEMPTS, body);
    } catch (error) {
      const code = error instanceof SituError ? error.code : undefined;
      if (code === "SITU_TOO_LARGE" || code === "SITU_TIMEOUT") return false;
      throw error;
    }
  }

  #giveOne(tx: Transaction, { key, words }: FoundRow, place: WrittenPlace): boolean {
    const table = this.#table;
    const now = this.#raw.read(tx, key);
    if (now === undefined || !isSame(now, words)) return false;
    if (table.map.read(tx, key)?.where !== 0) return false;
    const { page, generation, where } = place;
    table.entries.update(tx, key, table.placeRow(page, generation, where));
    this.#raw.remove(tx, key);
    return true;
  }
}

function isSame(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** A codec whose rows are copies of their words. */
function wordsCodec(codec: AnyCodec<RowValues, unknown>): AnyCodec<Int32Array, unknown> {
  const decode = ({ i32 }: Views, at: number, words: number): Int32Array =>
    i32.slice(at, at + words);
  return { ...codec, decode } as unknown as AnyCodec<Int32Array, unknown>;
}
