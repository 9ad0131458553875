/**
 * Settling what had begun when the members changed (membership.ts). Everybody is shut out meanwhile, so nothing moves but what those who
 * recover do. The locks of a primary that is gone are gone with it; what counts is what was installed. For each journal whose
 * timestamp t is not published at all copies of the vector:
 *
 *   forward   some copy of some record has the version (slot, t): all records were locked then. It is installed at all copies and published
 *   back      no copy has it. Since everything is installed at all copies before anything is published, nobody has seen it or was
 *             told that it is committed. What is locked at the primaries that are left is unlocked
 *
 * What is not published has not been overwritten by others, so a copy has either that version or the one before. Journals
 * are at as many servers as records, so one of them is left. If whoever recovers dies, or several do it at once, each claims a thread
 * before it settles it: the one that comes later finds a state from which it decides the same, because only a `forward` installs
 * versions.
 *
 * New records leave one thing to do. The primary that is gone may have had one, in a cell that is empty at the copies. Nobody has seen
 * the record, but others have seen that the cell was taken: they put their keys behind it, and were told so. If it stayed empty, every
 * search would end there. So when all threads are settled, each cell that a record which went back was about to take, and
 * that is still empty, becomes no key's (layout.ts). Whose key it was does not matter: several threads may have wanted it,
 * and one of their keys may lie behind it by now.
 */

import { assert } from "../../runtime/assert.ts";
import type { Routine } from "../message.ts";
import { claimPair } from "./claim.ts";
import { aliveOf, ComputeThread, type NamDirectory, vectorCopies } from "./compute-thread.ts";
import { isLockedHigh, isSameSlot } from "./header.ts";
import type { Journal, JournalRecord } from "./journal.ts";
import { JOURNAL_HEAD_WORDS, lengthOfJournal } from "./journal.ts";
import { type CellPlace, VERSION_HIGH_AT, VERSION_LOW_AT } from "./layout.ts";
import { JOURNALS, TIMESTAMPS, VECTOR_AT } from "./segments.ts";
import { readJournal, readSlot } from "./settle.ts";
import { Timestamps } from "./timestamps.ts";
import { installAt, installsOf, lockOf, unlockOf } from "./transaction.ts";
import { ReadVerb } from "./verbs.ts";

const MAX_CLAIMANT = 2 ** 31 - 1;
/** Journals that are looked at together. */
const PAIRS_AT_ONCE = 64;

export type Recovered = Readonly<Record<"forward" | "back", number>>;

/** `directory` is that of the new members. */
export function* recover(
  directory: NamDirectory,
  random: (below: number) => number,
): Routine<Recovered> {
  assert(directory.pairsPerSlot === 1, "with copies, each thread has a slot of its own");
  const counts = { forward: 0, back: 0 };
  const passed: JournalRecord[] = [];
  for (const pair of yield* unsettledPairs(directory, random)) {
    const thread = new ComputeThread(pair, directory);
    yield* claimPair(thread, random(MAX_CLAIMANT), true);
    const timestamps = new Timestamps(directory, { layout: "vector" });
    const published = yield* readSlot(thread, timestamps);
    const journal = yield* readJournal(thread);
    if (journal === undefined || journal.timestamp <= published) continue;
    if (yield* settleLost(thread, journal)) {
      yield* timestamps.writeSlot(thread, journal.timestamp);
      counts.forward++;
    } else {
      passed.push(...journal.records.filter(isNew));
      counts.back++;
    }
  }
  yield* closeCells(directory, passed, random);
  return counts;
}

function isNew({ beforeLow, beforeHigh }: JournalRecord): boolean {
  return beforeLow === 0 && beforeHigh === 0;
}

