/**
 * A transaction on objects: what stores are written against. It reads through a seqlock, without
 * locks, and buffers what it writes; committer.ts makes it true.
 *
 * Reading takes three calls, so that a store can walk an object where it lies, without a copy:
 *
 *     const entry = tx.open(region, word);   // waits while the object is being installed
 *     … read tx.views at tx.at …             // may see garbage if a writer is at it
 *     if (!tx.settle(entry)) continue;       // then this says so: read again
 *     tx.depend(entry);                      // now it is part of the read set
 *
 * Nothing read before `settle` may be followed or returned. An object that was opened but not
 * depended on is not validated: a lookup that passes a bucket need not fail for what happens
 * there later.
 *
 * A transaction can be *limited* to a snapshot. What is read for reading's sake is then what the
 * snapshot sees, and nothing depends on it. What is read in order to change something is read as
 * it is now, and must not be newer than the snapshot: the first committer wins.
 */

import type { Address } from "../memory/address.ts";
import { addressOf, NO_ADDRESS, wordOf } from "../memory/address.ts";
import { damagedAt } from "../memory/damage.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_BYTES,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  freedWord,
  HEADER_BYTES,
  INCARNATION as HEADER_INCARNATION,
  VERSION_HIGH as HEADER_VERSION_HIGH,
  VERSION_LOW as HEADER_VERSION_LOW,
  HEADER_WORDS,
  INSTALLING,
  LOCK,
  lockMode,
  lockOwner,
  unchanged,
} from "../memory/object.ts";
import { loadAcquire } from "../memory/ordering.ts";
import type { Region } from "../memory/store-memory.ts";
import type { Views } from "../memory/views.ts";
import { assert } from "../runtime/assert.ts";
import { type ConflictKey, SituError } from "../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS, PRIORITY_MS } from "../runtime/limits.ts";
import {
  AccessSet,
  BUFFER,
  CELL,
  DATA_WORDS,
  DIRTY_FROM,
  DIRTY_TO,
  FREE,
  INCARNATION,
  KIND,
  LOCKED,
  NEW,
  OLD,
  READ,
  REGION_ID,
  SPLICED,
  VERSION_HIGH,
  VERSION_LOW,
  WINDOW,
  WORD,
  WRITE,
} from "./access-set.ts";
import { classFor, returnCells, unseenCell } from "./cells.ts";
import type { Executor } from "./executor.ts";
import { copyWords } from "./journal.ts";
import { CONFLICT, EXHAUSTED, isSignal } from "./signals.ts";
import type { Snapshot } from "./snapshots/snapshot.ts";
import { beginSplice, materialize } from "./splices.ts";
import { isLater } from "./tid.ts";

/** Of these only some of what has changed is in the arena, or nothing. */
const NOT_WHOLE = WINDOW | SPLICED;

/** Attempts of transactions in this thread. */
let attempts = 0;

