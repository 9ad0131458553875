/**
 * The side of a transaction that has the data: the primary. It serves the messages of coordinators
 * against the local store, in one thread of the node. What it holds between two messages are
 * *prepared* transactions: executed and locked in an engine transaction each (engine/prepared.ts).
 *
 * Every message can come twice, and late:
 *
 *   LOCK, or a READ that locks, again   the answer it got the first time (`round` tells which one)
 *   any after the end                   "over": nothing is begun anew (names.ts)
 *   COMMIT or ABORT again               done already: the same answer
 *   ABORT before LOCK                   the LOCK will find that it is over
 *
 * What LOCK asks for is kept as a record in the node's own store (records.ts) before it is answered. The
 * engine transaction that installs it removes the record, so a record that is there is not installed, and one
 * that is not there was. The next life of the node finds what an earlier one has left, and locks its rows
 * again before it serves anybody (`takeUp`).
 */

import type { Epoch } from "../engine/epoch.ts";
import type { Executor } from "../engine/executor.ts";
import { isSignal } from "../engine/signals.ts";
import { Transaction } from "../engine/transaction.ts";
import type { Clock, Incoming, NodeId } from "../fabric/fabric.ts";
import { type Reader, Writer } from "../fabric/wire.ts";
import { passOver } from "../runtime/background-errors.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_EPOCH_GAP, MAX_PREPARED } from "../runtime/limits.ts";
import type { RecordLog, ServedTable, ServedTables } from "../tables/served/contract.ts";
import type { CurrentView } from "./cluster-view.ts";
import { type Disk, replyWhenKept } from "./disk.ts";
import { LOCKED, OK, OVER } from "./message.ts";
import { ABORTED, COMMITTED, type Ended, Name, UnderWay } from "./names.ts";
import { RecordReader, skipHead } from "./records.ts";
import { ServedSnapshots } from "./served-snapshots.ts";
import { writesIn } from "./writes.ts";

const NOTHING: Int32Array = new Int32Array(0);
/** The round of one that is taken up: no later one can follow. */
const LAST_ROUND = 0x7fffffff;
/** The locks of a dead life are let go when they are met. */
const TAKE_UP_ATTEMPTS = 10;

/** A transaction that is locked here and whose outcome is not known yet. */
export class Prepared {
  readonly tx: Transaction;
  entered = 0;
  /** What it writes to. */
  readonly tables = new Set<ServedTable>();
  /** The last round that was served, and its answer, for duplicates. */
  round = 0;
  answer = NOTHING;
  /** Its record in the store, if it has one. */
  record = NOTHING;
  arrival = 0;
  /** Whether the transaction removes the record. */
  isInstalling = false;
  /** From an earlier life: what it had read there is not known any more. */
  isTakenUp = false;

  constructor(executor: Executor) {
    this.tx = new Transaction(executor);
  }
}

/** What has been committed stays so, whatever becomes of the work that it has left. */
export function maintainTables(tables: Iterable<ServedTable>): void {
  try {
    for (const table of tables) table.maintain();
  } catch (error) {
    passOver(error, "maintaining a table after a commit");
  }
}

export interface Blocked {
  isBlocked(partition: number): boolean;
  readonly hasBlocked: boolean;
}

/** Kept for the next transaction; further ones are made when needed. */
const MAX_IDLE = 256;

export interface ParticipantOptions {
  readonly executor: Executor;
  readonly tables: ServedTables;
  readonly view: CurrentView;
  readonly clock: Clock;
  /** Where this thread keeps what it has locked for others. */
  readonly log: RecordLog;
  readonly disk: Disk;
}

export class Participant {
  readonly executor: Executor;
  readonly tables: ServedTables;
  readonly view: CurrentView;
  readonly clock: Clock;
  /** For reads. */
  readonly reader: Transaction;
  readonly rows = new Writer();
  readonly disk: Disk;
  readonly underWay = new UnderWay<Prepared>();
  readonly snapshots: ServedSnapshots;
  /** The name in the message that is being served. */
  readonly name = new Name();
  /** Told of the record of each transaction that is installed here. */
  committed: ((record: Int32Array) => void) | undefined;
  /** Partitions that this node has become the primary of, and that are not recovered yet. */
  blocked: Blocked | undefined;
  readonly #records = new RecordReader();
  readonly #idle: Prepared[] = [];
  readonly #log: RecordLog;
  /** Of threads that had the node's locks in earlier lives. */
  #others: readonly RecordLog[] = [];
  #arrivals = 0;
  #prepared = 0;
  readonly #answer = new Writer();

