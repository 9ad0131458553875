/** Aggregates and selections in a thread of the device: a share of a table's rows, as a snapshot sees them. */

import type { Executor } from "../../../engine/executor.ts";
import { readAtSnapshot } from "../../../engine/run.ts";
import { Snapshot } from "../../../engine/snapshots/snapshot.ts";
import { Transaction } from "../../../engine/transaction.ts";
import type { Views } from "../../../memory/views.ts";
import { DEVICE_SELECT_AHEAD, DEVICE_SELECT_ROWS } from "../../../runtime/limits.ts";
import { programsOf } from "../../bulk/cursor.ts";
import type { Accumulated } from "../../expressions/accumulate.ts";
import type { Instance, WordFunction } from "../../expressions/compile.ts";
import { Failure } from "../../expressions/library.ts";
import { programFrom } from "../../expressions/program.ts";
import type { TableStore } from "../../indexes/table-store.ts";
import type { DeviceTable } from "../device-table.ts";
import { wordsIn } from "../hidden-tables.ts";
import { type ReadOrder, STOPPED, stopped, TAKEN } from "./messages.ts";
import { PageWalk, type Reads, type RowVisitor } from "./page-walk.ts";

/** Rows that are accumulated at once. */
const BATCH_ROWS = 256;

/** A table as a thread of the device has it open. */
export interface ElementTable {
  readonly executor: Executor;
  readonly store: TableStore;
  readonly shared: DeviceTable;
}

/** What the job tells while it runs. */
export interface Listener {
  rows(rows: readonly unknown[]): void;
  /** Waits until the reader has taken some. */
  taken(): Promise<void>;
}

export async function runRead(
  opened: ElementTable,
  order: ReadOrder,
  listener: Listener,
): Promise<Accumulated | undefined> {
  const { executor, store, shared } = opened;
  const program = programFrom(order.program, store.table);
  const instance = programsOf(store.table).forWords(program);
  const snapshot = Snapshot.joined(executor, order.snapshot);
  instance.context.momentMs = snapshot.takenAtMs;
  const tx = new Transaction(executor);
  const reads: Reads = (body) => readAtSnapshot(executor, tx, snapshot, body, undefined);
  const form = store.openForm(instance.take);
  const keyed = (key: unknown): unknown => {
    instance.context.next = 0;
    return reads((reader) => form.read(reader, key));
  };
  const visitor =
    order.kind === "aggregate"
      ? new Aggregating(order, instance, keyed)
      : new Selecting(order, instance, keyed, listener);
  await new PageWalk(shared, order.part, order.parts).walk(reads, visitor);
  await visitor.end();
  // What was read from pages counts only if they could not be used again meanwhile.
  snapshot.check();
  return order.kind === "aggregate" ? instance.accumulated : undefined;
}

function checkStopped({ signals }: ReadOrder): void {
  if (Atomics.load(signals, STOPPED) !== 0) throw stopped();
}

class Aggregating implements RowVisitor {
  readonly #order: ReadOrder;
  readonly #instance: Instance<WordFunction>;
  readonly #keyed: (key: unknown) => unknown;
  readonly #taken: unknown[] = [];

  constructor(
    order: ReadOrder,
    instance: Instance<WordFunction>,
    keyed: (key: unknown) => unknown,
  ) {
    this.#order = order;
    this.#instance = instance;
    this.#keyed = keyed;
  }

  row(views: Views, at: number, { where }: { readonly where: number }): void {
    this.#taken.push(this.#instance.take(views, at, wordsIn(where)));
    if (this.#taken.length === BATCH_ROWS) this.#add();
  }

  keyed(key: unknown): void {
    this.#add();
    const taken = this.#keyed(key);
    if (taken !== undefined) this.#taken.push(taken);
    this.#add();
  }

  pause(): undefined {
    checkStopped(this.#order);
  }

  async end(): Promise<void> {
    this.#add();
  }

  #add(): void {
    const { add, context } = this.#instance;
    add(this.#taken, this.#taken.length);
    this.#taken.length = 0;
    context.next = 0;
  }
}

class Selecting implements RowVisitor {
  readonly #order: ReadOrder;
  readonly #instance: Instance<WordFunction>;
  readonly #keyed: (key: unknown) => unknown;
  readonly #listener: Listener;
  #rows: unknown[] = [];
  #sent = 0;

  constructor(
    order: ReadOrder,
    instance: Instance<WordFunction>,
    keyed: (key: unknown) => unknown,
    listener: Listener,
  ) {
    this.#order = order;
    this.#instance = instance;
    this.#keyed = keyed;
    this.#listener = listener;
  }

  row(views: Views, at: number, { where }: { readonly where: number }): void {
    this.#take(this.#instance.take(views, at, wordsIn(where)));
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