export class Transaction {
  readonly executor: Executor;
  readonly set = new AccessSet();
  /** Where the object opened last can be read: its views, and the word where its data begins. */
  views: Views;
  at = 0;
  /** The lock word that the last conflict was about, for the back-off; 0 if none was held. */
  metLock = 0;
  /** The entry that the last conflict was about, or -1. */
  metEntry = -1;
  /** A signal was thrown: the attempt cannot commit, even if the body swallowed the signal. */
  doomed = false;
  /** No memory was left for this attempt, in this size class. */
  exhausted = false;
  exhaustedClass = 0;
  /** Which attempt of which transaction this is: no two in this thread have the same number. */
  lives = ++attempts;
  /** Past the commit point, whatever is thrown after it. */
  committed = false;
  /** Commits that have come as far as their commit point, ever. As long as it is the same, nothing was committed. */
  commits = 0;
  /** An operation failed half-way: its error ends the transaction, even if the body swallowed it. */
  fatal: { readonly error: unknown } | undefined;
  allocated = false;
  /** Of the last commit, if somebody is to wait for it: what must be durable before it is. */
  epoch = 0;
  /** Its journal had no room for what it writes: the log must catch up first. */
  journalFull = false;
  /** Another transaction has priority: nothing was locked (priority.ts). */
  yielded = false;
  /** Conflicts of this transaction's attempts, since when, and whether they are too many. */
  conflicts = 0;
  conflictsSinceMs = 0;
  isStarved = false;
  /** Whether it has said that it will change what it reads: then one conflict is enough to be starved. */
  isForUpdate = false;
  /** For how long it may have priority the next time. */
  priorityMs = PRIORITY_MS;
  /** It has yielded for long enough, or must not wait. */
  ignoresPriority = false;
  /** Whether its event loop turns while it waits. */
  isAsync = false;
  /** How long this transaction waits for others. */
  timeoutMs = DEFAULT_TIMEOUT_MS;
  /** The moment that this attempt sees, on the wall clock; 0 before it has asked. */
  momentMs = 0;
  /** What is being worked on, for messages. */
  subject = "an object";
  /** The snapshot that this transaction reads from, if it does. */
  snapshot: Snapshot | undefined;
  /** With a snapshot: whether the running operation only reads. */
  readsOnly = true;
  /** With a snapshot: whether anything was read in order to change something. */
  #depends = false;
  /** Of one that spans machines: the epoch in which all that it had touched by then was locked or valid. */
  bound = 0;
  /** What it had touched then. */
  preparedTouched = 0;
  /** Of one that spans machines, once that is known: snapshots of the cluster from this epoch on see it. */
  visibleFrom = 0;
  /** From the second attempt on: which keys touched which entries, for the final error. */
  trace: { table: string; key: unknown; from: number; to: number }[] | undefined;

  constructor(executor: Executor) {
    this.executor = executor;
    this.set.recordsEdits = executor.durability.isLogged;
    this.views = this.set.arena;
  }

  get isClear(): boolean {
    return this.set.end === 0 && !this.doomed && !this.committed && !this.allocated;
  }

  clear(): void {
    if (this.allocated) returnCells(this.set, this.executor.slabs);
    this.set.clear();
    this.lives = ++attempts;
    this.#depends = false;
    this.bound = 0;
    this.visibleFrom = 0;
    this.views = this.set.arena;
    this.metLock = 0;
    this.metEntry = -1;
    this.doomed = false;
    this.exhausted = false;
    this.journalFull = false;
    this.yielded = false;
    this.isForUpdate = false;
    this.committed = false;
    this.fatal = undefined;
    this.allocated = false;
    this.momentMs = 0;
    if (this.trace !== undefined) this.trace.length = 0;
  }

  /** Opens the object whose header is at `word` of `region` for reading. */
  open(region: Region, word: number): number {
    if (this.snapshot !== undefined) return this.#openAt(this.snapshot, region, word, true);
    const { set } = this;
    let entry = set.find(region.id, word);
    if (entry < 0) {
      entry = set.add(region, word);
      this.#look(entry, region, word);
    } else if (set.words[entry + BUFFER] >= 0) {
      if ((set.words[entry + KIND] & NOT_WHOLE) !== 0) this.#widen(entry);
      this.views = set.arena;
      this.at = set.words[entry + BUFFER];
      return entry;
    }
    // An object seen before may have changed since: `settle` will find that out.
    this.views = region;
    this.at = word + HEADER_WORDS;
    return entry;
  }

  /** The same for an object that this attempt has opened before, and that is no part of a snapshot. */
  reopen(entry: number): void {
    const { set } = this;
    if (set.words[entry + BUFFER] >= 0) {
      if ((set.words[entry + KIND] & NOT_WHOLE) !== 0) this.#widen(entry);
      this.views = set.arena;
      this.at = set.words[entry + BUFFER];
    } else {
      this.views = set.regionOf(entry);
      this.at = set.words[entry + WORD] + HEADER_WORDS;
    }
  }

