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
 *   or, if that is shorter, EDITED instead of the first word, words of edits, and these (edits.ts)
 *   then the row changes of watched tables, as entries of no region (changes.ts)
 *
 * This is what goes to the log. Edits cannot be applied twice, but a commit whose owner dies while it installs is
 * installed again, over whatever is there. So behind a record with edits lie redo words, for each edited entry:
 *
 *   number of pieces
 *   then for each piece: first changed data word, changed data words, and these words
 *
 * One that is in the arena has one piece; one that is spliced (splices.ts) has a piece for each of its edits. Without a
 * log the record has no edits, but spliced entries are still marked so, and have their redo words.
 *
 * Nobody needs them once the commit is installed. They do not count in the record's length, do not go to the log, and
 * the next record is written over them.
 *
 * In a store with a log the journal is a ring. A commit writes its record at the head, and moves the
 * head when it has installed it, before the slot turns to IDLE: whoever has waited for the commits of
 * an epoch finds all their records between tail and head. The log's writer (log/) moves the tail
 * when they are on disk. A record that does not fit is not written: its owner waits, with no lock
 * held. The slot's `record` says where the running commit's record lies: one who dies after moving
 * the head, but before IDLE, is ended by that record and not by what lies behind it.
 *
 * In a store without a log the ring does not move, and every record lies at its start.
 *
 * A record that is larger than the ring lies in a segment of its own: see large-record.ts.
 */

import { addressOf } from "../memory/address.ts";
import { BlockTable } from "../memory/blocks.ts";
import { LOG_RESTS } from "../memory/control.ts";
import { HEADER_WORDS } from "../memory/object.ts";
import { loadAcquire, storeRelease } from "../memory/ordering.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import type { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import { JOURNAL_NUDGE, MAX_TRANSACTION_BYTES } from "../runtime/limits.ts";
import {
  type AccessSet,
  BUFFER,
  CELL,
  DIRTY_FROM,
  DIRTY_TO,
  EDIT_WORDS,
  EDITS,
  ENTRY_WORDS,
  INCARNATION,
  KIND,
  NEW,
  REGION_ID,
  SPLICED,
  WORD,
  WRITE,
} from "./access-set.ts";
import { editLength, editOffset, editOperation, MOVE_EDIT } from "./edits.ts";
import { LARGE_RECORD, LargeRecord } from "./large-record.ts";
import { HEAD, RECORD, type SlotId, TAIL } from "./slot.ts";
import { materialize, PIECE_HEADER_WORDS, PIECE_WORDS, PIECES } from "./splices.ts";

export const LENGTH = 0;
export const ENTRIES = 1;
const TID_HIGH = 2;
const TID_LOW = 3;
export const RECORD_WORDS = 4;
export const RECORD_ENTRY_WORDS = 5;
/** In an entry: first changed word, changed words, and these; a piece of redo words has the same. */
export const CHANGED = 3;
/** In the place of the entries: a record that only fills the ring up to its end. */
export const FILLING = -1;
export const REGION_MASK = 0xffff;
export const CLASS_SHIFT = 16;
/** In the place of the first changed word: the entry has edits. No object has so many words. */
export const EDITED = 1 << 20;
/** Of an edited entry in the arena, among the redo words: one piece, first changed word, changed words. */
const ONE_PIECE_WORDS = 1 + PIECE_HEADER_WORDS;

