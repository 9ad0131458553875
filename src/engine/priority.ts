/**
 * *Priority*: how a transaction that keeps losing against shorter ones gets through.
 *
 * Commits are optimistic. A transaction over thousands of rows that others write without pause is
 * never valid when it ends, however often it is run. After some conflicts (after one, if it has selected rows
 * `forUpdate`) it is *starved* and takes priority: every other committer that finds it taken waits before it locks anything, or is refused
 * (mustYield). The holder's next attempt then meets only the commits that were past that point.
 *
 *   PRIORITY           0, or the holder's slot + 1 in the low eight bits and, above them, when it
 *                      ends: milliseconds of the machine's clock, modulo 2^24. One word, so that
 *                      holder and end always belong together
 *   PRIORITY_TICKETS   counts the tickets that were given out
 *   PRIORITY_RESTS     nobody takes it before this time (float64, machineMs)
 *   slot, TICKET       the place in line of the slot's starved transaction, or 0
 *
 * Why everybody makes progress:
 *
 * - It is bounded. It ends with the holder's transaction, or at its time, whatever becomes of the
 *   holder: anybody who finds it expired ends it. A dead holder's is given back by its recovery. A
 *   holder that did not get through takes it for longer the next time, up to MAX_PRIORITY_MS.
 * - After somebody had priority the store rests for PRIORITY_REST times as long. So it takes at most a
 *   quarter of the time, and a transaction that is shorter than a rest is delayed by it once at most.
 * - The starved stand in line by their tickets. Only the first one waits for the end of the rest; the
 *   others go on trying, for where there are no short transactions, one of them gets through. One that
 *   is stopped, or busy with an attempt, is passed over after PRIORITY_GRACE_MS.
 * - Nobody waits for its end while it holds a lock, and the holder waits for nobody but, for
 *   PRIORITY_COMMITS_MS, commits that are under way. So there is no cycle to wait in.
 * - No transaction fails because of it: after half of its time-out a transaction ignores it. So does a
 *   synchronous transaction in the holder's own thread, where waiting would keep the holder from moving.
 *
 * None of this is needed for correctness. Priority is advice: who does not see it, because its load came
 * early or it has expired meanwhile, commits as always, and the holder validates as always. So
 * the words need no memory order, and a death between any two of their stores costs somebody a wait,
 * never a result: a ticket or the priority of a dead slot is cleared with the slot, a missing
 * PRIORITY_RESTS only lets the next one begin sooner.
 *
 * What it costs where nobody starves: a load and a comparison in each commit that writes.
 */

import { PRIORITY, PRIORITY_RESTS, PRIORITY_TICKETS } from "../memory/control.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { machineMs, nowMs, sleep } from "../runtime/clock.ts";
import {
  MAX_PRIORITY_MS,
  PRIORITY_COMMITS_MS,
  PRIORITY_GRACE_MS,
  PRIORITY_MS,
  PRIORITY_REST,
  STARVED_CONFLICTS,
  STARVED_MS,
  STARVED_SHARE,
} from "../runtime/limits.ts";
import type { Executor } from "./executor.ts";
import { IDLE, phaseOf, STARVED, STATUS, slotsInUse, TICKET } from "./slot.ts";
import type { Transaction } from "./transaction.ts";

const RESTS_F64 = PRIORITY_RESTS / 2;
const SLOT_MASK = 0xff;
const TIME_SHIFT = 8;
/** The longest sleep before priority is looked at again: its holder may have died. */
const LOOK_MS = 20;
/** The same for one whose event loop turns meanwhile: nobody wakes it. */
const ASYNC_LOOK_MS = 1;
const COMMITS_LOOK_MS = 0.05;
/** Shorter sleeps are no sleeps. */
const SHORTEST_MS = 0.05;

/** Which transactions of this thread have priority: memory id and slot of each. */
const holdersHere = new Set<string>();