  constructor(options: ParticipantOptions) {
    const { executor, tables, view, clock, log, disk } = options;
    this.clock = clock;
    this.executor = executor;
    this.tables = tables;
    this.view = view;
    this.disk = disk;
    this.#log = log;
    this.reader = new Transaction(executor);
    this.snapshots = new ServedSnapshots(executor, clock, this);
    // The lock that a read meets may be held by a transaction of this thread.
    executor.isPatient = false;
  }

  /** Transactions that hold locks here. */
  get prepared(): number {
    return this.#prepared;
  }

  checkPrimary(partition: number): void {
    const { placement, self } = this.view.current;
    if (partition < 0 || partition >= placement.partitions) {
      throw new SituError("SITU_PROTOCOL", `there is no partition ${partition}`);
    }
    if (placement.primaryOf(partition) === self) {
      if (this.blocked?.isBlocked(partition)) throw notYet(self);
      return;
    }
    throw new SituError(
      "SITU_STALE_CONFIGURATION",
      `node ${self} is not the primary of partition ${partition}: the sender has another configuration`,
    );
  }

  /** For what may concern any partition, and finds nothing where a row is about to be. */
  checkWhole(): void {
    if (this.blocked?.hasBlocked) throw notYet(this.view.current.self);
  }

  /** Begins or goes on with a transaction; undefined if the message was answered already. */
  begin(incoming: Incoming, name: Name, round: number): Prepared | undefined {
    const found = this.underWay.find(name);
    if (found !== undefined) {
      if (round > found.round) return found;
      replyWhenKept(this.disk, incoming, found.answer);
      return undefined;
    }
    // What it has locked in earlier rounds is lost: it was locked by another life of this node.
    if (round > 1 || this.underWay.isOver(name)) {
      incoming.reply().word(OVER);
      return undefined;
    }
    if (this.#prepared >= MAX_PREPARED) {
      throw new SituError(
        "SITU_OVERLOADED",
        `node ${this.view.current.self} has ${MAX_PREPARED} transactions under way, which is the most`,
      );
    }
    return this.#begin(name);
  }

