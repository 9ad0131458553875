/**
 * A slot is the identity of an executor (a thread or process that has the store open): the owner
 * in lock words, the low bits of TIDs, a journal, and 64 words in the control segment:
 *
 *   word 0   status    phase of the running commit and its committing epoch
 *   word 1   active    the epoch announced by the oldest running transaction, or 0
 *   word 2   record    where in the journal the running commit's record lies (journal.ts)
 *   word 3   head      where the journal's next record goes
 *   word 16  claimed   0; 1 while an executor uses the slot; 2 if that is a thread of the log
 *   word 17  pid, word 18  thread id, words 20–21  since when (float64, wall clock)
 *   word 24  tail      the first record that is not in the log yet; written by the log's writer
 *   word 25  lag       milliseconds that the log may lag behind, if the owner says so
 *   word 26  prepares  1 if the owner holds locks between its commits (prepared.ts)
 *   word 27  ticket    the place in line of a transaction that waits for priority, or 0 (priority.ts)
 *   word 28  large     words of the segment that holds a record too large for the journal, or 0; -1 while
 *                      the segment is being emptied (large-record.ts)
 *   word 29  jobs      updates of device tables that the owner's thread has begun and not ended
 *   word 32… counters, float64 each, written by the owner only
 *
 * Status and active hold the low 30 bits of an epoch above two bits of phase. Status walks
 *
 *   IDLE → INTENT → COMMITTING at E → COMMITTED at E → IDLE
 *
 * INTENT says: the journal holds a record, and its objects may be locked by this slot.
 * COMMITTED is the commit point: whoever finds the owner dead must install the record.
 */

import { type Control, SLOTS_IN_USE } from "../memory/control.ts";
import { raiseTo } from "../memory/ordering.ts";
import type { Holder } from "../runtime/errors.ts";
import type { NumberOf } from "../runtime/number-kinds.ts";

/** The number of a slot, from 0 on. */
export type SlotId = NumberOf<"slot">;

export const STATUS = 0;
export const ACTIVE = 1;
export const RECORD = 2;
export const HEAD = 3;
const CLAIMED = 16;
const PID = 17;
const THREAD = 18;
const SINCE_F64 = 20 / 2;
export const TAIL = 24;
export const LAG_MS = 25;
export const PREPARES = 26;
export const TICKET = 27;
export const LARGE = 28;
export const DEVICE_JOBS = 29;
const COUNTERS_F64 = 32 / 2;

const CLAIM = 1;
const LOG_THREAD_CLAIM = 2;

export const IDLE = 0;
export const INTENT = 1;
export const COMMITTING = 2;
export const COMMITTED = 3;
const PHASE_MASK = 3;

export function announcement(epochLow: number, phase: number): number {
  return (epochLow << 2) | phase;
}

export function phaseOf(status: number): number {
  return status & PHASE_MASK;
}

/** How far the announced epoch lies behind `epochLow`, in the circle of 30 bits. */
export function epochsBehind(announced: number, epochLow: number): number {
  return ((epochLow << 2) - (announced & ~PHASE_MASK)) >> 2;
}

/** Counters of one slot; the sum over all slots speaks for the store. */
export const COUNTERS = [
  "commits",
  "readOnlyCommits",
  "conflicts",
  "lockWaits",
  "recoveries",
  "allocations",
  "frees",
  "splits",
  "snapshots",
  "snapshotsReleased",
  "versionsKept",
  "versionsMoved",
  "starved",
] as const;
export type Counter = (typeof COUNTERS)[number];

export const COMMITS = COUNTERS_F64 + 0;
export const READ_ONLY_COMMITS = COUNTERS_F64 + 1;
export const CONFLICTS = COUNTERS_F64 + 2;
export const LOCK_WAITS = COUNTERS_F64 + 3;
export const RECOVERIES = COUNTERS_F64 + 4;
export const ALLOCATIONS = COUNTERS_F64 + 5;
export const FREES = COUNTERS_F64 + 6;
export const SPLITS = COUNTERS_F64 + 7;
export const SNAPSHOTS = COUNTERS_F64 + 8;
/** Snapshots that were released because of their age, or for want of room. */
export const SNAPSHOTS_RELEASED = COUNTERS_F64 + 9;
export const VERSIONS_KEPT = COUNTERS_F64 + 10;
/** Versions that moved from a ring to the overflow area. */
export const VERSIONS_MOVED = COUNTERS_F64 + 11;
/** Times that a starved transaction took priority (priority.ts). */
export const STARVED = COUNTERS_F64 + 12;

export function isClaimed(control: Control, slot: SlotId): boolean {
  return Atomics.load(control.i32, control.slotAt(slot) + CLAIMED) !== 0;
}

/** Whether it is claimed by one who has opened the store, and not by a thread of the log. */
export function isOpener(control: Control, slot: SlotId): boolean {
  return Atomics.load(control.i32, control.slotAt(slot) + CLAIMED) === CLAIM;
}

export function claimedSlots(control: Control): number {
  let claimed = 0;
  for (let slot = 0; slot < control.geometry.slots; slot++) {
    if (isClaimed(control, slot)) claimed++;
  }
  return claimed;
}

/** Written while the slot's lease is held. */
export function claim(
  control: Control,
  slot: SlotId,
  owner: Holder,
  wallClockMs: number,
  isLogThread: boolean,
): void {
  const at = control.slotAt(slot);
  Atomics.store(control.i32, at + PID, owner.pid);
  Atomics.store(control.i32, at + THREAD, owner.threadId);
  control.f64[at / 2 + SINCE_F64] = wallClockMs;
  control.i32[at + LAG_MS] = 0;
  // Before the slot does anything: whoever looks at all slots in use looks at this one, too.
  raiseTo(control.i32, SLOTS_IN_USE, slot + 1);
  Atomics.store(control.i32, at + CLAIMED, isLogThread ? LOG_THREAD_CLAIM : CLAIM);
}

/** Slots from this one on have never been claimed. */
export function slotsInUse(control: Control): number {
  return Atomics.load(control.i32, SLOTS_IN_USE);
}

export function unclaim(control: Control, slot: SlotId): void {
  Atomics.store(control.i32, control.slotAt(slot) + CLAIMED, 0);
}

export function holderOf(control: Control, slot: SlotId): Holder {
  const at = control.slotAt(slot);
  return {
    slot,
    pid: Atomics.load(control.i32, at + PID),
    threadId: Atomics.load(control.i32, at + THREAD),
  };
}

/** When the slot was claimed, in ms on the wall clock: tells one who has it from the next. */
export function claimedSince(control: Control, slot: SlotId): number {
  return control.f64[control.slotAt(slot) / 2 + SINCE_F64];
}

export function counterSum(control: Control, counter: Counter): number {
  const index = COUNTERS_F64 + COUNTERS.indexOf(counter);
  let sum = 0;
  for (let slot = 0; slot < control.geometry.slots; slot++) {
    sum += control.f64[control.slotAt(slot) / 2 + index];
  }
  return sum;
}
