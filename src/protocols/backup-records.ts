/**
 * The records of a backup: the side of a transaction that keeps copies. A record is kept in the node's own store when it
 * arrives, so that it survives what the store survives, and applied when the coordinator says that
 * the transaction is committed.
 *
 * Records are applied in the order of their arrival. That is the order of the primaries: whoever
 * locks a row at its primary after T has been unlocked there sends his record after T's was
 * acknowledged here. A duplicate keeps the place of the first.
 */

import type { Executor } from "../engine/executor.ts";
import { isSignal } from "../engine/signals.ts";
import { Transaction } from "../engine/transaction.ts";
import type { Clock } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import { APPLY_BATCH, APPLY_RETRY_MS, MAX_LOGGED } from "../runtime/limits.ts";
import type { BackupLog, ServedTable, ServedTables } from "../tables/served/contract.ts";
import { Name, UnderWay } from "./names.ts";
import { maintainTables } from "./participant.ts";
import { RecordReader, skipHead } from "./records.ts";
import { writesIn } from "./writes.ts";

/** Writes of a record that are applied at once if all of them are too many, at first. */
const FIRST_PIECE = 1024;

interface Logged {
  readonly name: Name;
  readonly arrival: number;
  readonly record: Int32Array;
  isCommitted: boolean;
}

export class BackupRecords {
  readonly #executor: Executor;
  readonly tables: ServedTables;
  readonly #log: BackupLog;
  readonly #clock: Clock;
  readonly #tx: Transaction;
  /** The name in the message that is being served. */
  readonly name = new Name();
  readonly #reader = new RecordReader();
  readonly #underWay = new UnderWay<Logged>();
  /** In the order of arrival. */
  readonly #queue: Logged[] = [];
  #first = 0;
  #arrivals = 0;
  /** How many records are applied at once. */
  #batch = APPLY_BATCH;
  /** Of a record that is more than a journal holds: writes that are applied at once, and that are. */
  #piece = Number.POSITIVE_INFINITY;
  #applied = 0;
  #isWaiting = false;
  #isClosed = false;

  constructor(executor: Executor, tables: ServedTables, log: BackupLog, clock: Clock) {
    this.#executor = executor;
    this.tables = tables;
    this.#log = log;
    this.#clock = clock;
    this.#tx = new Transaction(executor);
    for (const { arrival, record } of log.all()) {
      this.#remember(arrival, record, skipHead(this.#reader.open(record), this.name));
    }
  }

  /** Records that are not applied yet. */
  get logged(): number {
    return this.#queue.length - this.#first;
  }

  /** What is not applied stays in the log. */
  close(): void {
    this.#isClosed = true;
  }

  /** Whether the record of a transaction is kept, or was applied: then this is a duplicate. */
  isKnown(name: Name): boolean {
    return this.#underWay.find(name) !== undefined || this.#underWay.isOver(name);
  }

  /** Keeps a record in the store, behind all that have arrived before it. */
  keep(name: Name, record: Int32Array): void {
    const arrival = this.#arrivals;
    this.#append(arrival, record);
    this.#remember(arrival, record, name);
  }

