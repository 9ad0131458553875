/**
 * The commit of a transaction whose data is local (docs/DESIGN.md §5): plain synchronous code, no
 * allocation. The order of the steps is the protocol; each says why it stands where it does.
 *
 *  1. Journal: addresses and data of the write set, if it has room for them and the log is not late, then status INTENT. From here a dead
 *     committer's locks can be found by anyone.
 *  2. Lock the write set in address order, compare-and-swap, never waiting. The version must be
 *     the one that was read. On failure undo and report the conflict.
 *     Then turn every lock to INSTALLING. This comes before validation, not after the commit point:
 *     were it later, T2 could validate r, T4 overwrite r and return, and a
 *     reader that starts only then still find the old x that T2 has PREPARED: it would see T4 but
 *     not T2, which precedes T4 (docs/decisions/0002). It also comes before any data is written,
 *     so no reader sees the new x and afterwards the old y.
 *     The cell of a new object is locked like any other: if another executor has chosen the same free
 *     cell and was faster, its version is not the one that was seen.
 *  3. Announce the committing epoch: store it, read the global one again, until they agree;
 *     otherwise a snapshot could slip between. Then validate what was only read: same version, not
 *     locked by another.
 *  4. Choose a TID later than every version read or overwritten and than the slot's last.
 *     Keep the versions that are about to be overwritten, if a registered snapshot needs them
 *     (snapshots/versions.ts). A snapshot that this look misses registers after the epoch was
 *     announced: it waits for this commit and sees it.
 *  5. TID into the journal, status COMMITTED. This is the commit point.
 *  6. Install: data, version, unlock, object by object.
 *  7. The record is passed on to the log's writer, if there is one. Status IDLE: the committing
 *     epoch is cleared.
 *
 * Before all this a committer looks whether a starved transaction has priority, and yields (priority.ts).
 *
 * A death anywhere before 5 leaves objects unchanged and locked: recovery unlocks them. A death
 * after it leaves a complete record: recovery installs what is still locked by the slot.
 */

import { LOG_STATE, PRIORITY, SNAPSHOTS_IN_USE } from "../memory/control.ts";
import {
  ARRAY,
  INCARNATION as HEADER_INCARNATION,
  VERSION_HIGH as HEADER_VERSION_HIGH,
  VERSION_LOW as HEADER_VERSION_LOW,
  HEADER_WORDS,
  INSTALLING,
  LOCK,
  lockWord,
  PREPARED,
  storeVersion,
} from "../memory/object.ts";
import { loadAcquire, storeRelease } from "../memory/ordering.ts";
import { assert } from "../runtime/assert.ts";
import { COMMITS_PER_MEMORY_LOOK } from "../runtime/limits.ts";
import {
  type AccessSet,
  BUFFER,
  CELL,
  DIRTY_FROM,
  DIRTY_TO,
  EDITS,
  ENTRY_WORDS,
  FREE,
  INCARNATION,
  KIND,
  LOCKED,
  NEW,
  READ,
  REGION_ID,
  SPLICED,
  VERSION_HIGH,
  VERSION_LOW,
  WORD,
  WRITE,
} from "./access-set.ts";
import { FAILED } from "./durability.ts";
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
  PREPARES,
  READ_ONLY_COMMITS,
  STATUS,
} from "./slot.ts";
import { IN_USE_MASK } from "./snapshots/registry.ts";
import { applySplice } from "./splices.ts";
import { epochBitsOf, epochOf, isLater, MAX_SEQUENCE, sequenceOf, tidHigh, tidLow } from "./tid.ts";
import type { Transaction } from "./transaction.ts";
import { VERSIONING } from "./versioning.ts";

/** Beyond this, sorting by insertion costs more than sorting numbers. */
const INSERTION_SORT_LIMIT = 32;
/** Up to so many, an address and a place in the list are one exact number: 14 + 30 + 9 bits. */
const KEYED_SORT_LIMIT = 512;
const WORDS_OF_ADDRESS = 2 ** 30;

