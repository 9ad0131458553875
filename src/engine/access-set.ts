/**
 * The read and write set of a transaction in one: every object that it has touched, once. An entry
 * is sixteen words of one typed array, so that the commit's loops have one base pointer and not
 * nine, kept from one transaction to the next, so that a transaction allocates nothing. An entry is
 * named by the index of its first word.
 *
 * The objects that a transaction writes are copied into a private arena, changed there, and
 * installed from there; what it reads of its own writes it reads there.
 */

import { placeHash } from "../memory/address.ts";
import type { Region } from "../memory/store-memory.ts";
import { Views } from "../memory/views.ts";
import { assert } from "../runtime/assert.ts";
import { SituError } from "../runtime/errors.ts";
import { KEPT_ARENA_BYTES, MAX_ACCESSES, MAX_ARENA_BYTES } from "../runtime/limits.ts";
import { ChangeList } from "./changes.ts";
import {
  EditList,
  editWord,
  MAX_EDITED_WORDS,
  MOVE_EDIT,
  REPACK_EDIT,
  WRITE_EDIT,
  wordsOfEdit,
} from "./edits.ts";

export const ENTRY_WORDS = 16;
const ENTRY_SHIFT = 4;

/** The words of an entry. */
export const REGION_ID = 0;
export const WORD = 1;
export const VERSION_HIGH = 2;
export const VERSION_LOW = 3;
/** The incarnation word: as it was read, or as the commit shall leave it. */
export const INCARNATION = 4;
export const KIND = 5;
/** Where the object's data lies in the arena, in words; -1 while it is only read. */
export const BUFFER = 6;
export const DATA_WORDS = 7;
export const DIRTY_FROM = 8;
export const DIRTY_TO = 9;
const PLACE = 10;
/** The first edit of the object; 0 if there is none, -1 if its changed words are logged instead (edits.ts). */
export const EDITS = 11;
export const LAST_EDIT = 12;
export const EDIT_WORDS = 13;
/** Words that were changed after the last edit. */
export const PENDING_FROM = 14;
export const PENDING_TO = 15;

export const NOT_EDITED = -1;
/** Where the journal keeps changed words beside their edits, it says which: two more words. */
const BESIDE_EDITS_WORDS = 2;

/** Kinds. The transaction depends on the version it saw: validate it. */
export const READ = 1;
/** The transaction changes the object: lock it, journal it, install it. */
export const WRITE = 2;
/** Allocated by this transaction: nobody else knows it. */
export const NEW = 4;
/** Freed by this transaction. */
export const FREE = 8;
/** A cell of the allocator, as opposed to an element of an array, which has no cell of its own. */
export const CELL = 16;
/** Only the dirty words of the object are in the arena; `Transaction` brings the rest if needed. */
export const WINDOW = 32;
/** The arena holds a version that a snapshot sees and that is not the current one. */
export const OLD = 64;
/** Its lock is held already, by this transaction's prepare (prepared.ts). */
export const LOCKED = 128;

/** Nothing of the object is in the arena: its edits are applied where it lies (splices.ts). */
export const SPLICED = 256;

const FIRST_CAPACITY = 64;
const FIRST_ARENA_BYTES = 64 * 1024;
/** The arena starts here, so that a window's object begins at a positive place, see `window`. */
export const MAX_WINDOW_START = 2048;

export class AccessSet {
  /** What sets are made with; tests make it less. */
  static mostObjects = MAX_ACCESSES;
  /** So many objects at most; a power of two. */
  mostObjects = AccessSet.mostObjects;
  /** The entries. Replaced when the set grows: read it anew after an `add`. */
  words = new Int32Array(FIRST_CAPACITY * ENTRY_WORDS);
  /** Where the last entry ends. */
  end = 0;
  /** How many entries are written. */
  writes = 0;
  readonly arena = new Views(new ArrayBuffer(FIRST_ARENA_BYTES));
  /** What it does to rows of watched tables. */
  readonly changes = new ChangeList();
  /** Whether there is a log that edits would make shorter. */
  recordsEdits = false;
  readonly edits = new EditList();
  readonly #regions: (Region | undefined)[] = new Array<undefined>(FIRST_CAPACITY).fill(undefined);
  #arenaTop = MAX_WINDOW_START;
  /** Open addressing from (region, word) to entry + 1; each entry remembers its place. */
  #index = new Int32Array(4 * FIRST_CAPACITY);

