/**
 * What the executors of a store and the writer of its log (log/) have to say to each other, in
 * words of the control segment:
 *
 *   durable epoch   every commit up to it is on disk. Moves only when a sync has returned
 *   calls           counted by those who cannot wait until the writer looks by itself
 *   state           running; disk full: the writer tries again; failed: what is not durable now will
 *                   not be before all have closed the store and one has opened it again; memory lost:
 *                   the files of the store's memory were removed while it is open
 *   memory lost     the same for good: the state goes to and fro with the disk, a loss does not
 *
 *   logged until    whatever was committed before this moment is on disk. The writer moves it whenever it
 *                   has looked at the journals
 *   rests           there is nothing to be written, and the writer sleeps for long, or there is none. The
 *                   next commit calls it: within microseconds it begins to count the time
 *
 * A `lazy` commit may lag behind by `lagMs`, no more. So whoever is about to commit looks whether the log
 * has got so far; if it is late, because the disk is slow or its writer is stopped, starved or dead, the
 * commit waits, with nothing locked, and is refused after its time-out. Hence commits that were
 * acknowledged and are not on disk lie within `lagMs` of each other. Where the disk needs longer than
 * that for each sync, a commit goes on after two rounds of the log, by which all that it found is on disk.
 *
 * After a failed write or sync nobody knows what is on disk, and the system may have dropped the
 * pages. So nothing is tried again, no epoch becomes durable, and commits are refused.
 *
 * Once memory is lost, nobody can join it any more. Commits are refused, so that all who are in it close the
 * store, and the next one to open it rebuilds it from the log. The log's writer goes on: what was
 * committed before is still written. But no epoch becomes durable any more: the writer looks at the memory
 * after each sync and before it publishes, so nothing is acknowledged that reached the disk after
 * the removal. First the loss is stored, then the journals are released: whoever finds them empty knows
 * of the loss.
 */

import { getSystemErrorMap } from "node:util";
import {
  DURABLE_LOW,
  DURABLE_WAITERS,
  LOG_BLOCKER,
  LOG_CALLS,
  LOG_ERROR,
  LOG_RESTS,
  LOG_SLEEPS,
  LOG_STATE,
  LOG_WRITER,
  LOGGED_UNTIL,
  MEMORY_LOST,
  WRITTEN_LOW,
} from "../memory/control.ts";
import { loadAcquire } from "../memory/ordering.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { machineMs, nowMs, sleep, turn } from "../runtime/clock.ts";
import { type Holder, SituError, TimeoutError } from "../runtime/errors.ts";
import {
  COMMITS_PER_LOOK,
  DURABLE_LOOK_MS,
  DURABLE_SPIN_MS,
  QUICK_COMMITS_MS,
} from "../runtime/limits.ts";
import { COMMITTING, HEAD, holderOf, phaseOf, STATUS, slotsInUse, TAIL } from "./slot.ts";

const DURABLE_I64 = DURABLE_LOW / 2;
const WRITTEN_I64 = WRITTEN_LOW / 2;

export const RUNNING = 0;
export const DISK_FULL = 1;
/** From this state on nothing is committed. */
export const FAILED = 2;
export const LOST = 3;

const COMMITTED_IN_MEMORY = "the transaction is committed in memory";

/** The error number of a log that another memory has written to: EEXIST, which no write returns. */
export const OTHER_WRITER_ERRNO = -17;

/** How often one who spins for the durable epoch looks at the clock. */
const SPINS_PER_LOOK = 16;

export class Durability {
  readonly #memory: StoreMemory;
  readonly #i32: Int32Array;
  readonly isLogged: boolean;
  /** Sees to it that the log has a writer; set by who can start one. */
  ensureLogWriter: () => void = () => {};
  /** The same, now and then, for one who does not wait for it. */
  watchLogWriter: () => void = () => {};
  #look: Promise<void> | undefined;
  /** Those of this executor who wait while the event loop turns. */
  #asyncWaiters = 0;
  #isClosed = false;
  /** How far the log may be behind the commits of this executor. */
  lagMs = Number.POSITIVE_INFINITY;
  /** What `isLate` has seen last, and how often since it looked at the clock. */
  #seenUntil = 0;
  #unchecked = 0;
  #commitsPerLook = 1;
  #lookedMs = 0;
  /** The next commit has waited long enough. */
  #hasWaited = false;

