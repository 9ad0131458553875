/**
 * Ends what a dead executor had begun. Whoever holds the dead slot's lease does this, so only one
 * at a time; and should that one die too, the next finds the same record and the same locks, for
 * every step below can be repeated:
 *
 *   status COMMITTED   what is still locked by the slot was not installed yet: install it.
 *                      What is not, was; somebody may have changed it since, so leave it.
 *   INTENT, COMMITTING nothing was changed: unlock what is locked by the slot.
 *   IDLE               no locks. The record may be half-written; nobody looks at it.
 *
 * A committed record is passed on to the log before the slot turns to IDLE, as its owner would have.
 * As in a commit, all objects turn to INSTALLING before the first is written.
 *
 * One who took part in transactions across machines may hold further locks, which no record names
 * (prepared.ts): they are looked for in all of memory, and let go.
 */

import { addressOf } from "../memory/address.ts";
import { BlockTable } from "../memory/blocks.ts";
import {
  DEVICE_FLUSHER,
  DEVICE_KEEPER,
  EXPIRY_SWEEPER,
  KEEPER,
  LOG_STARTER,
  LOG_WRITER,
} from "../memory/control.ts";
import {
  ALLOCATED,
  ARRAY,
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockOwner,
  lockWord,
  storeVersion,
} from "../memory/object.ts";
import { CELL_BYTES } from "../memory/size-classes.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { CHANGE_REGION } from "./changes.ts";
import { CHANGED, CLASS_SHIFT, copyWords, EDITED, type Journal, REGION_MASK } from "./journal.ts";
import { releasePrepared } from "./prepared.ts";
import { releasePriority } from "./priority.ts";
import { ACTIVE, COMMITTED, DEVICE_JOBS, IDLE, phaseOf, type SlotId, STATUS } from "./slot.ts";
import { Registry } from "./snapshots/registry.ts";
import { PIECE_HEADER_WORDS } from "./splices.ts";

export type EndedCommit = "rolled forward" | "rolled back" | "nothing to do";

/** Brings the slot's last transaction to its end: whole, or not at all. */
export function endCommitOf(
  memory: StoreMemory,
  slot: SlotId,
  journal: () => Journal,
): EndedCommit {
  const { control } = memory;
  const statusAt = control.slotAt(slot) + STATUS;
  const phase = phaseOf(Atomics.load(control.i32, statusAt));
  if (phase === IDLE) return "nothing to do";
  const record = journal();
  if (phase === COMMITTED) {
    rollForward(memory, slot, record);
    record.passRecord();
  } else {
    unlockAll(memory, slot, record);
  }
  record.endLarge(phase === COMMITTED);
  Atomics.store(control.i32, statusAt, IDLE);
  return phase === COMMITTED ? "rolled forward" : "rolled back";
}

/** Gives back all else that the slot held: its epoch, snapshots, priority, blocks, half-made regions. */
export function releaseSlot(memory: StoreMemory, slot: SlotId): void {
  const { control } = memory;
  Atomics.store(control.i32, control.slotAt(slot) + ACTIVE, 0);
  new Registry(control).releaseSlot(slot);
  // The keeper's steps can be left at any point: the next one goes on from there.
  Atomics.compareExchange(control.i32, KEEPER, slot + 1, 0);
  // So can those of one who removes expired rows.
  Atomics.compareExchange(control.i32, EXPIRY_SWEEPER, slot + 1, 0);
  // Of one who moves rows to the device, pages are left that nothing leads to.
  Atomics.compareExchange(control.i32, DEVICE_KEEPER, slot + 1, 0);
  Atomics.compareExchange(control.i32, DEVICE_FLUSHER, slot + 1, 0);
  // So are pages of an update that is never applied.
  Atomics.store(control.i32, control.slotAt(slot) + DEVICE_JOBS, 0);
  // The log's writer too: what it had not published, the next one writes again.
  Atomics.compareExchange(control.i32, LOG_WRITER, slot + 1, 0);
  Atomics.compareExchange(control.i32, LOG_STARTER, slot + 1, 0);
  releasePriority(memory, slot);
  releasePrepared(memory, slot);
  memory.abandonRegions(slot);
  new BlockTable(memory).orphan(slot);
}