  get count(): number {
    return this.end >> ENTRY_SHIFT;
  }

  clear(): void {
    const { words } = this;
    const index = this.#index;
    for (let entry = 0; entry < this.end; entry += ENTRY_WORDS) index[words[entry + PLACE]] = 0;
    this.end = 0;
    this.writes = 0;
    if (this.changes.count > 0) this.changes.clear();
    this.edits.clear();
    this.#arenaTop = MAX_WINDOW_START;
    if (this.arena.i32.length * 4 > KEPT_ARENA_BYTES) {
      this.arena.reset(new ArrayBuffer(FIRST_ARENA_BYTES));
    }
  }

  /** Entries keep their region until another takes their place; mapped regions stay anyway. */
  regionOf(entry: number): Region {
    return this.#regions[entry >> ENTRY_SHIFT]!;
  }

  regionIdOf(entry: number): number {
    return this.words[entry + REGION_ID];
  }

  wordOf(entry: number): number {
    return this.words[entry + WORD];
  }

  incarnationOf(entry: number): number {
    return this.words[entry + INCARNATION];
  }

  bufferOf(entry: number): number {
    return this.words[entry + BUFFER];
  }

  kindOf(entry: number): number {
    return this.words[entry + KIND];
  }

  /** Whether the object is changed where it lies (splices.ts). */
  isSpliced(entry: number): boolean {
    return (this.words[entry + KIND] & SPLICED) !== 0;
  }

  find(regionId: number, word: number): number {
    const index = this.#index;
    const { words } = this;
    const mask = index.length - 1;
    for (let place = placeHash(regionId, word) & mask; ; place = (place + 1) & mask) {
      const entry = index[place] - 1;
      if (entry < 0) return -1;
      if (words[entry + WORD] === word && words[entry + REGION_ID] === regionId) return entry;
    }
  }

  /** Adds an object that `find` did not find. */
  add(region: Region, word: number): number {
    const entry = this.end;
    if (entry === this.words.length) this.#grow();
    this.end = entry + ENTRY_WORDS;
    this.#regions[entry >> ENTRY_SHIFT] = region;
    const { words } = this;
    words[entry + REGION_ID] = region.id;
    words[entry + WORD] = word;
    // No version: nothing of an earlier transaction's entry may be taken for this object's.
    words[entry + VERSION_HIGH] = 0;
    words[entry + VERSION_LOW] = 0;
    words[entry + INCARNATION] = 0;
    words[entry + KIND] = 0;
    words[entry + BUFFER] = -1;
    this.#insert(entry);
    return entry;
  }

  /** Space for the data of an object, at an even word, as 64-bit fields need. */
  reserve(entry: number, dataWords: number): number {
    const at = this.#reserve(dataWords);
    const { words } = this;
    words[entry + BUFFER] = at;
    words[entry + DATA_WORDS] = dataWords;
    words[entry + DIRTY_FROM] = dataWords;
    words[entry + DIRTY_TO] = 0;
    words[entry + EDITS] = 0;
    return at;
  }

  /** Space for the copy of an old version. */
  copyOf(entry: number, dataWords: number): number {
    const at = this.reserve(entry, dataWords);
    this.words[entry + KIND] |= OLD;
    return at;
  }

