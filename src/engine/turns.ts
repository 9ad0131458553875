/**
 * The store's *turn*: how a transaction that keeps losing against shorter ones gets through.
 *
 * Commits are optimistic. A transaction over thousands of rows that others write without pause is
 * never valid when it ends, however often it is run. After some conflicts it is *starved* and takes the
 * turn: every other committer that finds the turn taken waits before it locks anything, or is refused
 * (mustYield). The holder's next attempt then meets only the commits that were past that point.
 *
 *   TURN           0, or the holder's slot + 1 in the low eight bits and, above them, when the turn
 *                  ends: milliseconds of the machine's clock, modulo 2^24. One word, so that holder
 *                  and end always belong together
 *   TURN_TICKETS   counts the tickets that were given out
 *   TURN_RESTS     no turn is taken before this time (float64, machineMs)
 *   slot, TICKET   the place in line of the slot's starved transaction, or 0
 *
 * Why everybody makes progress:
 *
 * - A turn is bounded. It ends with the holder's transaction, or at its time, whatever becomes of the
 *   holder: anybody who finds it expired ends it. A dead holder's is given back by its recovery. A
 *   holder that did not get through takes a longer one the next time, up to MAX_TURN_MS.
 * - After a turn the store rests for TURN_REST times as long as the turn took. So turns take at most a
 *   quarter of the time, and a transaction that is shorter than a rest is delayed by one turn at most.
 * - The starved stand in line by their tickets. Only the first one waits for the end of the rest; the
 *   others go on trying, for where there are no short transactions, one of them gets through. One that
 *   is stopped, or busy with an attempt, is passed over after TURN_GRACE_MS.
 * - Nobody waits for the turn while it holds a lock, and the holder waits for nobody but, for
 *   TURN_COMMITS_MS, commits that are under way. So there is no cycle to wait in.
 * - No transaction fails because of a turn: after half of its time-out it goes past it. So does a
 *   synchronous transaction in the holder's own thread, where waiting would keep the holder from moving.
 *
 * None of this is needed for correctness. A turn is advice: who does not see it, because its load came
 * early or the turn has expired meanwhile, commits as always, and the holder validates as always. So
 * the words need no memory order, and a death between any two of their stores costs somebody a wait,
 * never a result: a ticket or a turn of a dead slot is cleared with the slot, a missing TURN_RESTS only
 * lets the next turn begin sooner.
 *
 * What it costs where nobody starves: a load and a comparison in each commit that writes.
 */

import { TURN, TURN_RESTS, TURN_TICKETS } from "../memory/control.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { machineMs, nowMs, sleep } from "../runtime/clock.ts";
import {
  MAX_TURN_MS,
  STARVED_CONFLICTS,
  STARVED_MS,
  STARVED_SHARE,
  TURN_COMMITS_MS,
  TURN_GRACE_MS,
  TURN_MS,
  TURN_REST,
} from "../runtime/limits.ts";
import type { Executor } from "./executor.ts";
import { IDLE, phaseOf, STATUS, slotsInUse, TICKET, TURNS } from "./slot.ts";
import type { Transaction } from "./transaction.ts";

const RESTS_F64 = TURN_RESTS / 2;
const SLOT_MASK = 0xff;
const TIME_SHIFT = 8;
/** The longest sleep before the turn is looked at again: its holder may have died. */
const LOOK_MS = 20;
/** The same for one whose event loop turns meanwhile: nobody wakes it. */
const ASYNC_LOOK_MS = 1;
const COMMITS_LOOK_MS = 0.05;
/** Shorter sleeps are no sleeps. */
const SHORTEST_MS = 0.05;

/** The turns that transactions of this thread have: memory id and slot of each. */
const turnsHere = new Set<string>();