/** In the place of a large record that is being emptied. */
const NO_RECORD = new Int32Array(RECORD_WORDS);

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
  readonly #large: LargeRecord;
  /** The record that is being committed, if it is a large one. */
  #largeWords: Int32Array | undefined;
  /** The large segment holds a record that was passed on to the log. */
  #isLargePassed = false;

  constructor(memory: StoreMemory, slot: SlotId) {
    this.views = memory.attachJournal(slot);
    this.#large = new LargeRecord(memory, slot);
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
    this.#largeWords = undefined;
    this.#look();
  }

  /** For the new owner of a slot: a large segment of which the log needs nothing is emptied. */
  adopt(): void {
    this.#isLargePassed = this.#hasLarge();
    if (!this.#isLargePassed) this.#large.empty();
  }

  /** For one who leaves the slot. */
  leave(): void {
    if (this.#isLargePassed) this.#large.unmap();
    else this.#large.empty();
  }

  /** Whether a large record was passed on to the log that its writer is not done with. */
  #hasLarge(): boolean {
    const { i32 } = this.views;
    const tail = this.#isLogged ? loadAcquire(this.#control, this.#slotAt + TAIL) : this.#head;
    for (let position = tail; position !== this.#head; ) {
      const at = position & (this.#capacity - 1);
      const fills = i32[at + LENGTH] < RECORD_WORDS;
      if (!fills && i32[at + ENTRIES] === LARGE_RECORD) return true;
      position = (position + i32[at + LENGTH]) | 0;
    }
    return false;
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
    let redo = 0;
    let at = this.#at + RECORD_WORDS;
    for (let i = 0; i < count; i++) {
      const entry = order[i];
      const from = words[entry + DIRTY_FROM];
      const changed = Math.max(words[entry + DIRTY_TO] - from, 0);
      const isEdited = words[entry + EDITS] > 0 && set.editWordsOf(entry) > 0;
      const logged = isEdited ? this.#loggedEdits(words, entry) : changed;
      if (isEdited) redo += redoWords(words, entry);
      if (at + RECORD_ENTRY_WORDS + logged + redo > room) {
        return this.#writeElsewhere(set, order, count);
      }
      let region = words[entry + REGION_ID];
      if ((words[entry + KIND] & (NEW | CELL)) === (NEW | CELL)) {
        region |= this.#classBits(region, words[entry + WORD]);
      }
      i32[at] = region;
      i32[at + 1] = words[entry + WORD];
      i32[at + 2] = words[entry + INCARNATION];
      i32[at + 3] = isEdited ? EDITED : from;
      i32[at + 4] = logged;
      at += RECORD_ENTRY_WORDS;
      if (!isEdited) copyWords(arena, words[entry + BUFFER] + from, i32, at, changed);
      else if (logged > 0) set.copyEdits(entry, i32, at);
      at += logged;
    }
    if (changes.count > 0) {
      if (at + changes.end + redo > room) return this.#writeElsewhere(set, order, count);
      copyWords(changes.views.i32, 0, i32, at, changes.end);
      at += changes.end;
    }
    i32[this.#at + LENGTH] = at - this.#at;
    i32[this.#at + ENTRIES] = count + changes.count;
    if (redo !== 0) this.#writeRedo(set, order, count, at);
    storeRelease(this.#control, this.#slotAt + RECORD, this.#head);
    return true;
  }

  #writeRedo(set: AccessSet, order: Int32Array, count: number, redoAt: number): void {
    const { i32 } = this.views;
    const { words } = set;
    let at = redoAt;
    for (let i = 0; i < count; i++) {
      const entry = order[i];
      if (words[entry + EDITS] <= 0 || set.editWordsOf(entry) === 0) continue;
      if ((words[entry + KIND] & SPLICED) !== 0) {
        this.#writePieces(set, entry, at);
      } else {
        const from = words[entry + DIRTY_FROM];
        const changed = words[entry + DIRTY_TO] - from;
        i32[at] = 1;
        i32[at + 1] = from;
        i32[at + 2] = changed;
        const source = words[entry + BUFFER] + from;
        copyWords(set.arena.i32, source, i32, at + ONE_PIECE_WORDS, changed);
      }
      at += redoWords(words, entry);
    }
  }

  /** What each edit of a spliced object leaves behind. */
  #writePieces(set: AccessSet, entry: number, redoAt: number): void {
    const { i32 } = this.views;
    const edits = set.edits.words;
    const object = set.regionOf(entry).i32;
    const dataAt = set.wordOf(entry) + HEADER_WORDS;
    let at = redoAt + 1;
    i32[redoAt] = set.words[entry + PIECES];
    for (let edit = set.words[entry + EDITS]; edit !== 0; edit = edits[edit]) {
      const first = edits[edit + 1];
      const length = editLength(first);
      const isMove = editOperation(first) === MOVE_EDIT;
      i32[at] = isMove ? edits[edit + 2] : editOffset(first);
      i32[at + 1] = length;
      at += PIECE_HEADER_WORDS;
      if (isMove) copyWords(object, dataAt + editOffset(first), i32, at, length);
      else for (let word = 0; word < length; word++) i32[at + word] = edits[edit + 2 + word];
      at += length;
    }
  }

  /** Edits are for the log. */
  #loggedEdits(words: Int32Array, entry: number): number {
    return this.#isLogged ? words[entry + EDIT_WORDS] : 0;
  }

  /** Fails if the record of a write set never fits: before anything is locked for long. */
  refuseTooLarge(set: AccessSet): void {
    const { words, end } = set;
    let length = RECORD_WORDS + set.changes.end;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      if ((words[entry + KIND] & WRITE) !== 0) length += wordsOf(set, entry);
    }
    if (length > this.#capacity) throw tooLarge(this.#capacity);
  }

  writeTid(high: number, low: number): void {
    if (this.#largeWords !== undefined) {
      this.#largeWords[TID_HIGH] = high;
      this.#largeWords[TID_LOW] = low;
    }
    this.views.i32[this.#at + TID_HIGH] = high;
    this.views.i32[this.#at + TID_LOW] = low;
  }

  /**
   * The record is committed and installed: it is the log's now. True if that is to be called. Its writer
   * announces that it rests, and looks again after a while: this store cannot be delayed so long.
   */
  pass(): boolean {
    if (this.#largeWords !== undefined) this.#passLarge();
    if (!this.#isLogged) return false;
    const length = this.views.i32[this.#at + LENGTH];
    this.#head = (this.#head + length) | 0;
    this.#at += length;
    storeRelease(this.#control, this.#slotAt + HEAD, this.#head);
    if (((this.#head - this.#callAt) | 0) < 0) return loadAcquire(this.#control, LOG_RESTS) !== 0;
    this.#look();
    return this.#isTimeToCall() || loadAcquire(this.#control, LOG_RESTS) !== 0;
  }

  #passLarge(): void {
    this.#largeWords = undefined;
    this.#isLargePassed = this.#isLogged;
    if (this.#isLogged) this.#large.unmap();
    else this.#large.empty();
  }

  /** Where the running commit's record, or its stub, lies in the journal. */
  get #recordAt(): number {
    return this.#control[this.#slotAt + RECORD] & (this.#capacity - 1);
  }

  get #isStub(): boolean {
    return this.views.i32[this.#recordAt + ENTRIES] === LARGE_RECORD;
  }

  /** What holds the running commit's record. One of no entries, if nobody needs it any more. */
  get record(): Int32Array {
    return this.#isStub ? (this.#large.read() ?? NO_RECORD) : this.views.i32;
  }

  /** The first word of the running commit's record. */
  get recordAt(): number {
    return this.#isStub ? 0 : this.#recordAt;
  }

  /** For one who has ended the commit of a slot, before it turns to IDLE: only the log may need a large record now. */
  endLarge(isCommitted: boolean): void {
    if (!this.#isStub) return;
    if (isCommitted && this.#isLogged) this.#large.unmap();
    else this.#large.empty();
  }

  /** For one who ends the commit of a slot: `pass`, as often as one likes. */
  passRecord(): void {
    if (!this.#isLogged) return;
    const record = this.#control[this.#slotAt + RECORD];
    const length = this.views.i32[(record & (this.#capacity - 1)) + LENGTH];
    Atomics.store(this.#control, this.#slotAt + HEAD, (record + length) | 0);
  }

  get entries(): number {
    return this.record[this.recordAt + ENTRIES];
  }

  get tidHigh(): number {
    return this.views.i32[this.#recordAt + TID_HIGH];
  }

  get tidLow(): number {
    return this.views.i32[this.#recordAt + TID_LOW];
  }

  /** Where the record's first entry starts; `next` gives the following one. */
  get first(): number {
    return this.recordAt + RECORD_WORDS;
  }

  next(at: number): number {
    return at + RECORD_ENTRY_WORDS + this.record[at + 4];
  }

  /** Where the redo words of the record's first edited entry start; `nextRedo` gives those of the following one. */
  get firstRedo(): number {
    const at = this.recordAt;
    return at + this.record[at + LENGTH];
  }

  nextRedo(at: number): number {
    const { i32 } = this.views;
    let next = at + 1;
    for (let piece = i32[at]; piece > 0; piece--) next += PIECE_HEADER_WORDS + i32[next + 1];
    return next;
  }

  #classBits(regionId: number, word: number): number {
    const blocks = this.#blocks;
    return (blocks.classOf(blocks.blockOf(addressOf(regionId, word))) + 1) << CLASS_SHIFT;
  }

  /** The record does not fit where the head is: from the ring's start, or later. */
  #writeElsewhere(set: AccessSet, order: Int32Array, count: number): boolean {
    let length = RECORD_WORDS + set.changes.end;
    for (let i = 0; i < count; i++) length += wordsOf(set, order[i]);
    if (length > this.#capacity) return this.#writeLarge(set, order, count);
    this.#look();
    const toEnd = this.#capacity - this.#at;
    if (length > toEnd && this.#room - this.#at === toEnd) this.#fill(toEnd);
    return this.#at + length <= this.#room && this.write(set, order, count);
  }

  /** The record goes to a segment of its own. */
  #writeLarge(set: AccessSet, order: Int32Array, count: number): boolean {
    const { words, changes } = set;
    if (!this.#large.isPossible) throw tooLarge(this.#capacity);
    for (let i = 0; i < count; i++) {
      if ((words[order[i] + KIND] & SPLICED) !== 0) materialize(set, order[i]);
    }
    let length = RECORD_WORDS + changes.end;
    for (let i = 0; i < count; i++) length += RECORD_ENTRY_WORDS + changedWords(words, order[i]);
    if (4 * length > MAX_TRANSACTION_BYTES) throw tooLarge(MAX_TRANSACTION_BYTES / 4);
    if (this.#isLargePassed && !this.#large.isEmpty) return false;
    this.#look();
    const toEnd = this.#capacity - this.#at;
    if (RECORD_WORDS > toEnd && this.#room - this.#at === toEnd) this.#fill(toEnd);
    if (this.#at + RECORD_WORDS > this.#room) return false;
    this.#isLargePassed = false;
    const record = this.#large.make(length);
    this.#largeWords = record;
    let at = RECORD_WORDS;
    for (let i = 0; i < count; i++) {
      const entry = order[i];
      const from = words[entry + DIRTY_FROM];
      const changed = changedWords(words, entry);
      const isNew = (words[entry + KIND] & (NEW | CELL)) === (NEW | CELL);
      const region = words[entry + REGION_ID];
      record[at] = region | (isNew ? this.#classBits(region, words[entry + WORD]) : 0);
      record[at + 1] = words[entry + WORD];
      record[at + 2] = words[entry + INCARNATION];
      record[at + 3] = from;
      record[at + 4] = changed;
      at += RECORD_ENTRY_WORDS;
      copyWords(set.arena.i32, words[entry + BUFFER] + from, record, at, changed);
      at += changed;
    }
    copyWords(changes.views.i32, 0, record, at, changes.end);
    record[LENGTH] = length;
    record[ENTRIES] = count + changes.count;
    const { i32 } = this.views;
    i32[this.#at + LENGTH] = RECORD_WORDS;
    i32[this.#at + ENTRIES] = LARGE_RECORD;
    storeRelease(this.#control, this.#slotAt + RECORD, this.#head);
    return true;
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

/** Words that an entry takes in a journal, redo words included. */
function wordsOf(set: AccessSet, entry: number): number {
  const { words } = set;
  const edits = set.editWordsOf(entry);
  if (edits === 0) return RECORD_ENTRY_WORDS + changedWords(words, entry);
  return RECORD_ENTRY_WORDS + edits + redoWords(words, entry);
}

/** Redo words of an edited entry. */
function redoWords(words: Int32Array, entry: number): number {
  if ((words[entry + KIND] & SPLICED) !== 0) return 1 + words[entry + PIECE_WORDS];
  return ONE_PIECE_WORDS + changedWords(words, entry);
}

function changedWords(words: Int32Array, entry: number): number {
  return Math.max(words[entry + DIRTY_TO] - words[entry + DIRTY_FROM], 0);
}

function tooLarge(capacity: number): SituError {
  return new SituError(
    "SITU_TOO_LARGE",
    `the transaction writes more than ${capacity * 4} bytes, which is all that one can: ` +
      `write less in one transaction`,
  );
}
