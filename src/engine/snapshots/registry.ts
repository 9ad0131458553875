/**
 * The table of open snapshots, in the control segment. A snapshot at S sees every version whose
 * epoch is at most S; to compare it with versions it is kept as a *limit*: the greatest TID of
 * epoch S. An entry:
 *
 *   word 0     state: generation (22 bits), phase (2 bits), owner's slot (8 bits)
 *   words 1–2  the limit, high and low
 *   words 4–5  when it is to be released, 6–7 since when it is there (float64, machineMs)
 *
 * Phases: FREE → CLAIMED → REGISTERED → FREE. Everyone may release a registered entry, by
 * compare-and-swap of the whole state word; its owner sees that by the word being another.
 *
 * The word SNAPSHOTS_IN_USE is what a commit looks at: 0 in its lower bits means that nobody holds
 * a snapshot, and then versions cost nothing. Otherwise it is 1 + the highest entry in use. Above
 * them, and in the whole of the next word, lies a count of 53 bits that grows before every
 * registration. So nobody who has found the upper entries free can lower the word when one of them
 * has been claimed meanwhile; and whoever has listed all snapshots, while none was about to be
 * registered, need not list them again while both words stay.
 *
 * The two words change together, by 64-bit compare-and-swap. A commit loads the first one only.
 * The count must not come round: with the 21 bits of one word it did, after two million snapshots
 * between two commits of one executor, which then did not keep what the newest of them needed.
 */

import { type Control, SNAPSHOT_RELEASES, SNAPSHOTS_IN_USE } from "../../memory/control.ts";
import { loadAcquire, loadAfterLoads } from "../../memory/ordering.ts";
import { machineMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_SNAPSHOTS } from "../../runtime/limits.ts";
import { isLater } from "../tid.ts";

const STATE = 0;
const LIMIT_HIGH = 1;
const LIMIT_LOW = 2;
const EXPIRES_F64 = 4 / 2;
const SINCE_F64 = 6 / 2;

const FREE = 0;
const CLAIMED = 1;
const REGISTERED = 2;
const SLOT_BITS = 8;
const PHASE_BITS = 2;
const GENERATION_STEP = 1 << (SLOT_BITS + PHASE_BITS);

const IN_USE_BITS = 11;
export const IN_USE_MASK = (1 << IN_USE_BITS) - 1;
const IN_USE_MASK_I64 = BigInt(IN_USE_MASK);
const COUNT_STEP_I64 = 1n << BigInt(IN_USE_BITS);
const IN_USE_I64 = SNAPSHOTS_IN_USE / 2;
const COUNT_HIGH = SNAPSHOTS_IN_USE + 1;

function phaseOf(state: number): number {
  return (state >>> SLOT_BITS) & 3;
}

function slotOf(state: number): number {
  return state & 0xff;
}

function stateOf(generation: number, phase: number, slot: number): number {
  return (generation & -GENERATION_STEP) | (phase << SLOT_BITS) | slot;
}

/** The limits of the snapshots that were open at one moment, sorted. */
export class Limits {
  count = 0;
  readonly high = new Int32Array(MAX_SNAPSHOTS);
  readonly low = new Int32Array(MAX_SNAPSHOTS);
  /** The registry's two words when these were listed, if the list was complete then. */
  isComplete = false;
  wordHigh = 0;
  wordLow = 0;

  insert(high: number, low: number): void {
    let at = this.count++;
    for (; at > 0 && isLater(this.high[at - 1], this.low[at - 1], high, low); at--) {
      this.high[at] = this.high[at - 1];
      this.low[at] = this.low[at - 1];
    }
    this.high[at] = high;
    this.low[at] = low;
  }

  /** Whether a snapshot sees the version that was there from one TID to another. */
  need(high: number, low: number, successorHigh: number, successorLow: number): boolean {
    for (let i = this.count - 1; i >= 0; i--) {
      if (isLater(high, low, this.high[i], this.low[i])) return false;
      if (isLater(successorHigh, successorLow, this.high[i], this.low[i])) return true;
    }
    return false;
  }
}

export class Registry {
  readonly #control: Control;
  readonly #i32: Int32Array;
  readonly #i64: BigInt64Array;
  claimed = 0;

  constructor(control: Control) {
    this.#control = control;
    this.#i32 = control.i32;
    this.#i64 = control.i64;
  }

