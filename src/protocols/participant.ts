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
 */

import type { Executor } from "../engine/executor.ts";
import { Transaction } from "../engine/transaction.ts";
import type { Clock, Incoming } from "../fabric/fabric.ts";
import { Writer } from "../fabric/wire.ts";
import { passOver } from "../runtime/background-errors.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_PREPARED } from "../runtime/limits.ts";
import type { RowPlace } from "../stores/store.ts";
import type { ServedTable, ServedTables } from "../tables/served/contract.ts";
import type { CurrentView } from "./cluster-view.ts";
import { LOCKED, OVER } from "./message.ts";
import { Name, UnderWay } from "./names.ts";

/** A transaction that is locked here and whose outcome is not known yet. */
export class Prepared {
  readonly tx: Transaction;
  entered = 0;
  /** Rows that are locked where they lie, for COMMIT to overwrite (read-lock.ts). */
  readonly places: { readonly table: ServedTable; readonly place: RowPlace }[] = [];
  /** What it writes to. */
  readonly tables = new Set<ServedTable>();
  /** The last round that was served, and its answer, for duplicates. */
  round = 0;
  answer = new Int32Array(0);

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

/** Kept for the next transaction; further ones are made when needed. */
const MAX_IDLE = 256;

export class Participant {
  readonly executor: Executor;
  readonly tables: ServedTables;
  readonly view: CurrentView;
  readonly clock: Clock;
  /** For reads. */
  readonly reader: Transaction;
  readonly rows = new Writer();
  readonly underWay = new UnderWay<Prepared>();
  /** The name in the message that is being served. */
  readonly name = new Name();
  readonly #idle: Prepared[] = [];
  #prepared = 0;

  constructor(executor: Executor, tables: ServedTables, view: CurrentView, clock: Clock) {
    this.clock = clock;
    this.executor = executor;
    this.tables = tables;
    this.view = view;
    this.reader = new Transaction(executor);
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
    if (placement.primaryOf(partition) === self) return;
    throw new SituError(
      "SITU_STALE_CONFIGURATION",
      `node ${self} is not the primary of partition ${partition}: the sender has another configuration`,
    );
  }

  /** Begins or goes on with a transaction; undefined if the message was answered already. */
  begin(incoming: Incoming, name: Name, round: number): Prepared | undefined {
    const found = this.underWay.find(name);
    if (found !== undefined) {
      if (round > found.round) return found;
      incoming.reply().words(found.answer, 0, found.answer.length);
      return undefined;
    }
    if (this.underWay.isOver(name)) {
      incoming.reply().word(OVER);
      return undefined;
    }
    if (this.#prepared >= MAX_PREPARED) {
      throw new SituError(
        "SITU_OVERLOADED",
        `node ${this.view.current.self} has ${MAX_PREPARED} transactions under way, which is the most`,
      );
    }
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

  /** It cannot be locked: all of it is let go, and it is over here. */
  conflict(incoming: Incoming, name: Name, prepared: Prepared): void {
    this.drop(name, prepared);
    incoming.reply().word(LOCKED);
  }

  drop(name: Name, prepared: Prepared): void {
    this.executor.committer.release(prepared.tx);
    this.finish(name, prepared);
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
  }

  /** It is over here: its engine transaction can serve another one. */
  finish(name: Name, prepared: Prepared): void {
    prepared.tx.clear();
    prepared.tables.clear();
    prepared.places.length = 0;
    this.executor.leave(prepared.entered);
    this.#prepared--;
    this.underWay.end(name);
    if (this.#idle.length < MAX_IDLE) this.#idle.push(prepared);
  }
}
