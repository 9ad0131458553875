/** Aggregates and selections in a thread of the device: a share of a table's rows, as a snapshot sees them. */

import type { Executor } from "../../../engine/executor.ts";
import { readAtSnapshot } from "../../../engine/run.ts";
import { Snapshot } from "../../../engine/snapshots/snapshot.ts";
import { Transaction } from "../../../engine/transaction.ts";
import type { Views } from "../../../memory/views.ts";
import {
  DEVICE_CATCH_UP_ROWS,
  DEVICE_SELECT_AHEAD,
  DEVICE_SELECT_ROWS,
} from "../../../runtime/limits.ts";
import { programsOf } from "../../bulk/cursor.ts";
import type { Accumulated } from "../../expressions/accumulate.ts";
import type { Instance, WordFunction } from "../../expressions/compile.ts";
import { Failure } from "../../expressions/library.ts";
import { merged } from "../../expressions/merge-accumulated.ts";
import { programFrom, type Task } from "../../expressions/program.ts";
import type { TableStore } from "../../indexes/table-store.ts";
import type { DeviceTable } from "../device-table.ts";
import { wordsIn } from "../hidden-tables.ts";
import type { RememberedMaps } from "./map-steps.ts";
import { type ReadOrder, STOPPED, stopped, TAKEN } from "./messages.ts";
import { PageWalk, type Reads, type RowVisitor } from "./page-walk.ts";
import type { Projections } from "./projection.ts";

/** Rows that are accumulated at once. */
const BATCH_ROWS = 256;

/** A table as a thread of the device has it open. */
export interface ElementTable {
  readonly executor: Executor;
  readonly store: TableStore;
  readonly shared: DeviceTable;
  /** The thread's. */
  readonly projections: Projections;
  readonly maps: RememberedMaps;
}

/** What the job tells while it runs. */
export interface Listener {
  rows(rows: readonly unknown[]): void;
  /** Waits until the reader has taken some. */
  taken(): Promise<void>;
  /** Many rows had to be found by their keys. */
  manyInDelta(): void;
}

export async function runRead(
  opened: ElementTable,
  order: ReadOrder,
  listener: Listener,
): Promise<Accumulated | undefined> {
  const { executor, store, shared, projections, maps } = opened;
  const program = programFrom(order.program, store.table);
  const instance = programsOf(store.table).forWords(program);
  const projection = projections.of(shared, program);
  const short = projection?.programs.forWords(program) ?? instance;
  const snapshot = Snapshot.joined(executor, order.snapshot);
  instance.context.momentMs = snapshot.takenAtMs;
  short.context.momentMs = snapshot.takenAtMs;
  const tx = new Transaction(executor);
  const reads: Reads = (body) => readAtSnapshot(executor, tx, snapshot, body, undefined);
  const form = store.openForm(instance.take);
  const keyed = (key: unknown): unknown => {
    instance.context.next = 0;
    return reads((reader) => form.read(reader, key));
  };
  const visitor =
    order.kind === "aggregate"
      ? new Aggregating(order, instance, short, keyed, projection?.rowWords ?? 0)
      : new Selecting(order, instance, short, keyed, listener);
  const map = maps.of(shared);
  const walk = new PageWalk(map, order.part, order.parts, projection);
  try {
    await walk.walk(reads, visitor);
    await visitor.end();
  } catch (error) {
    // A page that was used again meanwhile looks damaged to one who comes from an old place.
    snapshot.check();
    throw error;
  }
  // What was read from pages counts only if they could not be used again meanwhile.
  snapshot.check();
  if (order.part === 0 && walk.keyed * order.parts >= DEVICE_CATCH_UP_ROWS) listener.manyInDelta();
  if (order.kind !== "aggregate") return undefined;
  const task = program.task as Task & { kind: "aggregate" };
  const parts = [instance.accumulated, short.accumulated];
  return merged(task, short === instance ? parts.slice(1) : parts);
}

