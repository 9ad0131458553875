/**
 * Settling what a compute server has left behind (NAM-DB §6.2, and what the paper leaves open). Whoever does it
 * claims the pairs of the dead one first, so nothing of that one happens any more, and then acts in its name. For
 * each thread its journal says which records it was about to write, and with which timestamp t:
 *
 *   published    t is in the vector: nothing to do
 *   forward      every record is locked by (slot, t), or has the version (slot, t) already: all locks were held, so it
 *                was validated as a whole. What is missing is kept and installed, then t is published
 *   back         some record is neither: not everything was locked, so nothing was installed. What is locked by (slot, t)
 *                gets its version back
 *
 * Unlocking alone would not do: versions that were installed and never published would be invisible for ever, and
 * would keep everybody else from writing those records. A settler that dies is replaced by another one, which
 * claims the pairs again and finds one of the same states. Threads that share a slot are settled together, for
 * the slot tells what all of them have done.
 *
 * The same brings back a thread that has lost a reply, or was taken for dead: it claims its own pair and
 * learns what became of its transaction.
 */

import { SituError } from "../../runtime/errors.ts";
import type { Routine } from "../message.ts";
import { claimPair } from "./claim.ts";
import { aliveOf, type ComputeThread } from "./compute-thread.ts";
import { isLockedHigh, isMovedHigh, isSameSlot, MOVED_BIT } from "./header.ts";
import { decodeJournal, type Journal, type JournalRecord } from "./journal.ts";
import { HEADER_WORDS, isWhole, KEPT_AT, VERSION_HIGH_AT, VERSION_LOW_AT } from "./layout.ts";
import { JOURNALS, TIMESTAMPS, VECTOR_AT } from "./segments.ts";
import type { Timestamps } from "./timestamps.ts";
import { installAt, installsOf, keepOf, lockOf, unlockOf } from "./transaction.ts";
import { type GuardedVerb, ReadVerb } from "./verbs.ts";
import { isFree } from "./version-mover.ts";

export type Settlement = "nothing" | "published" | "forward" | "back";

export interface Settled {
  readonly pair: number;
  readonly settlement: Settlement;
  /** Of the last transaction that the journal knows, and the incarnation that began it. */
  readonly timestamp: number;
  readonly incarnation: number;
}

/** A record as the settler finds it. */
interface State {
  readonly record: JournalRecord;
  readonly isLocked: boolean;
  readonly isInstalled: boolean;
  /** The version that is to be kept, if it is still in place. */
  readonly before: Int32Array | undefined;
}

/** All threads of one slot. They may be used again afterwards, by whoever has settled them. */
export function* settle(
  threads: readonly ComputeThread[],
  timestamps: Timestamps,
  claimant: number,
): Routine<Settled[]> {
  for (const thread of threads) {
    yield* claimPair(thread, claimant);
    thread.isBroken = false;
  }
  const [first] = threads;
  const published = yield* readSlot(first, timestamps);
  const settled: Settled[] = [];
  let last = published;
  for (const thread of threads) {
    const journal = yield* readJournal(thread);
    if (journal === undefined) {
      settled.push({ pair: thread.pair, settlement: "nothing", timestamp: 0, incarnation: 0 });
      continue;
    }
    const { timestamp, incarnation } = journal;
    const isPublished = timestamp <= published;
    const settlement = isPublished ? "published" : yield* settleOne(thread, journal);
    settled.push({ pair: thread.pair, settlement, timestamp, incarnation });
    // What was undone under a shared slot is passed over; a slot of one's own counts it again.
    const isPassed = settlement === "forward" || threads.length > 1;
    if (isPassed) last = Math.max(last, timestamp);
  }
  if (last > published) yield* timestamps.writeSlot(first, last);
  for (const thread of threads) timestamps.resume(thread, last);
  return settled;
}

function* settleOne(thread: ComputeThread, journal: Journal): Routine<"forward" | "back"> {
  const { timestamp } = journal;
  const states = yield* readStates(thread, journal);
  const isWholeSet = states.every(({ isLocked, isInstalled }) => isLocked || isInstalled);
  if (isWholeSet && (yield* keepRest(thread, states))) {
    // Where it is installed, other copies may not have it yet. Nobody has written it since: it is not published.
    yield* thread.perform(
      "installs",
      states.flatMap(({ record, isLocked }) =>
        isLocked
          ? installsOf(thread, record)
          : record.others.map((place) => installAt(thread, record, place)),
      ),
    );
    return "forward";
  }
  const locked = states.filter(({ isLocked }) => isLocked);
  yield* thread.perform(
    "locks",
    locked.map(({ record }) => unlockOf(thread, record, timestamp)),
  );
  return "back";
}