  /** The same, and uses its space again if it was the last that was taken. */
  dropCopy(entry: number): void {
    const end = this.words[entry + BUFFER] + ((this.words[entry + DATA_WORDS] + 1) & ~1);
    if (end === this.#arenaTop) this.#arenaTop = this.words[entry + BUFFER];
    this.forgetCopy(entry);
  }

  /** Forgets the copy of an old version. */
  forgetCopy(entry: number): void {
    this.words[entry + BUFFER] = -1;
    this.words[entry + KIND] &= ~OLD;
  }

  /**
   * Space for some data words of an object only. The object's place in the arena is where it
   * would begin if all of it were there, so a word of the window is found as always.
   */
  window(entry: number, from: number, to: number, dataWords: number): number {
    assert(from <= MAX_WINDOW_START, "a window begins near the start of its object");
    const at = this.#reserve(to - from) - from;
    const { words } = this;
    words[entry + BUFFER] = at;
    words[entry + DATA_WORDS] = dataWords;
    words[entry + DIRTY_FROM] = from;
    words[entry + DIRTY_TO] = to;
    words[entry + EDITS] = 0;
    words[entry + KIND] |= WINDOW;
    return at;
  }

  markDirty(entry: number, from: number, to: number): void {
    const { words } = this;
    if (from < words[entry + DIRTY_FROM]) words[entry + DIRTY_FROM] = from;
    if (to > words[entry + DIRTY_TO]) words[entry + DIRTY_TO] = to;
    if (words[entry + EDITS] > 0) this.#markPending(entry, from, to);
  }

  /** Nothing of the object is changed, and nothing is logged of it: for one that is freed. */
  markUnchanged(entry: number): void {
    const { words } = this;
    words[entry + DIRTY_FROM] = 0;
    words[entry + DIRTY_TO] = 0;
    words[entry + EDITS] = NOT_EDITED;
  }

  /**
   * To be called before the words of an object are moved, by one who then says with `recordMove`, `recordWrite` and
   * `recordRepack` what has been done, in this order and all of it. Until the next call, other changes of the object
   * are still told with `markDirty`.
   */
  beginEdits(entry: number): void {
    const { words } = this;
    if (words[entry + EDITS] === NOT_EDITED) return;
    const isEditable =
      this.recordsEdits &&
      (words[entry + KIND] & NEW) === 0 &&
      words[entry + DATA_WORDS] <= MAX_EDITED_WORDS;
    if (!isEditable) {
      words[entry + EDITS] = NOT_EDITED;
    } else if (words[entry + EDITS] === 0) {
      words[entry + EDIT_WORDS] = 0;
      words[entry + PENDING_FROM] = words[entry + DATA_WORDS];
      words[entry + PENDING_TO] = 0;
      if (words[entry + DIRTY_TO] > words[entry + DIRTY_FROM]) {
        this.#addWrite(entry, words[entry + DIRTY_FROM], words[entry + DIRTY_TO]);
      }
    } else {
      this.#flushPending(entry);
    }
  }

  /** Words were moved inside of the object. */
  recordMove(entry: number, from: number, to: number, count: number): void {
    if (count === 0) return;
    this.#extendDirty(entry, to, to + count);
    if (this.words[entry + EDITS] === NOT_EDITED) return;
    const at = this.#addEdit(entry, 2);
    if (at === 0) return;
    this.edits.words[at] = editWord(MOVE_EDIT, from, count);
    this.edits.words[at + 1] = to;
  }

  /** Words were written, and are as they are to be. */
  recordWrite(entry: number, from: number, count: number): void {
    this.#extendDirty(entry, from, from + count);
    if (this.words[entry + EDITS] !== NOT_EDITED) this.#addWrite(entry, from, from + count);
  }

  /** The keys of `slots` slots were packed (edits.ts): from `begin` on, up to `end`, all words may have changed. */
  recordRepack(
    entry: number,
    slotsAt: number,
    slots: number,
    slotWords: number,
    begin: number,
    end: number,
  ): void {
    this.#extendDirty(entry, slotsAt, slotsAt + slots * slotWords);
    this.#extendDirty(entry, begin, end);
    if (this.words[entry + EDITS] === NOT_EDITED) return;
    const at = this.#addEdit(entry, 2);
    if (at === 0) return;
    this.edits.words[at] = editWord(REPACK_EDIT, slotsAt, slots);
    this.edits.words[at + 1] = (slotWords << 16) | end;
  }

  /** For the journal, if EDITS > 0: words of all edits of an object; 0 if its changed words are to be logged. */
  editWordsOf(entry: number): number {
    const { words } = this;
    if (words[entry + EDITS] <= 0) return 0;
    if ((words[entry + KIND] & SPLICED) !== 0) return words[entry + EDIT_WORDS];
    this.#flushPending(entry);
    if (words[entry + EDITS] === NOT_EDITED) return 0;
    const changed = words[entry + DIRTY_TO] - words[entry + DIRTY_FROM];
    return words[entry + EDIT_WORDS] + BESIDE_EDITS_WORDS < changed ? words[entry + EDIT_WORDS] : 0;
  }

  /** For the journal: copies the edits of an object. */
  copyEdits(entry: number, to: Int32Array, toAt: number): void {
    const edits = this.edits.words;
    let at = toAt;
    for (let edit = this.words[entry + EDITS]; edit !== 0; edit = edits[edit]) {
      const end = wordsOfEdit(edits[edit + 1]);
      for (let i = 1; i <= end; i++) to[at++] = edits[edit + i];
    }
  }

  #extendDirty(entry: number, from: number, to: number): void {
    const { words } = this;
    if (from < words[entry + DIRTY_FROM]) words[entry + DIRTY_FROM] = from;
    if (to > words[entry + DIRTY_TO]) words[entry + DIRTY_TO] = to;
  }