  /** The same in a transaction that is limited to a snapshot. */
  #openAt(snapshot: Snapshot, region: Region, word: number, mustExist: boolean): number {
    const { set } = this;
    const known = set.find(region.id, word);
    const entry = known < 0 ? set.add(region, word) : known;
    if (known < 0) this.#look(entry, region, word);
    const kind = set.words[entry + KIND];
    if ((kind & NOT_WHOLE) !== 0) this.#widen(entry);
    if ((kind & OLD) !== 0 && !this.readsOnly) {
      set.forgetCopy(entry);
      this.#look(entry, region, word);
    }
    if (set.words[entry + BUFFER] < 0 && this.readsOnly && this.#isTooNew(snapshot, entry)) {
      if (!this.executor.versions.bring(set, entry, snapshot)) {
        snapshot.check();
        // It may have been the version of a half-looked-at header: only a second look condemns.
        if (!this.#isCurrent(entry)) this.conflict(entry);
        // Whatever a snapshot needs is kept: this version was never committed.
        if (mustExist)
          throw damagedAt(region, word, "an object has a version that no commit gave it");
        return -1;
      }
    }
    if (set.words[entry + BUFFER] >= 0) {
      this.views = set.arena;
      this.at = set.words[entry + BUFFER];
    } else {
      this.views = region;
      this.at = word + HEADER_WORDS;
    }
    return entry;
  }

  /** The same for an address from outside: -1 if a snapshot does not see any object there. */
  openIfThere(region: Region, word: number): number {
    if (this.snapshot === undefined) return this.open(region, word);
    return this.#openAt(this.snapshot, region, word, false);
  }

  /**
   * Between two operations of a transaction that reads from a snapshot: as long as it has changed
   * nothing, all that it has opened can be opened again, and a long one would hold too much.
   */
  forgetReads(): void {
    if (this.set.writes > 0 || this.#depends) return;
    this.set.clear();
    if (this.trace !== undefined) this.trace.length = 0;
  }

  /** An opened object was read and is not needed again: the copy of an old version can go. */
  doneWith(entry: number): void {
    if ((this.set.words[entry + KIND] & OLD) !== 0) this.set.dropCopy(entry);
  }

  #isTooNew(snapshot: Snapshot, entry: number): boolean {
    const { words } = this.set;
    return isLater(
      words[entry + VERSION_HIGH],
      words[entry + VERSION_LOW],
      snapshot.limitHigh,
      snapshot.limitLow,
    );
  }

  /**
   * Whether a transaction may trust what this executor remembers of an object that others may have
   * made after its snapshot. If its version is changing, the answer is no: that only costs time.
   */
  seesCurrent(region: Region, word: number): boolean {
    const { snapshot } = this;
    if (snapshot === undefined || !this.readsOnly) return true;
    const { i32 } = region;
    const high = loadAcquire(i32, word + HEADER_VERSION_HIGH);
    const low = loadAcquire(i32, word + HEADER_VERSION_LOW);
    // Where an epoch ends a run of 4096, the low word starts again from 0: the old high word and
    // the new low one would be a version long before both. The high word is written first and only
    // grows, so if it is still the same, the low word is of no later version than it says.
    if (loadAcquire(i32, word + HEADER_VERSION_HIGH) !== high) return false;
    return !isLater(high, low, snapshot.limitHigh, snapshot.limitLow);
  }