/** After all that goes forward is installed: cells that are still empty become no key's, at all copies. */
function* closeCells(
  directory: NamDirectory,
  records: readonly JournalRecord[],
  random: (below: number) => number,
): Routine<void> {
  if (records.length === 0) return;
  // What is written there is of the first slot, whoever does it: so it is the same at all copies.
  const thread = new ComputeThread(0, directory);
  yield* claimPair(thread, random(MAX_CLAIMANT), true);
  const cells = records.map((record) =>
    [record, ...record.others].map((place) => ({ place, cell: cellOf(thread, record, place) })),
  );
  yield* thread.perform(
    "reads",
    cells.flatMap((copies) => copies.map(({ cell }) => cell)),
  );
  const empty = records.filter((_, i) => cells[i].some(({ cell: { words } }) => isEmpty(words)));
  yield* thread.perform(
    "installs",
    empty.flatMap((record) => installsOf(thread, { ...record, body: record.table.bodyOfNoKey() })),
  );
}

function isEmpty(words: Int32Array): boolean {
  return words[VERSION_LOW_AT] === 0 && words[VERSION_HIGH_AT] === 0;
}

/** Threads with a journal that is ahead of what is published. */
function* unsettledPairs(
  directory: NamDirectory,
  random: (below: number) => number,
): Routine<number[]> {
  const { pairs, journalWords } = directory;
  // Any thread will do to read with; another one than others who recover have taken, if possible.
  const scout = new ComputeThread(random(pairs), directory);
  yield* claimPair(scout, random(MAX_CLAIMANT), true);
  const vectors = vectorCopies(directory).map(
    (server) => new ReadVerb(scout, server, TIMESTAMPS, VECTOR_AT, pairs),
  );
  yield* scout.perform("timestamps", vectors);
  const found: number[] = [];
  for (let first = 0; first < pairs; first += PAIRS_AT_ONCE) {
    const heads: { readonly pair: number; readonly verb: ReadVerb }[] = [];
    for (let pair = first; pair < Math.min(pairs, first + PAIRS_AT_ONCE); pair++) {
      for (const server of aliveOf(directory)) {
        const at = pair * journalWords;
        const verb = new ReadVerb(scout, server, JOURNALS, at, JOURNAL_HEAD_WORDS);
        heads.push({ pair, verb });
      }
    }
    yield* scout.perform(
      "journals",
      heads.map(({ verb }) => verb),
    );
    for (const { pair, verb } of heads) {
      const published = Math.min(...vectors.map(({ words }) => words[pair] >>> 0));
      const isAhead = lengthOfJournal(verb.words) > 0 && verb.words[0] >>> 0 > published;
      if (isAhead && found.at(-1) !== pair) found.push(pair);
    }
  }
  return found;
}

/** True if it went forward. */
function* settleLost(thread: ComputeThread, journal: Journal): Routine<boolean> {
  const { records, timestamp } = journal;
  const copies = records.flatMap((record) =>
    [record, ...record.others].map((place) => ({
      record,
      place,
      cell: cellOf(thread, record, place),
    })),
  );
  yield* thread.perform(
    "reads",
    copies.map(({ cell }) => cell),
  );
  const [lockLow, lockHigh] = lockOf(thread, timestamp);
  const isInstalled = copies.some(({ record: { table, body }, cell: { words } }) => {
    const high = words[table.bodyWords + 1];
    const isVersion = words[table.bodyWords] === body[VERSION_LOW_AT] && isSameSlot(high, lockHigh);
    return isVersion && !isLockedHigh(high);
  });
  if (isInstalled) {
    yield* thread.perform(
      "installs",
      copies.map(({ record, place }) => installAt(thread, record, place)),
    );
    return true;
  }
  const locked = copies.filter(
    ({ record: { table }, cell: { words } }) =>
      words[table.bodyWords] === lockLow && words[table.bodyWords + 1] === lockHigh,
  );
  yield* thread.perform(
    "locks",
    locked.map(({ record }) => unlockOf(thread, record, timestamp)),
  );
  return false;
}

function cellOf(
  thread: ComputeThread,
  { table }: JournalRecord,
  { server, cell }: CellPlace,
): ReadVerb {
  return new ReadVerb(thread, server, table.segments.cells, table.cellAt(cell), table.cellWords);
}
