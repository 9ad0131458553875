/**
 * Where an operation of a database on a device table runs if the caller leaves that open (the paper's §4.1.1): on the
 * host, which uses an index and the pages that it has in its buffer, or in the device's threads, which walk over the
 * whole map, but read every page once and in order, and hold nobody's event loop. Few rows that an index
 * finds are for the host; a large part of a table is for the device.
 *
 * Costs are rough estimates, not calibrated to a machine yet. Both places
 * depend on the machine in the same way, more or less. A bad choice is slower, never wrong.
 */

import type { Choice } from "../bulk/plan.ts";
import type { Program } from "../expressions/program.ts";
import { fieldsOf } from "../expressions/task-code.ts";
import type { TableStore } from "../indexes/table-store.ts";
import type { DeviceTable } from "./device-table.ts";
import { whyByRows, whyNotRead } from "./elements/shippable.ts";

/** Microseconds. */
const HOST = {
  /** To find an entry of the map and count it. */
  entry: 0.1,
  /** To find a row in the buffer, or in memory, and look at it. */
  row: 3,
  /** To read a page that is not in the buffer. */
  page: 25,
  /** To write a row to memory and to the log, and to move it to a page later. */
  change: 25,
};
const DEVICE = {
  /** To be told, and to tell. */
  start: 1_000,
  /** To start the threads. */
  threads: 80_000,
  /** To look at an entry of the map: once to read, three times to change rows. */
  entry: 0.2,
  /** To read a page and check it, with its neighbours. */
  page: 8,
  row: 0.2,
  /** To write a row to a page, and to give it its new place. */
  change: 5,
  /** Until pages are on disk. */
  sync: 5_000,
};
/** The share of rows for which a condition is taken to be true. */
const GUESSED_SHARE = 0.25;

/** What an operation would cost, in milliseconds. */
export interface PlaceCosts {
  readonly host: number;
  /** Undefined if the device cannot do it. */
  readonly device: number | undefined;
}

export interface ChosenPlace {
  readonly place: "host" | "device";
  readonly costs: PlaceCosts;
  readonly why: string;
}

/** What is known of the table, and of those who would work. */
export interface PlaceFacts {
  /** Rows that the host would look at, and rows of the table. */
  readonly looked: number;
  readonly rows: number;
  /** Pages of the file, and those that the host's buffer has room for. */
  readonly pages: number;
  readonly bufferPages: number;
  readonly threads: number;
  readonly isStarted: boolean;
}

export function placeFacts(
  { device, file }: DeviceTable,
  { candidates, path }: Choice,
  threads: number,
  isStarted: boolean,
): PlaceFacts {
  const chosen = candidates.find(({ access, index }) => access === path.by && index === path.index);
  const rows = Math.max(0, ...candidates.map((each) => each.rows));
  const bufferPages = device.buffer.mostPages;
  const pages = file.exists ? file.pages() : 0;
  return { looked: chosen?.rows ?? rows, rows, pages, bufferPages, threads, isStarted };
}

export function choosePlace(store: TableStore, program: Program, facts: PlaceFacts): ChosenPlace {
  const whyNot = whyNotRead(store);
  const host = hostMs(program, facts);
  if (whyNot !== undefined) {
    const why = `the device cannot do it, because ${whyNot}`;
    return { place: "host", costs: { host, device: undefined }, why };
  }
  const byRows = changes(program) > 0 ? whyByRows(store, program) : undefined;
  const device = deviceMs(program, facts, byRows !== undefined);
  const place = device < host ? "device" : "host";
  const costs = `about ${shown(host)} ms on the host and ${shown(device)} ms on the device`;
  const why = byRows === undefined ? costs : `${costs}, row by row, because ${byRows}`;
  return { place, costs: { host, device }, why };
}

function shown(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : ms.toFixed(0);
}

/** Whether entries of the map are enough to answer. */
function onlyCounts(program: Program): boolean {
  return program.task.kind === "aggregate" && fieldsOf(program).size === 0;
}

function changes({ where, task }: Program): number {
  if (task.kind !== "update" && task.kind !== "delete") return 0;
  return where === undefined ? 1 : GUESSED_SHARE;
}

function hostMs(program: Program, { looked, rows, pages, bufferPages }: PlaceFacts): number {
  if (onlyCounts(program)) return (looked * HOST.entry) / 1_000;
  const missing = pages > bufferPages ? 1 - bufferPages / pages : 0;
  const perRow = HOST.row + missing * HOST.page;
  // By an index or the key, the rows that are looked at are those that match, most of them.
  const share = looked < rows && changes(program) > 0 ? 1 : changes(program);
  return (looked * (perRow + share * HOST.change)) / 1_000;
}

function deviceMs(program: Program, facts: PlaceFacts, byRows: boolean): number {
  const { looked, rows, pages, threads, isStarted } = facts;
  const share = changes(program);
  const changed = looked < rows && share > 0 ? looked : share * rows;
  const walks = share > 0 ? 3 : 1;
  const start = DEVICE.start + (isStarted ? 0 : DEVICE.threads) + (share > 0 ? DEVICE.sync : 0);
  const read = onlyCounts(program) ? 0 : pages * DEVICE.page + rows * DEVICE.row;
  const perChange = byRows ? HOST.row + HOST.page + HOST.change : DEVICE.change;
  // Each thread walks over the map; one of them changes rows.
  const parallel = share > 0 ? read : read / threads;
  return (start + rows * DEVICE.entry * walks + parallel + changed * perChange) / 1_000;
}
