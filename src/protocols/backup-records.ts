/**
 * The records of a backup: the side of a transaction that keeps copies. A record is kept in the node's own
 * store before LOG is answered, so that it survives what the store survives. It is applied when the coordinator
 * says that the transaction is committed, and dropped when it says that it is aborted; until then it stays,
 * whatever else the coordinator has to say. Records that write the same rows are applied in the order of their
 * arrival (row-order.ts); a duplicate keeps the place of the first.
 *
 * TRUNCATE is answered when all that it names is applied, or gone. So a coordinator forgets a transaction only
 * when no record of it is left that another life of this node could find.
 */

import type { Executor } from "../engine/executor.ts";
import { isSignal } from "../engine/signals.ts";
import { Transaction } from "../engine/transaction.ts";
import type { Clock, ConfigurationId } from "../fabric/fabric.ts";
import { type Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";
import { APPLY_BATCH, APPLY_RETRY_MS, MAX_ALL_LOGGED, MAX_LOGGED } from "../runtime/limits.ts";
import type { RecordLog, ServedTable, ServedTables } from "../tables/served/contract.ts";
import { partitionAt, type WriteRequest } from "../tables/served/requests.ts";
import { ABORTED, COMMITTED, type Ended, Name, UnderWay } from "./names.ts";
import { maintainTables } from "./participant.ts";
import { AT_BACKUP, Head, RecordReader, recordOf, skipHead } from "./records.ts";
import { Ordered, RowOrder } from "./row-order.ts";
import { encodeWrites, writesIn } from "./writes.ts";

/** Writes of a record that are applied at once if all of them are too many, at first. */
const FIRST_PIECE = 1024;
const NO_WRITES: Int32Array = new Int32Array(0);

/** A record, and what is known of its transaction. */
export class Logged extends Ordered {
  readonly name: Name;
  readonly arrival: number;
  record: Int32Array;
  /** What its coordinator has decided, if it has. */
  decision: Ended | undefined;
  /** It is not this node's any more, and keeps nothing but its place in the order. */
  isForgotten = false;
  /** Those who wait to hear that it is done. */
  untold: Told[] | undefined;

  constructor(name: Name, arrival: number, record: Int32Array, rows: readonly number[]) {
    super(rows);
    this.name = name;
    this.arrival = arrival;
    this.record = record;
  }
}

/** Who is told once some records are done. */
export class Told {
  left = 0;
  done: (() => void) | undefined;

  end(): void {
    if (--this.left === 0) this.done?.();
  }
}

export class BackupRecords {
  readonly #executor: Executor;
  readonly tables: ServedTables;
  readonly #log: RecordLog;
  readonly #clock: Clock;
  readonly #tx: Transaction;
  /** The name in the message that is being served. */
  readonly name = new Name();
  /** Told of each record that is applied. */
  committed: ((record: Int32Array) => void) | undefined;
  readonly #reader = new RecordReader();
  readonly #underWay = new UnderWay<Logged>();
  readonly #order = new RowOrder<Logged>();
  /** Committed, and waiting for nobody. */
  readonly #ready: Logged[] = [];
  #logged = 0;
  #arrivals = 0;
  /** How many records are applied at once. */
  #batch = APPLY_BATCH;
  /** Of a record that is more than a journal holds: writes that are applied at once, and that are. */
  #piece = Number.POSITIVE_INFINITY;
  #applied = 0;
  #isWaiting = false;
  #isClosed = false;
  /** Told of each write just before it is applied, perhaps more than once. */
  applying: ((request: WriteRequest) => void) | undefined;

  constructor(executor: Executor, tables: ServedTables, log: RecordLog, clock: Clock) {
    this.#executor = executor;
    this.tables = tables;
    this.#log = log;
    this.#clock = clock;
    this.#tx = new Transaction(executor);
    for (const { arrival, record } of log.all()) {
      const body = this.#reader.open(record);
      skipHead(body, this.name);
      const rows: number[] = [];
      for (const request of writesIn(body)) rows.push(tables.byId(request.table).check(request));
      this.#remember(arrival, record, this.name, rows);
    }
  }

  /**
   * What earlier lives of coordinators have left is recovered (names.ts). What earlier lives of this node have applied is
   * remembered, as far as the store shows it.
   */
  rememberLives(): void {
    this.#underWay.remembersLives = true;
    for (const record of this.installed()) {
      const name = new Name();
      skipHead(this.#reader.open(record), name);
      name.low = 0;
      this.#underWay.end(name, COMMITTED);
    }
  }

  /** Records that it has applied last, as far as the store shows it. */
  installed(): Int32Array[] {
    return this.#log.installed();
  }

  /** Records that are not applied yet. */
  get logged(): number {
    return this.#logged;
  }

  /** What is not applied stays in the log. */
  close(): void {
    this.#isClosed = true;
  }

  /** Transactions whose records are here. */
  records(): IterableIterator<Logged> {
    return this.#underWay.states();
  }

  /** The record of a transaction. */
  find(name: Name): Logged | undefined {
    return this.#underWay.find(name);
  }

  /** Puts another record in the place of one, which writes these rows, too. */
  extend(logged: Logged, record: Int32Array, rows: readonly number[]): void {
    try {
      this.#log.replace(logged.arrival >>> 0, logged.record, record);
    } catch (error) {
      throw asOverload(error);
    }
    logged.record = record;
    this.#order.addRows(logged, rows);
  }

  /** Whether what is known to be committed is not applied yet, in a partition. */
  isBehind(partition: number): boolean {
    for (const { record, decision } of this.#underWay.states()) {
      if (decision !== COMMITTED) continue;
      const body = this.#reader.open(record);
      skipHead(body, this.name);
      for (const request of writesIn(body)) if (request.partition === partition) return true;
    }
    return false;
  }

  /**
   * Forgets what transactions of earlier configurations write to partitions that this node has not, or begins
   * to copy anew: nobody will say here how they ended, or others have gone on without this node.
   */
  forget(before: ConfigurationId, isForgotten: (partition: number) => boolean): void {
    for (const logged of [...this.#underWay.states()]) {
      const head = Head.decode(this.#reader.open(logged.record));
      if (logged.decision === ABORTED || head.configurationId >= before) continue;
      if (!head.partitions.some(isForgotten)) continue;
      const kept = withoutWrites(this.#reader.open(logged.record), isForgotten);
      // It may have been applied in part: it is applied again, which changes nothing.
      this.#applied = 0;
      if (kept !== undefined) this.extend(logged, kept, []);
      else this.#forget(logged);
    }
  }

  #forget(logged: Logged): void {
    this.#log.drop(logged.arrival >>> 0, logged.record);
    const ready = this.#ready.indexOf(logged);
    if (ready >= 0) this.#ready.splice(ready, 1);
    // How it ended is not known: its name goes at once, and only its place in the order stays.
    this.#underWay.drop(logged.name);
    logged.isForgotten = true;
    logged.decision = ABORTED;
    if (logged.waits === 0) this.#end(logged);
  }

  /** Those of the name's coordinator below its sequence that are in the store: decisions are not. */
  below(name: Name): [number, Logged][] {
    return this.#underWay.below(name).filter(([, { decision }]) => decision !== ABORTED);
  }

  /** How a transaction has ended here, if that is remembered. */
  endOf(name: Name): Ended | undefined {
    return this.#underWay.endOf(name);
  }

  /** Of a coordinator: sequences of what is known here to be committed, and is not under way here. */
  committedOf(coordinator: number): IterableIterator<number> {
    return this.#underWay.endedOf(coordinator, COMMITTED);
  }

  /** Whether the record of a transaction is kept: then this is a duplicate. Takes note of the low. */
  isKept(name: Name): boolean {
    return this.#underWay.find(name) !== undefined;
  }

  /** Whether it is over here, or must not begin any more: the message comes late. */
  isOver(name: Name): boolean {
    return this.#underWay.isOver(name);
  }

  /** Keeps a record in the store, behind all that have arrived before it and write the same rows. */
  keep(name: Name, record: Int32Array, rows: readonly number[]): void {
    const arrival = this.#arrivals;
    try {
      this.#log.append(arrival >>> 0, record);
    } catch (error) {
      throw asOverload(error);
    }
    this.#remember(arrival, record, name, rows);
  }

  /** Fails if too much is waiting. Records are always taken: new transactions are not. */
  refuseIfBehind(coordinator: number): void {
    if (this.#logged < MAX_LOGGED) return;
    if (this.#logged < MAX_ALL_LOGGED && this.#underWay.count(coordinator) < MAX_LOGGED) return;
    throw new SituError("SITU_OVERLOADED", `${this.#logged} records wait to be applied here`);
  }

  #remember(
    arrival: number,
    record: Int32Array,
    { coordinator, sequence }: Name,
    rows: readonly number[],
  ): void {
    // In their order, so the last one counts: numbers go round in a circle in the log.
    this.#arrivals = arrival + 1;
    const name = new Name();
    name.coordinator = coordinator;
    name.sequence = sequence;
    const logged = new Logged(name, arrival, record, rows);
    this.#underWay.begin(name, logged);
    this.#order.add(logged);
    this.#logged++;
  }

  /** The transaction is committed at its primaries: its record can be applied. */
  commit(name: Name, told: Told): void {
    const logged = this.#underWay.find(name);
    if (logged === undefined) {
      if (!this.#underWay.isOver(name)) this.#underWay.end(name, COMMITTED);
      return;
    }
    tellLater(logged, told);
    if (logged.decision !== undefined) return;
    logged.decision = COMMITTED;
    if (logged.waits === 0) this.#ready.push(logged);
  }

  /**
   * Keeps that a transaction is committed which this node has not heard of, and that has written rows which it copies: as
   * what is left of a record that was applied (record-slots.ts), for its next life to find.
   */
  keepCommitted(head: Head): void {
    const out = new Writer();
    head.encode(out);
    encodeWrites(out, NO_WRITES, 0);
    this.keep(head.name, recordOf(AT_BACKUP, { views: out.views }, 0, out.at), []);
    this.commit(head.name, new Told());
    this.apply();
  }

  /** The transaction is aborted: its record goes, and one that comes late is refused. */
  abort(name: Name, told: Told): void {
    const logged = this.#underWay.find(name);
    if (logged === undefined) {
      if (!this.#underWay.isOver(name)) this.#underWay.end(name, ABORTED);
      return;
    }
    if (logged.decision === undefined) {
      this.#log.drop(logged.arrival >>> 0, logged.record);
      logged.decision = ABORTED;
    }
    tellLater(logged, told);
    // Those behind it must not overtake those before it: it keeps its place until they are done.
    if (logged.waits === 0) this.#end(logged);
  }

  /** Drops the record of a transaction as if it had never come: how that ended is for others to say. */
  discard(name: Name): void {
    this.abort(name, new Told());
    this.#underWay.forgetEnd(name);
  }

  /** Takes note of the name's `low`. */
  noteLow(name: Name): void {
    this.#underWay.find(name);
  }

  /** Applies what it can. */
  apply(): void {
    if (this.#isWaiting || this.#isClosed) return;
    while (this.#ready.length > 0) {
      const count = Math.min(this.#ready.length, this.#batch);
      if (!this.#applyFirst(count)) {
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
      for (const logged of this.#ready.splice(0, count)) this.#end(logged);
    }
  }

  /** A record is applied or dropped, and waits for nobody. */
  #end(logged: Logged): void {
    this.#logged--;
    if (logged.decision === COMMITTED) this.committed?.(logged.record);
    if (!logged.isForgotten) this.#underWay.end(logged.name, logged.decision!);
    let dropped: Logged[] | undefined;
    for (const next of this.#order.done(logged)) {
      if (next.decision === COMMITTED) this.#ready.push(next);
      else if (next.decision === ABORTED) {
        dropped ??= [];
        dropped.push(next);
      }
    }
    const { untold } = logged;
    logged.untold = undefined;
    if (untold !== undefined) for (const told of untold) told.end();
    if (dropped !== undefined) for (const next of dropped) this.#end(next);
  }

  /** Some records as one local transaction; false if something there is locked, or has no room. */
  #applyFirst(count: number): boolean {
    const tx = this.#tx;
    const executor = this.#executor;
    const touched = new Set<ServedTable>();
    const entered = executor.enter();
    let exhausted = -1;
    let applied = 0;
    try {
      for (let i = 0; i < count; i++) applied = this.#applyRecord(tx, this.#ready[i], touched);
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
      if (exhausted >= 0) executor.tryReclaim(exhausted);
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
      this.applying?.(request);
      served.write(tx, request);
    }
    this.#log.remove(tx, arrival >>> 0, record);
    return 0;
  }
}

/** A record without its writes to some partitions; undefined if none are left. */
function withoutWrites(
  body: Reader,
  isForgotten: (partition: number) => boolean,
): Int32Array | undefined {
  const head = Head.decode(body);
  const out = new Writer();
  const list = new Writer();
  let count = 0;
  body.word();
  const words = body.word();
  body.align();
  const { i32 } = body.views;
  const end = body.at + words;
  for (let at = body.at; at < end; at += i32[at]) {
    if (isForgotten(partitionAt(i32, at))) continue;
    list.words(i32, at, i32[at]);
    count++;
  }
  if (count === 0) return undefined;
  head.encode(out);
  encodeWrites(out, list.views.i32.slice(0, list.at), count);
  return recordOf(AT_BACKUP, { views: out.views }, 0, out.at);
}

/** Whoever asked will ask again. */
function asOverload(error: unknown): unknown {
  if (!(error instanceof SituError)) return error;
  return new SituError("SITU_OVERLOADED", `a backup has no room: ${error.message}`, {
    cause: error,
  });
}

function tellLater(logged: Logged, told: Told): void {
  told.left++;
  logged.untold ??= [];
  logged.untold.push(told);
}

function isTooLarge(error: unknown): boolean {
  return error instanceof SituError && error.code === "SITU_TOO_LARGE";
}
