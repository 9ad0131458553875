/**
 * A transaction of NAM-DB, as its compute server runs it: every step is a verb (§3.1, §5.1, §6.2).
 *
 *   1. read timestamp        (timestamps.ts)
 *   2. read records          in the version that it sees (find.ts); writes are kept here
 *   3. journal               to more than one server, before anything is changed (journal.ts)
 *   4. lock and validate     one compare-and-swap a record: it is unlocked and still of the version that was
 *                            read. The same round reads whether the ring has a free entry. Any failure: undo, give way
 *   5. keep                  the old version, header and body, into the rings
 *   6. install               the new version in place, with an unlocked header as its last words, at all copies at once
 *   7. publish               the slot of the vector
 *
 * Nothing is installed before everything is locked, and everything is kept before anything is installed. So whoever
 * settles the transaction can tell from the records how far it came (settle.ts). Everything is installed at all copies before it is
 * published, so what is visible survives whichever copy. It is snapshot isolation: only what
 * is written is validated. Read-only transactions have steps 1 and 2 only.
 */

import { SituError } from "../../runtime/errors.ts";
import type { Routine } from "../message.ts";
import type { ComputeThread } from "./compute-thread.ts";
import { type Found, findAll, type Wanted } from "./find.ts";
import { DELETED_BIT, highOf, LOCKED_BIT } from "./header.ts";
import { checkJournal, encodeJournal, type JournalRecord } from "./journal.ts";
import {
  type CellPlace,
  HEADER_WORDS,
  KEPT_AT,
  type NamTable,
  tableIsFull,
  VERSION_HIGH_AT,
  VERSION_LOW_AT,
} from "./layout.ts";
import { type Scanned, type ScanPlace, scanCells } from "./scan.ts";
import { JOURNALS } from "./segments.ts";
import type { Timestamps } from "./timestamps.ts";
import { type GuardedVerb, ReadVerb, SwapVerb, superseded, WriteVerb } from "./verbs.ts";
import { isFree } from "./version-mover.ts";
import type { Visibility } from "./visibility.ts";

export type NamOutcome =
  | { readonly kind: "committed"; readonly timestamp: number }
  /** Somebody else has written a record first, or is about to. */
  | { readonly kind: "aborted"; readonly reason: "conflict" }
  /** A ring has no free entry: the overflow region is full, or the mover has not come by yet. */
  | { readonly kind: "aborted"; readonly reason: "no room" };

export const CONFLICT: NamOutcome = { kind: "aborted", reason: "conflict" };
export const NO_ROOM: NamOutcome = { kind: "aborted", reason: "no room" };

/** Names an attempt to commit, in the journal of its thread. */
export interface Begun {
  readonly timestamp: number;
  readonly incarnation: number;
}

interface Access extends Wanted {
  found: Found | undefined;
  isWritten: boolean;
  /** It is written with what it has, so that nobody else may write it: also if it is not there. */
  isTouched: boolean;
  /** Undefined: it is deleted. */
  data: Int32Array | undefined;
}

/** A record that is about to be written. */
interface Written extends JournalRecord {
  /** What is replaced; undefined if the record is new. */
  readonly before: Int32Array | undefined;
}

export class NamTransaction {
  #thread: ComputeThread;
  readonly #timestamps: Timestamps;
  /** Of the members that it reads at. */
  readonly #epoch: number | undefined;
  /** What a commit was begun with, for one who has to find out what became of it. */
  begun: Begun | undefined;
  readonly #accesses = new Map<string, Access>();
  #visibility: Visibility | undefined;

  constructor(thread: ComputeThread, timestamps: Timestamps) {
    this.#thread = thread;
    this.#timestamps = timestamps;
    this.#epoch = thread.directory.members?.epoch;
  }

