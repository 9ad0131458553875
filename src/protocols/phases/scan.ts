/**
 * Scan: rows of one table in an order, or all of them, some at a time. Each step is a message of its
 * own and a local read-only transaction at the node; what it has read becomes dependencies of the
 * scanning transaction, as with reads. A leaf or bucket is a dependency whether or not a row of it
 * was wanted, so a phantom is a failed validation. A node gives only rows that it is the primary of.
 *
 * Nothing is kept at a node between two steps: the reply says where the next step begins, in words
 * that mean something to the node only, and the next step brings them along. Steps may so come
 * twice, or late, or never, and a client that vanishes leaves nothing behind. What lies around the
 * place may have changed between two steps. Then they have seen two versions of an object, or one
 * that is no longer current, and the transaction cannot commit.
 *
 *   message  table, and a step (tables/served/requests.ts)
 *   reply    OK or LOCKED; with OK: dependencies; then at an even word: rows, an unused word, and
 *            unless they are only counted, for each: its words, an unused word, and the row;
 *            1 if there are no more rows; place
 *
 * SCAN_AT is the same from a snapshot of the cluster (snapshot.ts), with the name of the snapshot first. It has no
 * dependencies.
 */

import { isSignal } from "../../engine/signals.ts";
import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_ACCESSES, SCAN_STEP_ATTEMPTS, SCAN_STEP_ROWS } from "../../runtime/limits.ts";
import { decodeStep, decodeWords, encodeStep, type ScanWay } from "../../tables/served/requests.ts";
import { SCAN, SCAN_AT } from "../kinds.ts";
import { LOCKED, Message, OK, type Routine } from "../message.ts";
import { DEPENDENCY_WORDS, type Part } from "../writes.ts";
import { type AtSnapshot, appendDependencies, atSnapshot } from "./read.ts";
import type { ServingThread } from "./table.ts";

const BEGINNING = new Int32Array(0);

/** A row that has arrived, at the reader's place. */
export type TakeRow = (reply: Reader, words: number) => void;

export class Scan extends Message {
  readonly kind: number;
  outcome = OK;
  /** Rows that were found or, if that is all, counted. */
  rows = 0;
  isDone = false;
  /** Where the next step begins. */
  place: Int32Array;
  readonly #table: number;
  readonly #way: ScanWay;
  readonly #most: number;
  readonly #part: Part;
  readonly #take: TakeRow | undefined;
  readonly #snapshot: AtSnapshot | undefined;

  /** Dependencies go to `part`, rows to `take`; without it they are counted. */
  constructor(
    to: NodeId,
    table: number,
    way: ScanWay,
    most: number,
    place: Int32Array | undefined,
    part: Part,
    take: TakeRow | undefined,
    snapshot?: AtSnapshot,
  ) {
    super(to);
    this.kind = snapshot === undefined ? SCAN : SCAN_AT;
    this.#snapshot = snapshot;
    this.#table = table;
    this.#way = way;
    this.#most = Math.min(most, SCAN_STEP_ROWS);
    this.place = place ?? BEGINNING;
    this.#part = part;
    this.#take = take;
  }

  encode(out: Writer): void {
    const counts = this.#take === undefined;
    if (this.#snapshot !== undefined) out.text(this.#snapshot.name);
    out.word(this.#table);
    encodeStep(out, { ...this.#way, counts, most: this.#most, place: this.place });
  }

  protected decode(reply: Reader): void {
    this.outcome = reply.word();
    if (this.outcome !== OK) return;
    const count = reply.count(MAX_ACCESSES);
    const part = this.#part;
    if (part.dependencyCount + count > MAX_ACCESSES) throw tooMuch();
    const { i32 } = reply.views;
    for (let i = 0; i < count; i++) {
      const at = reply.skip(DEPENDENCY_WORDS);
      part.depend(i32[at], i32[at + 1], i32[at + 2], i32[at + 3]);
    }
    reply.align();
    this.rows = reply.word();
    reply.align();
    if (this.#take !== undefined) {
      for (let i = 0; i < this.rows; i++) decodeRow(reply, this.#take);
    }
    this.isDone = reply.word() === 1;
    this.place = decodeWords(reply);
  }
}

function decodeRow(reply: Reader, take: TakeRow): void {
  const words = reply.count(reply.left);
  reply.align();
  const end = reply.at + words;
  if (end > reply.end) throw new SituError("SITU_PROTOCOL", "a row ends too early");
  take(reply, words);
  reply.at = end;
}

/** Sends steps to several nodes at once. False if one of them kept meeting locks. */
export function* runSteps(steps: readonly Scan[]): Routine<boolean> {
  let open = steps;
  for (let attempt = 0; attempt < SCAN_STEP_ATTEMPTS; attempt++) {
    yield open;
    for (const { error } of open) if (error !== undefined) throw error;
    open = open.filter(({ outcome }) => outcome !== OK);
    if (open.length === 0) return true;
  }
  return false;
}

/** At the primary, from a snapshot. */
export function serveScanAt(thread: ServingThread, incoming: Incoming): void {
  const { participant, view } = thread;
  const name = incoming.body.text();
  atSnapshot(participant, name, view.current.self, false, () => serveScan(thread, incoming));
}

/** At the primary. */
export function serveScan({ participant, view }: ServingThread, incoming: Incoming): void {
  const { body } = incoming;
  participant.checkWhole();
  const table = participant.tables.byId(body.word());
  const step = decodeStep(body);
  const { executor, reader: tx, rows } = participant;
  const { placement, self } = view.current;
  const out = incoming.reply();
  const start = out.at;
  const entered = executor.enter();
  try {
    rows.clear();
    table.scan(tx, step, rows, (partition) => placement.primaryOf(partition) === self);
    if (executor.commit(tx)) {
      out.word(OK);
      appendDependencies(tx.set, out);
      out.align();
      out.words(rows.views.i32, 0, rows.at);
      return;
    }
  } catch (error) {
    if (!isSignal(error)) throw error;
  } finally {
    tx.clear();
    executor.leave(entered);
  }
  out.at = start;
  out.word(LOCKED);
}

function tooMuch(): SituError {
  return new SituError(
    "SITU_TOO_LARGE",
    `the transaction touches more than ${MAX_ACCESSES} objects of one node: split it into smaller ones`,
  );
}
