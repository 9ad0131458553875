/**
 * The commit of a transaction whose data is local (DESIGN §5): plain synchronous code, no
 * allocation. The order of the steps is the protocol; each says why it stands where it does.
 *
 *  1. Journal: addresses and data of the write set, then status INTENT. From here a dead
 *     committer's locks can be found by anyone.
 *  2. Lock the write set in address order, compare-and-swap, never waiting. The version must be
 *     the one that was read. On failure undo and report the conflict.
 *     Then turn every lock to INSTALLING. This comes before validation, not after the commit point
 *     as DESIGN has it: were it later, T2 could validate r, T4 overwrite r and return, and a
 *     reader that starts only then still find the old x that T2 has PREPARED: it would see T4 but
 *     not T2, which precedes T4 (docs/decisions/0002). It also comes before any data is written,
 *     so no reader sees the new x and afterwards the old y.
 *  3. Announce the committing epoch: store it, read the global one again, until they agree;
 *     otherwise a snapshot could slip between. Then validate what was only read: same version, not
 *     locked by another.
 *  4. Choose a TID later than every version read or overwritten and than the slot's last.
 *  5. TID into the journal, status COMMITTED. This is the commit point.
 *  6. Install: data, version, unlock, object by object.
 *  7. Status IDLE: the committing epoch is cleared.
 *
 * A death anywhere before 5 leaves objects unchanged and locked: recovery unlocks them. A death
 * after it leaves a complete record: recovery installs what is still locked by the slot.
 */

import {
  ARRAY,
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockWord,
  PREPARED,
  VERSION_HIGH,
  VERSION_LOW,
} from "../memory/object.ts";
import { assert } from "../runtime/assert.ts";
import type { AccessSet } from "./access-set.ts";
import { CELL, FREE, NEW, READ, WRITE } from "./access-set.ts";
import type { Executor } from "./executor.ts";
import { copyWords } from "./journal.ts";

import {
  ALLOCATIONS,
  announcement,
  COMMITS,
  COMMITTED,
  COMMITTING,
  FREES,
  IDLE,
  INTENT,
  READ_ONLY_COMMITS,
  STATUS,
} from "./slot.ts";
import { epochBitsOf, isLater, MAX_SEQUENCE, sequenceOf, tidHigh, tidLow } from "./tid.ts";
import type { Transaction } from "./transaction.ts";

/** Beyond this, sorting by insertion costs more than the generic sort. */
const INSERTION_SORT_LIMIT = 32;