export class Committer {
  readonly #executor: Executor;
  readonly #slot: number;
  readonly #control: Int32Array;
  readonly #statusAt: number;
  readonly #preparesAt: number;
  readonly #prepared: number;
  readonly #installing: number;
  #order = new Int32Array(64);
  #sortKeys = new Float64Array(KEYED_SORT_LIMIT);
  readonly #unsorted = new Int32Array(KEYED_SORT_LIMIT);
  /** The last TID of this slot, so that its next one is later. */
  #lastHigh = 0;
  #lastLow = 0;
  /** The high word that belongs to the announced epoch. */
  #epochHigh = 0;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#slot = executor.slot;
    this.#control = executor.memory.control.i32;
    this.#statusAt = executor.memory.control.slotAt(executor.slot) + STATUS;
    this.#preparesAt = executor.memory.control.slotAt(executor.slot) + PREPARES;
    this.#prepared = lockWord(executor.slot, PREPARED);
    this.#installing = lockWord(executor.slot, INSTALLING);
  }

  /** Makes the transaction true, or says false: somebody was in the way, see `tx.metLock`. */
  commit(tx: Transaction): boolean {
    const { set } = tx;
    if (set.writes === 0) return this.#commitReadOnly(tx);
    const writes = this.#sortWrites(set);

    const executor = this.#executor;
    if (loadAcquire(this.#control, LOG_STATE) >= FAILED) executor.durability.check();
    if (loadAcquire(this.#control, PRIORITY) !== 0 && executor.priority.mustYield(tx)) {
      tx.yielded = true;
      return false;
    }
    if (executor.durability.isLate() || !executor.journal.write(set, this.#order, writes)) {
      tx.journalFull = true;
      return false;
    }
    storeRelease(this.#control, this.#statusAt, INTENT);

    if (!this.#lock(tx, writes)) return false;
    for (;;) {
      const epochLow = this.#announce();
      const epochHigh = this.#epochHigh;
      if (set.count > writes && !this.#validate(tx, READ | WRITE)) {
        this.#unlock(set, writes);
        return false;
      }
      if (this.#pass(tx, writes, epochHigh, epochLow)) break;
      executor.epochs.advance();
    }
    this.#conclude(tx, writes);
    return true;
  }

  /** Steps 4 and 5; false if the sequence of this epoch has run out. */
  #pass(tx: Transaction, writes: number, epochHigh: number, epochLow: number): boolean {
    const { set } = tx;
    const executor = this.#executor;
    if (!this.#chooseTid(set, epochHigh, epochLow)) return false;
    if (VERSIONING && (loadAcquire(this.#control, SNAPSHOTS_IN_USE) & IN_USE_MASK) !== 0) {
      executor.versions.keep(set, this.#order, writes, this.#lastHigh, this.#lastLow);
      if (tx.visibleFrom !== 0) {
        const { visibleFrom } = tx;
        executor.versions.keepEarly(
          set,
          this.#order,
          writes,
          visibleFrom,
          this.#lastHigh,
          this.#lastLow,
        );
      }
    }
    executor.journal.writeTid(this.#lastHigh, this.#lastLow);
    tx.commits++;
    storeRelease(this.#control, this.#statusAt, announcement(epochLow, COMMITTED));
    tx.committed = true;
    return true;
  }

  /** Steps 6 and 7. */
  #conclude(tx: Transaction, writes: number): void {
    const executor = this.#executor;
    this.#install(tx.set, writes);
    const calls = executor.journal.pass();
    storeRelease(this.#control, this.#statusAt, IDLE);
    if (calls) executor.durability.call();

    const commits = ++executor.counters[executor.counterBase + COMMITS];
    // For one whose event loop does not turn, and who has no log whose writer would look.
    if ((commits & (COMMITS_PER_MEMORY_LOOK - 1)) === 0) executor.durability.lookAtMemory();
    if (tx.allocated) this.reportCells(tx);
  }

  /**
   * Takes the locks of what a transaction writes and keeps them (prepared.ts); those that an earlier
   * call took stay. Then checks what it has read. False, and no lock, if somebody was in the way.
   */
  prepare(tx: Transaction): boolean {
    const { set } = tx;
    if (loadAcquire(this.#control, LOG_STATE) >= FAILED) this.#executor.durability.check();
    // No waiting here: a message must be answered, and locks may be held already.
    if (loadAcquire(this.#control, PRIORITY) !== 0 && this.#executor.priority.mustYield(tx)) {
      return this.#refuse(tx);
    }
    this.#executor.journal.refuseTooLarge(set);
    Atomics.store(this.#control, this.#preparesAt, 1);
    const touched = set.count + set.writes;
    const isMore = tx.bound === 0 || touched !== tx.preparedTouched;
    tx.preparedTouched = touched;
    if (!this.#lockMore(tx)) return this.#refuse(tx);
    // After the locks and before validation, as the epoch of any commit (step 3).
    if (isMore) tx.bound = this.#executor.epochs.current();
    return this.#validate(tx, READ | WRITE) || this.#refuse(tx);
  }

  /**
   * Takes the locks of what a prepared transaction has come to write since, and that nobody else writes: part
   * of what it leaves with its commit. All that it holds stays as it is.
   */
  extend(tx: Transaction): void {
    assert(this.#lockMore(tx), "what a commit adds to a prepared transaction nobody else writes");
  }

  /** Locks what is written and not locked yet. False if somebody is in the way. */
  #lockMore(tx: Transaction): boolean {
    const { set } = tx;
    const { words, end } = set;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      if ((words[entry + KIND] & (WRITE | LOCKED)) !== WRITE) continue;
      const { i32 } = set.regionOf(entry);
      const word = words[entry + WORD];
      if (isNewElement(words[entry + KIND])) {
        makeHeader(i32, word, this.#installing);
        words[entry + KIND] |= LOCKED;
        continue;
      }
      const lock = Atomics.compareExchange(i32, word + LOCK, 0, this.#installing);
      if (lock === 0) words[entry + KIND] |= LOCKED;
      if (
        lock !== 0 ||
        i32[word + HEADER_VERSION_LOW] !== words[entry + VERSION_LOW] ||
        i32[word + HEADER_VERSION_HIGH] !== words[entry + VERSION_HIGH]
      ) {
        tx.metLock = lock;
        tx.metEntry = entry;
        return false;
      }
    }
    return true;
  }

  #refuse(tx: Transaction): false {
    this.release(tx);
    this.#executor.countConflict(tx);
    return false;
  }

  /** Whether what a prepared transaction has read, and does not write, is still so. */
  isPreparedValid(tx: Transaction): boolean {
    return this.#validate(tx, READ | WRITE);
  }

  /** Lets go of the locks of a prepared transaction. */
  release(tx: Transaction): void {
    const { set } = tx;
    const { words, end } = set;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      if ((words[entry + KIND] & LOCKED) === 0) continue;
      words[entry + KIND] &= ~LOCKED;
      if (isNewElement(words[entry + KIND])) continue;
      storeRelease(set.regionOf(entry).i32, words[entry + WORD] + LOCK, 0);
    }
  }

  /**
   * Makes a prepared transaction true. False if the journal has no room: later, then. Snapshots of the cluster see
   * it from `tx.visibleFrom` on, if that is set; the epoch has come so far.
   */
  commitPrepared(tx: Transaction): boolean {
    const { set } = tx;
    const writes = this.#sortWrites(set);
    const executor = this.#executor;
    for (let i = 0; i < writes; i++) {
      assert((set.words[this.#order[i] + KIND] & LOCKED) !== 0, "what is prepared is locked");
    }
    if (writes === 0) return true;
    if (!executor.journal.write(set, this.#order, writes)) return false;
    storeRelease(this.#control, this.#statusAt, INTENT);
    for (;;) {
      const epochLow = this.#announce();
      if (this.#pass(tx, writes, this.#epochHigh, epochLow)) break;
      executor.epochs.advance();
    }
    this.#conclude(tx, writes);
    return true;
  }

  /** The epoch that must be durable before what a committed transaction saw and did is. */
  epochOf(tx: Transaction): number {
    if (tx.set.writes > 0) return epochOf(this.#lastHigh, this.#lastLow);
    // What a snapshot's reader sees is not all in its read set.
    if (tx.snapshot !== undefined) return tx.snapshot.epoch;
    const { words, end } = tx.set;
    let epoch = 0;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      if ((words[entry + KIND] & READ) === 0) continue;
      epoch = Math.max(epoch, epochOf(words[entry + VERSION_HIGH], words[entry + VERSION_LOW]));
    }
    return epoch;
  }

  /** The epoch of this executor's last commit; 0 if it has made none. */
  get lastEpoch(): number {
    return epochOf(this.#lastHigh, this.#lastLow);
  }

  /** Whether the slot's last commit was cut short in the middle, by an overflowing stack. */
  get isCutShort(): boolean {
    return this.#control[this.#statusAt] !== IDLE;
  }

  /** Whether all that a transaction has read is still so; nothing is locked, so writes count too. */
  isValid(tx: Transaction): boolean {
    return this.#validate(tx, READ);
  }

  /** One object's consistent read needs no validation: it was true when it was read. */
  #commitReadOnly(tx: Transaction): boolean {
    const { words, end } = tx.set;
    let reads = 0;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) reads += words[entry + KIND] & READ;
    if (reads > 1 && !this.#validate(tx, READ)) return false;
    this.#executor.counters[this.#executor.counterBase + READ_ONLY_COMMITS]++;
    return true;
  }

  /** Address and place of an entry as one number: numbers are sorted without a call for each pair. */
  #sortByKeys(words: Int32Array, writes: number): void {
    const order = this.#order;
    const keys = this.#sortKeys;
    for (let i = 0; i < writes; i++) {
      const entry = order[i];
      const address = words[entry + REGION_ID] * WORDS_OF_ADDRESS + words[entry + WORD];
      keys[i] = address * KEYED_SORT_LIMIT + i;
    }
    const sorted = keys.subarray(0, writes).sort();
    const unsorted = this.#unsorted;
    for (let i = 0; i < writes; i++) unsorted[i] = order[i];
    for (let i = 0; i < writes; i++) order[i] = unsorted[sorted[i] % KEYED_SORT_LIMIT];
  }

  /** The same for so many that address and place do not fit one number: the set knows the places. */
  #sortByAddresses(set: AccessSet, writes: number): void {
    const { words } = set;
    const order = this.#order;
    if (this.#sortKeys.length < writes) this.#sortKeys = new Float64Array(this.#order.length);
    const keys = this.#sortKeys;
    for (let i = 0; i < writes; i++) {
      keys[i] = words[order[i] + REGION_ID] * WORDS_OF_ADDRESS + words[order[i] + WORD];
    }
    keys.subarray(0, writes).sort();
    for (let i = 0; i < writes; i++) {
      const word = keys[i] % WORDS_OF_ADDRESS;
      order[i] = set.find((keys[i] - word) / WORDS_OF_ADDRESS, word);
    }
  }

  /** The entries that are written, in address order. */
  #sortWrites(set: AccessSet): number {
    if (this.#order.length < set.writes) this.#order = new Int32Array(2 * set.writes);
    const writes = collectWrites(set, this.#order);
    assert(writes === set.writes, "the writes of a set are counted");
    if (writes <= INSERTION_SORT_LIMIT) sortByInsertion(set.words, this.#order, writes);
    else if (writes <= KEYED_SORT_LIMIT) this.#sortByKeys(set.words, writes);
    else this.#sortByAddresses(set, writes);
    return writes;
  }

  #lock(tx: Transaction, writes: number): boolean {
    const { set } = tx;
    const { words } = set;
    const order = this.#order;
    for (let i = 0; i < writes; i++) {
      const entry = order[i];
      const { i32 } = set.regionOf(entry);
      const word = words[entry + WORD];
      if (isNewElement(words[entry + KIND])) {
        makeHeader(i32, word, this.#prepared);
        continue;
      }
      const lock = Atomics.compareExchange(i32, word + LOCK, 0, this.#prepared);
      if (lock !== 0) {
        tx.metLock = lock;
        tx.metEntry = entry;
        this.#unlock(set, i);
        return false;
      }
      if (
        i32[word + HEADER_VERSION_LOW] !== words[entry + VERSION_LOW] ||
        i32[word + HEADER_VERSION_HIGH] !== words[entry + VERSION_HIGH]
      ) {
        tx.metEntry = entry;
        this.#unlock(set, i + 1);
        return false;
      }
    }
    for (let i = 0; i < writes; i++) {
      const entry = order[i];
      storeRelease(set.regionOf(entry).i32, words[entry + WORD] + LOCK, this.#installing);
    }
    return true;
  }

  #unlock(set: AccessSet, count: number): void {
    for (let i = 0; i < count; i++) {
      const entry = this.#order[i];
      if (isNewElement(set.words[entry + KIND])) continue;
      storeRelease(set.regionOf(entry).i32, set.wordOf(entry) + LOCK, 0);
    }
    storeRelease(this.#control, this.#statusAt, IDLE);
  }

  #announce(): number {
    const { epochs } = this.#executor;
    for (let low = epochs.low(); ; ) {
      // The one store that everybody must see before the next load: the locks' too, with it.
      Atomics.store(this.#control, this.#statusAt, announcement(low, COMMITTING));
      // Between two equal low words, so that both words are of one epoch.
      this.#epochHigh = epochs.high();
      const again = epochs.low();
      if (again === low) return low;
      low = again;
    }
  }

  /** Checks the entries of which, among the kinds in `mask`, only READ is set. */
  #validate(tx: Transaction, mask: number): boolean {
    const { set } = tx;
    const { words, end } = set;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      if ((words[entry + KIND] & mask) !== READ) continue;
      const { i32 } = set.regionOf(entry);
      const word = words[entry + WORD];
      const lock = loadAcquire(i32, word + LOCK);
      if (
        lock !== 0 ||
        i32[word + HEADER_VERSION_LOW] !== words[entry + VERSION_LOW] ||
        i32[word + HEADER_VERSION_HIGH] !== words[entry + VERSION_HIGH]
      ) {
        // It has no header before the commit.
        if (isNewElement(words[entry + KIND])) continue;
        tx.metLock = lock;
        tx.metEntry = entry;
        return false;
      }
    }
    return true;
  }

  /** False if the sequence of this epoch has run out. */
  #chooseTid(set: AccessSet, epochHigh: number, epochLow: number): boolean {
    const { words, end } = set;
    let high = this.#lastHigh;
    let low = this.#lastLow;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      if ((words[entry + KIND] & READ) === 0) continue;
      if (isLater(words[entry + VERSION_HIGH], words[entry + VERSION_LOW], high, low)) {
        high = words[entry + VERSION_HIGH];
        low = words[entry + VERSION_LOW];
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
    const { words } = set;
    for (let i = 0; i < writes; i++) {
      const entry = this.#order[i];
      const { i32 } = set.regionOf(entry);
      const word = words[entry + WORD];
      if ((words[entry + KIND] & SPLICED) !== 0) {
        applySplice(set, words[entry + EDITS], i32, word + HEADER_WORDS);
      } else {
        const from = words[entry + DIRTY_FROM];
        const changed = words[entry + DIRTY_TO] - from;
        const target = word + HEADER_WORDS + from;
        if (changed > 0) copyWords(arena, words[entry + BUFFER] + from, i32, target, changed);
      }
      i32[word + HEADER_INCARNATION] = words[entry + INCARNATION];
      storeVersion(i32, word, this.#lastHigh, this.#lastLow);
      storeRelease(i32, word + LOCK, 0);
    }
  }

  /** Tells the allocator what has become of the cells of a committed transaction. */
  reportCells(tx: Transaction): void {
    if (!tx.allocated) return;
    // First, so that nothing that is thrown below makes `clear` return cells that are in use.
    tx.allocated = false;
    const { words, end } = tx.set;
    const { slabs, counters, counterBase } = this.#executor;
    for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
      const kind = words[entry + KIND];
      if ((kind & CELL) === 0) continue;
      const address = tx.addressOf(entry);
      if ((kind & NEW) !== 0) {
        slabs.committed(address);
        counters[counterBase + ALLOCATIONS]++;
      }
      if ((kind & FREE) !== 0) {
        slabs.freed(address, (words[entry + INCARNATION] & ARRAY) !== 0);
        counters[counterBase + FREES]++;
      }
    }
  }
}

/** An element of an array that the transaction allocates. */
function isNewElement(kind: number): boolean {
  return (kind & (NEW | CELL)) === NEW;
}

/**
 * Makes a locked header of the words of a free cell, where the element of a new array will be. The
 * array's cell comes before its elements and is locked, so nobody else writes to its words, and until
 * it is allocated nobody takes them for a header. So they are not unlocked if the commit fails: when
 * the cell is unlocked, others may use it.
 */
function makeHeader(i32: Int32Array, word: number, lock: number): void {
  i32[word + HEADER_VERSION_HIGH] = 0;
  i32[word + HEADER_VERSION_LOW] = 0;
  storeRelease(i32, word + LOCK, lock);
}

/*
 * Two loops, two functions. V8 optimizes a long loop while it runs, during a large transaction, with what it knows then
 * of the rest of the function; and it keeps this code though the rest turns out to be otherwise. With both loops in one
 * function, small transactions entered that code in the first loop and were deoptimized in the second, over and over.
 */

function collectWrites({ words, end }: AccessSet, order: Int32Array): number {
  let writes = 0;
  for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
    if ((words[entry + KIND] & WRITE) !== 0) order[writes++] = entry;
  }
  return writes;
}

function sortByInsertion(words: Int32Array, order: Int32Array, writes: number): void {
  for (let i = 1; i < writes; i++) {
    const entry = order[i];
    let j = i - 1;
    for (; j >= 0 && isBelow(words, entry, order[j]); j--) order[j + 1] = order[j];
    order[j + 1] = entry;
  }
}

function isBelow(words: Int32Array, a: number, b: number): boolean {
  const byRegion = words[a + REGION_ID] - words[b + REGION_ID];
  return byRegion !== 0 ? byRegion < 0 : words[a + WORD] < words[b + WORD];
}
