/**
 * Walks over the rows of a device table in the order of their pages. The places of rows are gathered from the
 * map first, then sorted: so every page is read once, pages side by side are read together, and the next ones
 * are being read while the rows of this one are looked at (the paper's preloader, §7.1).
 *
 * Several threads share a table by its pages: each walks over the whole map, which is short beside the rows,
 * and takes every n-th group of pages. All of them see the same map when they read through one snapshot.
 *
 * Rows without a page to share, those in the delta and long ones, are given out by their keys.
 */

import {
  GENERATION,
  MAX_PAGE_ROW_WORDS,
  PAGE_BYTES,
  PAGE_WORDS,
  rowIn,
} from "../../../device/page.ts";
import type { Transaction } from "../../../engine/transaction.ts";
import { Views } from "../../../memory/views.ts";
import {
  DEVICE_GATHER_ROWS,
  DEVICE_READ_GAP_PAGES,
  DEVICE_READ_PAGES,
  DEVICE_READS_AHEAD,
} from "../../../runtime/limits.ts";
import type { AnyCodec } from "../../../stores/kind.ts";
import type { Cursor } from "../../../stores/store.ts";
import type { DeviceTable } from "../device-table.ts";
import { placeWords, slotIn, wordsIn } from "../hidden-tables.ts";

/** Entries of the map that one step reads. */
const STEP_ENTRIES = 1_024;
const ALL = { from: undefined, to: undefined };
/** Pages that one of several threads takes side by side. */
const GROUP_PAGES = 8;
/** Place and ordinal of a row as one exact number: 32 + 20 bits. */
const ORDINALS = DEVICE_GATHER_ROWS;

/** An entry of the map. */
export interface MapEntry {
  readonly page: number;
  readonly generation: number;
  readonly where: number;
  readonly key: unknown;
}

/** The map with all keys decoded: `keys: false` leaves out those of rows that are found by their pages. */
export function openEntries(table: DeviceTable, { keys }: { keys: boolean }): Cursor<MapEntry> {
  const { hidden, executor, root } = table;
  const { mapCodec } = hidden;
  const [pageAt, generationAt, whereAt] = placeWords(hidden.mapTable, hidden.names);
  const decode = (views: Views, at: number, words: number): MapEntry => {
    const { i32 } = views;
    const where = i32[at + whereAt] >>> 0;
    const needsKey = keys || !sharesPage(where);
    return {
      page: i32[at + pageAt] >>> 0,
      generation: i32[at + generationAt],
      where,
      key: needsKey ? table.keyIn(mapCodec.decode(views, at, words)) : undefined,
    };
  };
  const codec = { ...mapCodec, decode } as unknown as AnyCodec<MapEntry, unknown>;
  return hidden.mapKind.open(executor, codec, root.map).cursor(ALL, false);
}

/** Whether a row is on a page, with others. */
export function sharesPage(where: number): boolean {
  return where !== 0 && wordsIn(where) <= MAX_PAGE_ROW_WORDS;
}

/** Reads through a snapshot, or a transaction of its own. */
export type Reads = <T>(body: (tx: Transaction) => T) => T;

export interface RowVisitor {
  /** Whether a row is to be read, by its place. */
  wants?(entry: MapEntry): boolean;
  /** A row on a page. */
  row(views: Views, at: number, entry: GatheredPlace): void;
  /** A row that is found by its key only. */
  keyed(key: unknown): void;
  /** After some rows; may wait, and may throw to end the walk. */
  pause(): Promise<void> | undefined;
}

/** Where a row was found: one object for all. */
export interface GatheredPlace {
  page: number;
  generation: number;
  where: number;
}

export class PageWalk {
  readonly #table: DeviceTable;
  readonly #part: number;
  readonly #parts: number;
  readonly #pages = new Uint32Array(DEVICE_GATHER_ROWS);
  readonly #generations = new Int32Array(DEVICE_GATHER_ROWS);
  readonly #wheres = new Uint32Array(DEVICE_GATHER_ROWS);
  readonly #order = new Float64Array(DEVICE_GATHER_ROWS);
  readonly #place: GatheredPlace = { page: 0, generation: 0, where: 0 };
  #count = 0;
  /** Rows that are found by their keys, counted to share them. */
  #keyed = 0;

  constructor(table: DeviceTable, part = 0, parts = 1) {
    this.#table = table;
    this.#part = part;
    this.#parts = parts;
  }