export class Priority {
  readonly #executor: Executor;
  readonly #memory: StoreMemory;
  readonly #i32: Int32Array;
  readonly #f64: Float64Array;
  readonly #ticketAt: number;
  /** This executor's starved transactions. The first has the slot's ticket. */
  readonly #line: Transaction[] = [];
  /** The one of them that took priority, what it put into the word, and when. */
  #holder: Transaction | undefined;
  #taken = 0;
  #takenMs = 0;
  /** What PRIORITY was at the last look. */
  #seen = 0;
  /** Resolves when PRIORITY has changed, or after LOOK_MS. */
  #change: Promise<void> | undefined;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#memory = executor.memory;
    this.#i32 = executor.memory.control.i32;
    this.#f64 = executor.memory.control.f64;
    this.#ticketAt = executor.memory.control.slotAt(executor.slot) + TICKET;
  }

  /** For a committer that has found PRIORITY taken: whether it must not go on. */
  mustYield(tx: Transaction): boolean {
    const word = Atomics.load(this.#i32, PRIORITY);
    if (word === 0 || tx.ignoresPriority) return false;
    if (slotOf(word) === this.#executor.slot) return tx !== this.#holder && tx.isAsync;
    if (isOn(word, machineMs())) return true;
    endPriority(this.#memory, word, PRIORITY_MS);
    return false;
  }

  /**
   * An attempt has failed: counts it if another transaction was the cause. Says whether `look`, or
   * one of the two that wait with it, must be called before the next attempt. A thread that must not
   * wait does not take it.
   */
  meet(tx: Transaction): boolean {
    if (tx.conflicts === 0) tx.conflictsSinceMs = nowMs();
    // A lock that is still held may be that of a stopped process: priority would not help.
    if (tx.metLock === 0 || tx.conflicts === 0) tx.conflicts++;
    if (tx.isForUpdate && this.#executor.isPatient) tx.isStarved = true;
    if (!tx.isStarved && tx.conflicts > 1 && this.#executor.isPatient) {
      const ms = nowMs() - tx.conflictsSinceMs;
      tx.isStarved =
        ms >= tx.timeoutMs * STARVED_SHARE ||
        (tx.conflicts >= STARVED_CONFLICTS && ms >= STARVED_MS);
    }
    return tx.yielded || tx.isStarved;
  }

  /** Waits, event loop and all, until it is time for the next attempt. Holds nothing meanwhile. */
  awaitSync(tx: Transaction): void {
    for (;;) {
      const ms = this.look(tx);
      if (ms === 0) return;
      this.#memory.parking.sleepSync(PRIORITY, this.#seen, ms);
    }
  }

  /** The same for one whose event loop turns meanwhile; `check` may throw. */
  async await(tx: Transaction, check: () => void): Promise<void> {
    for (;;) {
      const ms = this.look(tx);
      if (ms === 0) return;
      if (this.#seen === 0 || tx === this.#holder) {
        await sleep(ms);
      } else {
        this.#change ??= this.#awaitChange(this.#seen);
        await this.#change;
      }
      check();
    }
  }

  /** One watches priority for all of this thread's transactions that wait for its end. */
  async #awaitChange(word: number): Promise<void> {
    const startMs = nowMs();
    try {
      do await sleep(ASYNC_LOOK_MS);
      while (Atomics.load(this.#i32, PRIORITY) === word && nowMs() - startMs < LOOK_MS);
    } finally {
      this.#change = undefined;
    }
  }

  /** Whether the transaction has priority, so that it need not wait between its attempts. */
  isHolder(tx: Transaction): boolean {
    return tx === this.#holder;
  }

  /**
   * One look: takes priority for a starved transaction if it can. Returns how long to sleep before the
   * next look, or 0 if it is time for the next attempt.
   */
  look(tx: Transaction): number {
    const word = Atomics.load(this.#i32, PRIORITY);
    this.#seen = word;
    const now = machineMs();
    const waitedMs = nowMs() - tx.conflictsSinceMs;
    if (tx === this.#holder) {
      if (word === this.#taken && isOn(word, now)) return this.#awaitCommits(now);
      this.giveBack(tx);
      tx.priorityMs = Math.min(2 * tx.priorityMs, MAX_PRIORITY_MS);
      return this.look(tx);
    }
    if (word !== 0 && !isOn(word, now)) {
      endPriority(this.#memory, word, PRIORITY_MS);
      return this.look(tx);
    }
    if (word !== 0) return this.#yield(tx, word, waitedMs);
    if (!tx.isStarved || waitedMs >= tx.timeoutMs || !this.#isFirst(tx, now)) return 0;
    const restMs = this.#f64[RESTS_F64] - now;
    if (restMs > 0 && restMs <= PRIORITY_REST * MAX_PRIORITY_MS)
      return atLeast(Math.min(restMs, LOOK_MS));
    return this.#take(tx, now) ? this.#awaitCommits(now) : this.look(tx);
  }

  /** Another transaction has priority. */
  #yield(tx: Transaction, word: number, waitedMs: number): number {
    const slot = slotOf(word);
    const isOwn = slot === this.#executor.slot;
    const cannotWait = !tx.isAsync && (isOwn || this.#isHere(slot) || !this.#executor.isPatient);
    if (cannotWait || waitedMs >= tx.timeoutMs / 2) {
      tx.ignoresPriority = true;
      return 0;
    }
    if (!isOwn && waitedMs >= LOOK_MS && this.#executor.recoverIfDead(slot)) return this.look(tx);
    return atLeast(Math.min(leftMs(word, machineMs()), LOOK_MS, tx.timeoutMs / 2 - waitedMs));
  }

  /** Whether the holder is another executor of this very thread. */
  #isHere(slot: number): boolean {
    return holdersHere.size > 0 && holdersHere.has(this.#nameOf(slot));
  }

  #nameOf(slot: number): string {
    return `${this.#memory.control.memoryId} ${slot}`;
  }

  /** Whether nobody who waits has an older ticket; one who does not come for it is passed over. */
  #isFirst(tx: Transaction, now: number): boolean {
    if (!this.#line.includes(tx)) this.#line.push(tx);
    if (this.#line[0] !== tx) return false;
    let mine = Atomics.load(this.#i32, this.#ticketAt);
    if (mine === 0) {
      mine = (Atomics.add(this.#i32, PRIORITY_TICKETS, 1) + 1) | 0 || 1;
      Atomics.store(this.#i32, this.#ticketAt, mine);
    }
    if (now - this.#f64[RESTS_F64] >= PRIORITY_GRACE_MS) return true;
    const { control } = this.#memory;
    for (let slot = slotsInUse(control) - 1; slot >= 0; slot--) {
      const ticket = Atomics.load(this.#i32, control.slotAt(slot) + TICKET);
      if (ticket !== 0 && ((ticket - mine) | 0) < 0) return false;
    }
    return true;
  }

  #take(tx: Transaction, now: number): boolean {
    const word = priorityWord(this.#executor.slot, now + tx.priorityMs);
    if (Atomics.compareExchange(this.#i32, PRIORITY, 0, word) !== 0) return false;
    this.#holder = tx;
    this.#taken = word;
    this.#takenMs = now;
    holdersHere.add(this.#nameOf(this.#executor.slot));
    this.#executor.counters[this.#executor.counterBase + STARVED]++;
    return true;
  }

  /** What was past its look at priority when that was taken would spoil the first attempt. */
  #awaitCommits(now: number): number {
    if (now - this.#takenMs >= PRIORITY_COMMITS_MS) return 0;
    const { control } = this.#memory;
    for (let slot = slotsInUse(control) - 1; slot >= 0; slot--) {
      if (slot === this.#executor.slot) continue;
      const status = Atomics.load(this.#i32, control.slotAt(slot) + STATUS);
      if (phaseOf(status) !== IDLE) return COMMITS_LOOK_MS;
    }
    return 0;
  }

  /** Gives back priority, if the transaction has it; it stays in line. */
  giveBack(tx: Transaction): void {
    if (tx !== this.#holder) return;
    this.#holder = undefined;
    holdersHere.delete(this.#nameOf(this.#executor.slot));
    endPriority(this.#memory, this.#taken, machineMs() - this.#takenMs);
  }

  /** The transaction has ended, in whatever way. */
  end(tx: Transaction): void {
    this.giveBack(tx);
    const place = this.#line.indexOf(tx);
    if (place >= 0) this.#line.splice(place, 1);
    if (place === 0) Atomics.store(this.#i32, this.#ticketAt, 0);
    tx.conflicts = 0;
    tx.isStarved = false;
    tx.ignoresPriority = false;
    tx.priorityMs = PRIORITY_MS;
  }
}

/** Gives back the priority and the ticket of a slot: its owner is dead, or leaves. */
export function releasePriority(memory: StoreMemory, slot: number): void {
  const { i32 } = memory.control;
  const ticketAt = memory.control.slotAt(slot) + TICKET;
  if (Atomics.load(i32, ticketAt) !== 0) Atomics.store(i32, ticketAt, 0);
  const word = Atomics.load(i32, PRIORITY);
  if (word !== 0 && slotOf(word) === slot) endPriority(memory, word, 0);
}

/** Ends this period of priority, if nobody has yet, and has the store rest after what it took. */
function endPriority(memory: StoreMemory, word: number, tookMs: number): void {
  const { i32, f64 } = memory.control;
  if (Atomics.compareExchange(i32, PRIORITY, word, 0) !== word) return;
  f64[RESTS_F64] = machineMs() + PRIORITY_REST * Math.min(tookMs, MAX_PRIORITY_MS);
  memory.parking.wake(PRIORITY);
}

/** The word of PRIORITY. */
export function priorityWord(slot: number, endsMs: number): number {
  return (Math.ceil(endsMs) << TIME_SHIFT) | (slot + 1);
}

function slotOf(word: number): number {
  return (word & SLOT_MASK) - 1;
}

/** In the circle of 2^24 milliseconds: negative when it is over. */
function leftMs(word: number, now: number): number {
  return ((word & ~SLOT_MASK) - (Math.floor(now) << TIME_SHIFT)) >> TIME_SHIFT;
}

/** A time further ahead than anybody has priority is a time long past. */
function isOn(word: number, now: number): boolean {
  const left = leftMs(word, now);
  return left > 0 && left <= MAX_PRIORITY_MS + 1;
}

function atLeast(ms: number): number {
  return Math.max(ms, SHORTEST_MS);
}