  constructor(memory: StoreMemory) {
    this.#memory = memory;
    this.#i32 = memory.control.i32;
    this.isLogged = memory.control.isLogged;
  }

  /** The durable epoch. */
  get epoch(): number {
    return Number(Atomics.load(this.#memory.control.i64, DURABLE_I64));
  }

  /** The last epoch of the last batch in the log: the next one follows it. */
  get written(): number {
    return Number(Atomics.load(this.#memory.control.i64, WRITTEN_I64));
  }

  /** For the log's writer: who keeps it from closing an epoch; -1 if nobody does. */
  setBlocker(slot: number): void {
    if (Atomics.load(this.#i32, LOG_BLOCKER) !== slot + 1) {
      Atomics.store(this.#i32, LOG_BLOCKER, slot + 1);
    }
  }

  /** For the log's writer, when the batch is on disk: it counts from here on. */
  setWritten(epoch: number): void {
    Atomics.store(this.#memory.control.i64, WRITTEN_I64, BigInt(epoch));
  }

  get state(): number {
    return loadAcquire(this.#i32, LOG_STATE);
  }

  /** The system's error number behind the state, negative as in `errno`. */
  get errno(): number {
    return Atomics.load(this.#i32, LOG_ERROR);
  }

  setState(state: number, errno: number): void {
    Atomics.store(this.#i32, LOG_ERROR, errno);
    Atomics.store(this.#i32, LOG_STATE, state);
    // A loss that is noticed meanwhile is either stored after this, or seen here.
    if (state < FAILED && this.isMemoryLost) Atomics.store(this.#i32, LOG_STATE, LOST);
    // Those who wait for the disk learn that they wait in vain.
    this.#memory.parking.wake(DURABLE_LOW);
  }

  get isMemoryLost(): boolean {
    return Atomics.load(this.#i32, MEMORY_LOST) !== 0;
  }

  /** Looks whether the files of the store's memory are still there; a loss is told to all. */
  lookAtMemory(): boolean {
    if (this.isMemoryLost) return true;
    if (!this.#memory.isLost()) return false;
    Atomics.store(this.#i32, MEMORY_LOST, 1);
    // A log that has failed is worse: it is not written any more.
    for (let state = this.state; state < FAILED; state = this.state) {
      Atomics.compareExchange(this.#i32, LOG_STATE, state, LOST);
    }
    this.#memory.parking.wake(DURABLE_LOW);
    return true;
  }

  /** Who writes the log, or undefined. */
  get writer(): Holder | undefined {
    const slot = Atomics.load(this.#i32, LOG_WRITER) - 1;
    return slot < 0 ? undefined : holderOf(this.#memory.control, slot);
  }

  /**
   * For the log's writer: all up to this epoch is on disk. `release` gives back what the journals
   * held of it. First the epoch, then the journals: a writer who dies in between leaves records
   * that its successor knows to be in the log.
   */
  publish(epoch: number, release: () => void): void {
    if (!this.lookAtMemory()) Atomics.store(this.#memory.control.i64, DURABLE_I64, BigInt(epoch));
    release();
    if (Atomics.load(this.#i32, DURABLE_WAITERS) !== 0) this.#memory.parking.wake(DURABLE_LOW);
  }

  /** For the log's writer: whatever was committed before this moment is on disk. */
  setLoggedUntil(ms: number): void {
    Atomics.store(this.#i32, LOGGED_UNTIL, ms);
  }

  /** For the log's writer: whether it is to be called by the next commit. */
  setRests(rests: boolean): void {
    const wanted = rests ? 1 : 0;
    if (Atomics.load(this.#i32, LOG_RESTS) !== wanted) {
      Atomics.store(this.#i32, LOG_RESTS, wanted);
    }
  }

  get rests(): boolean {
    return Atomics.load(this.#i32, LOG_RESTS) !== 0;
  }

  /** For one who is about to commit: whether the log is too far behind. */
  isLate(): boolean {
    const until = loadAcquire(this.#i32, LOGGED_UNTIL);
    if (until === this.#seenUntil && ++this.#unchecked < this.#commitsPerLook) return false;
    this.#seenUntil = until;
    this.#unchecked = 0;
    if (this.lagMs === Number.POSITIVE_INFINITY || !this.#isBehind()) return false;
    const hasWaited = this.#hasWaited;
    this.#hasWaited = false;
    return !hasWaited;
  }

  #isBehind(): boolean {
    const ms = machineMs();
    // A look at the clock takes 40 ns: of commits that come one after another, not each needs one.
    this.#commitsPerLook = ms - this.#lookedMs < QUICK_COMMITS_MS ? COMMITS_PER_LOOK : 1;
    this.#lookedMs = ms;
    const behind = ((Math.floor(ms) | 0) - Atomics.load(this.#i32, LOGGED_UNTIL)) | 0;
    return behind > this.lagMs && !this.rests;
  }

  /** Whether anything was committed, or is about to be, that is not on disk. */
  get isPending(): boolean {
    const { control } = this.#memory;
    const slots = slotsInUse(control);
    for (let slot = 0; slot < slots; slot++) {
      const at = control.slotAt(slot);
      // In this order: a record is passed on to the journal before the slot turns idle.
      if (phaseOf(Atomics.load(this.#i32, at + STATUS)) >= COMMITTING) return true;
      const tail = Atomics.load(this.#i32, at + TAIL);
      if (Atomics.load(this.#i32, at + HEAD) !== tail) return true;
    }
    return false;
  }

  /** Calls the log's writer, if it sleeps. */
  call(): void {
    Atomics.add(this.#i32, LOG_CALLS, 1);
    if (this.rests) this.#rouse();
    this.#wakeWriter();
  }

  /** For one who has joined: the log's writer maps its journal. Does not end a rest of the log. */
  announce(): void {
    Atomics.add(this.#i32, LOG_CALLS, 1);
    this.#wakeWriter();
  }

  /** The first who calls it wakes it; the others need not. */
  #wakeWriter(): void {
    if (Atomics.exchange(this.#i32, LOG_SLEEPS, 0) !== 0) {
      this.#memory.parking.wake(LOG_CALLS);
    }
  }

  /**
   * The time counts from here: nothing was waiting to be written before. Who does not come to store the
   * moment leaves an earlier one, and others wait for the writer's next round, which they call for.
   */
  #rouse(): void {
    // The caller's own commit was a moment ago.
    const now = (Math.floor(machineMs()) - 1) | 0;
    if (Atomics.exchange(this.#i32, LOG_RESTS, 0) === 0) return;
    this.setLoggedUntil(now);
    this.ensureLogWriter();
  }

  /** Waits, event loop and all, until an epoch is durable. */
  awaitSync(epoch: number, timeoutMs: number): void {
    if (this.epoch >= epoch || this.#isAllOnDisk()) return;
    this.call();
    const startMs = nowMs();
    for (let spins = 1; ; spins++) {
      if (this.epoch >= epoch) return;
      this.#memory.parking.yield();
      if (spins % SPINS_PER_LOOK === 0 && nowMs() - startMs >= DURABLE_SPIN_MS) break;
    }
    Atomics.add(this.#i32, DURABLE_WAITERS, 1);
    try {
      for (;;) {
        const low = Atomics.load(this.#i32, DURABLE_LOW);
        if (this.#isOver(epoch, startMs, timeoutMs)) return;
        this.#memory.parking.sleepSync(DURABLE_LOW, low, DURABLE_LOOK_MS);
      }
    } finally {
      Atomics.sub(this.#i32, DURABLE_WAITERS, 1);
    }
  }

  /** The same while the event loop turns. */
  async await(epoch: number, timeoutMs: number): Promise<void> {
    if (this.epoch >= epoch || this.#isAllOnDisk()) return;
    this.call();
    const startMs = nowMs();
    this.#beginAsyncWait();
    try {
      for (;;) {
        const low = Atomics.load(this.#i32, DURABLE_LOW);
        if (this.#isOver(epoch, startMs, timeoutMs)) return;
        await this.#nextLook(low);
      }
    } finally {
      this.#endAsyncWait();
    }
  }

  /**
   * Before memory is unmapped: who still waits here is told so when it wakes up, and touches nothing any more. A
   * node's thread may be closed while an answer waits for the disk.
   */
  close(): void {
    this.#isClosed = true;
    Atomics.sub(this.#i32, DURABLE_WAITERS, this.#asyncWaiters);
  }

  #beginAsyncWait(): void {
    this.#asyncWaiters++;
    Atomics.add(this.#i32, DURABLE_WAITERS, 1);
  }

  #endAsyncWait(): void {
    if (this.#isClosed) return;
    this.#asyncWaiters--;
    Atomics.sub(this.#i32, DURABLE_WAITERS, 1);
  }

  #isAllOnDisk(): boolean {
    if (this.isPending) return false;
    if (this.isMemoryLost) throw this.failed(COMMITTED_IN_MEMORY, true);
    return true;
  }

  /**
   * After a loss of memory: waits until the log's writer has written all up to an epoch. Whether it has;
   * it may have died, and nobody can take over.
   */
  async awaitWritten(epoch: number, timeoutMs: number): Promise<boolean> {
    this.call();
    for (const startMs = nowMs(); this.written < epoch; await sleep(1)) {
      if (this.state === FAILED || nowMs() - startMs >= timeoutMs) return false;
    }
    return true;
  }

  /** One look for all that wait in this thread. */
  async #nextLook(low: number): Promise<void> {
    this.#look ??= this.#awaitMove(low).finally(() => {
      this.#look = undefined;
    });
    await this.#look;
    if (this.#isClosed) {
      const why = "the store was closed before it was known whether this is on disk";
      throw new SituError("SITU_CLOSED", why);
    }
  }

  /**
   * Turns the event loop until the durable epoch moves; and if that takes long, sleeps, which takes a
   * thread of Node's pool and much longer to wake up from.
   */
  async #awaitMove(low: number): Promise<void> {
    const startMs = nowMs();
    while (nowMs() - startMs < DURABLE_SPIN_MS) {
      await turn();
      if (this.#isClosed || Atomics.load(this.#i32, DURABLE_LOW) !== low) return;
    }
    await this.#memory.parking.sleep(DURABLE_LOW, low, DURABLE_LOOK_MS);
  }

  #isOver(epoch: number, startMs: number, timeoutMs: number): boolean {
    if (this.epoch >= epoch) return true;
    if (this.state >= FAILED) throw this.failed(COMMITTED_IN_MEMORY, true);
    if (nowMs() - startMs >= timeoutMs) throw this.#late(timeoutMs);
    this.ensureLogWriter();
    return false;
  }

  /** For one who is about to commit: refuses if the log has failed, or memory is lost. */
  check(): void {
    const { state } = this;
    if (state === LOST || (this.isLogged && state === FAILED)) {
      throw this.failed("nothing was committed");
    }
  }

  /** Waits, event loop and all, until the log has caught up a little: a journal is full, or it is late. */
  awaitRoomSync(timeoutMs: number): void {
    const startMs = nowMs();
    Atomics.add(this.#i32, DURABLE_WAITERS, 1);
    try {
      for (let round = 1; this.#needsRound(round); round++) {
        // Before the call: its answer may come at once, and be the last one.
        const low = Atomics.load(this.#i32, DURABLE_LOW);
        this.call();
        while (!this.#hasMoved(low, startMs, timeoutMs)) {
          this.#memory.parking.sleepSync(DURABLE_LOW, low, DURABLE_LOOK_MS);
        }
      }
    } finally {
      Atomics.sub(this.#i32, DURABLE_WAITERS, 1);
    }
  }

  /** The same while the event loop turns; `check` throws when the caller does not want it any more. */
  async awaitRoom(timeoutMs: number, check: () => void): Promise<void> {
    const startMs = nowMs();
    this.#beginAsyncWait();
    try {
      for (let round = 1; this.#needsRound(round); round++) {
        const low = Atomics.load(this.#i32, DURABLE_LOW);
        this.call();
        while (!this.#hasMoved(low, startMs, timeoutMs)) {
          await this.#nextLook(low);
          check();
        }
      }
    } finally {
      this.#endAsyncWait();
    }
  }

  /** One round gives room in the journals; after two, all that was there before is on disk. */
  #needsRound(round: number): boolean {
    if (round === 1) return true;
    if (!this.#isBehind()) return false;
    if (round === 2) return true;
    this.#hasWaited = true;
    return false;
  }

  #hasMoved(low: number, startMs: number, timeoutMs: number): boolean {
    if (Atomics.load(this.#i32, DURABLE_LOW) !== low) return true;
    this.check();
    if (nowMs() - startMs >= timeoutMs) throw this.#noRoom(timeoutMs);
    this.ensureLogWriter();
    return false;
  }

  #noRoom(timeoutMs: number): SituError {
    const why = `nothing was committed: the log is behind, and ${this.stalled(timeoutMs)}`;
    return this.state === DISK_FULL
      ? new SituError("SITU_DISK_FULL", `${why}. Make room on the disk; the log then goes on`)
      : new TimeoutError(why, this.#blocker ?? this.writer);
  }

  /** The log has failed; what became of the caller's transaction is for the caller to say. */
  failed(outcome: string, isCommitted = false): SituError {
    if (this.isMemoryLost) return this.#lost(outcome, isCommitted);
    const why =
      this.errno === OTHER_WRITER_ERRNO
        ? "another memory of this store has written to its log"
        : `the log could not be written (${errorName(this.errno)})`;
    return new SituError(
      isCommitted ? "SITU_NOT_DURABLE" : "SITU_LOG_FAILED",
      `${why}, so nothing more becomes durable: ${outcome}. Reads go on. See to the disk, close ` +
        `the store in all processes and open it again: it then writes all of its memory anew`,
    );
  }

  #lost(outcome: string, isCommitted: boolean): SituError {
    const reopen = "close the store in all processes and open it again: it is rebuilt from its log";
    const log = this.isLogged
      ? `What was committed before is ${this.state === FAILED ? "not all " : ""}in the log; ${reopen}`
      : "The store has no log: copy what you need to another store before you close this one";
    return new SituError(
      isCommitted ? "SITU_NOT_DURABLE" : "SITU_MEMORY_LOST",
      `${outcome}: the files in ${this.#memory.segments.place} were removed while the store was open (by a ` +
        `cleaner of temporary files, or logind's RemoveIPC?). Reads go on. ${log}`,
    );
  }

  /** Whose commit the log's writer waits for, or undefined. */
  get #blocker(): Holder | undefined {
    const slot = Atomics.load(this.#i32, LOG_BLOCKER) - 1;
    return slot < 0 ? undefined : holderOf(this.#memory.control, slot);
  }

  /** Why the log does not move, for one who has waited long enough. */
  stalled(timeoutMs: number): string {
    const { writer } = this;
    if (this.state === DISK_FULL) return `the disk is full (${errorName(this.errno)})`;
    if (writer === undefined) return "no process writes the log";
    const blocker = this.#blocker;
    if (blocker !== undefined) {
      return `${shown(blocker)} is committing and does not move (is it stopped?)`;
    }
    return (
      `${shown(writer)}, which writes the log, got nothing to disk within ${timeoutMs} ms (is it ` +
      `stopped, or the disk slow?)`
    );
  }

  #late(timeoutMs: number): SituError {
    return new SituError(
      "SITU_NOT_DURABLE",
      `the transaction is committed, but not known to be on disk: ${this.stalled(timeoutMs)}. ` +
        `It will be, once the log moves; await db.durable() for that`,
    );
  }
}

function shown({ pid, threadId, slot }: Holder): string {
  return `process ${pid} (thread ${threadId}, slot ${slot})`;
}

/** ENOSPC for -28, and so on. */
function errorName(errno: number): string {
  return getSystemErrorMap().get(errno)?.[0] ?? `error ${errno}`;
}
