/**
 * Looks after the space of a device file. Which pages are in use is written nowhere but in the table's map;
 * so the collector walks over the map now and then, after many pages were written, and counts what leads to
 * each page. Then
 *
 *   - pages that nothing leads to may be written again, when nobody can still come from a place that
 *     led there: when no transaction runs that had begun by then, no snapshot is open that was taken by
 *     then, and the log has on disk what freed them, else a recovery could come back to before that. They
 *     go to the table of free pages;
 *   - of pages that are sparsely filled, the rows that are left are written to other pages and moved there.
 *
 * An update in the device's threads (elements/change-job.ts) holds pages that nothing leads to yet. While there is
 * one, no walk begins and no page is called free: pages that it writes after a walk has begun have a generation from
 * after that beginning, and those that it has not written in the end, it gives back itself.
 *
 * The walk takes many steps, and pages are written meanwhile. Those have a generation from after its
 * beginning, and are passed over: every page is looked at again, under the keeper's role, just before it is
 * called free. So it does not matter either when another executor has done the same at the same time. All
 * that a collector knows may be lost with it: the next one finds the same.
 */

import { GENERATION, MAX_PAGE_ROW_WORDS, PAGE_WORDS, rowsIn, runPages } from "../../device/page.ts";
import { readAtSnapshot, runReadOnly, runSync, tryRun } from "../../engine/run.ts";
import { Snapshot } from "../../engine/snapshots/snapshot.ts";
import { limitHigh, limitLow } from "../../engine/tid.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { Views } from "../../memory/views.ts";
import { nowMs } from "../../runtime/clock.ts";
import {
  DEFAULT_TIMEOUT_MS,
  DEVICE_COLLECT_PAGES,
  DEVICE_COLLECT_SHARE,
  DEVICE_COMPACT_PAGES,
  DEVICE_FREE_PAGES,
  DEVICE_MOVE_ROWS,
  DEVICE_SPARSE_SHARE,
} from "../../runtime/limits.ts";
import type { AnyCodec } from "../../stores/kind.ts";
import type { Cursor, RowStore } from "../../stores/store.ts";
import type { DeviceTable } from "./device-table.ts";
import { hasDeviceJobs } from "./elements/device-jobs.ts";
import { type DevicePlace, placeCodec, whereOf, wordsIn } from "./hidden-tables.ts";
import { asKeeper, NOT_KEEPER } from "./keeper-role.ts";
import { addFreePages, type PageWriter, type WrittenPlace } from "./page-writer.ts";

/** Entries of the map that a step of a walk looks at. */
const STEP_ENTRIES = 256;
const ATTEMPTS = 3;
const ALL = { from: undefined, to: undefined };

/** Pages that nothing leads to. */
interface DeadPages {
  readonly pages: number[];
  /** They were not written later than in this epoch, when they were looked at. */
  readonly writtenBy: number;
  /** What had led to them was gone by this epoch. */
  readonly diedBy: number;
}

/** A walk over the map that has begun. */
interface Walk {
  readonly cursor: Cursor<DevicePlace>;
  /** Pages written after it are none of its business. */
  readonly epoch: number;
  /** By page: the words of rows that the map leads to. */
  readonly live: Uint32Array;
}

interface LiveRow {
  readonly key: unknown;
  readonly words: Int32Array;
  readonly from: WrittenPlace;
}

/** How long a step of a walk may take. */
const STEP_MS = 10_000;

export class Collector {
  /** Pages that were made free, and rows that were moved out of sparse pages, by this executor. */
  freed = 0;
  compacted = 0;
  readonly #table: DeviceTable;
  readonly #writer: PageWriter;
  readonly #tx: Transaction;
  readonly #places: RowStore<DevicePlace, unknown>;
  #walk: Walk | undefined;
  #sparse: number[] = [];
  /** The epoch in which the walk began that found them. */
  #walked = 0;
  #dead: DeadPages[] = [];

  constructor(table: DeviceTable, writer: PageWriter) {
    this.#table = table;
    this.#writer = writer;
    this.#tx = new Transaction(table.executor);
    this.#tx.subject = `the pages of table ${table.table.name}`;
    const { hidden, executor, root } = table;
    this.#places = hidden.mapKind.open(executor, copiedPlaces(table), root.map);
  }