  get inUse(): number {
    return loadAcquire(this.#i32, SNAPSHOTS_IN_USE) & IN_USE_MASK;
  }

  /** Changes with every release, or a little later. */
  get releases(): number {
    return Atomics.load(this.#i32, SNAPSHOT_RELEASES);
  }

  /** Takes a free entry, not yet seen by anybody; `claimed` is its state then. */
  claim(slot: number, lifeMs: number): number {
    let index = this.#tryClaim(slot, lifeMs);
    if (index < 0 && this.releaseExpired() > 0) index = this.#tryClaim(slot, lifeMs);
    if (index >= 0) return index;
    throw new SituError(
      "SITU_FULL",
      `all ${MAX_SNAPSHOTS} snapshots that a store may have are open: close some`,
    );
  }

  #tryClaim(slot: number, lifeMs: number): number {
    for (let index = 0; index < MAX_SNAPSHOTS; index++) {
      const at = this.#control.snapshotAt(index);
      const state = Atomics.load(this.#i32, at + STATE);
      if (phaseOf(state) !== FREE) continue;
      const claimed = stateOf(state + GENERATION_STEP, CLAIMED, slot);
      if (Atomics.compareExchange(this.#i32, at + STATE, state, claimed) !== state) continue;
      const now = machineMs();
      this.#control.f64[at / 2 + EXPIRES_F64] = now + lifeMs;
      this.#control.f64[at / 2 + SINCE_F64] = now;
      this.claimed = claimed;
      return index;
    }
    return -1;
  }

  /**
   * Publishes the limit of an entry that is ours in this state, claimed or published before, and
   * returns its new state. 0 if it is ours no more: once published, anybody may release it.
   */
  publish(index: number, state: number, high: number, low: number): number {
    const at = this.#control.snapshotAt(index);
    const slot = slotOf(state);
    // Not both words can be changed at once: while they change, the entry is not registered.
    const claimed = stateOf(state + GENERATION_STEP, CLAIMED, slot);
    if (Atomics.compareExchange(this.#i32, at + STATE, state, claimed) !== state) return 0;
    this.#raise(index + 1);
    this.#i32[at + LIMIT_HIGH] = high;
    this.#i32[at + LIMIT_LOW] = low;
    const registered = stateOf(claimed, REGISTERED, slot);
    Atomics.store(this.#i32, at + STATE, registered);
    return registered;
  }

  /**
   * Whether the entry is still what `publish` left. Comes after all loads before it. Generations
   * may come round; the limits of an executor's snapshots only grow.
   */
  isRegistered(index: number, state: number, high: number, low: number): boolean {
    const at = this.#control.snapshotAt(index);
    return (
      loadAfterLoads(this.#i32, at + STATE) === state &&
      this.#i32[at + LIMIT_LOW] === low &&
      this.#i32[at + LIMIT_HIGH] === high
    );
  }

  /** Releases an entry, if it is still in this state. */
  release(index: number, state: number): boolean {
    const at = this.#control.snapshotAt(index) + STATE;
    const free = stateOf(state, FREE, 0);
    if (Atomics.compareExchange(this.#i32, at, state, free) !== state) return false;
    Atomics.add(this.#i32, SNAPSHOT_RELEASES, 1);
    this.#lower();
    return true;
  }

  /** Gives back all entries of a slot whose executor is dead or leaves. */
  releaseSlot(slot: number): void {
    // All entries: one who died over a claim may not have told how far the table is in use.
    for (let index = 0; index < MAX_SNAPSHOTS; index++) {
      const state = this.#stateOf(index);
      if (phaseOf(state) !== FREE && slotOf(state) === slot) this.release(index, state);
    }
    // Also for one who died over a release, before it was counted.
    Atomics.add(this.#i32, SNAPSHOT_RELEASES, 1);
    this.#lower();
  }

  /** Releases the snapshots whose time is over; says how many they were. */
  releaseExpired(): number {
    let released = 0;
    const now = this.inUse === 0 ? 0 : machineMs();
    for (let index = 0; index < this.inUse; index++) {
      const state = this.#stateOf(index);
      if (phaseOf(state) !== REGISTERED || this.expiresMs(index) > now) continue;
      if (this.release(index, state)) released++;
    }
    return released;
  }

  /** Releases the oldest snapshot, for there is no room for what it needs; false if there is none. */
  releaseOldest(): boolean {
    for (;;) {
      let oldest = -1;
      let oldestState = 0;
      let high = 0;
      let low = 0;
      for (let index = 0; index < this.inUse; index++) {
        const at = this.#control.snapshotAt(index);
        const state = this.#stateOf(index);
        if (phaseOf(state) !== REGISTERED) continue;
        const itsHigh = this.#i32[at + LIMIT_HIGH];
        const itsLow = this.#i32[at + LIMIT_LOW];
        if (oldest >= 0 && !isLater(high, low, itsHigh, itsLow)) continue;
        oldest = index;
        oldestState = state;
        high = itsHigh;
        low = itsLow;
      }
      if (oldest < 0) return false;
      if (this.release(oldest, oldestState)) return true;
    }
  }

  /** Whether the list is complete, and nothing was registered since. */
  isListed(limits: Limits): boolean {
    // Low before high here, high before low in `list`. As the count only grows, two equal pairs are
    // then of one moment: a carry between the two loads shows in the high word of this look.
    return (
      limits.isComplete &&
      loadAcquire(this.#i32, SNAPSHOTS_IN_USE) === limits.wordLow &&
      loadAcquire(this.#i32, COUNT_HIGH) === limits.wordHigh
    );
  }

  /** Lists the limits of all registered snapshots. Not complete if others were about to register. */
  list(limits: Limits): void {
    limits.count = 0;
    let complete = true;
    limits.isComplete = false;
    limits.wordHigh = loadAcquire(this.#i32, COUNT_HIGH);
    limits.wordLow = loadAcquire(this.#i32, SNAPSHOTS_IN_USE);
    const inUse = limits.wordLow & IN_USE_MASK;
    for (let index = 0; index < inUse; index++) {
      const at = this.#control.snapshotAt(index);
      for (;;) {
        const state = this.#stateOf(index);
        if (phaseOf(state) === CLAIMED) complete = false;
        if (phaseOf(state) !== REGISTERED) break;
        const high = this.#i32[at + LIMIT_HIGH];
        const low = this.#i32[at + LIMIT_LOW];
        // The same generation before and after: both words are of one limit.
        if (loadAfterLoads(this.#i32, at + STATE) !== state) continue;
        limits.insert(high, low);
        break;
      }
    }
    limits.isComplete = complete;
  }

  /** Whether a snapshot is open that does not see this version, but the ones before it. */
  hasBefore(high: number, low: number): boolean {
    const inUse = this.inUse;
    for (let index = 0; index < inUse; index++) {
      const at = this.#control.snapshotAt(index);
      if (phaseOf(this.#stateOf(index)) !== REGISTERED) continue;
      if (isLater(high, low, this.#i32[at + LIMIT_HIGH], this.#i32[at + LIMIT_LOW])) return true;
    }
    return false;
  }

  expiresMs(index: number): number {
    return this.#control.f64[this.#control.snapshotAt(index) / 2 + EXPIRES_F64];
  }

  /** How many snapshots are open, and the age of the oldest. */
  summary(): { open: number; oldestMs: number } {
    let open = 0;
    let oldestMs = 0;
    const now = machineMs();
    for (let index = 0; index < this.inUse; index++) {
      if (phaseOf(this.#stateOf(index)) !== REGISTERED) continue;
      open++;
      const since = this.#control.f64[this.#control.snapshotAt(index) / 2 + SINCE_F64];
      oldestMs = Math.max(oldestMs, now - since);
    }
    return { open, oldestMs };
  }

  #stateOf(index: number): number {
    return Atomics.load(this.#i32, this.#control.snapshotAt(index) + STATE);
  }

  #raise(to: number): void {
    for (;;) {
      const word = Atomics.load(this.#i64, IN_USE_I64);
      const inUse = Math.max(Number(word & IN_USE_MASK_I64), to);
      const raised = BigInt.asIntN(64, (word & ~IN_USE_MASK_I64) + COUNT_STEP_I64) | BigInt(inUse);
      if (Atomics.compareExchange(this.#i64, IN_USE_I64, word, raised) === word) return;
    }
  }

  #lower(): void {
    for (;;) {
      const word = Atomics.load(this.#i64, IN_USE_I64);
      let inUse = Number(word & IN_USE_MASK_I64);
      while (inUse > 0 && phaseOf(this.#stateOf(inUse - 1)) === FREE) inUse--;
      const lowered = (word & ~IN_USE_MASK_I64) | BigInt(inUse);
      if (Atomics.compareExchange(this.#i64, IN_USE_I64, word, lowered) === word) return;
    }
  }
}
