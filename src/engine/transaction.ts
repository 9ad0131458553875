/**
 * A transaction on objects: what stores are written against. It reads through a seqlock, without
 * locks, and buffers what it writes; commit.ts makes it true.
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
 */

import type { Address } from "../memory/address.ts";
import { addressOf, NO_ADDRESS, wordOf } from "../memory/address.ts";
import {
  ALLOCATED,
  ARRAY,
  freedWord,
  HEADER_BYTES,
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockMode,
  unchanged,
  VERSION_HIGH,
  VERSION_LOW,
} from "../memory/object.ts";
import type { Region } from "../memory/region.ts";
import { CELL_BYTES, sizeClassOf } from "../memory/size-classes.ts";
import type { Views } from "../memory/views.ts";
import { assert } from "../runtime/assert.ts";
import { type ConflictKey, SituError } from "../runtime/errors.ts";
import { MAX_CELL_BYTES } from "../runtime/limits.ts";
import { AccessSet, CELL, FREE, NEW, READ, WRITE } from "./access-set.ts";
import type { Executor } from "./executor.ts";
import { copyWords } from "./journal.ts";
import { CONFLICT, EXHAUSTED } from "./signals.ts";

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
  allocated = false;
  /** What is being worked on, for messages. */
  subject = "an object";
  /** From the second attempt on: which keys touched which entries, for the final error. */
  trace: { table: string; key: unknown; from: number; to: number }[] | undefined;
  /** What a body threw that had read an impossible state. */
  zombieError: unknown;

  constructor(executor: Executor) {
    this.executor = executor;
    this.views = this.set.arena;
  }

  clear(): void {
    if (this.allocated) this.#returnCells();
    this.set.clear();
    this.views = this.set.arena;
    this.metLock = 0;
    this.metEntry = -1;
    this.doomed = false;
    this.allocated = false;
    if (this.trace !== undefined) this.trace.length = 0;
  }

  /** Opens the object whose header is at `word` of `region` for reading. */
  open(region: Region, word: number): number {
    const { set } = this;
    let entry = set.find(region.id, word);
    if (entry >= 0 && set.buffer[entry] >= 0) {
      this.views = set.arena;
      this.at = set.buffer[entry];
      return entry;
    }
    if (entry < 0) {
      entry = set.add(region, word);
      this.#look(entry, region, word);
    } else if (!unchanged(region.i32, word, set.versionHigh[entry], set.versionLow[entry])) {
      if ((set.kind[entry] & READ) !== 0) this.conflict(entry);
      this.#look(entry, region, word);
    }
    this.views = region;
    this.at = word + HEADER_WORDS;
    return entry;
  }

  /** Whether all that was read since `open` belongs to one version. */
  settle(entry: number): boolean {
    const { set } = this;
    if (set.buffer[entry] >= 0) return true;
    const region = set.regions[entry]!;
    const word = set.word[entry];
    if (unchanged(region.i32, word, set.versionHigh[entry], set.versionLow[entry])) return true;
    if ((set.kind[entry] & READ) !== 0) this.conflict(entry);
    this.#look(entry, region, word);
    return false;
  }

  depend(entry: number): void {
    this.set.kind[entry] |= READ;
  }

  /** The incarnation word of an opened object, as of its version. */
  incarnationOf(entry: number): number {
    return this.set.incarnation[entry];
  }

  addressOf(entry: number): Address {
    return addressOf(this.set.regionId[entry], this.set.word[entry]);
  }

  /**
   * Makes an object writable: copies its `words` of data into the arena on the first call and
   * returns where. The caller changes the copy and says which words with `set.markDirty`.
   */
  writable(entry: number, words: number): number {
    const { set } = this;
    if (set.buffer[entry] >= 0) return set.buffer[entry];
    const region = set.regions[entry]!;
    const from = set.word[entry];
    const at = set.reserve(entry, words);
    copyWords(region.i32, from + HEADER_WORDS, set.arena.i32, at, words);
    set.kind[entry] |= READ | WRITE;
    if (!unchanged(region.i32, from, set.versionHigh[entry], set.versionLow[entry])) {
      this.conflict(entry);
    }
    return at;
  }

  /** Allocates an object with `bytes` of data, zeroed. */
  allocate(bytes: number, near: Address = NO_ADDRESS): number {
    const entry = this.#allocateCell(bytes, near);
    this.set.incarnation[entry] = (this.set.incarnation[entry] & ~ARRAY) | ALLOCATED;
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
    const words = Math.ceil(bytes / 8) * 2;
    const stride = HEADER_WORDS + words;
    const cell = this.#allocateCell(count * stride * 4, near);
    set.incarnation[cell] |= ALLOCATED | ARRAY;
    this.#zeroed(cell, 0);
    const region = set.regions[cell]!;
    const first = set.count;
    for (let index = 0; index < count; index++) {
      const word = set.word[cell] + HEADER_WORDS + index * stride;
      // What lies there is the data of an earlier object, not a header. The cell is ours alone.
      Atomics.store(region.i32, word + LOCK, 0);
      region.i32[word + VERSION_HIGH] = 0;
      region.i32[word + VERSION_LOW] = 0;
      const entry = set.add(region, word);
      set.kind[entry] = READ | WRITE | NEW;
      set.versionHigh[entry] = 0;
      set.versionLow[entry] = 0;
      set.incarnation[entry] = set.incarnation[cell] & ~ARRAY;
      this.#zeroed(entry, words);
    }
    return first;
  }

  /** Frees an opened object that is a cell of its own. */
  free(entry: number): void {
    const { set } = this;
    assert((set.incarnation[entry] & ALLOCATED) !== 0, "only an allocated object is freed");
    if (set.buffer[entry] < 0) set.reserve(entry, 0);
    set.dirtyFrom[entry] = 0;
    set.dirtyTo[entry] = 0;
    set.incarnation[entry] = freedWord(set.incarnation[entry]);
    set.kind[entry] |= READ | WRITE | FREE | CELL;
    this.allocated = true;
  }

  /** Frees an array: its cell (opened as `cell`) and all its elements. */
  freeArray(cell: number, count: number, bytes: number): void {
    const { set } = this;
    const stride = HEADER_WORDS + Math.ceil(bytes / 8) * 2;
    const region = set.regions[cell]!;
    for (let index = 0; index < count; index++) {
      const word = set.word[cell] + HEADER_WORDS + index * stride;
      const element = this.open(region, word);
      this.free(element);
      set.kind[element] &= ~CELL;
    }
    this.free(cell);
  }

  /** Ends this attempt: somebody changed or holds what it needs. */
  conflict(entry: number): never {
    const region = this.set.regions[entry];
    this.metEntry = entry;
    this.metLock = region === undefined ? 0 : Atomics.load(region.i32, this.set.word[entry] + LOCK);
    this.doomed = true;
    throw CONFLICT;
  }

  /** The keys that the last conflict was about, as far as they were traced. */
  conflictKeys(): ConflictKey[] {
    const met = this.metEntry;
    return (this.trace ?? [])
      .filter(({ from, to }) => from <= met && met < to)
      .map(({ table, key }) => ({ table, key }));
  }

  #look(entry: number, region: Region, word: number): void {
    const { i32 } = region;
    if (lockMode(Atomics.load(i32, word + LOCK)) === INSTALLING) {
      this.executor.awaitReadable(region, word);
    }
    this.set.versionHigh[entry] = i32[word + VERSION_HIGH];
    this.set.versionLow[entry] = i32[word + VERSION_LOW];
    this.set.incarnation[entry] = i32[word + INCARNATION];
  }

  #allocateCell(dataBytes: number, near: Address): number {
    const bytes = HEADER_BYTES + Math.ceil(dataBytes / 8) * 8;
    const sizeClass = sizeClassOf(bytes);
    if (sizeClass < 0) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `an object of ${dataBytes} bytes is larger than ${MAX_CELL_BYTES - HEADER_BYTES}`,
      );
    }
    const { executor, set } = this;
    const address = executor.slabs.allocate(sizeClass, near);
    if (address === NO_ADDRESS) {
      this.doomed = true;
      throw EXHAUSTED;
    }
    this.allocated = true;
    const region = executor.memory.regionOf(address);
    const word = wordOf(address);
    const stale = set.find(region.id, word);
    if (stale >= 0) {
      // This transaction has seen the cell's former object, which was freed since.
      executor.slabs.returned(address);
      this.conflict(stale);
    }
    const entry = set.add(region, word);
    set.kind[entry] = READ | WRITE | NEW | CELL;
    this.#look(entry, region, word);
    return entry;
  }

  #zeroed(entry: number, words: number): void {
    const at = this.set.reserve(entry, words);
    this.set.arena.i32.fill(0, at, at + words);
    this.set.markDirty(entry, 0, words);
  }

  /** The cells of an attempt that did not commit. */
  #returnCells(): void {
    const { set, executor } = this;
    for (let entry = 0; entry < set.count; entry++) {
      if ((set.kind[entry] & (NEW | CELL)) !== (NEW | CELL)) continue;
      const address = this.addressOf(entry);
      executor.slabs.returned(address);
    }
  }
}

/** Data bytes that an object allocated for `bytes` can hold without moving to another class. */
export function dataCapacity(bytes: number): number {
  return CELL_BYTES[sizeClassOf(HEADER_BYTES + Math.ceil(bytes / 8) * 8)] - HEADER_BYTES;
}