export class Turns {
  readonly #executor: Executor;
  readonly #memory: StoreMemory;
  readonly #i32: Int32Array;
  readonly #f64: Float64Array;
  readonly #ticketAt: number;
  /** This executor's starved transactions. The first has the slot's ticket. */
  readonly #line: Transaction[] = [];
  /** The one of them that took the turn, what it put into the word, and when. */
  #holder: Transaction | undefined;
  #taken = 0;
  #takenMs = 0;
  /** What TURN was at the last look. */
  #seen = 0;
  /** Resolves when TURN has changed, or after LOOK_MS. */
  #change: Promise<void> | undefined;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#memory = executor.memory;
    this.#i32 = executor.memory.control.i32;
    this.#f64 = executor.memory.control.f64;
    this.#ticketAt = executor.memory.control.slotAt(executor.slot) + TICKET;
  }

  /** For a committer that has found TURN taken: whether it must not go on. */
  mustYield(tx: Transaction): boolean {
    const turn = Atomics.load(this.#i32, TURN);
    if (turn === 0 || tx.passesTurns) return false;
    if (slotOf(turn) === this.#executor.slot) return tx !== this.#holder && tx.isAsync;
    if (isOn(turn, machineMs())) return true;
    endTurn(this.#memory, turn, TURN_MS);
    return false;
  }

  /**
   * An attempt has failed: counts it if another transaction was the cause. Says whether `look`, or
   * one of the two that wait with it, must be called before the next attempt. A thread that must not
   * wait takes no turn.
   */
  meet(tx: Transaction): boolean {
    if (tx.conflicts === 0) tx.conflictsSinceMs = nowMs();
    // A lock that is still held may be that of a stopped process: a turn would not help.
    if (tx.metLock === 0 || tx.conflicts === 0) tx.conflicts++;
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
      this.#memory.parking.sleepSync(TURN, this.#seen, ms);
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

  /** One watches the turn for all of this thread's transactions that wait for its end. */
  async #awaitChange(turn: number): Promise<void> {
    const startMs = nowMs();
    try {
      do await sleep(ASYNC_LOOK_MS);
      while (Atomics.load(this.#i32, TURN) === turn && nowMs() - startMs < LOOK_MS);
    } finally {
      this.#change = undefined;
    }
  }

  /** Whether the transaction has the turn, so that it need not wait between its attempts. */
  isHolder(tx: Transaction): boolean {
    return tx === this.#holder;
  }

  /**
   * One look: takes the turn for a starved transaction if it can. Returns how long to sleep before the
   * next look, or 0 if it is time for the next attempt.
   */
  look(tx: Transaction): number {
    const turn = Atomics.load(this.#i32, TURN);
    this.#seen = turn;
    const now = machineMs();
    const waitedMs = nowMs() - tx.conflictsSinceMs;
    if (tx === this.#holder) {
      if (turn === this.#taken && isOn(turn, now)) return this.#awaitCommits(now);
      this.giveBack(tx);
      tx.turnMs = Math.min(2 * tx.turnMs, MAX_TURN_MS);
      return this.look(tx);
    }
    if (turn !== 0 && !isOn(turn, now)) {
      endTurn(this.#memory, turn, TURN_MS);
      return this.look(tx);
    }
    if (turn !== 0) return this.#yield(tx, turn, waitedMs);
    if (!tx.isStarved || waitedMs >= tx.timeoutMs || !this.#isFirst(tx, now)) return 0;
    const restMs = this.#f64[RESTS_F64] - now;
    if (restMs > 0 && restMs <= TURN_REST * MAX_TURN_MS) return atLeast(Math.min(restMs, LOOK_MS));
    return this.#take(tx, now) ? this.#awaitCommits(now) : this.look(tx);
  }

  /** Another transaction has the turn. */
  #yield(tx: Transaction, turn: number, waitedMs: number): number {
    const slot = slotOf(turn);
    const isOwn = slot === this.#executor.slot;
    const cannotWait = !tx.isAsync && (isOwn || this.#isHere(slot) || !this.#executor.isPatient);
    if (cannotWait || waitedMs >= tx.timeoutMs / 2) {
      tx.passesTurns = true;
      return 0;
    }
    if (!isOwn && waitedMs >= LOOK_MS && this.#executor.recoverIfDead(slot)) return this.look(tx);
    return atLeast(Math.min(leftMs(turn, machineMs()), LOOK_MS, tx.timeoutMs / 2 - waitedMs));
  }

  /** Whether the holder is another executor of this very thread. */
  #isHere(slot: number): boolean {
    return turnsHere.size > 0 && turnsHere.has(this.#nameOf(slot));
  }

  #nameOf(slot: number): string {
    return `${this.#memory.control.memoryId} ${slot}`;
  }

  /** Whether nobody who waits has an older ticket; one who does not come for its turn is passed over. */
  #isFirst(tx: Transaction, now: number): boolean {
    if (!this.#line.includes(tx)) this.#line.push(tx);
    if (this.#line[0] !== tx) return false;
    let mine = Atomics.load(this.#i32, this.#ticketAt);
    if (mine === 0) {
      mine = (Atomics.add(this.#i32, TURN_TICKETS, 1) + 1) | 0 || 1;
      Atomics.store(this.#i32, this.#ticketAt, mine);
    }
    if (now - this.#f64[RESTS_F64] >= TURN_GRACE_MS) return true;
    const { control } = this.#memory;
    for (let slot = slotsInUse(control) - 1; slot >= 0; slot--) {
      const ticket = Atomics.load(this.#i32, control.slotAt(slot) + TICKET);
      if (ticket !== 0 && ((ticket - mine) | 0) < 0) return false;
    }
    return true;
  }

  #take(tx: Transaction, now: number): boolean {
    const turn = turnOf(this.#executor.slot, now + tx.turnMs);
    if (Atomics.compareExchange(this.#i32, TURN, 0, turn) !== 0) return false;
    this.#holder = tx;
    this.#taken = turn;
    this.#takenMs = now;
    turnsHere.add(this.#nameOf(this.#executor.slot));
    this.#executor.counters[this.#executor.counterBase + TURNS]++;
    return true;
  }

  /** What was past its look at the turn when that was taken would spoil the first attempt. */
  #awaitCommits(now: number): number {
    if (now - this.#takenMs >= TURN_COMMITS_MS) return 0;
    const { control } = this.#memory;
    for (let slot = slotsInUse(control) - 1; slot >= 0; slot--) {
      if (slot === this.#executor.slot) continue;
      const status = Atomics.load(this.#i32, control.slotAt(slot) + STATUS);
      if (phaseOf(status) !== IDLE) return COMMITS_LOOK_MS;
    }
    return 0;
  }

  /** Gives back the turn, if the transaction has it; it stays in line. */
  giveBack(tx: Transaction): void {
    if (tx !== this.#holder) return;
    this.#holder = undefined;
    turnsHere.delete(this.#nameOf(this.#executor.slot));
    endTurn(this.#memory, this.#taken, machineMs() - this.#takenMs);
  }

  /** The transaction has ended, in whatever way. */
  end(tx: Transaction): void {
    this.giveBack(tx);
    const place = this.#line.indexOf(tx);
    if (place >= 0) this.#line.splice(place, 1);
    if (place === 0) Atomics.store(this.#i32, this.#ticketAt, 0);
    tx.conflicts = 0;
    tx.isStarved = false;
    tx.passesTurns = false;
    tx.turnMs = TURN_MS;
  }
}

/** Gives back all that a slot has of turns: its owner is dead, or leaves. */
export function releaseTurn(memory: StoreMemory, slot: number): void {
  const { i32 } = memory.control;
  const ticketAt = memory.control.slotAt(slot) + TICKET;
  if (Atomics.load(i32, ticketAt) !== 0) Atomics.store(i32, ticketAt, 0);
  const turn = Atomics.load(i32, TURN);
  if (turn !== 0 && slotOf(turn) === slot) endTurn(memory, turn, 0);
}

/** Ends this turn, if nobody has yet, and has the store rest after what it took. */
function endTurn(memory: StoreMemory, turn: number, tookMs: number): void {
  const { i32, f64 } = memory.control;
  if (Atomics.compareExchange(i32, TURN, turn, 0) !== turn) return;
  f64[RESTS_F64] = machineMs() + TURN_REST * Math.min(tookMs, MAX_TURN_MS);
  memory.parking.wake(TURN);
}

/** The word of a turn. */
export function turnOf(slot: number, endsMs: number): number {
  return (Math.ceil(endsMs) << TIME_SHIFT) | (slot + 1);
}

function slotOf(turn: number): number {
  return (turn & SLOT_MASK) - 1;
}

/** In the circle of 2^24 milliseconds: negative when it is over. */
function leftMs(turn: number, now: number): number {
  return ((turn & ~SLOT_MASK) - (Math.floor(now) << TIME_SHIFT)) >> TIME_SHIFT;
}

/** A time further ahead than any turn lasts is a time long past. */
function isOn(turn: number, now: number): boolean {
  const left = leftMs(turn, now);
  return left > 0 && left <= MAX_TURN_MS + 1;
}

function atLeast(ms: number): number {
  return Math.max(ms, SHORTEST_MS);
}