function rollForward(memory: StoreMemory, slot: SlotId, journal: Journal): void {
  const { record } = journal;
  const blocks = new BlockTable(memory);
  const installing = lockWord(slot, INSTALLING);
  for (let i = 0, at = journal.first; i < journal.entries; i++, at = journal.next(at)) {
    // Behind all objects: row changes for the log.
    if (record[at] === CHANGE_REGION) break;
    const { i32 } = memory.region(record[at] & REGION_MASK);
    const word = record[at + 1];
    if (isLockedBy(i32, word, slot)) Atomics.store(i32, word + LOCK, installing);
  }
  let redo = journal.firstRedo;
  for (let i = 0, at = journal.first; i < journal.entries; i++, at = journal.next(at)) {
    if (record[at] === CHANGE_REGION) break;
    const isEdited = record[at + 3] === EDITED;
    const redoAt = redo;
    if (isEdited) redo = journal.nextRedo(redo);
    const { i32 } = memory.region(record[at] & REGION_MASK);
    const word = record[at + 1];
    if (!isLockedBy(i32, word, slot)) continue;
    if (isEdited) redoPieces(record, redoAt, i32, word + HEADER_WORDS);
    else redoPiece(record, at + CHANGED, i32, word + HEADER_WORDS);
    i32[word + INCARNATION] = record[at + 2];
    storeVersion(i32, word, journal.tidHigh, journal.tidLow);
    Atomics.store(i32, word + LOCK, 0);
    // What the record freed, the owner of its block must hear of.
    if ((record[at + 2] & ALLOCATED) === 0)
      blocks.countFree(blocks.blockOf(addressOf(record[at] & REGION_MASK, word)));
  }
}

/** Writes the changed words of an edited object, which may be half-written. */
function redoPieces(record: Int32Array, redoAt: number, i32: Int32Array, dataAt: number): void {
  let at = redoAt + 1;
  for (let piece = record[redoAt]; piece > 0; piece--) {
    at += redoPiece(record, at, i32, dataAt);
  }
}

/** First changed word, changed words, and these. Returns how many words that is. */
function redoPiece(record: Int32Array, at: number, i32: Int32Array, dataAt: number): number {
  copyWords(record, at + PIECE_HEADER_WORDS, i32, dataAt + record[at], record[at + 1]);
  return PIECE_HEADER_WORDS + record[at + 1];
}

/**
 * The elements of a new array are left out: the words where they would have been are headers only
 * while their cell is locked, and what another has in that cell by now may look like a lock.
 */
function unlockAll(memory: StoreMemory, slot: SlotId, journal: Journal): void {
  const { record } = journal;
  let arrayRegion = -1;
  let arrayEnd = 0;
  for (let i = 0, at = journal.first; i < journal.entries; i++, at = journal.next(at)) {
    if (record[at] === CHANGE_REGION) break;
    const regionId = record[at] & REGION_MASK;
    const word = record[at + 1];
    // Entries come in address order, so an array is followed by its elements.
    if (regionId === arrayRegion && word < arrayEnd) continue;
    const newClass = (record[at] >>> CLASS_SHIFT) - 1;
    if (newClass >= 0 && (record[at + 2] & ARRAY) !== 0) {
      arrayRegion = regionId;
      arrayEnd = word + CELL_BYTES[newClass] / 4;
    }
    const { i32 } = memory.region(regionId);
    if (isLockedBy(i32, word, slot)) Atomics.store(i32, word + LOCK, 0);
  }
}

function isLockedBy(i32: Int32Array, word: number, slot: SlotId): boolean {
  const lock = Atomics.load(i32, word + LOCK);
  return lock !== 0 && lockOwner(lock) === slot;
}
