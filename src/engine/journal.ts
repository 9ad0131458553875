/**
 * The journal of a slot: what its commits do, each complete before anything is locked. It is intent list
 * and redo record in one (docs/DESIGN.md §5): the addresses are the intent, and the same bytes are redone
 * from the moment that the status word is COMMITTED. Locks are then held for as long as it takes to choose a
 * TID, not to copy data.
 *
 *   word 0  length of the record in words
 *   word 1  entries, or FILLING: nothing up to the end of the ring
 *   words 2–3  TID, written just before the commit point
 *   then for each entry, in address order:
 *     region id, and above 16 bits 1 + the size class of a new cell
 *     word of the header, incarnation word after the commit,
 *     first changed data word, changed data words, and these words
 *   then the row changes of watched tables, as entries of no region (changes.ts)
 *
 * In a store with a log the journal is a ring. A commit writes its record at the head, and moves the
 * head when it has installed it, before the slot turns to IDLE: whoever has waited for the commits of
 * an epoch finds all their records between tail and head. The log's writer (log/) moves the tail
 * when they are on disk. A record that does not fit is not written: its owner waits, with no lock
 * held. The slot's `record` says where the running commit's record lies: one who dies after moving
 * the head, but before IDLE, is ended by that record and not by what lies behind it.
 *
 * In a store without a log the ring does not move, and every record lies at its start.
 */

import { addressOf } from "../memory/address.ts";
import { BlockTable } from "../memory/blocks.ts";
import { LOG_RESTS } from "../memory/control.ts";
import { loadAcquire, storeRelease } from "../memory/ordering.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import type { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import { JOURNAL_NUDGE } from "../runtime/limits.ts";
import {
  type AccessSet,
  BUFFER,
  CELL,
  DIRTY_FROM,
  DIRTY_TO,
  ENTRY_WORDS,
  INCARNATION,
  KIND,
  NEW,
  REGION_ID,
  WORD,
  WRITE,
} from "./access-set.ts";
import { HEAD, RECORD, type SlotId, TAIL } from "./slot.ts";

const LENGTH = 0;
const ENTRIES = 1;
const TID_HIGH = 2;
const TID_LOW = 3;
export const RECORD_WORDS = 4;
export const RECORD_ENTRY_WORDS = 5;
/** In the place of the entries: a record that only fills the ring up to its end. */
export const FILLING = -1;
export const REGION_MASK = 0xffff;
export const CLASS_SHIFT = 16;

/** From here on a native copy beats a loop over words. */
const LONG_COPY_WORDS = 64;

export function copyWords(
  from: Int32Array,
  fromAt: number,
  to: Int32Array,
  toAt: number,
  words: number,
): void {
  if (words < LONG_COPY_WORDS) {
    for (let i = 0; i < words; i++) to[toAt + i] = from[fromAt + i];
  } else {
    to.set(from.subarray(fromAt, fromAt + words), toAt);
  }
}

export class Journal {
  readonly views: Views;
  readonly #control: Int32Array;
  readonly #slotAt: number;
  readonly #capacity: number;
  readonly #isLogged: boolean;
  readonly #blocks: BlockTable;
  /** The head: a count of words that goes round in a circle of 32 bits, as all positions. */
  #head = 0;
  /** Where the head lies in the ring, and up to where a record may reach from there. */
  #at = 0;
  #room = 0;
  /** A head from which on it is time to call the log's writer. */
  #callAt = 0;

  constructor(memory: StoreMemory, slot: SlotId) {
    this.views = memory.attachJournal(slot);
    this.#control = memory.control.i32;
    this.#slotAt = memory.control.slotAt(slot);
    this.#capacity = this.views.i32.length;
    this.#isLogged = memory.control.isLogged;
    this.#blocks = new BlockTable(memory);
    this.resume();
  }

  /** Goes on where the slot's journal is: for a new owner, and after a recovery. */
  resume(): void {
    this.#head = Atomics.load(this.#control, this.#slotAt + HEAD);
    this.#callAt = this.#head;
    this.#look();
  }