  /** Takes the read timestamp; otherwise the first read does. */
  *begin(): Routine<Visibility> {
    this.#checkMembers();
    if (this.#thread.isBroken) throw broken(this.#thread);
    this.#visibility ??= yield* this.#timestamps.read(this.#thread);
    return this.#visibility;
  }

  /** The data of records, or undefined; with what the transaction itself has written. */
  *read(wanted: readonly Wanted[]): Routine<(Int32Array | undefined)[]> {
    const accesses = wanted.map(({ table, key }) => this.#access(table, key));
    yield* this.#find(accesses);
    return accesses.map(({ table, found, isWritten, data }) => {
      if (isWritten) return data;
      return found?.body === undefined ? undefined : table.dataOf(found.body);
    });
  }

  /** The records of the next cells of a table, without what the transaction itself has written. */
  *scan(table: NamTable, place: ScanPlace): Routine<Scanned> {
    const visibility = yield* this.begin();
    return yield* scanCells(this.#thread, visibility, table, place);
  }

  /** The record has this data, if the transaction commits; undefined deletes it. */
  write(table: NamTable, key: Int32Array, data: Int32Array | undefined): void {
    const access = this.#access(table, key);
    access.isWritten = true;
    access.data = data;
  }

  /** Nobody else may write the record before this commits; it keeps what it has. */
  touch(table: NamTable, key: Int32Array): void {
    this.#access(table, key).isTouched = true;
  }

  /** With another thread than the one it has read with, if one is given. */
  *commit(thread = this.#thread): Routine<NamOutcome> {
    this.#checkMembers();
    if (thread.isBroken) throw broken(thread);
    const accesses = [...this.#accesses.values()].filter(
      ({ isWritten, isTouched }) => isWritten || isTouched,
    );
    if (accesses.length === 0) return { kind: "committed", timestamp: 0 };
    yield* this.#find(accesses);
    // What was never there need not be deleted.
    const written = accesses.filter(
      ({ found, data, isTouched }) =>
        data !== undefined || isTouched || found?.newest !== undefined,
    );
    yield* this.#part(written);
    for (const { found, table, key } of written) {
      if (found?.place === undefined) throw tableIsFull(table, table.home(key).server);
      if (!found.isNewest) return CONFLICT;
    }
    if (written.length === 0) return { kind: "committed", timestamp: 0 };
    this.#thread = thread;
    const { journalWords } = thread.directory;
    checkJournal(
      written.map(({ table }) => table),
      journalWords,
    );
    const timestamp = yield* this.#timestamps.next(thread);
    this.begun = { timestamp, incarnation: thread.incarnation };
    try {
      return yield* this.#commitAt(timestamp, written);
    } catch (error) {
      // Whatever it was: something may be locked or installed, and only the journal knows.
      this.#thread.isBroken = true;
      throw error;
    }
  }

  *#commitAt(timestamp: number, written: readonly Access[]): Routine<NamOutcome> {
    const thread = this.#thread;
    const records = written.map((access) => recordOf(access, thread, timestamp));
    yield* this.#journal(records, timestamp);
    const refusal = yield* this.#lock(records, timestamp);
    if (refusal !== undefined) {
      yield* this.#timestamps.abandon(thread, timestamp);
      return refusal;
    }
    yield* keepAll(thread, records);
    yield* thread.perform(
      "installs",
      records.flatMap((record) => installsOf(thread, record)),
    );
    yield* this.#timestamps.publish(thread, timestamp);
    return { kind: "committed", timestamp };
  }

  /** What was found before may lie at a server that is gone. */
  #checkMembers(): void {
    if (this.#epoch !== this.#thread.directory.members?.epoch) throw superseded();
  }

  #access(table: NamTable, key: Int32Array): Access {
    const name = `${table.id}:${key.join()}`;
    let access = this.#accesses.get(name);
    if (access === undefined) {
      access = {
        table,
        key,
        found: undefined,
        isWritten: false,
        isTouched: false,
        data: undefined,
      };
      this.#accesses.set(name, access);
    }
    return access;
  }

  *#find(accesses: readonly Access[]): Routine<void> {
    const visibility = yield* this.begin();
    const missing = [...new Set(accesses)].filter(({ found }) => found === undefined);
    const found = yield* findAll(this.#thread, visibility, missing);
    for (const [i, access] of missing.entries()) access.found = found[i];
  }

  /**
   * New keys that found the same free cell: the first one gets it, the others look behind it. The cell is locked with theirs,
   * so whoever inserts one of the others at the same time, and found the same cell free, still meets this transaction there.
   */
  *#part(written: readonly Access[]): Routine<void> {
    for (;;) {
      const taken = new Set<string>();
      const pushed: Access[] = [];
      for (const access of written) {
        const { table, found } = access;
        if (found?.place === undefined || found.newest !== undefined) continue;
        const cell = `${table.id}:${found.place.server}:${found.place.cell}`;
        if (taken.has(cell)) pushed.push(access);
        taken.add(cell);
      }
      if (pushed.length === 0) return;
      const wanted = pushed.map(({ table, key, found }) => ({ table, key, after: found?.place }));
      const found = yield* findAll(this.#thread, yield* this.begin(), wanted);
      for (const [i, access] of pushed.entries()) access.found = found[i];
    }
  }

  *#journal(records: readonly Written[], timestamp: number): Routine<void> {
    const thread = this.#thread;
    const { journalWords } = thread.directory;
    const words = encodeJournal({
      timestamp,
      slot: thread.slot,
      incarnation: thread.incarnation,
      records,
    });
    const word = thread.pair * journalWords;
    yield* thread.perform(
      "journals",
      thread.journalServers.map((server) => new WriteVerb(thread, server, JOURNALS, word, words)),
    );
  }

