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
import { dependOn } from "../engine/prepared.ts";
import { isSignal } from "../engine/signals.ts";
import { Transaction } from "../engine/transaction.ts";
import type { Clock, Incoming, NodeId } from "../fabric/fabric.ts";
import { type Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_PREPARED } from "../runtime/limits.ts";
import type { RowPlace } from "../stores/store.ts";
import type { Placement } from "../tables/partitions.ts";
import type { ServedTable, ServedTables } from "../tables/served/contract.ts";
import { PUT } from "../tables/served/requests.ts";
import { everyDependency } from "./dependencies.ts";
import { Name, UnderWay } from "./names.ts";
import { LOCKED, OK, OVER } from "./read.ts";
import { writesIn } from "./writes.ts";

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

/** Kept for the next transaction; further ones are made when needed. */
const MAX_IDLE = 256;

export class Participant {
  readonly executor: Executor;
  readonly tables: ServedTables;
  readonly placement: Placement;
  readonly self: NodeId;
  readonly clock: Clock;
  /** For reads. */
  readonly reader: Transaction;
  readonly rows = new Writer();
  readonly underWay = new UnderWay<Prepared>();
  /** The name in the message that is being served. */
  readonly name = new Name();
  readonly #idle: Prepared[] = [];
  #prepared = 0;

  constructor(
    executor: Executor,
    tables: ServedTables,
    placement: Placement,
    self: NodeId,
    clock: Clock,
  ) {
    this.clock = clock;
    this.executor = executor;
    this.tables = tables;
    this.placement = placement;
    this.self = self;
    this.reader = new Transaction(executor);
    // The lock that a read meets may be held by a transaction of this thread.
    executor.isPatient = false;
  }

  /** Transactions that hold locks here. */
  get prepared(): number {
    return this.#prepared;
  }

  checkPrimary(partition: number): void {
    const { placement, self } = this;
    if (partition < 0 || partition >= placement.partitions) {
      throw new SituError("SITU_PROTOCOL", `there is no partition ${partition}`);
    }
    if (placement.primaryOf(partition) === self) return;
    throw new SituError(
      "SITU_STALE_CONFIGURATION",
      `node ${self} is not the primary of partition ${partition}: the sender has another configuration`,
    );
  }

  /**
   * LOCK: depends on what was read here, does what is to be written here, locks and validates it.
   * Replies with what is only read, and must be validated once all nodes have locked.
   */
  lock(incoming: Incoming): void {
    const { body } = incoming;
    const name = this.name.decode(body);
    const round = body.word();
    const known = this.begin(incoming, name, round);
    if (known === undefined) return;
    const { tx } = known;
    try {
      const isSeen = everyDependency(this.executor.memory, body, ({ id }, word, high, low) =>
        dependOn(tx, id, word, high, low),
      );
      if (!isSeen) {
        this.conflict(incoming, name, known);
        return;
      }
      this.write(known, body);
      if (!this.executor.committer.prepare(tx)) {
        this.conflict(incoming, name, known);
        return;
      }
    } catch (error) {
      if (isSignal(error)) {
        const wanted = tx.exhausted ? tx.exhaustedClass : -1;
        this.conflict(incoming, name, known);
        if (wanted >= 0) this.#makeRoom(wanted);
        return;
      }
      this.drop(name, known);
      throw error;
    }
    const out = incoming.reply();
    const start = out.at;
    out.word(OK);
    out.word(tx.set.count > tx.set.writes ? 1 : 0);
    out.wide(this.executor.epochs.current());
    this.answered(known, round, out, start);
  }

  /** Does the writes of a message. */
  write({ tx, tables }: Prepared, body: Reader): void {
    for (const request of writesIn(body)) {
      const served = this.tables.byId(request.table);
      this.checkPrimary(request.partition);
      tables.add(served);
      served.write(tx, request);
    }
  }

  /** Overwrites rows that are locked in their place. False if one of them is not. */
  overwrite({ tx, places }: Prepared, body: Reader): boolean {
    for (const request of writesIn(body)) {
      const served = this.tables.byId(request.table);
      if (request.code !== PUT || !served.overwrite(tx, places, request)) return false;
    }
    return true;
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
        `node ${this.self} has ${MAX_PREPARED} transactions under way, which is the most`,
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

  /** ABORT: lets go of the locks. */
  abort(name: Name): void {
    const prepared = this.underWay.find(name);
    if (prepared === undefined) this.underWay.end(name);
    else this.drop(name, prepared);
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

  /** Memory of the class has run out: what was freed and nobody sees any more can be used again. */
  #makeRoom(sizeClass: number): void {
    if (!this.executor.reclaim(sizeClass)) {
      throw new SituError("SITU_FULL", `the store of node ${this.self} is full`);
    }
  }
}
