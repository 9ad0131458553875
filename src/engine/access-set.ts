/**
 * The read and write set of a transaction in one: every object that it has touched, once. Columns
 * are typed arrays that are kept from one transaction to the next, so a transaction allocates
 * nothing. The objects it writes are copied into a private arena, changed there, and installed
 * from there; what it reads of its own writes it reads there.
 */

import type { Region } from "../memory/region.ts";
import { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import { KEPT_ARENA_BYTES, MAX_ACCESSES, MAX_ARENA_BYTES } from "../runtime/limits.ts";

/** The transaction depends on the version it saw: validate it. */
export const READ = 1;
/** The transaction changes the object: lock it, journal it, install it. */
export const WRITE = 2;
/** Allocated by this transaction: nobody else knows it. */
export const NEW = 4;
/** Freed by this transaction. */
export const FREE = 8;
/** A cell of the allocator, as opposed to an element of an array, which has no cell of its own. */
export const CELL = 16;

const FIRST_CAPACITY = 64;
const FIRST_ARENA_BYTES = 64 * 1024;

export class AccessSet {
  count = 0;
  capacity = FIRST_CAPACITY;
  regions: (Region | undefined)[] = new Array<undefined>(FIRST_CAPACITY).fill(undefined);
  regionId = new Int32Array(FIRST_CAPACITY);
  word = new Int32Array(FIRST_CAPACITY);
  versionHigh = new Int32Array(FIRST_CAPACITY);
  versionLow = new Int32Array(FIRST_CAPACITY);
  /** The incarnation word: as it was read, or as the commit shall leave it. */
  incarnation = new Int32Array(FIRST_CAPACITY);
  kind = new Uint8Array(FIRST_CAPACITY);
  /** Where the object's data lies in the arena, in words; -1 while it is only read. */
  buffer = new Int32Array(FIRST_CAPACITY);
  dataWords = new Int32Array(FIRST_CAPACITY);
  dirtyFrom = new Int32Array(FIRST_CAPACITY);
  dirtyTo = new Int32Array(FIRST_CAPACITY);
  readonly arena = new Views(new ArrayBuffer(FIRST_ARENA_BYTES));
  #arenaTop = 0;
  /** Open addressing from (region, word) to entry + 1; each entry remembers its place. */
  #index = new Int32Array(4 * FIRST_CAPACITY);
  #place = new Int32Array(FIRST_CAPACITY);

  clear(): void {
    for (let entry = 0; entry < this.count; entry++) {
      this.#index[this.#place[entry]] = 0;
      this.regions[entry] = undefined;
    }
    this.count = 0;
    this.#arenaTop = 0;
    if (this.arena.i32.length * 4 > KEPT_ARENA_BYTES) {
      this.arena.reset(new ArrayBuffer(FIRST_ARENA_BYTES));
    }
  }

  find(regionId: number, word: number): number {
    const mask = this.#index.length - 1;
    for (let place = hash(regionId, word) & mask; ; place = (place + 1) & mask) {
      const entry = this.#index[place] - 1;
      if (entry < 0) return -1;
      if (this.word[entry] === word && this.regionId[entry] === regionId) return entry;
    }
  }

  /** Adds an object that `find` did not find. */
  add(region: Region, word: number): number {
    const entry = this.count;
    if (entry === this.capacity) this.#grow();
    this.count = entry + 1;
    this.regions[entry] = region;
    this.regionId[entry] = region.id;
    this.word[entry] = word;
    this.kind[entry] = 0;
    this.buffer[entry] = -1;
    this.#insert(entry);
    return entry;
  }

  /** Space for the data of an object, at an even word, as 64-bit fields need. */
  reserve(entry: number, words: number): number {
    const at = this.#arenaTop;
    this.#arenaTop = at + ((words + 1) & ~1);
    if (this.#arenaTop > this.arena.i32.length) this.#growArena();
    this.buffer[entry] = at;
    this.dataWords[entry] = words;
    this.dirtyFrom[entry] = words;
    this.dirtyTo[entry] = 0;
    return at;
  }

  markDirty(entry: number, from: number, to: number): void {
    if (from < this.dirtyFrom[entry]) this.dirtyFrom[entry] = from;
    if (to > this.dirtyTo[entry]) this.dirtyTo[entry] = to;
  }

  #insert(entry: number): void {
    const mask = this.#index.length - 1;
    let place = hash(this.regionId[entry], this.word[entry]) & mask;
    while (this.#index[place] !== 0) place = (place + 1) & mask;
    this.#index[place] = entry + 1;
    this.#place[entry] = place;
  }

  #grow(): void {
    const capacity = 2 * this.capacity;
    if (capacity > MAX_ACCESSES) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `the transaction touches more than ${this.capacity} objects: split it into smaller ones`,
      );
    }
    this.capacity = capacity;
    this.regionId = longer(this.regionId, capacity);
    this.word = longer(this.word, capacity);
    this.versionHigh = longer(this.versionHigh, capacity);
    this.versionLow = longer(this.versionLow, capacity);
    this.incarnation = longer(this.incarnation, capacity);
    this.buffer = longer(this.buffer, capacity);
    this.dataWords = longer(this.dataWords, capacity);
    this.dirtyFrom = longer(this.dirtyFrom, capacity);
    this.dirtyTo = longer(this.dirtyTo, capacity);
    this.#place = longer(this.#place, capacity);
    const kind = new Uint8Array(capacity);
    kind.set(this.kind);
    this.kind = kind;
    while (this.regions.length < capacity) this.regions.push(undefined);
    this.#index = new Int32Array(4 * capacity);
    for (let entry = 0; entry < this.count; entry++) this.#insert(entry);
  }

  #growArena(): void {
    let words = this.arena.i32.length;
    while (words < this.#arenaTop) words *= 2;
    if (words * 4 > MAX_ARENA_BYTES) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `the transaction writes more than ${MAX_ARENA_BYTES / 2} bytes: split it into smaller ones`,
      );
    }
    const before = this.arena.i32;
    this.arena.reset(new ArrayBuffer(words * 4));
    this.arena.i32.set(before);
  }
}

function hash(regionId: number, word: number): number {
  const mixed = Math.imul(word ^ Math.imul(regionId, 0x85ebca6b), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function longer(column: Int32Array, capacity: number): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(capacity);
  grown.set(column);
  return grown;
}