/** False if a ring has no room: then nothing was kept or installed yet, and all of it can be undone. */
function* keepRest(thread: ComputeThread, states: readonly State[]): Routine<boolean> {
  const rest = states.filter(
    ({ isLocked, before, record }) =>
      isLocked && before !== undefined && record.body[KEPT_AT] !== 0,
  );
  const entries = rest.map(({ record: { table, server, cell, body } }) => {
    const word = table.ringHeaderAt(cell, (body[KEPT_AT] >>> 0) - 1);
    return new ReadVerb(thread, server, table.segments.rings, word, HEADER_WORDS);
  });
  yield* thread.perform("oldVersions", entries);
  const missing: GuardedVerb[] = [];
  for (const [i, { record, before }] of rest.entries()) {
    const [low, high] = entries[i].words;
    const isOwn = low === record.beforeLow && (high & ~MOVED_BIT) === record.beforeHigh;
    if (!isOwn && !isFree(low, high)) return false;
    // Moved already: it lies in the overflow region, and would be moved there twice.
    if (isOwn && isMovedHigh(high)) continue;
    missing.push(...keepOf(thread, record, before as Int32Array));
  }
  yield* thread.perform("oldVersions", missing);
  return true;
}

function* readStates(thread: ComputeThread, journal: Journal): Routine<State[]> {
  const { records, timestamp } = journal;
  const verbs = records.map(({ table, server, cell }) => {
    const word = table.cellAt(cell);
    return new ReadVerb(thread, server, table.segments.cells, word, table.cellWords);
  });
  yield* thread.perform("reads", verbs);
  const [lockLow, lockHigh] = lockOf(thread, timestamp);
  return records.map((record, i) => {
    const { words } = verbs[i];
    const { table, beforeLow, beforeHigh, body } = record;
    const low = words[table.bodyWords];
    const high = words[table.bodyWords + 1];
    const isBefore =
      words[VERSION_LOW_AT] === beforeLow &&
      words[VERSION_HIGH_AT] === beforeHigh &&
      isWhole(words, 0, table.bodyWords);
    return {
      record,
      isLocked: low === lockLow && high === lockHigh,
      isInstalled:
        low === body[VERSION_LOW_AT] && isSameSlot(high, lockHigh) && !isLockedHigh(high),
      before: isBefore ? words : undefined,
    };
  });
}

/**
 * The latest that was written to its end. Journals of earlier members may lie anywhere, and an undone timestamp is used again, so the
 * incarnation counts first.
 */
export function* readJournal(thread: ComputeThread, reader = thread): Routine<Journal | undefined> {
  const { journalWords, tables } = thread.directory;
  const word = thread.pair * journalWords;
  const verbs = aliveOf(thread.directory).map(
    (server) => new ReadVerb(reader, server, JOURNALS, word, journalWords),
  );
  yield* reader.perform("journals", verbs);
  let latest: Journal | undefined;
  for (const { words } of verbs) {
    const journal = decodeJournal(words, tables);
    if (journal === undefined || journal.slot !== thread.slot) continue;
    if (latest === undefined || isLater(journal, latest)) latest = journal;
  }
  return latest;
}

function isLater(a: Journal, b: Journal): boolean {
  if (a.incarnation !== b.incarnation) return a.incarnation > b.incarnation;
  return a.timestamp > b.timestamp;
}

/** How far the slot is published at all copies of the vector: what nobody has seen yet may be ahead at some. */
export function* readSlot(
  thread: ComputeThread,
  timestamps: Timestamps,
  reader = thread,
): Routine<number> {
  if (timestamps.layout === "oracle") {
    throw new SituError("SITU_UNSUPPORTED", "the naive oracle does not survive dead threads");
  }
  const verbs = timestamps
    .serversOf(thread.slot)
    .map((server) => new ReadVerb(reader, server, TIMESTAMPS, VECTOR_AT + thread.slot, 1));
  yield* reader.perform("timestamps", verbs);
  return Math.min(...verbs.map(({ words }) => words[0] >>> 0));
}