  /** Whether nothing is under way, nor waits for those who may still read. */
  get isIdle(): boolean {
    return this.#walk === undefined && this.#sparse.length === 0 && this.#dead.length === 0;
  }

  /** Works until about then; says whether there is more to do now. */
  work(endMs: number): boolean {
    if (!this.#table.file.exists) return false;
    if (this.#release(endMs)) return true;
    if (this.#walk === undefined && this.#sparse.length === 0 && !this.#begin()) return false;
    while (this.#walk !== undefined) {
      const walk = this.#walk;
      if (asKeeper(this.#table, () => this.#step(walk)) === NOT_KEEPER) return true;
      if (nowMs() >= endMs) return true;
    }
    while (this.#sparse.length > 0) {
      if (!this.#compact()) return true;
      if (nowMs() >= endMs) return true;
    }
    return false;
  }

  /** Begins a walk, if enough pages were written since the last one. */
  #begin(): boolean {
    const table = this.#table;
    if (table.writtenPages < DEVICE_COLLECT_PAGES) return false;
    const pages = table.file.pages();
    if (table.writtenPages < pages * DEVICE_COLLECT_SHARE) return false;
    // Under the role: nobody is between writing pages and giving rows their places.
    const epoch = asKeeper(table, () =>
      hasDeviceJobs(table.executor) ? NOT_KEEPER : table.executor.mark(),
    );
    if (epoch === NOT_KEEPER) return false;
    table.writtenPages = 0;
    const cursor = this.#places.cursor(ALL, false);
    this.#walk = { cursor, epoch, live: new Uint32Array(pages) };
    return true;
  }

  /** Some entries of the map. */
  #step(walk: Walk): void {
    const { executor } = this.#table;
    const found: DevicePlace[] = [];
    const next = (tx: Transaction): boolean => walk.cursor.next(tx, found, STEP_ENTRIES);
    // A snapshot for each step: it sees one state, and no writer is in its way.
    const snapshot = Snapshot.take(executor, STEP_MS, STEP_MS);
    let hasMore: boolean;
    try {
      hasMore = readAtSnapshot(executor, this.#tx, snapshot, next, undefined);
    } finally {
      snapshot.release();
    }
    for (const { page, where } of found) count(walk.live, page, where);
    if (!hasMore) this.#endWalk(walk);
  }

  #endWalk({ live, epoch }: Walk): void {
    const { executor } = this.#table;
    this.#walk = undefined;
    const free = new Set(this.#freePages());
    const pages: number[] = [];
    for (let page = 0; page < live.length; page++) {
      if (free.has(page)) continue;
      if (live[page] === 0) pages.push(page);
      else if (live[page] < PAGE_WORDS * DEVICE_SPARSE_SHARE) this.#sparse.push(page);
    }
    this.#sparse.sort((a, b) => live[a] - live[b]);
    this.#walked = epoch;
    if (pages.length > 0) this.#dead.push({ pages, writtenBy: epoch, diedBy: executor.mark() });
  }

  #freePages(): number[] {
    const { executor, free } = this.#table;
    const all: number[] = [];
    const found: { page: number }[] = [];
    const cursor = free.cursor(ALL, false);
    for (let hasMore = true; hasMore; ) {
      hasMore = runSync(
        executor,
        this.#tx,
        DEFAULT_TIMEOUT_MS,
        () => cursor.next(this.#tx, found, DEVICE_FREE_PAGES),
        undefined,
      );
      for (const { page } of found) all.push(page);
    }
    return all;
  }

  /** Makes pages free that nobody can be led to any more, until about then. Says whether there are more. */
  #release(endMs: number): boolean {
    for (const dead of this.#dead) {
      if (!this.#isForgotten(dead.diedBy)) continue;
      while (dead.pages.length > 0) {
        if (nowMs() >= endMs) return true;
        const done = asKeeper(this.#table, () => {
          if (hasDeviceJobs(this.#table.executor)) return NOT_KEEPER;
          return this.#free(dead.pages.slice(-DEVICE_FREE_PAGES), dead.writtenBy);
        });
        if (done === NOT_KEEPER) break;
        dead.pages.length = Math.max(0, dead.pages.length - DEVICE_FREE_PAGES);
      }
    }
    this.#dead = this.#dead.filter(({ pages }) => pages.length > 0);
    return false;
  }

  #isForgotten(epoch: number): boolean {
    const { executor } = this.#table;
    if (!executor.epochs.isPast(epoch)) return false;
    const { registry } = executor.versions;
    registry.releaseExpired();
    if (registry.hasBefore(limitHigh(epoch), limitLow(epoch))) return false;
    return !executor.durability.isLogged || executor.durability.epoch >= epoch;
  }

  #free(pages: readonly number[], writtenBy: number): void {
    const { file } = this.#table;
    // Under the role nobody writes: what is older now was not written since it was looked at.
    const isOld = pages.filter((page) => file.epochOf(page) <= writtenBy);
    this.freed += addFreePages(this.#table, this.#tx, isOld);
  }

  /** Empties some sparse pages; false if another has the role. */
  #compact(): boolean {
    const { executor } = this.#table;
    const done = asKeeper(this.#table, () => {
      // What an update has read is better left where it is.
      if (hasDeviceJobs(executor)) return NOT_KEEPER;
      const pages = this.#sparse.splice(0, DEVICE_COMPACT_PAGES);
      const emptied = this.#empty(pages.filter((page) => this.#isOld(page)));
      if (emptied.length > 0) {
        this.#dead.push({ pages: emptied, writtenBy: this.#walked, diedBy: executor.mark() });
      }
      return undefined;
    });
    return done !== NOT_KEEPER;
  }

  #isOld(page: number): boolean {
    return this.#table.file.epochOf(page) <= this.#walked;
  }

  /** Moves the rows of pages to others; returns the pages that nothing leads to then. */
  #empty(pages: readonly number[]): number[] {
    let rows: readonly LiveRow[] = pages.flatMap((page) => this.#liveRows(page));
    const left = new Set<number>();
    while (rows.length > 0) {
      const places = this.#writer.write(rows.map(({ words }) => words));
      for (let from = 0; from < places.length; from += DEVICE_MOVE_ROWS) {
        const to = Math.min(from + DEVICE_MOVE_ROWS, places.length);
        const some = rows.slice(from, to);
        if (this.#give(some, places.slice(from, to))) this.compacted += some.length;
        else for (const { from: old } of some) left.add(old.page);
      }
      rows = rows.slice(places.length);
    }
    return pages.filter((page) => !left.has(page));
  }

  #liveRows(page: number): LiveRow[] {
    const table = this.#table;
    const views = table.file.readAlone(page);
    const rows: LiveRow[] = [];
    for (const { slot, at, words } of rowsIn(views, 0)) {
      const key = table.keyAt(views, at, words);
      const from = { page, generation: views.i32[GENERATION], where: whereOf(words, slot) };
      if (!this.#leadsTo(key, from)) continue;
      rows.push({ key, words: views.i32.slice(at, at + words), from });
    }
    return rows;
  }

  #leadsTo(key: unknown, place: WrittenPlace): boolean {
    const look = (tx: Transaction): boolean => isSame(this.#table.map.read(tx, key), place);
    return runReadOnly(this.#table.executor, this.#tx, look, undefined);
  }

  /** Gives rows their new places, those that still have the old one; false if others are in the way. */
  #give(rows: readonly LiveRow[], places: readonly WrittenPlace[]): boolean {
    const { executor, map, entries } = this.#table;
    return tryRun(executor, this.#tx, ATTEMPTS, (tx) => {
      rows.forEach(({ key, from }, i) => {
        const { page, generation, where } = places[i];
        if (!isSame(map.read(tx, key), from)) return;
        entries.update(tx, key, this.#table.placeRow(page, generation, where));
      });
    });
  }
}

function isSame(place: DevicePlace | undefined, other: WrittenPlace): boolean {
  return (
    place?.page === other.page &&
    place.generation === other.generation &&
    place.where === other.where
  );
}

/** Counts the row of a place. A page of a long row is full. */
function count(live: Uint32Array, page: number, where: number): void {
  const words = wordsIn(where);
  if (where === 0) return;
  if (words <= MAX_PAGE_ROW_WORDS) {
    if (page < live.length) live[page] += words + 1;
    return;
  }
  live.fill(PAGE_WORDS, page, page + runPages(words));
}

/** A codec of the map whose rows are places, each an object of its own. */
function copiedPlaces({ hidden }: DeviceTable): AnyCodec<DevicePlace, unknown> {
  const codec = placeCodec(hidden);
  const decode = (views: Views, at: number, words: number): DevicePlace => ({
    ...codec.decode(views, at, words),
  });
  return { ...codec, decode };
}