  /** Undefined if everything is locked; else nothing is. */
  *#lock(records: readonly Written[], timestamp: number): Routine<NamOutcome | undefined> {
    const thread = this.#thread;
    const owner = lockOf(thread, timestamp);
    const locks = records.map(
      ({ table, server, cell, beforeLow, beforeHigh }) =>
        new SwapVerb(
          thread,
          server,
          table.segments.cells,
          table.headerAt(cell),
          [beforeLow, beforeHigh],
          owner,
        ),
    );
    const entries = records.flatMap((record) => entryOf(thread, record));
    thread.counts.locks += locks.length;
    thread.counts.oldVersions += entries.length;
    yield* thread.send([...locks, ...entries]);
    const isLocked = locks.every(({ hasSwapped }) => hasSwapped);
    const hasRoom = entries.every(({ words }) => isFree(words[0], words[1]));
    if (isLocked && hasRoom) return undefined;
    const undone = records.filter((_, i) => locks[i].hasSwapped);
    yield* thread.perform(
      "locks",
      undone.map((record) => unlockOf(thread, record, timestamp)),
    );
    return isLocked ? NO_ROOM : CONFLICT;
  }
}

function recordOf(
  { table, key, data: given, isWritten, found }: Access,
  thread: ComputeThread,
  timestamp: number,
): Written {
  const { place, newest, body } = found as Found;
  // What is touched keeps what it has.
  const kept = body === undefined ? undefined : table.dataOf(body);
  const data = isWritten ? given : kept;
  const { server, cell } = place as { server: number; cell: number };
  const high = highOf(thread.slot) | (data === undefined ? DELETED_BIT : 0);
  const before = newest === undefined ? 0 : table.keptAfter(newest[KEPT_AT]);
  return {
    table,
    server,
    cell,
    others: othersOf(table, { server, cell }),
    before: newest,
    beforeLow: newest?.[VERSION_LOW_AT] ?? 0,
    beforeHigh: newest?.[VERSION_HIGH_AT] ?? 0,
    body: table.bodyOf(timestamp | 0, high, before, key, data),
  };
}

function othersOf(table: NamTable, place: CellPlace): CellPlace[] {
  if (table.members.copies === 1) return [];
  const { range, cell } = table.rangeOf(place);
  return table.placesOf(range, cell).slice(1);
}

/** The header of a record that the thread has locked for a timestamp. */
export function lockOf(
  thread: ComputeThread,
  timestamp: number,
): readonly [low: number, high: number] {
  return [timestamp | 0, highOf(thread.slot) | LOCKED_BIT];
}

/** Which entry of the ring an old version goes to: it is the so-manieth. */
function entryOf(thread: ComputeThread, { table, server, cell, body }: Written): ReadVerb[] {
  if (body[KEPT_AT] === 0) return [];
  const word = table.ringHeaderAt(cell, (body[KEPT_AT] >>> 0) - 1);
  return [new ReadVerb(thread, server, table.segments.rings, word, HEADER_WORDS)];
}

export function unlockOf(
  thread: ComputeThread,
  { table, server, cell, beforeLow, beforeHigh }: JournalRecord,
  timestamp: number,
): SwapVerb {
  const word = table.headerAt(cell);
  return new SwapVerb(thread, server, table.segments.cells, word, lockOf(thread, timestamp), [
    beforeLow,
    beforeHigh,
  ]);
}

/** The writes that keep what a record replaces. */
export function keepOf(
  thread: ComputeThread,
  { table, server, cell, body }: JournalRecord,
  before: Int32Array,
): GuardedVerb[] {
  const number = (body[KEPT_AT] >>> 0) - 1;
  const { rings, old } = table.segments;
  const header = before.slice(VERSION_LOW_AT, VERSION_HIGH_AT + 1);
  const words = before.slice(0, table.bodyWords);
  return [
    new WriteVerb(thread, server, old, table.oldAt(cell, number), words),
    new WriteVerb(thread, server, rings, table.ringHeaderAt(cell, number), header),
  ];
}

function* keepAll(thread: ComputeThread, records: readonly Written[]): Routine<void> {
  const verbs = records.flatMap((record) =>
    record.before === undefined ? [] : keepOf(thread, record, record.before),
  );
  if (verbs.length > 0) yield* thread.perform("oldVersions", verbs);
}

/** The whole cell, at each copy: the new body, and after it the header that unlocks it. */
export function installsOf(thread: ComputeThread, record: JournalRecord): WriteVerb[] {
  return [record, ...record.others].map((place) => installAt(thread, record, place));
}

export function installAt(
  thread: ComputeThread,
  { table, body }: JournalRecord,
  { server, cell }: CellPlace,
): WriteVerb {
  const words = new Int32Array(table.cellWords);
  words.set(body);
  words[table.bodyWords] = body[VERSION_LOW_AT];
  words[table.bodyWords + 1] = body[VERSION_HIGH_AT];
  return new WriteVerb(thread, server, table.segments.cells, table.cellAt(cell), words);
}

function broken({ pair }: ComputeThread): SituError {
  return new SituError(
    "SITU_UNKNOWN_OUTCOME",
    `execution thread ${pair} has a transaction whose outcome it does not know: claim it again first`,
  );
}
