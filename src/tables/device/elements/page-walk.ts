/**
 * Walks over the rows of a device table in the order of their pages. The places of rows are gathered from the
 * map first, then sorted: so every page is read once, pages side by side are read together, and the next ones
 * are being read while the rows of this one are looked at (the paper's preloader, §7.1). Rows that a projection
 * (projection.ts) has all fields of are looked at there, and their pages are not read.
 *
 * Several threads share a table by its pages: each walks over the whole map, which is short beside the rows,
 * and takes every n-th group of pages. All of them see the same map when they read through one snapshot.
 *
 * Rows without a page to share, those in the delta and long ones, are given out by their keys.
 */

import { GENERATION, PAGE_BYTES, PAGE_WORDS, rowIn, slotsIn } from "../../../device/page.ts";
import type { Transaction } from "../../../engine/transaction.ts";
import { Views } from "../../../memory/views.ts";
import { turn } from "../../../runtime/clock.ts";
import {
  DEVICE_GATHER_ROWS,
  DEVICE_READ_GAP_PAGES,
  DEVICE_READ_PAGES,
  DEVICE_READS_AHEAD,
} from "../../../runtime/limits.ts";
import type { DeviceTable } from "../device-table.ts";
import { slotIn, wordsIn } from "../hidden-tables.ts";
import { type MapStep, MapSteps, type RememberedMap } from "./map-steps.ts";
import { sharesPage } from "./map-walk.ts";
import type { Projection } from "./projection.ts";

/** Steps over the map after which others have a turn. */
const TURN_STEPS = 32;
/** Entries of a step that are looked at before there is a pause. */
const SOME_ENTRIES = 4_096;
/** Pages that one of several threads takes side by side. */
const GROUP_PAGES = 8;
/** Place and ordinal of a row as one exact number: 32 + 20 bits. */
const ORDINALS = DEVICE_GATHER_ROWS;
const FIRST_GATHERED = 1 << 13;

/** Reads through a snapshot, or a transaction of its own. */
export type Reads = <T>(body: (tx: Transaction) => T) => T;

/** Where a row was found: one object for all. */
export interface GatheredPlace {
  page: number;
  generation: number;
  where: number;
  /** Of its page. */
  slots: number;
}

export interface RowVisitor {
  /** Whether a row is to be looked at, by its place. */
  wants?(page: number, generation: number, where: number): boolean;
  /** A row on a page. */
  row(views: Views, at: number, place: GatheredPlace): void;
  /** The same in a projection; returns whether the row itself is needed, too. */
  projected?(views: Views, at: number, place: GatheredPlace): boolean;
  /** Rows of a projection side by side; their places do not matter. */
  packed?(views: Views, count: number): void;
  /** A row that is found by its key only. */
  keyed(key: unknown): void;
  /** After some rows; may wait, and may throw to end the walk. */
  pause(): Promise<void> | undefined;
}

export class PageWalk {
  readonly #map: RememberedMap;
  readonly #table: DeviceTable;
  readonly #part: number;
  readonly #parts: number;
  readonly #projection: Projection | undefined;
  /** The places of rows whose pages are to be read. */
  #pages = new Uint32Array(FIRST_GATHERED);
  #generations = new Int32Array(FIRST_GATHERED);
  #wheres = new Uint32Array(FIRST_GATHERED);
  #order = new Float64Array(FIRST_GATHERED);
  readonly #place: GatheredPlace = { page: 0, generation: 0, where: 0, slots: 0 };
  #count = 0;
  /** Rows that were given out by their keys. */
  keyed = 0;
  /** Steps whose rows were all given out, to one who wants each only once. */
  readonly #known = new WeakSet<MapStep>();

  constructor(map: RememberedMap, part = 0, parts = 1, projection?: Projection) {
    this.#map = map;
    this.#table = map.table;
    this.#part = part;
    this.#parts = parts;
    this.#projection = projection;
  }