export class Committer {
  readonly #executor: Executor;
  readonly #slot: number;
  readonly #control: Int32Array;
  readonly #statusAt: number;
  readonly #prepared: number;
  readonly #installing: number;
  #order = new Int32Array(64);
  /** The last TID of this slot, so that its next one is later. */
  #lastHigh = 0;
  #lastLow = 0;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#slot = executor.slot;
    this.#control = executor.memory.control.i32;
    this.#statusAt = executor.memory.control.slotAt(executor.slot) + STATUS;
    this.#prepared = lockWord(executor.slot, PREPARED);
    this.#installing = lockWord(executor.slot, INSTALLING);
  }

  /** Makes the transaction true, or says false: somebody was in the way, see `tx.metLock`. */
  commit(tx: Transaction): boolean {
    const { set } = tx;
    const writes = this.#writeSet(set);
    if (writes === 0) return this.#commitReadOnly(tx);

    const executor = this.#executor;
    executor.journal.write(set, this.#order, writes);
    Atomics.store(this.#control, this.#statusAt, INTENT);

    if (!this.#lock(tx, writes)) return false;
    for (;;) {
      const epochLow = this.#announce();
      const epochHigh = executor.epochs.high();
      if (set.count > writes && !this.#validate(tx)) {
        this.#unlock(set, writes);
        return false;
      }
      if (this.#chooseTid(set, epochHigh, epochLow)) {
        executor.journal.writeTid(this.#lastHigh, this.#lastLow);
        Atomics.store(this.#control, this.#statusAt, announcement(epochLow, COMMITTED));
        break;
      }
      executor.epochs.advance();
    }
    this.#install(set, writes);
    Atomics.store(this.#control, this.#statusAt, IDLE);

    executor.counters[executor.counterBase + COMMITS]++;
    if (tx.allocated) this.#settleCells(tx);
    return true;
  }

  /** Whether all that a transaction has read is still so; nothing is locked. */
  isValid(tx: Transaction): boolean {
    return this.#validate(tx);
  }

  /** One object's consistent read needs no validation: it was true when it was read. */
  #commitReadOnly(tx: Transaction): boolean {
    const { set } = tx;
    let reads = 0;
    for (let entry = 0; entry < set.count; entry++) reads += set.kind[entry] & READ;
    if (reads > 1 && !this.#validate(tx)) return false;
    this.#executor.counters[this.#executor.counterBase + READ_ONLY_COMMITS]++;
    return true;
  }

  /** The entries that are written, in address order. */
  #writeSet(set: AccessSet): number {
    if (this.#order.length < set.count) this.#order = new Int32Array(set.capacity);
    const order = this.#order;
    let writes = 0;
    for (let entry = 0; entry < set.count; entry++) {
      if ((set.kind[entry] & WRITE) !== 0) order[writes++] = entry;
    }
    if (writes > INSERTION_SORT_LIMIT) {
      order.subarray(0, writes).sort((a, b) => (isBelow(set, a, b) ? -1 : 1));
      return writes;
    }
    for (let i = 1; i < writes; i++) {
      const entry = order[i];
      let j = i - 1;
      for (; j >= 0 && isBelow(set, entry, order[j]); j--) order[j + 1] = order[j];
      order[j + 1] = entry;
    }
    return writes;
  }

  #lock(tx: Transaction, writes: number): boolean {
    const { set } = tx;
    const order = this.#order;
    for (let i = 0; i < writes; i++) {
      const entry = order[i];
      const { i32 } = set.regions[entry]!;
      const word = set.word[entry];
      const lock = Atomics.compareExchange(i32, word + LOCK, 0, this.#prepared);
      if (lock !== 0) {
        tx.metLock = lock;
        tx.metEntry = entry;
        this.#unlock(set, i);
        return false;
      }
      if (
        i32[word + VERSION_LOW] !== set.versionLow[entry] ||
        i32[word + VERSION_HIGH] !== set.versionHigh[entry]
      ) {
        tx.metEntry = entry;
        this.#unlock(set, i + 1);
        return false;
      }
    }
    for (let i = 0; i < writes; i++) {
      const entry = order[i];
      Atomics.store(set.regions[entry]!.i32, set.word[entry] + LOCK, this.#installing);
    }
    return true;
  }

  #unlock(set: AccessSet, count: number): void {
    for (let i = 0; i < count; i++) {
      const entry = this.#order[i];
      Atomics.store(set.regions[entry]!.i32, set.word[entry] + LOCK, 0);
    }
    Atomics.store(this.#control, this.#statusAt, IDLE);
  }

  #announce(): number {
    const { epochs } = this.#executor;
    for (let low = epochs.low(); ; ) {
      Atomics.store(this.#control, this.#statusAt, announcement(low, COMMITTING));
      const again = epochs.low();
      if (again === low) return low;
      low = again;
    }
  }

  #validate(tx: Transaction): boolean {
    const { set } = tx;
    for (let entry = 0; entry < set.count; entry++) {
      if ((set.kind[entry] & (READ | WRITE)) !== READ) continue;
      const { i32 } = set.regions[entry]!;
      const word = set.word[entry];
      const lock = Atomics.load(i32, word + LOCK);
      if (
        lock !== 0 ||
        i32[word + VERSION_LOW] !== set.versionLow[entry] ||
        i32[word + VERSION_HIGH] !== set.versionHigh[entry]
      ) {
        tx.metLock = lock;
        tx.metEntry = entry;
        return false;
      }
    }
    return true;
  }

  /** False if the sequence of this epoch has run out. */
  #chooseTid(set: AccessSet, epochHigh: number, epochLow: number): boolean {
    let high = this.#lastHigh;
    let low = this.#lastLow;
    for (let entry = 0; entry < set.count; entry++) {
      if ((set.kind[entry] & READ) === 0) continue;
      if (isLater(set.versionHigh[entry], set.versionLow[entry], high, low)) {
        high = set.versionHigh[entry];
        low = set.versionLow[entry];
      }
    }
    const ownHigh = tidHigh(epochHigh, epochLow);
    let sequence = 0;
    if (high === ownHigh && epochBitsOf(low) === (epochLow & 0xfff)) {
      sequence = sequenceOf(low) + 1;
      if (sequence > MAX_SEQUENCE) return false;
    }
    const ownLow = tidLow(epochLow, sequence, this.#slot);
    assert(isLater(ownHigh, ownLow, high, low), "a TID is later than all it depends on");
    this.#lastHigh = ownHigh;
    this.#lastLow = ownLow;
    return true;
  }

  #install(set: AccessSet, writes: number): void {
    const arena = set.arena.i32;
    for (let i = 0; i < writes; i++) {
      const entry = this.#order[i];
      const { i32 } = set.regions[entry]!;
      const word = set.word[entry];
      const from = set.dirtyFrom[entry];
      const words = set.dirtyTo[entry] - from;
      if (words > 0) {
        copyWords(arena, set.buffer[entry] + from, i32, word + HEADER_WORDS + from, words);
      }
      i32[word + INCARNATION] = set.incarnation[entry];
      i32[word + VERSION_HIGH] = this.#lastHigh;
      i32[word + VERSION_LOW] = this.#lastLow;
      Atomics.store(i32, word + LOCK, 0);
    }
  }

  /** Tells the allocator what has become of the cells. */
  #settleCells(tx: Transaction): void {
    const { set } = tx;
    const { slabs, counters, counterBase } = this.#executor;
    for (let entry = 0; entry < set.count; entry++) {
      const kind = set.kind[entry];
      if ((kind & CELL) === 0) continue;
      const address = tx.addressOf(entry);
      if ((kind & NEW) !== 0) {
        slabs.committed(address);
        counters[counterBase + ALLOCATIONS]++;
      }
      if ((kind & FREE) !== 0) {
        slabs.freed(address, (set.incarnation[entry] & ARRAY) !== 0);
        counters[counterBase + FREES]++;
      }
    }
    tx.allocated = false;
  }
}

function isBelow(set: AccessSet, a: number, b: number): boolean {
  const byRegion = set.regionId[a] - set.regionId[b];
  return byRegion !== 0 ? byRegion < 0 : set.word[a] < set.word[b];
}
