/**
 * Walks over the rows of a device table: over the entries of its map, and from each to its row. The entries
 * are kept until all of their rows were read, so a step that is cut short, for a page or another's lock, can
 * be repeated.
 */

import { MAX_PAGE_ROW_WORDS } from "../../device/page.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Cursor, KeyRange, PlacedCursor } from "../../stores/store.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { DeviceStore } from "./device-store.ts";
import type { DeviceTable } from "./device-table.ts";
import { wordsIn } from "./hidden-tables.ts";

/** Rows of a step: their pages have room in the buffer, all at once. */
const MOST_ROWS = 32;

export class DeviceCursor<Row, Key> implements PlacedCursor<Row> {
  readonly #table: DeviceTable;
  readonly #store: DeviceStore<Row, Key>;
  readonly #entries: Cursor<RowValues>;
  /** Entries whose rows are yet to be read. */
  readonly #left: RowValues[] = [];

  constructor(table: DeviceTable, store: DeviceStore<Row, Key>, range: KeyRange, reverse: boolean) {
    this.#table = table;
    this.#store = store;
    this.#entries = table.entries.cursor(range, reverse);
  }

  get place(): number {
    return (this.#entries as PlacedCursor<RowValues>).place;
  }

  set place(place: number) {
    (this.#entries as PlacedCursor<RowValues>).place = place;
  }

  next(tx: Transaction, rows: Row[], most: number): boolean {
    for (;;) {
      // Whoever asks for all that comes at once gets whole groups of the map, and a place after them.
      const step = Number.isFinite(most) ? Math.min(most, MOST_ROWS) : most;
      if (this.#left.length === 0 && !this.#entries.next(tx, this.#left, step)) {
        rows.length = 0;
        return false;
      }
      this.#prefetch(tx);
      rows.length = 0;
      for (const entry of this.#left) {
        const key = this.#table.keyIn(entry) as Key;
        const row = this.#store.rowOf(tx, key, this.#table.placeIn(entry));
        // Removed by this very transaction after its entry was read.
        if (row !== undefined) rows.push(row);
      }
      this.#left.length = 0;
      if (rows.length > 0) return true;
    }
  }

  skip(tx: Transaction): number {
    const kept = this.#left.length;
    this.#left.length = 0;
    return kept > 0 ? kept : this.#entries.skip(tx);
  }

  /** Asks for all pages at once, where the step may be cut short for them. */
  #prefetch(tx: Transaction): void {
    const { device, file } = this.#table;
    if (!device.isCuttable(tx)) return;
    for (const entry of this.#left) {
      const { page, generation, where } = this.#table.placeIn(entry);
      if (where === 0 || wordsIn(where) > MAX_PAGE_ROW_WORDS) continue;
      device.want(tx, file, page, generation);
    }
    device.cutShort(tx);
  }
}
