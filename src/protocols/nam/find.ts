/**
 * Finding records by verb, in the version that a transaction sees (NAM-DB §5.1, §5.2). The newest version is one
 * read away if the key lies where its hash puts it. If that version is not visible, the ring of old headers
 * is read, and then the one body that is; after that the overflow region, from the latest to older ones. Versions of
 * a record are in one order, and who sees one sees those before it: the latest that is visible is it.
 *
 * What was read may be torn, or be gone when its turn comes: bodies prove themselves (layout.ts), and then it is
 * read again. That the lock bit is set means nothing to a reader. The version in the body counts; while the next one
 * is being written over it, the checksum does not hold.
 */

import { ConflictError, SituError } from "../../runtime/errors.ts";
import type { Routine } from "../message.ts";
import type { ComputeThread } from "./compute-thread.ts";
import { isDeletedHigh, MOVED_BIT, slotOfHigh, timestampOf } from "./header.ts";
import {
  type CellPlace,
  isWhole,
  KEPT_AT,
  type NamTable,
  OVERFLOW_AT,
  RING_AT,
  VERSION_HIGH_AT,
  VERSION_LOW_AT,
} from "./layout.ts";
import { OVERFLOW } from "./segments.ts";
import { ReadVerb } from "./verbs.ts";
import { ENTRY_BODY_AT, LOST_VERSIONS, overflowAt } from "./version-mover.ts";
import type { Visibility } from "./visibility.ts";

/** A record that is being written all the time is given up after so many reads. */
export const MOST_READS = 64;

export interface Wanted {
  readonly table: NamTable;
  readonly key: Int32Array;
  /** A free cell that this transaction gives to another key: the search goes on behind it. */
  readonly after?: CellPlace | undefined;
}

export interface Found {
  /** Of the key, or the free one where it would go; undefined if there is none. */
  readonly place: CellPlace | undefined;
  /** What the transaction sees; undefined if there is no such record for it. */
  readonly body: Int32Array | undefined;
  /** The newest version's body, with the header that a lock must find; undefined for a free cell. */
  readonly newest: Int32Array | undefined;
  /** Whether the newest version is the one that the transaction sees: only then may it write. */
  readonly isNewest: boolean;
}

interface Search extends Wanted {
  readonly index: number;
  place: CellPlace;
  probes: number;
  reads: number;
}

export function* findAll(
  thread: ComputeThread,
  visibility: Visibility,
  wanted: readonly Wanted[],
): Routine<Found[]> {
  const found = new Array<Found>(wanted.length);
  let searches: Search[] = wanted.map(({ table, key, after }, index) => ({
    table,
    key,
    index,
    place: after === undefined ? table.home(key) : table.after(after),
    probes: after === undefined ? 0 : table.distance(key, after) + 1,
    reads: 0,
  }));
  while (searches.length > 0) {
    const verbs = searches.map(({ table, place: { server, cell } }) => {
      const word = table.cellAt(cell);
      return new ReadVerb(thread, server, table.segments.cells, word, table.cellWords);
    });
    yield* thread.perform("reads", verbs);
    const next: Search[] = [];
    for (const [i, search] of searches.entries()) {
      const result = judge(search, verbs[i].words, visibility);
      if (result === "again") next.push(search);
      else if (result !== "older") found[search.index] = result;
      else {
        const body = yield* findOld(thread, visibility, search, verbs[i].words);
        const newest = verbs[i].words;
        found[search.index] = { place: search.place, body, newest, isNewest: false };
      }
    }
    searches = next;
  }
  return found;
}

function judge(
  search: Search,
  words: Int32Array,
  visibility: Visibility,
): Found | "again" | "older" {
  const { table, key, place } = search;
  const low = words[VERSION_LOW_AT];
  const high = words[VERSION_HIGH_AT];
  // Cells are given to keys in order and for good: what was never used ends the search.
  if (low === 0 && high === 0) return { place, body: undefined, newest: undefined, isNewest: true };
  if (!isWhole(words, 0, table.bodyWords)) {
    if (++search.reads < MOST_READS) return "again";
    throw changesAlways(table, [{ table: table.name, key }]);
  }
  if (!table.hasKey(words, key)) {
    if (++search.probes >= table.mostProbes) {
      return { place: undefined, body: undefined, newest: undefined, isNewest: true };
    }
    search.place = table.after(place);
    return "again";
  }
  if (!visibility.sees(slotOfHigh(high), timestampOf(low))) return "older";
  return { place, body: isDeletedHigh(high) ? undefined : words, newest: words, isNewest: true };
}