  /** Whether all that was read since `open` belongs to one version. */
  settle(entry: number): boolean {
    const { words } = this.set;
    if (words[entry + BUFFER] >= 0 || this.#isCurrent(entry)) return true;
    if ((words[entry + KIND] & READ) !== 0) this.conflict(entry);
    this.#look(entry, this.set.regionOf(entry), words[entry + WORD]);
    return false;
  }

  depend(entry: number): void {
    if (this.snapshot !== undefined) this.#dependAt(this.snapshot, entry);
    else this.set.words[entry + KIND] |= READ;
  }

  /** First committer wins: what is newer than the snapshot was committed by another. */
  #dependAt(snapshot: Snapshot, entry: number): void {
    const { words } = this.set;
    if (this.readsOnly || (words[entry + KIND] & WRITE) !== 0) return;
    if ((words[entry + KIND] & OLD) !== 0 || this.#isTooNew(snapshot, entry)) this.conflict(entry);
    words[entry + KIND] |= READ;
    this.#depends = true;
  }

  /** The incarnation word of an opened object, as of its version. */
  incarnationOf(entry: number): number {
    return this.set.words[entry + INCARNATION];
  }

  addressOf(entry: number): Address {
    return addressOf(this.set.words[entry + REGION_ID], this.set.words[entry + WORD]);
  }

  /**
   * Makes an object writable: copies its `words` of data, all it has, into the arena on the first
   * call and returns where. The caller changes the copy and says which words with `set.markDirty`.
   */
  writable(entry: number, words: number): number {
    if (this.snapshot !== undefined) this.#dependAt(this.snapshot, entry);
    const { set } = this;
    if (set.words[entry + BUFFER] >= 0) {
      if ((set.words[entry + KIND] & NOT_WHOLE) !== 0) this.#widen(entry);
      return set.words[entry + BUFFER];
    }
    const source = set.words[entry + WORD] + HEADER_WORDS;
    const at = set.reserve(entry, words);
    copyWords(set.regionOf(entry).i32, source, set.arena.i32, at, words);
    set.mark(entry, READ | WRITE);
    if (!this.#isCurrent(entry)) this.conflict(entry);
    return at;
  }

  /**
   * The same for the data words [from, to) only, of an object with `words` of them: what changes
   * one row need not copy its whole bucket. The words count as changed.
   */
  writableWindow(entry: number, from: number, to: number, words: number): number {
    const { set } = this;
    const isNew = set.words[entry + BUFFER] < 0;
    const at = this.overwritableWindow(entry, from, to, words);
    if (!isNew) return at;
    const { i32 } = set.regionOf(entry);
    const source = set.words[entry + WORD] + HEADER_WORDS;
    const arena = set.arena.i32;
    for (let i = from; i < to; i++) arena[at + i] = i32[source + i];
    if (!this.#isCurrent(entry)) this.conflict(entry);
    return at;
  }

  /** The same for words that the caller will overwrite, all of them: nothing is copied. */
  overwritableWindow(entry: number, from: number, to: number, words: number): number {
    if (this.snapshot !== undefined) this.#dependAt(this.snapshot, entry);
    const { set } = this;
    if (set.words[entry + BUFFER] >= 0) {
      if ((set.words[entry + KIND] & NOT_WHOLE) !== 0) this.#widen(entry);
      set.markDirty(entry, from, to);
      return set.words[entry + BUFFER];
    }
    const at = set.window(entry, from, to, words);
    set.mark(entry, READ | WRITE);
    return at;
  }

  /**
   * Makes an object changeable in place, by splices that the caller notes: nothing is copied. False if it is in the
   * arena already, or was spliced before: `writable`, then.
   */
  splice(entry: number, words: number): boolean {
    if (this.snapshot !== undefined) this.#dependAt(this.snapshot, entry);
    const { set } = this;
    if (set.words[entry + BUFFER] >= 0) return false;
    beginSplice(set, entry, words);
    set.mark(entry, READ | WRITE);
    return true;
  }

  /** Brings all of an object into the arena, with what has changed of it. */
  #widen(entry: number): void {
    if ((this.set.words[entry + KIND] & SPLICED) !== 0) materialize(this.set, entry);
    else this.#widenWindow(entry);
    if (!this.#isCurrent(entry)) this.conflict(entry);
  }

  #widenWindow(entry: number): void {
    const { set } = this;
    const window = set.words[entry + BUFFER];
    const from = set.words[entry + DIRTY_FROM];
    const to = set.words[entry + DIRTY_TO];
    const dataWords = set.words[entry + DATA_WORDS];
    const source = set.words[entry + WORD] + HEADER_WORDS;
    const at = set.reserve(entry, dataWords);
    set.words[entry + KIND] &= ~WINDOW;
    const { i32 } = set.arena;
    copyWords(set.regionOf(entry).i32, source, i32, at, dataWords);
    i32.copyWithin(at + from, window + from, window + to);
    set.markDirty(entry, from, to);
  }

  /** The second look of a consistent read. What is locked by this transaction nobody changes. */
  #isCurrent(entry: number): boolean {
    const { words } = this.set;
    if ((words[entry + KIND] & LOCKED) !== 0) return true;
    const { i32 } = this.set.regionOf(entry);
    const word = words[entry + WORD];
    return (
      unchanged(i32, word, words[entry + VERSION_HIGH], words[entry + VERSION_LOW]) ||
      (this.#readsThrough(loadAcquire(i32, word + LOCK)) &&
        i32[word + HEADER_VERSION_LOW] === words[entry + VERSION_LOW] &&
        i32[word + HEADER_VERSION_HIGH] === words[entry + VERSION_HIGH])
    );
  }

  /**
   * Whether a lock is one of a transaction that this executor has prepared, and that the snapshot does not see: a
   * snapshot of a cluster has waited for all others. What is locked is then as it was (prepared.ts).
   */
  #readsThrough(lock: number): boolean {
    const { snapshot, executor } = this;
    return (
      snapshot?.isOfCluster === true &&
      this.readsOnly &&
      lock !== 0 &&
      lockOwner(lock) === executor.slot
    );
  }