  async walk(reads: Reads, visitor: RowVisitor): Promise<void> {
    const steps = new MapSteps(this.#map);
    const next = (tx: Transaction): MapStep | undefined => steps.next(tx);
    const keys: unknown[] = [];
    this.#count = 0;
    for (let turns = 1; ; turns++) {
      const step = reads(next);
      if (step === undefined) break;
      if (!this.#isKnown(step, visitor) && !this.#takePacked(step, visitor, keys)) {
        for (let from = 0; from < step.count; from += SOME_ENTRIES) {
          const to = Math.min(step.count, from + SOME_ENTRIES);
          if (this.#count + to - from > DEVICE_GATHER_ROWS) await this.#readPages(visitor);
          this.#gather(step, from, to, visitor, keys);
          // Those that are found by their keys may be all of them: they are not kept for long.
          await this.#giveKeys(keys, visitor);
        }
        this.#pack(step, steps, visitor);
      }
      await this.#giveKeys(keys, visitor);
      const paused = visitor.pause();
      if (paused !== undefined) await paused;
      if (turns % TURN_STEPS === 0) await turn();
    }
    await this.#readPages(visitor);
  }

  /** Whether all rows of a step were looked at by an earlier walk, of one who wants each only once. */
  #isKnown(step: MapStep, visitor: RowVisitor): boolean {
    if (visitor.wants === undefined || step.seen === undefined || step.keys.size > 0) return false;
    if (this.#known.has(step)) return true;
    this.#known.add(step);
    return false;
  }

  /** Gives the rows of a step out as they were packed the last time; false if they were not. */
  #takePacked(step: MapStep, visitor: RowVisitor, keys: unknown[]): boolean {
    const { packed } = step;
    const isTaken =
      visitor.packed !== undefined &&
      packed !== undefined &&
      packed.projection === this.#projection &&
      packed.part === this.#part &&
      packed.parts === this.#parts;
    if (!isTaken) return false;
    visitor.packed!(packed.views, packed.count);
    for (const [position, key] of step.keys) if (this.#isShareOfKeys(position)) keys.push(key);
    return true;
  }

  /** Keeps this share's rows of a step side by side for the next time, if the projection has all of them. */
  #pack(step: MapStep, steps: MapSteps, visitor: RowVisitor): void {
    const projection = this.#projection;
    if (projection === undefined || visitor.packed === undefined || step.seen === undefined) return;
    const { pages, generations, wheres, count } = step;
    const { rowWords } = projection;
    let rows = 0;
    for (let i = 0; i < count; i++) {
      if (!sharesPage(wheres[i]) || !this.#isShare(pages[i])) continue;
      if (projection.find(pages[i], generations[i], slotIn(wheres[i])) < 0) return;
      rows++;
    }
    // As programs read them: whole double words.
    const views = new Views(new ArrayBuffer(Math.ceil((rows * rowWords) / 2) * 8));
    for (let i = 0, into = 0; i < count; i++) {
      if (!sharesPage(wheres[i]) || !this.#isShare(pages[i])) continue;
      const at = projection.find(pages[i], generations[i], slotIn(wheres[i]));
      const from = projection.views.i32;
      for (let word = 0; word < rowWords; word++) views.i32[into++] = from[at + word];
    }
    steps.pack(step, { projection, part: this.#part, parts: this.#parts, views, count: rows });
  }

  /** All threads see the same steps, so they agree on whose a row without a page is. */
  #isShareOfKeys(position: number): boolean {
    return position % this.#parts === this.#part;
  }

  #isShare(page: number): boolean {
    return this.#parts === 1 || Math.floor(page / GROUP_PAGES) % this.#parts === this.#part;
  }

  #gather(step: MapStep, from: number, to: number, visitor: RowVisitor, keys: unknown[]): void {
    const { pages, generations, wheres } = step;
    const projection = this.#projection;
    for (let position = from; position < to; position++) {
      const where = wheres[position];
      if (!sharesPage(where)) {
        if (this.#isShareOfKeys(position)) keys.push(step.keys.get(position));
        continue;
      }
      const page = pages[position];
      if (!this.#isShare(page)) continue;
      const generation = generations[position];
      if (visitor.wants !== undefined && !visitor.wants(page, generation, where)) continue;
      if (projection !== undefined) {
        const at = projection.find(page, generation, slotIn(where));
        if (at >= 0 && !this.#visitProjected(projection, at, page, generation, where, visitor)) {
          continue;
        }
      }
      if (this.#count === this.#pages.length) this.#grow();
      const at = this.#count++;
      this.#pages[at] = page;
      this.#generations[at] = generation;
      this.#wheres[at] = where;
      this.#order[at] = page * ORDINALS + at;
    }
  }

  /** Returns whether the row itself is needed. */
  #visitProjected(
    projection: Projection,
    at: number,
    page: number,
    generation: number,
    where: number,
    visitor: RowVisitor,
  ): boolean {
    const place = this.#place;
    place.page = page;
    place.generation = generation;
    place.where = where;
    place.slots = projection.slotsOf(page);
    return visitor.projected!(projection.views, at, place);
  }

  #grow(): void {
    const length = this.#pages.length * 2;
    const grown = <T extends Uint32Array | Int32Array | Float64Array>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.#pages = grown(new Uint32Array(length), this.#pages);
    this.#generations = grown(new Int32Array(length), this.#generations);
    this.#wheres = grown(new Uint32Array(length), this.#wheres);
    this.#order = grown(new Float64Array(length), this.#order);
  }

  async #giveKeys(keys: unknown[], visitor: RowVisitor): Promise<void> {
    if (keys.length === 0) return;
    this.keyed += keys.length;
    for (const key of keys) visitor.keyed(key);
    keys.length = 0;
    await visitor.pause();
  }

  /** Reads the pages of what was gathered. */
  async #readPages(visitor: RowVisitor): Promise<void> {
    const { file } = this.#table;
    const order = this.#order.subarray(0, this.#count).sort();
    this.#count = 0;
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
    const projection = this.#projection;
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
      if (!isChecked) {
        file.check(views, pageAt, page, generation);
        projection?.add(views, pageAt, page, generation);
      }
      checked = page;
      const words = wordsIn(where);
      const rowAt = rowIn(views, pageAt, slotIn(where), words);
      if (rowAt < 0) throw file.damaged(page, `it has no row of ${words} words in its slot`);
      place.page = page;
      place.generation = generation;
      place.where = where;
      place.slots = slotsIn(views, pageAt);
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