/** The latest version before the newest one that is visible. */
export function* findOld(
  thread: ComputeThread,
  visibility: Visibility,
  { table, key, place }: Pick<Search, "table" | "key" | "place">,
  newest: Int32Array,
): Routine<Int32Array | undefined> {
  const kept = newest[KEPT_AT] >>> 0;
  if (kept === 0) return undefined;
  let overflow: number | undefined;
  for (let reads = 0; reads < MOST_READS; reads++) {
    const block = yield* readBlock(thread, table, place);
    for (let number = kept - 1; number >= Math.max(0, kept - table.ring); number--) {
      const at = RING_AT + 2 * (number % table.ring);
      const low = block[at];
      const high = block[at + 1] & ~MOVED_BIT;
      if (low === 0 && high === 0) continue;
      if (!visibility.sees(slotOfHigh(high), timestampOf(low))) continue;
      const body = yield* readOld(thread, table, place, number);
      const isIt = body[VERSION_LOW_AT] === low && body[VERSION_HIGH_AT] === high;
      if (isIt && isWhole(body, 0, table.bodyWords)) return seen(body);
      // Its entry was used again meanwhile, so it was moved before.
      break;
    }
    // Between the overflow word and the ring's headers a version may have gone from here to there.
    if (block[OVERFLOW_AT] === overflow)
      return yield* walk(thread, visibility, table, key, place, overflow);
    overflow = block[OVERFLOW_AT];
  }
  throw tooOld();
}

function* walk(
  thread: ComputeThread,
  visibility: Visibility,
  table: NamTable,
  key: Int32Array,
  { server }: CellPlace,
  latest: number,
): Routine<Int32Array | undefined> {
  for (let position = latest; position !== 0; ) {
    if (position === LOST_VERSIONS) throw tooOld();
    const at = overflowAt(position, thread.directory.overflowWords);
    const verb = new ReadVerb(thread, server, OVERFLOW, at, ENTRY_BODY_AT + table.bodyWords);
    yield* thread.perform("reads", [verb]);
    const body = verb.words.subarray(ENTRY_BODY_AT);
    const isIt = verb.words[0] === position && table.hasKey(body, key);
    // Collected, because nobody is expected to need it.
    if (!isIt || !isWhole(body, 0, table.bodyWords)) throw tooOld();
    const high = body[VERSION_HIGH_AT];
    if (visibility.sees(slotOfHigh(high), timestampOf(body[VERSION_LOW_AT]))) return seen(body);
    position = verb.words[1];
  }
  return undefined;
}

function* readBlock(
  thread: ComputeThread,
  table: NamTable,
  { server, cell }: CellPlace,
): Routine<Int32Array> {
  const word = table.blockAt(cell);
  const verb = new ReadVerb(thread, server, table.segments.rings, word, table.blockWords);
  yield* thread.perform("reads", [verb]);
  return verb.words;
}

function* readOld(
  thread: ComputeThread,
  table: NamTable,
  { server, cell }: CellPlace,
  number: number,
): Routine<Int32Array> {
  const word = table.oldAt(cell, number);
  const verb = new ReadVerb(thread, server, table.segments.old, word, table.bodyWords);
  yield* thread.perform("reads", [verb]);
  return verb.words;
}

export function changesAlways(
  table: NamTable,
  keys: readonly { readonly table: string; readonly key: unknown }[] = [],
): SituError {
  return new ConflictError(`a record of table ${table.name} changes all the time`, keys);
}

function seen(body: Int32Array): Int32Array | undefined {
  return isDeletedHigh(body[VERSION_HIGH_AT]) ? undefined : body;
}

function tooOld(): SituError {
  return new SituError(
    "SITU_SNAPSHOT_TOO_OLD",
    "a version that the transaction needs was collected: it took longer than the longest transaction time",
  );
}