  /** Allocates an object with `bytes` of data, zeroed. */
  allocate(bytes: number, near: Address = NO_ADDRESS): number {
    const { set } = this;
    const entry = this.#allocateCell(bytes, near);
    set.words[entry + INCARNATION] = (set.words[entry + INCARNATION] & ~ARRAY) | ALLOCATED;
    this.#zeroed(entry, Math.ceil(bytes / 8) * 2);
    return entry;
  }

  /**
   * Allocates `count` objects side by side (FaRM §3.2) and returns the entry of the first; the
   * others follow it. Each has a header and a version of its own. They share one cell and are
   * freed together.
   */
  allocateArray(count: number, bytes: number, near: Address = NO_ADDRESS): number {
    const { set } = this;
    const dataWords = Math.ceil(bytes / 8) * 2;
    const stride = HEADER_WORDS + dataWords;
    const ownBytes = ARRAY_HEADER_BYTES - HEADER_BYTES;
    const cell = this.#allocateCell(ownBytes + count * stride * 4, near);
    set.words[cell + INCARNATION] |= ALLOCATED | ARRAY;
    this.#zeroed(cell, ownBytes / 4);
    const own = set.words[cell + BUFFER] - HEADER_WORDS;
    set.arena.i32[own + ELEMENT_WORDS] = dataWords;
    set.arena.i32[own + ELEMENT_COUNT] = count;
    const region = set.regionOf(cell);
    const first = set.end;
    for (let index = 0; index < count; index++) {
      const word = set.words[cell + WORD] + ARRAY_HEADER_WORDS + index * stride;
      // What lies there is the data of an earlier object, not a header: the commit makes it one.
      const entry = set.add(region, word);
      set.mark(entry, READ | WRITE | NEW);
      set.words[entry + VERSION_HIGH] = 0;
      set.words[entry + VERSION_LOW] = 0;
      set.words[entry + INCARNATION] = set.words[cell + INCARNATION] & ~ARRAY;
      this.#zeroed(entry, dataWords);
    }
    return first;
  }

  /** Frees an opened object that is a cell of its own. */
  free(entry: number): void {
    if (this.snapshot !== undefined) this.#dependAt(this.snapshot, entry);
    const { set } = this;
    const incarnation = set.words[entry + INCARNATION];
    assert((incarnation & ALLOCATED) !== 0, "only an allocated object is freed");
    if (set.words[entry + BUFFER] < 0) set.reserve(entry, 0);
    set.words[entry + KIND] &= ~NOT_WHOLE;
    set.markUnchanged(entry);
    set.words[entry + INCARNATION] = freedWord(incarnation);
    set.mark(entry, READ | WRITE | FREE | CELL);
    this.allocated = true;
  }

  /** Frees an array: its cell (opened as `cell`) and all its elements. */
  freeArray(cell: number, count: number, bytes: number): void {
    const { set } = this;
    const stride = HEADER_WORDS + Math.ceil(bytes / 8) * 2;
    const region = set.regionOf(cell);
    for (let index = 0; index < count; index++) {
      const word = set.words[cell + WORD] + ARRAY_HEADER_WORDS + index * stride;
      const element = this.open(region, word);
      this.free(element);
      set.words[element + KIND] &= ~CELL;
      set.words[element + DATA_WORDS] = stride - HEADER_WORDS;
    }
    this.free(cell);
  }