function checkStopped({ signals }: ReadOrder): void {
  if (Atomics.load(signals, STOPPED) !== 0) throw stopped();
}

class Aggregating implements RowVisitor {
  readonly #order: ReadOrder;
  readonly #keyed: (key: unknown) => unknown;
  readonly #rows: Batch;
  readonly #short: Batch;
  readonly #rowWords: number;

  /** `short` takes rows of a projection, each of so many words. */
  constructor(
    order: ReadOrder,
    instance: Instance<WordFunction>,
    short: Instance<WordFunction>,
    keyed: (key: unknown) => unknown,
    rowWords: number,
  ) {
    this.#order = order;
    this.#keyed = keyed;
    this.#rowWords = rowWords;
    this.#rows = new Batch(instance);
    this.#short = new Batch(short);
  }

  row(views: Views, at: number, { where }: { readonly where: number }): void {
    this.#rows.take(views, at, wordsIn(where));
  }

  projected(views: Views, at: number): boolean {
    this.#short.take(views, at, 0);
    return false;
  }

  packed(views: Views, count: number): void {
    this.#short.add();
    this.#short.instance.addRows(views, count, this.#rowWords);
  }

  keyed(key: unknown): void {
    this.#rows.add();
    this.#rows.push(this.#keyed(key));
    this.#rows.add();
  }

  pause(): undefined {
    checkStopped(this.#order);
  }

  async end(): Promise<void> {
    this.#rows.add();
    this.#short.add();
  }
}

/** What a program has made of some rows, to be accumulated at once. */
class Batch {
  readonly instance: Instance<WordFunction>;
  readonly #taken: unknown[] = [];

  constructor(instance: Instance<WordFunction>) {
    this.instance = instance;
  }

  take(views: Views, at: number, words: number): void {
    if (this.#taken.push(this.instance.take(views, at, words)) === BATCH_ROWS) this.add();
  }

  push(taken: unknown): void {
    if (taken !== undefined) this.#taken.push(taken);
  }

  add(): void {
    const { add, context } = this.instance;
    add(this.#taken, this.#taken.length);
    this.#taken.length = 0;
    context.next = 0;
  }
}

class Selecting implements RowVisitor {
  readonly #order: ReadOrder;
  readonly #instance: Instance<WordFunction>;
  readonly #short: Instance<WordFunction>;
  readonly #keyed: (key: unknown) => unknown;
  readonly #listener: Listener;
  #rows: unknown[] = [];
  #sent = 0;

  constructor(
    order: ReadOrder,
    instance: Instance<WordFunction>,
    short: Instance<WordFunction>,
    keyed: (key: unknown) => unknown,
    listener: Listener,
  ) {
    this.#order = order;
    this.#instance = instance;
    this.#short = short;
    this.#keyed = keyed;
    this.#listener = listener;
  }

  row(views: Views, at: number, { where }: { readonly where: number }): void {
    this.#take(this.#instance.take(views, at, wordsIn(where)));
  }

  projected(views: Views, at: number): boolean {
    this.#take(this.#short.take(views, at, 0));
    return false;
  }

  keyed(key: unknown): void {
    this.#take(this.#keyed(key));
  }

  #take(taken: unknown): void {
    if (taken === false || taken === undefined) return;
    if (taken instanceof Failure) throw taken.error;
    this.#rows.push(taken);
  }

  async pause(): Promise<void> {
    checkStopped(this.#order);
    while (this.#rows.length >= DEVICE_SELECT_ROWS) this.#send();
    while (this.#sent - Atomics.load(this.#order.signals, TAKEN) > DEVICE_SELECT_AHEAD) {
      await this.#listener.taken();
      checkStopped(this.#order);
    }
  }

  async end(): Promise<void> {
    await this.pause();
    if (this.#rows.length > 0) this.#send();
  }

  #send(): void {
    this.#listener.rows(this.#rows.slice(0, DEVICE_SELECT_ROWS));
    this.#rows = this.#rows.slice(DEVICE_SELECT_ROWS);
    this.#sent++;
  }
}