  /**
   * Writes the record of a write set. False if there is no room before the log's writer has moved
   * the tail. Refuses a record that never fits.
   */
  write(set: AccessSet, order: Int32Array, count: number): boolean {
    const { i32 } = this.views;
    const arena = set.arena.i32;
    const { words, changes } = set;
    const room = this.#room;
    let at = this.#at + RECORD_WORDS;
    for (let i = 0; i < count; i++) {
      const entry = order[i];
      const from = words[entry + DIRTY_FROM];
      const changed = Math.max(words[entry + DIRTY_TO] - from, 0);
      if (at + RECORD_ENTRY_WORDS + changed > room) return this.#writeElsewhere(set, order, count);
      let region = words[entry + REGION_ID];
      if ((words[entry + KIND] & (NEW | CELL)) === (NEW | CELL)) {
        region |= this.#classBits(region, words[entry + WORD]);
      }
      i32[at] = region;
      i32[at + 1] = words[entry + WORD];
      i32[at + 2] = words[entry + INCARNATION];
      i32[at + 3] = from;
      i32[at + 4] = changed;
      at += RECORD_ENTRY_WORDS;
      copyWords(arena, words[entry + BUFFER] + from, i32, at, changed);
      at += changed;
    }
    if (changes.count > 0) {
      if (at + changes.end > room) return this.#writeElsewhere(set, order, count);
      copyWords(changes.views.i32, 0, i32, at, changes.end);
      at += changes.end;
    }
    i32[this.#at + LENGTH] = at - this.#at;
    i32[this.#at + ENTRIES] = count + changes.count;
    storeRelease(this.#control, this.#slotAt + RECORD, this.#head);
    return true;
  }

  /** Fails if the record of a write set never fits: before anything is locked for long. */
  refuseTooLarge(set: AccessSet): void {
    const { words, end } = set;
    let length = RECORD_WORDS + set.changes.end;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      if ((words[entry + KIND] & WRITE) === 0) continue;
      const changed = words[entry + DIRTY_TO] - words[entry + DIRTY_FROM];
      length += RECORD_ENTRY_WORDS + Math.max(changed, 0);
    }
    if (length > this.#capacity) throw tooLarge(this.#capacity);
  }

  writeTid(high: number, low: number): void {
    this.views.i32[this.#at + TID_HIGH] = high;
    this.views.i32[this.#at + TID_LOW] = low;
  }

  /**
   * The record is committed and installed: it is the log's now. True if that is to be called. Its writer
   * announces that it rests, and looks again after a while: this store cannot be delayed so long.
   */
  pass(): boolean {
    if (!this.#isLogged) return false;
    const length = this.views.i32[this.#at + LENGTH];
    this.#head = (this.#head + length) | 0;
    this.#at += length;
    storeRelease(this.#control, this.#slotAt + HEAD, this.#head);
    if (((this.#head - this.#callAt) | 0) < 0) return loadAcquire(this.#control, LOG_RESTS) !== 0;
    this.#look();
    return this.#isTimeToCall() || loadAcquire(this.#control, LOG_RESTS) !== 0;
  }

  /** The first word of the running commit's record. */
  get recordAt(): number {
    return this.#control[this.#slotAt + RECORD] & (this.#capacity - 1);
  }

  /** For one who ends the commit of a slot: `pass`, as often as one likes. */
  passRecord(): void {
    if (!this.#isLogged) return;
    const record = this.#control[this.#slotAt + RECORD];
    const length = this.views.i32[record & (this.#capacity - 1)];
    Atomics.store(this.#control, this.#slotAt + HEAD, (record + length) | 0);
  }

  get entries(): number {
    return this.views.i32[this.recordAt + ENTRIES];
  }

  get tidHigh(): number {
    return this.views.i32[this.recordAt + TID_HIGH];
  }

  get tidLow(): number {
    return this.views.i32[this.recordAt + TID_LOW];
  }

  /** Where the record's first entry starts; `next` gives the following one. */
  get first(): number {
    return this.recordAt + RECORD_WORDS;
  }

  next(at: number): number {
    return at + RECORD_ENTRY_WORDS + this.views.i32[at + 4];
  }

  #classBits(regionId: number, word: number): number {
    const blocks = this.#blocks;
    return (blocks.classOf(blocks.blockOf(addressOf(regionId, word))) + 1) << CLASS_SHIFT;
  }

  /** The record does not fit where the head is: from the ring's start, or later. */
  #writeElsewhere(set: AccessSet, order: Int32Array, count: number): boolean {
    const { words } = set;
    let length = RECORD_WORDS + set.changes.end;
    for (let i = 0; i < count; i++) {
      const changed = words[order[i] + DIRTY_TO] - words[order[i] + DIRTY_FROM];
      length += RECORD_ENTRY_WORDS + Math.max(changed, 0);
    }
    if (length > this.#capacity) throw tooLarge(this.#capacity);
    this.#look();
    const toEnd = this.#capacity - this.#at;
    if (length > toEnd && this.#room - this.#at === toEnd) this.#fill(toEnd);
    return this.#at + length <= this.#room && this.write(set, order, count);
  }

  /** Leaves out the rest of the ring. A single word has no room for FILLING, and needs none. */
  #fill(words: number): void {
    const { i32 } = this.views;
    i32[this.#at + LENGTH] = words;
    if (words > 1) i32[this.#at + ENTRIES] = FILLING;
    this.#head = (this.#head + words) | 0;
    storeRelease(this.#control, this.#slotAt + HEAD, this.#head);
    this.#look();
  }

  /** Looks how far the tail has come. */
  #look(): void {
    this.#at = this.#head & (this.#capacity - 1);
    const tail = this.#isLogged ? loadAcquire(this.#control, this.#slotAt + TAIL) : this.#head;
    const free = this.#capacity - ((this.#head - tail) | 0);
    this.#room = this.#at + Math.min(free, this.#capacity - this.#at);
    const callAt = (tail + this.#capacity * JOURNAL_NUDGE) | 0;
    if (((callAt - this.#callAt) | 0) > 0) this.#callAt = callAt;
  }

  /** Not with every commit, as long as the tail does not move. */
  #isTimeToCall(): boolean {
    if (((this.#head - this.#callAt) | 0) < 0) return false;
    this.#callAt = (this.#head + this.#capacity * (JOURNAL_NUDGE / 4)) | 0;
    return true;
  }
}

function tooLarge(capacity: number): SituError {
  return new SituError(
    "SITU_TOO_LARGE",
    `the transaction writes more than the ${capacity * 4} bytes that a journal holds: ` +
      `write less in one transaction`,
  );
}