  /** Ends this attempt: somebody changed or holds what it needs. */
  conflict(entry: number): never {
    this.metEntry = entry;
    this.metLock =
      entry < 0 ? 0 : Atomics.load(this.set.regionOf(entry).i32, this.set.wordOf(entry) + LOCK);
    this.doomed = true;
    // A snapshot's reader that looks again is in nobody's way, and nobody is in its.
    if (this.snapshot === undefined || !this.readsOnly) this.executor.countConflict(this);
    throw CONFLICT;
  }

  /** After an operation was cut short (executor.hurry) outside of this transaction's own objects. */
  doom(lock: number): void {
    if (this.doomed) return;
    this.doomed = true;
    this.metEntry = -1;
    this.metLock = lock;
    this.executor.countConflict(this);
  }

  /**
   * For an operation that changes several objects: what it throws, other than a signal, leaves
   * the write set half done, and must end the transaction.
   */
  failHalfWay(error: unknown): never {
    if (!isSignal(error)) {
      this.doomed = true;
      this.fatal ??= { error };
    }
    throw error;
  }

  /** The keys that the last conflict was about, as far as they were traced. */
  conflictKeys(): ConflictKey[] {
    const met = this.metEntry;
    return (this.trace ?? [])
      .filter(({ from, to }) => from <= met && met < to)
      .map(({ table, key }) => ({ table, key }));
  }

  /** The first look at an object: its version and incarnation. */
  #look(entry: number, region: Region, word: number): void {
    const { i32 } = region;
    if (word >>> 0 >= i32.length) throw wildAddress(region, word);
    const lock = loadAcquire(i32, word + LOCK);
    if (lockMode(lock) === INSTALLING && !this.#readsThrough(lock)) {
      const { executor } = this;
      if (!executor.isPatient) this.conflict(entry);
      if (!executor.isHurried) executor.awaitReadable(region, word, this.timeoutMs);
      else if (!executor.isReadableSoon(region, word)) this.conflict(entry);
    }
    const { words } = this.set;
    words[entry + VERSION_HIGH] = loadAcquire(i32, word + HEADER_VERSION_HIGH);
    words[entry + VERSION_LOW] = loadAcquire(i32, word + HEADER_VERSION_LOW);
    words[entry + INCARNATION] = i32[word + HEADER_INCARNATION];
  }

  #allocateCell(dataBytes: number, near: Address): number {
    const sizeClass = classFor(dataBytes);
    const { executor, set } = this;
    const address = unseenCell(set, executor.slabs, sizeClass, near);
    if (address === NO_ADDRESS) {
      this.doomed = true;
      this.exhausted = true;
      this.exhaustedClass = sizeClass;
      throw EXHAUSTED;
    }
    this.allocated = true;
    const region = executor.memory.regionOf(address);
    const word = wordOf(address);
    const entry = this.#addCell(region, word, address);
    set.mark(entry, READ | WRITE | NEW | CELL);
    this.#look(entry, region, word);
    // Another has taken the cell in between.
    if (set.words[entry + INCARNATION] !== executor.slabs.chosenWord) this.conflict(entry);
    return entry;
  }

  #addCell(region: Region, word: number, address: Address): number {
    try {
      return this.set.add(region, word);
    } catch (error) {
      this.executor.slabs.returned(address);
      throw error;
    }
  }

  #zeroed(entry: number, dataWords: number): void {
    const at = this.set.reserve(entry, dataWords);
    this.set.arena.i32.fill(0, at, at + dataWords);
    this.set.markDirty(entry, 0, dataWords);
  }
}

/** A transaction that has read what does not belong together may get here, too: then it is retried. */
function wildAddress(region: Region, word: number): SituError {
  return new SituError(
    "SITU_CORRUPT",
    `an address leads to word ${word} of region ${region.id}, which has ${region.i32.length}: run verify`,
  );
}