  /** Whoever asked will ask again: a coordinator that has come so far cannot go back. */
  #append(arrival: number, record: Int32Array): void {
    try {
      this.#log.append(arrival >>> 0, record);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      throw new SituError("SITU_OVERLOADED", `a backup has no room: ${error.message}`, {
        cause: error,
      });
    }
  }

  /** Fails if too much is waiting. Records are always taken: new transactions are not. */
  refuseIfBehind(): void {
    if (this.logged < MAX_LOGGED) return;
    throw new SituError("SITU_OVERLOADED", `${MAX_LOGGED} records wait to be applied here`);
  }

  #remember(arrival: number, record: Int32Array, { coordinator, sequence }: Name): void {
    // In their order, so the last one counts: numbers go round in a circle in the log.
    this.#arrivals = arrival + 1;
    const name = new Name();
    name.coordinator = coordinator;
    name.sequence = sequence;
    const logged = { name, arrival, record, isCommitted: false };
    this.#underWay.begin(name, logged);
    this.#queue.push(logged);
  }

  /** The transaction is committed at its primaries: its record can be applied. */
  markCommitted(name: Name): void {
    const logged = this.#underWay.find(name);
    if (logged !== undefined) logged.isCommitted = true;
  }

  /** Takes note of the name's `low`. */
  noteLow(name: Name): void {
    this.#underWay.find(name);
  }

  /** Only what another life has left is ready without having been truncated. */
  applyLeftOvers(): void {
    const first = this.#queue[this.#first];
    if (first !== undefined && this.#underWay.isThrough(first.name)) this.apply();
  }

  /**
   * Whether a record can be applied. Coordinators say so with TRUNCATE. One that is in another life by
   * now, or was told by an earlier life of this node that it knows, will not say it again. But its
   * `low` says that it is through with the transaction, and none goes back after LOG.
   */
  #isReady({ isCommitted, name }: Logged): boolean {
    return isCommitted || this.#underWay.isThrough(name);
  }

  /** Applies what it can, from the first record on. */
  apply(): void {
    if (this.#isWaiting || this.#isClosed) return;
    while (this.#first < this.#queue.length && this.#isReady(this.#queue[this.#first])) {
      let end = this.#first + 1;
      const most = Math.min(this.#queue.length, this.#first + this.#batch);
      while (end < most && this.#isReady(this.#queue[end])) end++;
      if (!this.#applyUpTo(end)) {
        this.#isWaiting = true;
        this.#clock.after(APPLY_RETRY_MS, () => {
          this.#isWaiting = false;
          this.apply();
        });
        return;
      }
      if (this.#applied > 0) continue;
      this.#batch = APPLY_BATCH;
      this.#piece = Number.POSITIVE_INFINITY;
      for (; this.#first < end; this.#first++) this.#underWay.end(this.#queue[this.#first].name);
    }
    if (this.#first > 1024 && 2 * this.#first > this.#queue.length) {
      this.#queue.splice(0, this.#first);
      this.#first = 0;
    }
  }

  /** Some records as one local transaction; false if something there is locked, or has no room. */
  #applyUpTo(end: number): boolean {
    const tx = this.#tx;
    const executor = this.#executor;
    const touched = new Set<ServedTable>();
    const entered = executor.enter();
    let exhausted = -1;
    let applied = 0;
    try {
      for (let i = this.#first; i < end; i++) {
        applied = this.#applyRecord(tx, this.#queue[i], touched);
      }
      if (!executor.commit(tx)) return false;
      this.#applied = applied;
    } catch (error) {
      if (!isSignal(error)) {
        // Together they may be more than a journal holds; so may one be that several primaries share.
        if (!isTooLarge(error) || this.#piece === 1) throw error;
        if (this.#batch > 1) this.#batch = 1;
        else this.#piece = this.#piece > FIRST_PIECE ? FIRST_PIECE : this.#piece >> 1;
        return false;
      }
      if (tx.exhausted) exhausted = tx.exhaustedClass;
      return false;
    } finally {
      tx.clear();
      executor.leave(entered);
      if (exhausted >= 0) executor.reclaim(exhausted);
    }
    maintainTables(touched);
    return true;
  }

  /**
   * Applies a record, or the next piece of it; how many of its writes are applied then, 0 if all are. In
   * pieces it is not atomic, which nobody sees: the record stays in the log until the last one.
   */
  #applyRecord(tx: Transaction, { arrival, record }: Logged, touched: Set<ServedTable>): number {
    const body = this.#reader.open(record);
    skipHead(body, this.name);
    const last = this.#applied + this.#piece;
    let index = 0;
    for (const request of writesIn(body)) {
      if (index++ < this.#applied) continue;
      if (index > last) return last;
      const served = this.tables.byId(request.table);
      touched.add(served);
      served.write(tx, request);
    }
    this.#log.remove(tx, arrival >>> 0, record);
    return 0;
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof SituError && error.code === "SITU_TOO_LARGE";
}