  async walk(reads: Reads, visitor: RowVisitor): Promise<void> {
    const cursor = openEntries(this.#table, { keys: false });
    const found: MapEntry[] = [];
    for (let hasMore = true; hasMore; ) {
      const keys: unknown[] = [];
      this.#count = 0;
      while (hasMore && this.#count + STEP_ENTRIES <= DEVICE_GATHER_ROWS) {
        hasMore = reads((tx) => cursor.next(tx, found, STEP_ENTRIES));
        for (const entry of found) this.#gather(entry, visitor, keys);
        // Those that are found by their keys may be all of them: they are not kept for long.
        if (keys.length >= STEP_ENTRIES) await giveKeys(keys, visitor);
        await visitor.pause();
      }
      await giveKeys(keys, visitor);
      await this.#readPages(visitor);
    }
  }

  #gather(entry: MapEntry, visitor: RowVisitor, keys: unknown[]): void {
    const { page, generation, where, key } = entry;
    if (!sharesPage(where)) {
      if (this.#keyed++ % this.#parts === this.#part) keys.push(key);
      return;
    }
    if (this.#parts > 1 && Math.floor(page / GROUP_PAGES) % this.#parts !== this.#part) return;
    if (visitor.wants !== undefined && !visitor.wants(entry)) return;
    const at = this.#count++;
    this.#pages[at] = page;
    this.#generations[at] = generation;
    this.#wheres[at] = where;
    this.#order[at] = page * ORDINALS + at;
  }

  async #readPages(visitor: RowVisitor): Promise<void> {
    const { file } = this.#table;
    const order = this.#order.subarray(0, this.#count).sort();
    const runs = this.#runs(order);
    const reading: Reading[] = [];
    const free: Views[] = [];
    let next = 0;
    try {
      for (;;) {
        while (next < runs.length && reading.length <= DEVICE_READS_AHEAD) {
          const run = runs[next++];
          const views = free.pop() ?? new Views(new ArrayBuffer(DEVICE_READ_PAGES * PAGE_BYTES));
          const ended = file.readLater(run.first, run.pages, views);
          // It is told when its turn comes.
          ended.catch(() => {});
          reading.push({ run, views, ended });
        }
        const read = reading.shift();
        if (read === undefined) return;
        await read.ended;
        this.#visitRun(read, order, visitor);
        free.push(read.views);
        await visitor.pause();
      }
    } finally {
      // Nothing is read into memory that others may use by then.
      await Promise.allSettled(reading.map(({ ended }) => ended));
    }
  }

  /** Which pages are read together, and the rows on them. */
  #runs(order: Float64Array): Run[] {
    const runs: Run[] = [];
    let run: Run | undefined;
    for (let at = 0; at < order.length; at++) {
      const page = Math.floor(order[at] / ORDINALS);
      const end = run === undefined ? 0 : run.first + run.pages;
      const fits =
        run !== undefined &&
        page <= end + DEVICE_READ_GAP_PAGES &&
        page - run.first < DEVICE_READ_PAGES;
      if (run !== undefined && fits) {
        run.pages = Math.max(run.pages, page - run.first + 1);
        run.to = at + 1;
      } else {
        run = { first: page, pages: 1, from: at, to: at + 1 };
        runs.push(run);
      }
    }
    return runs;
  }

  #visitRun({ run, views }: Reading, order: Float64Array, visitor: RowVisitor): void {
    const { file } = this.#table;
    const place = this.#place;
    let checked = -1;
    for (let at = run.from; at < run.to; at++) {
      const i = order[at] % ORDINALS;
      const page = this.#pages[i];
      const generation = this.#generations[i];
      const where = this.#wheres[i];
      const pageAt = (page - run.first) * PAGE_WORDS;
      // Once for a page: all places of its rows name one generation.
      const isChecked = page === checked && views.i32[pageAt + GENERATION] === generation;
      if (!isChecked) file.check(views, pageAt, page, generation);
      checked = page;
      const words = wordsIn(where);
      const rowAt = rowIn(views, pageAt, slotIn(where), words);
      if (rowAt < 0) throw file.damaged(page, `it has no row of ${words} words in its slot`);
      place.page = page;
      place.generation = generation;
      place.where = where;
      visitor.row(views, rowAt, place);
    }
  }
}

interface Run {
  first: number;
  pages: number;
  /** The rows, by their places in the order. */
  from: number;
  to: number;
}

interface Reading {
  readonly run: Run;
  readonly views: Views;
  readonly ended: Promise<void>;
}

async function giveKeys(keys: unknown[], visitor: RowVisitor): Promise<void> {
  for (const key of keys) visitor.keyed(key);
  keys.length = 0;
  await visitor.pause();
}
