/**
 * An executor is one thread or process at work in a store: a claimed slot with all that belongs to
 * it. This is where the parts of the engine meet; each of them is in a file of its own.
 */

import { threadId } from "node:worker_threads";
import { INSTALLING, LOCK, lockMode, lockOwner, lockWord, PREPARED } from "../memory/object.ts";
import { storeRelease } from "../memory/ordering.ts";
import type { SlabHost } from "../memory/slab.ts";
import { Slabs } from "../memory/slabs.ts";
import type { Region, StoreMemory } from "../memory/store-memory.ts";
import { assert } from "../runtime/assert.ts";
import { nowMs, sleepSync, wallClockMs } from "../runtime/clock.ts";
import { type Holder, SituError, TimeoutError } from "../runtime/errors.ts";
import {
  ASYNC_PATIENCE_MS,
  DEFAULT_TIMEOUT_MS,
  LOG_THREAD_SLOTS,
  MAINTENANCE_TURN_MS,
  RECLAIM_PATIENCE_MS,
  STUCK_MS,
} from "../runtime/limits.ts";
import { hashSeed, Random } from "../runtime/random.ts";
import type { RetryLimits } from "../runtime/retry-policy.ts";
import { Backoff } from "./backoff.ts";
import { Committer } from "./committer.ts";
import { Durability } from "./durability.ts";
import { Epochs } from "./epoch.ts";
import { Journal } from "./journal.ts";
import type { Leases } from "./leases/leases.ts";
import { clearGauges, JOURNAL_ABORT, SlotMetrics } from "./metrics.ts";
import type { PageLoads } from "./page-loads.ts";
import { Priority, releasePriority } from "./priority.ts";
import { type EndedCommit, endCommitOf, releaseSlot } from "./recovery.ts";
import { CONFLICT } from "./signals.ts";
import {
  ACTIVE,
  announcement,
  CONFLICTS,
  claim,
  claimedSlots,
  holderOf,
  isClaimed,
  isOpener,
  LOCK_WAITS,
  RECOVERIES,
  type SlotId,
  unclaim,
} from "./slot.ts";
import { Versions } from "./snapshots/versions.ts";
import type { Transaction } from "./transaction.ts";

/** The word `active` is never 0 while a transaction runs, whatever the epoch. */
const ACTIVE_FLAG = 1;

/** Some tens of microseconds, with their back-off: one who moves again is seen to. */
const LOOKS_AT_GIVEN_UP = 6;
/** What there is of memory that was freed: some to use now, some that others may still see, or none. */
export type Reclaimed = "room" | "waiting" | "none";

/** How often in a row a lock is found without an owner before it is taken for damage. */
const MOST_UNOWNED_LOOKS = 50;

export class Executor implements SlabHost {
  readonly memory: StoreMemory;
  readonly slot: SlotId;
  readonly epochs: Epochs;
  readonly slabs: Slabs;
  readonly journal: Journal;
  readonly backoff: Backoff;
  readonly committer: Committer;
  readonly versions: Versions;
  readonly priority: Priority;
  readonly durability: Durability;
  readonly random = new Random();
  /** Seeds the hash of a new table. A simulation that must run the same way twice sets another. */
  newHashSeed: () => number = hashSeed;
  /** How long reads outside of transactions wait for others. */
  timeoutMs = DEFAULT_TIMEOUT_MS;
  /** How long a synchronous operation waits for the log, which a disk or a busy machine may hold up. */
  diskMs = DEFAULT_TIMEOUT_MS;
  /**
   * Whether one who meets an object that is being installed waits for it. Not where the lock may be
   * held by this very thread, until a message comes: there it is a conflict (prepared.ts).
   */
  isPatient = true;
  /**
   * Whether what runs now may hold this thread up for no more than ASYNC_PATIENCE_MS: its caller can
   * wait elsewhere, while the event loop turns. See `hurry`.
   */
  isHurried = false;
  /** The lock of the one because of whom a hurried call was cut short. */
  blockingLock = 0;
  /** Who was not worth waiting for, and when that was found out. */
  #stuckSlot = -1;
  #stuckMs = 0;
  /** Who is not waited for by synchronous calls either, and until when: see `giveUpOn`. */
  #givenUpSlot = -1;
  #givenUpUntilMs = 0;
  /** The counters of this slot: `counters[counterBase + COMMITS]++`. */
  readonly counters: Float64Array;
  readonly counterBase: number;
  readonly metrics: SlotMetrics;
  /** For asynchronous operations that need pages of the device; set when there are device tables. */
  pageLoads: PageLoads | undefined;
  /** Makes room when memory is short, by moving rows to the device; says whether it did. */
  makeRoom: () => boolean = () => false;
  readonly #leases: Leases;
  readonly #activeAt: number;
  readonly #journals = new Map<number, Journal>();
  /** Transactions that run, and the epochs in which all but the oldest began, in that order. */
  #running = 0;
  readonly #later: number[] = [];
  /** Where the next sweep of a few slots begins; not at the same one in all processes. */
  #sweptTo: number;

