/**
 * Reading all records of a table by verb, in the versions that a transaction sees. A range is read cell by cell at its primary, many
 * cells with each verb. Where the newest version is not visible, the older ones are looked for as a search
 * does it (find.ts). What was read torn is read again on its own.
 */

import { MAX_VERB_WORDS } from "../../runtime/limits.ts";
import type { Routine } from "../message.ts";
import type { ComputeThread } from "./compute-thread.ts";
import { changesAlways, findOld, MOST_READS } from "./find.ts";
import { isDeletedHigh, slotOfHigh, timestampOf } from "./header.ts";
import {
  type CellPlace,
  isWhole,
  KEY_AT,
  type NamTable,
  NO_KEY_AT,
  VERSION_HIGH_AT,
  VERSION_LOW_AT,
} from "./layout.ts";
import { ReadVerb } from "./verbs.ts";
import type { Visibility } from "./visibility.ts";

/** Where a scan goes on. */
export interface ScanPlace {
  readonly range: number;
  /** Within the range. */
  readonly cell: number;
}

export interface Scanned {
  /** Bodies of records, none of which is deleted. */
  readonly bodies: readonly Int32Array[];
  /** Undefined at the end. */
  readonly next: ScanPlace | undefined;
}

export const FIRST_PLACE: ScanPlace = { range: 0, cell: 0 };

/** The records of the next cells of a table. */
export function* scanCells(
  thread: ComputeThread,
  visibility: Visibility,
  table: NamTable,
  { range, cell }: ScanPlace,
): Routine<Scanned> {
  const { cellWords, cellsPerServer, segments } = table;
  const count = Math.min(
    Math.max(1, Math.floor(MAX_VERB_WORDS / cellWords)),
    cellsPerServer - cell,
  );
  const [place] = table.placesOf(range, cell);
  const word = table.cellAt(place.cell);
  const verb = new ReadVerb(thread, place.server, segments.cells, word, count * cellWords);
  yield* thread.perform("reads", [verb]);
  const bodies: Int32Array[] = [];
  for (let i = 0; i < count; i++) {
    const from = i * cellWords;
    const newest = verb.words.subarray(from, from + cellWords);
    const at = { server: place.server, cell: place.cell + i };
    const body = yield* visibleOf(thread, visibility, table, at, newest);
    if (body !== undefined) bodies.push(body);
  }
  const isEnd = cell + count >= cellsPerServer;
  const isLast = isEnd && range + 1 >= table.servers.length;
  const next = isEnd ? { range: range + 1, cell: 0 } : { range, cell: cell + count };
  return { bodies, next: isLast ? undefined : next };
}

function* visibleOf(
  thread: ComputeThread,
  visibility: Visibility,
  table: NamTable,
  place: CellPlace,
  words: Int32Array,
): Routine<Int32Array | undefined> {
  let newest = words;
  for (let reads = 1; !isWhole(newest, 0, table.bodyWords); reads++) {
    if (newest[VERSION_LOW_AT] === 0 && newest[VERSION_HIGH_AT] === 0) return undefined;
    if (reads === MOST_READS) throw changesAlways(table);
    const { server, cell } = place;
    const at = table.cellAt(cell);
    const verb = new ReadVerb(thread, server, table.segments.cells, at, table.cellWords);
    yield* thread.perform("reads", [verb]);
    newest = verb.words;
  }
  if (newest[NO_KEY_AT] !== 0) return undefined;
  const high = newest[VERSION_HIGH_AT];
  if (visibility.sees(slotOfHigh(high), timestampOf(newest[VERSION_LOW_AT]))) {
    return isDeletedHigh(high) ? undefined : newest;
  }
  const key = newest.slice(KEY_AT, KEY_AT + table.keyWords);
  return yield* findOld(thread, visibility, { table, key, place }, newest);
}