  #begin(name: Name): Prepared {
    const prepared = this.#idle.pop() ?? new Prepared(this.executor);
    prepared.round = 0;
    prepared.entered = this.executor.enter();
    this.#prepared++;
    this.underWay.begin(name, prepared);
    return prepared;
  }

  answered(prepared: Prepared, round: number, out: Writer, start: number): void {
    prepared.round = round;
    prepared.answer = out.views.i32.slice(start, out.at);
  }

  /** The answer to a LOCK that is granted. */
  locked(prepared: Prepared, round: number): Int32Array {
    const out = this.#answer;
    const { tx } = prepared;
    out.clear();
    out.word(OK);
    out.word(prepared.isTakenUp || tx.set.count > tx.set.writes ? 1 : 0);
    out.wide(tx.bound);
    this.answered(prepared, round, out, 0);
    return prepared.answer;
  }

  /** Executes writes, which may be garbage. */
  write({ tx, tables }: Prepared, body: Reader, isChecked = true): void {
    for (const request of writesIn(body)) {
      const served = this.tables.byId(request.table);
      if (isChecked) this.checkPrimary(request.partition);
      tables.add(served);
      served.write(tx, request);
    }
  }

  /**
   * Locks and validates what a transaction has come to so far. False if somebody is in the way, or if the clock has
   * jumped since it began: it would then keep the clock from moving as far as its commit may need.
   */
  prepare({ tx, entered }: Prepared): boolean {
    if (!this.executor.committer.prepare(tx)) return false;
    return ((tx.bound - entered) | 0) <= MAX_EPOCH_GAP;
  }

  /** Keeps the record of what is locked. */
  keep(prepared: Prepared, record: Int32Array): void {
    prepared.arrival = this.#arrivals++ >>> 0;
    this.#log.append(prepared.arrival, record);
    prepared.record = record;
  }

  /**
   * Installs what is prepared, and removes its record. False if the journal is full: later, then. Snapshots of the
   * cluster see it from an epoch on that has come; 0 if nobody remembers it.
   */
  install(prepared: Prepared, visibleFrom: Epoch = 0): boolean {
    const { committer } = this.executor;
    if (prepared.record.length > 0 && !prepared.isInstalling) {
      this.#log.remove(prepared.tx, prepared.arrival, prepared.record);
      committer.extend(prepared.tx);
      prepared.isInstalling = true;
    }
    prepared.tx.visibleFrom = visibleFrom;
    if (visibleFrom === 0 && prepared.tx.set.writes > 0) this.snapshots.releaseAll();
    return committer.commitPrepared(prepared.tx);
  }

  /** For snapshots: whether something is prepared that may become visible in this epoch or an earlier one. */
  hasBoundUpTo(epoch: Epoch): boolean {
    if (this.#prepared === 0) return false;
    for (const { tx } of this.underWay.states()) if (tx.bound <= epoch) return true;
    return false;
  }

  /**
   * For those who take a snapshot, which has all that was committed before: what earlier lives of this node have
   * left may be committed in an epoch that this life has not come to.
   */
  checkSettled(): void {
    for (const { isTakenUp } of this.underWay.states()) {
      if (isTakenUp) throw notYet(this.view.current.self);
    }
  }

  /**
   * Locks again what earlier lives of this node have left undecided; before anybody is served. `others` are
   * the logs of threads that will not take up their own.
   */
  takeUp(others: readonly RecordLog[]): void {
    this.#others = others;
    for (const { arrival, record } of this.#log.all()) {
      // In their order, so the last one counts: numbers go round in a circle.
      this.#arrivals = arrival + 1;
      this.#takeUp(arrival, record);
    }
    for (const log of others) {
      for (const { arrival, record } of log.all()) {
        // Should this life end in between, the next one finds it twice, and takes the first.
        const number = this.#arrivals++ >>> 0;
        this.#log.append(number, record);
        log.drop(arrival, record);
        this.#takeUp(number, record);
      }
    }
  }

  /** Remembers what earlier lives have installed, as far as the store shows it: a recovery may ask for it. */
  rememberInstalled(): void {
    for (const record of this.installed()) {
      const name = Object.assign(new Name(), skipHead(this.#records.open(record), this.name));
      this.underWay.end(Object.assign(name, { low: 0 }), COMMITTED);
    }
  }

  /** Records that this node has installed last, as far as the store shows it. */
  installed(): Int32Array[] {
    return [this.#log, ...this.#others].flatMap((log) => log.installed());
  }

  #takeUp(arrival: number, record: Int32Array): void {
    const body = this.#records.open(record);
    const name = Object.assign(new Name(), skipHead(body, this.name), { low: 0 });
    if (this.underWay.find(name) !== undefined) {
      this.#log.drop(arrival, record);
      return;
    }
    const prepared = this.#begin(name);
    if (!this.#lockAgain(prepared, body)) {
      throw new SituError(
        "SITU_CONFLICT",
        `node ${this.view.current.self} cannot lock again what transaction ${name.sequence} writes: ` +
          "does another process have the store open?",
      );
    }
    prepared.arrival = arrival;
    prepared.record = record;
    prepared.isTakenUp = true;
    this.locked(prepared, LAST_ROUND);
  }

  /** It cannot be locked: all of it is let go, and it is over here. */
  conflict(incoming: Incoming, name: Name, prepared: Prepared): void {
    this.drop(name, prepared);
    incoming.reply().word(LOCKED);
  }

  drop(name: Name, prepared: Prepared): void {
    this.executor.committer.release(prepared.tx);
    if (prepared.record.length > 0) this.#log.drop(prepared.arrival, prepared.record);
    this.finish(name, prepared, ABORTED);
  }

  /** Lets go of it as if it had never been locked: how it ended is for others to say. */
  discard(name: Name, prepared: Prepared): void {
    this.drop(name, prepared);
    this.underWay.forgetEnd(name);
  }

  #lockAgain(prepared: Prepared, body: Reader): boolean {
    const from = body.at;
    for (let attempt = 0; attempt < TAKE_UP_ATTEMPTS; attempt++) {
      body.at = from;
      try {
        // Whether this node is still the primary is not known yet, and of no account.
        this.write(prepared, body, false);
        if (this.executor.committer.prepare(prepared.tx)) return true;
      } catch (error) {
        if (!isSignal(error)) throw error;
      }
      prepared.tx.clear();
      this.executor.sweep();
    }
    return false;
  }

  /** This end closes: what it has prepared is let go, as if it had died. */
  releaseAll(): void {
    for (const { tx, entered } of this.underWay.states()) {
      this.executor.committer.release(tx);
      tx.clear();
      this.executor.leave(entered);
    }
    this.underWay.forget();
    this.#prepared = 0;
    this.snapshots.releaseAll();
  }

  /** It is over here: its engine transaction can serve another one. */
  finish(name: Name, prepared: Prepared, how: Ended): void {
    if (how === COMMITTED && prepared.record.length > 0) this.committed?.(prepared.record);
    prepared.tx.clear();
    prepared.tables.clear();
    prepared.record = NOTHING;
    prepared.isInstalling = false;
    prepared.isTakenUp = false;
    this.executor.leave(prepared.entered);
    this.#prepared--;
    this.underWay.end(name, how);
    if (this.#idle.length < MAX_IDLE) this.#idle.push(prepared);
    this.snapshots.settled();
  }
}

function notYet(self: NodeId): SituError {
  return new SituError(
    "SITU_OVERLOADED",
    `node ${self} recovers what it has become the primary of, and serves it in a moment: try again`,
  );
}