  private constructor(memory: StoreMemory, leases: Leases, slot: SlotId) {
    this.memory = memory;
    this.slot = slot;
    this.#sweptTo = slot;
    this.#leases = leases;
    this.epochs = new Epochs(memory.control);
    this.counters = memory.control.f64;
    this.counterBase = memory.control.slotAt(slot) / 2;
    this.metrics = new SlotMetrics(memory.control, slot);
    this.#activeAt = memory.control.slotAt(slot) + ACTIVE;
    this.durability = new Durability(memory);
    this.journal = this.#journal(slot);
    this.slabs = new Slabs(memory, slot, this);
    this.backoff = this.#newBackoff({ timeoutMs: DEFAULT_TIMEOUT_MS });
    this.committer = new Committer(this);
    this.versions = new Versions(this);
    this.priority = new Priority(this);
  }

  /**
   * Claims a slot, after ending what a dead owner of it had begun. Where there is a log, some slots
   * are left to those who write it.
   */
  static open(memory: StoreMemory, leases: Leases, isLogThread = false): Executor {
    const { control } = memory;
    const limit =
      control.geometry.slots - (control.isLogged && !isLogThread ? LOG_THREAD_SLOTS : 0);
    // Slots that nobody claims come first: those of the dead cost a recovery.
    for (const claimed of [false, true]) {
      if (!claimed && claimedSlots(control) >= limit) continue;
      for (let slot = 0; slot < control.geometry.slots; slot++) {
        if (isClaimed(control, slot) !== claimed || !leases.tryAcquire(slot, !claimed)) continue;
        cleanUp(memory, slot);
        claim(control, slot, { pid: process.pid, threadId, slot }, wallClockMs(), isLogThread);
        try {
          // Others may have claimed slots since they were counted, also the last that are not kept for the log.
          if (!claimed && claimedSlots(control) > limit) throw allInUse(limit);
          const executor = new Executor(memory, leases, slot);
          executor.journal.adopt();
          // The slot's earlier TIDs lie in earlier epochs, so no TID comes twice.
          executor.epochs.advance();
          return executor;
        } catch (error) {
          unclaim(control, slot);
          leases.release(slot);
          throw error;
        }
      }
    }
    throw allInUse(limit);
  }