  #markPending(entry: number, from: number, to: number): void {
    const { words } = this;
    if (from < words[entry + PENDING_FROM]) words[entry + PENDING_FROM] = from;
    if (to > words[entry + PENDING_TO]) words[entry + PENDING_TO] = to;
  }

  /** What was changed since the last edit becomes one, before the words move on. */
  #flushPending(entry: number): void {
    const { words } = this;
    const from = words[entry + PENDING_FROM];
    const to = words[entry + PENDING_TO];
    if (to <= from) return;
    words[entry + PENDING_FROM] = words[entry + DATA_WORDS];
    words[entry + PENDING_TO] = 0;
    this.#addWrite(entry, from, to);
  }

  #addWrite(entry: number, from: number, to: number): void {
    const at = this.#addEdit(entry, 1 + to - from);
    if (at === 0) return;
    const edits = this.edits.words;
    const source = this.words[entry + BUFFER] + from;
    edits[at] = editWord(WRITE_EDIT, from, to - from);
    for (let i = 0; i < to - from; i++) edits[at + 1 + i] = this.arena.i32[source + i];
  }

  /** Where the words of a new edit go; 0 if the edits have got longer than the object. */
  #addEdit(entry: number, count: number): number {
    const { words } = this;
    words[entry + EDIT_WORDS] += count;
    if (words[entry + EDIT_WORDS] > words[entry + DATA_WORDS]) {
      words[entry + EDITS] = NOT_EDITED;
      return 0;
    }
    const at = this.edits.add(count);
    if (words[entry + EDITS] === 0) words[entry + EDITS] = at - 1;
    else this.edits.words[words[entry + LAST_EDIT]] = at - 1;
    words[entry + LAST_EDIT] = at - 1;
    return at;
  }

  /** Adds to the kind of an entry; counts it when it becomes one that is written. */
  mark(entry: number, kind: number): void {
    const before = this.words[entry + KIND];
    if ((kind & ~before & WRITE) !== 0) this.writes++;
    this.words[entry + KIND] = before | kind;
  }

  #reserve(words: number): number {
    const at = this.#arenaTop;
    this.#arenaTop = at + ((words + 1) & ~1);
    if (this.#arenaTop > this.arena.i32.length) this.#growArena();
    return at;
  }

  #insert(entry: number): void {
    const index = this.#index;
    const mask = index.length - 1;
    let place = placeHash(this.words[entry + REGION_ID], this.words[entry + WORD]) & mask;
    while (index[place] !== 0) place = (place + 1) & mask;
    index[place] = entry + 1;
    this.words[entry + PLACE] = place;
  }

  #grow(): void {
    const capacity = 2 * this.count;
    if (capacity > this.mostObjects) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `the transaction touches more than ${this.count} objects: split it into smaller ones`,
      );
    }
    const words = new Int32Array(capacity * ENTRY_WORDS);
    words.set(this.words);
    this.words = words;
    while (this.#regions.length < capacity) this.#regions.push(undefined);
    this.#index = new Int32Array(4 * capacity);
    for (let entry = 0; entry < this.end; entry += ENTRY_WORDS) this.#insert(entry);
  }

  #growArena(): void {
    let words = this.arena.i32.length;
    while (words < this.#arenaTop) words *= 2;
    if (words * 4 > MAX_ARENA_BYTES) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `the transaction holds more than ${MAX_ARENA_BYTES} bytes of what it writes, or of old ` +
          `versions: split it into smaller ones`,
      );
    }
    const before = this.arena.i32;
    this.arena.reset(new ArrayBuffer(words * 4));
    this.arena.i32.set(before);
  }
}