  /** A transaction starts: objects that it may see must not change their shape until it ends. */
  enter(): number {
    let low = this.epochs.low();
    if (this.#running++ > 0) {
      // What is announced for the oldest one that runs here holds for this one, too.
      this.#later.push(low);
      return low;
    }
    const { i32 } = this.memory.control;
    for (;;) {
      Atomics.store(i32, this.#activeAt, announcement(low, ACTIVE_FLAG));
      const again = this.epochs.low();
      if (again === low) break;
      low = again;
    }
    return low;
  }

  /** For one who knows that nothing runs: an overflowing stack may have skipped `leave`. */
  forgetRunning(): void {
    if (this.#running === 0) return;
    this.#running = 1;
    this.#later.length = 0;
    this.leave();
  }

  /** A transaction ends: the one that `enter` returned this for, or the one that began last. */
  leave(entered?: number): void {
    if (--this.#running > 0) this.#leaveOthers(entered);
    else storeRelease(this.memory.control.i32, this.#activeAt, 0);
  }

  /** Others go on: what is announced is from now on the epoch of the oldest of them. */
  #leaveOthers(entered: number | undefined): void {
    const later = this.#later;
    const at = entered === undefined ? later.length - 1 : later.lastIndexOf(entered);
    if (at >= 0) {
      if (at === later.length - 1) later.pop();
      else later.splice(at, 1);
      return;
    }
    const oldest = announcement(later.shift()!, ACTIVE_FLAG);
    storeRelease(this.memory.control.i32, this.#activeAt, oldest);
  }

  /**
   * Commits. Should anything unforeseen be thrown in the middle (a stack overflow, say), the slot
   * is cleaned up as if its owner had died, so that no lock is left behind.
   */
  commit(tx: Transaction): boolean {
    try {
      // What an earlier commit could not end, for want of stack, must not be overwritten.
      this.endOwnCommit();
      if (this.committer.commit(tx)) return true;
    } catch (error) {
      const ended = this.#endCommit();
      if (!tx.committed && ended !== "rolled forward") throw error;
      this.committer.reportCells(tx);
      return true;
    }
    if (tx.journalFull) this.metrics.countAbort(JOURNAL_ABORT);
    else this.countConflict(tx);
    return false;
  }

  /** An attempt met another: see `tx.metLock`. */
  countConflict(tx: Transaction): void {
    this.counters[this.counterBase + CONFLICTS]++;
    this.metrics.countConflict(tx.metLock !== 0 || tx.yielded);
  }

  #endCommit(): EndedCommit {
    const ended = endCommitOf(this.memory, this.slot, () => this.journal);
    this.journal.resume();
    return ended;
  }

  /** Ends a commit of this executor's that was cut short in the middle. */
  endOwnCommit(): void {
    if (this.committer.isCutShort) this.#endCommit();
  }

  /**
   * Runs something that belongs to an asynchronous transaction. Where it would have to wait for
   * another executor for long, it is cut short with CONFLICT instead, and `blockingLock` names the
   * other: the caller waits for that one between two turns of the event loop, and tries again.
   */
  hurry<A, T>(work: (argument: A) => T, argument: A): T {
    const before = this.isHurried;
    this.isHurried = true;
    try {
      return work(argument);
    } finally {
      this.isHurried = before;
    }
  }

  /** For hurried calls: ends one that would have to wait for the holder of a lock. */
  cutShort(lock: number): never {
    this.blockingLock = lock;
    throw CONFLICT;
  }

  /** When splits and merges that are due should be left to a later call. */
  maintenanceEndMs(): number {
    return this.isHurried ? nowMs() + MAINTENANCE_TURN_MS : Number.POSITIVE_INFINITY;
  }

  /** Waits until the object's data may be read, for so long at most. */
  awaitReadable(region: Region, word: number, timeoutMs = this.timeoutMs): void {
    if (!this.isPatient) throw CONFLICT;
    if (this.isHurried) {
      if (this.isReadableSoon(region, word)) return;
      this.cutShort(Atomics.load(region.i32, word + LOCK));
    }
    this.counters[this.counterBase + LOCK_WAITS]++;
    if (isReadableNow(region, word)) return;
    const patience = this.newPatience(timeoutMs);
    for (let round = 0, unowned = 0; ; round++) {
      const lock = Atomics.load(region.i32, word + LOCK);
      if (lockMode(lock) !== INSTALLING) return;
      // A slot is left, or recovered, after its locks are: nobody will ever open this one.
      unowned = this.#isOwned(lock) ? 0 : unowned + 1;
      if (unowned > MOST_UNOWNED_LOOKS) throw unownedLock(region, word, lock);
      if (!this.isGivenUp(lock, round) && patience.meet(lock)) continue;
      const holder = this.holder(lockOwner(lock));
      throw new TimeoutError(
        `gave up after ${timeoutMs} ms: process ${holder.pid} (thread ` +
          `${holder.threadId}, slot ${holder.slot}) is installing a commit and does not move; ` +
          `is it stopped?`,
        holder,
      );
    }
  }

  /** For hurried calls: the same, for ASYNC_PATIENCE_MS; false if it cannot be read then either. */
  isReadableSoon(region: Region, word: number): boolean {
    this.counters[this.counterBase + LOCK_WAITS]++;
    if (isReadableNow(region, word)) return true;
    const lock = Atomics.load(region.i32, word + LOCK);
    if (this.isStuck(lockOwner(lock))) return false;
    const patience = this.newPatience(ASYNC_PATIENCE_MS);
    for (;;) {
      const lock = Atomics.load(region.i32, word + LOCK);
      if (lockMode(lock) !== INSTALLING) return true;
      if (patience.meet(lock)) continue;
      this.markStuck(lockOwner(lock));
      return false;
    }
  }

  /**
   * Whether a hurried call has waited for this slot in vain a moment ago. Without this, each of many
   * transactions that meet one stopped process would spend its patience on it, and those that do not
   * meet it would have to wait for them.
   */
  isStuck(slot: SlotId): boolean {
    return slot === this.#stuckSlot && nowMs() - this.#stuckMs < STUCK_MS;
  }

  markStuck(slot: SlotId): void {
    this.#stuckSlot = slot;
    this.#stuckMs = nowMs();
  }

  /** Has synchronous waits for this slot end at once, for a while: one has ended in vain just now. */
  giveUpOn(slot: SlotId, ms: number): void {
    this.#givenUpSlot = slot;
    this.#givenUpUntilMs = nowMs() + ms;
  }

  /** Whether a wait for the owner of a lock is given up, after so many looks at it. */
  isGivenUp(lock: number, looks: number): boolean {
    if (this.#givenUpSlot < 0 || looks < LOOKS_AT_GIVEN_UP || lock === 0) return false;
    if (lockOwner(lock) !== this.#givenUpSlot) return false;
    if (nowMs() < this.#givenUpUntilMs) return true;
    this.#givenUpSlot = -1;
    return false;
  }

  #isOwned(lock: number): boolean {
    const owner = lockOwner(lock);
    const { control } = this.memory;
    return owner >= 0 && owner < control.geometry.slots && isClaimed(control, owner);
  }

  /** A patience of its own, for a wait that must not spend that of a transaction's retries. */
  newPatience(timeoutMs: number): Backoff {
    return this.#newBackoff({ timeoutMs, maxAttempts: Number.POSITIVE_INFINITY });
  }

  #newBackoff(limits: RetryLimits): Backoff {
    return new Backoff(limits, (dead) => this.recoverIfDead(dead), this.random);
  }

  holder(slot: SlotId): Holder {
    return holderOf(this.memory.control, slot);
  }

  recoverIfDead(slot: SlotId): boolean {
    if (slot === this.slot || slot < 0 || slot >= this.memory.control.geometry.slots) return false;
    if (!isClaimed(this.memory.control, slot) || !this.#leases.tryAcquire(slot)) return false;
    try {
      // Between the look and the lease, the slot may have been recovered or left.
      if (!isClaimed(this.memory.control, slot)) return false;
      endCommitOf(this.memory, slot, () => this.#journal(slot));
      releaseSlot(this.memory, slot);
      clearGauges(this.memory.control, slot);
      unclaim(this.memory.control, slot);
      this.counters[this.counterBase + RECOVERIES]++;
      return true;
    } finally {
      this.#leases.release(slot);
    }
  }

  /** Looks for dead executors that nobody has run into. Returns how many there were. */
  sweep(): number {
    let dead = 0;
    for (let slot = 0; slot < this.memory.control.geometry.slots; slot++) {
      if (isClaimed(this.memory.control, slot) && this.recoverIfDead(slot)) dead++;
    }
    return dead;
  }

  /** The same for a few of the living, another few each time, and the dead that are found on the way. */
  sweepSome(count: number): void {
    const { control } = this.memory;
    const { slots } = control.geometry;
    let left = count;
    for (let step = 0; step < slots && left > 0; step++) {
      const slot = this.#sweptTo;
      this.#sweptTo = (slot + 1) % slots;
      if (isClaimed(control, slot) && !this.recoverIfDead(slot)) left--;
    }
  }

  /** The executors that have the store open, this one included; not the threads of the log. */
  holders(): Holder[] {
    const found: Holder[] = [];
    for (let slot = 0; slot < this.memory.control.geometry.slots; slot++) {
      if (isOpener(this.memory.control, slot)) found.push(this.holder(slot));
    }
    return found;
  }

  mark(): number {
    const epoch = this.epochs.current();
    this.epochs.advance(epoch);
    return epoch;
  }

  isPast(epoch: number): boolean {
    return this.epochs.isPast(epoch);
  }

  isSeen(versionHigh: number, versionLow: number): boolean {
    return this.versions.registry.hasBefore(versionHigh, versionLow);
  }

  waitForCreator(regionId: number): void {
    const deadlineMs = nowMs() + (this.isHurried ? ASYNC_PATIENCE_MS : DEFAULT_TIMEOUT_MS);
    while (this.memory.isBeingCreated(regionId)) {
      this.sweep();
      if (nowMs() > deadlineMs) {
        if (this.isHurried) this.cutShort(lockWord(this.memory.creatorOf(regionId), PREPARED));
        throw new TimeoutError(`another process has been creating region ${regionId} for too long`);
      }
      sleepSync(1);
    }
  }

  /**
   * Makes room after an allocation of a class failed, for a synchronous call: waits for the transactions that
   * may still see what was freed, unless one of them is of this very thread, and cannot end meanwhile.
   */
  reclaim(sizeClass: number): boolean {
    const mayWait = this.#running === 0;
    const deadlineMs = nowMs() + RECLAIM_PATIENCE_MS;
    this.sweep();
    for (;;) {
      const found = this.#look(sizeClass, mayWait);
      if (found !== "waiting") return found === "room";
      if (!mayWait || nowMs() > deadlineMs) return false;
      sleepSync(1);
    }
  }

  /** The same for one who can wait elsewhere, while the event loop turns: where memory "waits", ask again. */
  tryReclaim(sizeClass: number): Reclaimed {
    this.sweep();
    return this.#look(sizeClass, true);
  }

  #look(sizeClass: number, mayMove: boolean): Reclaimed {
    for (let hasMoved = false; !this.slabs.reclaim(sizeClass); ) {
      if (!this.slabs.isWaiting(sizeClass)) {
        if (hasMoved) return "waiting";
        if (!mayMove || !this.makeRoom()) return "none";
        hasMoved = true;
      } else if (!this.slabs.isKeptBySnapshots(sizeClass)) {
        return "waiting";
      } else if (!this.versions.keeper.releaseOldest()) {
        // Memory that only snapshots keep from being used: writers come first.
        return "none";
      }
    }
    return "room";
  }

  /** Says whether no other slot was claimed by then: of several who leave at once, one is the last. */
  close(): boolean {
    assert(this.#running === 0, "no transaction runs when the executor closes");
    Atomics.store(this.memory.control.i32, this.#activeAt, 0);
    this.versions.registry.releaseSlot(this.slot);
    releasePriority(this.memory, this.slot);
    this.slabs.close();
    this.journal.leave();
    clearGauges(this.memory.control, this.slot);
    this.durability.close();
    unclaim(this.memory.control, this.slot);
    const isLast = claimedSlots(this.memory.control) === 0;
    this.#leases.release(this.slot);
    this.#leases.close();
    this.memory.close();
    return isLast;
  }

  #journal(slot: SlotId): Journal {
    let journal = this.#journals.get(slot);
    if (journal === undefined) {
      journal = new Journal(this.memory, slot);
      this.#journals.set(slot, journal);
    }
    return journal;
  }
}

/** Looks for as long as most commits take to install an object. */
function isReadableNow(region: Region, word: number): boolean {
  for (let round = 0; round < 64; round++) {
    if (lockMode(Atomics.load(region.i32, word + LOCK)) !== INSTALLING) return true;
  }
  return false;
}

function unownedLock(region: Region, word: number, lock: number): SituError {
  return new SituError(
    "SITU_CORRUPT",
    `the object at word ${word} of region ${region.id} is locked by slot ${lockOwner(lock)}, which ` +
      `nobody has: run verify`,
  );
}

function cleanUp(memory: StoreMemory, slot: SlotId): void {
  endCommitOf(memory, slot, () => new Journal(memory, slot));
  releaseSlot(memory, slot);
  clearGauges(memory.control, slot);
}

function allInUse(limit: number): SituError {
  return new SituError(
    "SITU_FULL",
    `all ${limit} slots of the store are in use: close it in some threads`,
  );
}
