/**
 * The threads of the device as a database has them: started when the first operation is sent to them, kept for
 * the next ones, ended with the database. They keep no process alive. An operation that reads is sent to all of
 * them, each for a share of the table's pages.
 *
 * A thread that ends by itself fails the operations that it was busy with; the next operation starts another one.
 */

import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Executor } from "../../../engine/executor.ts";
import type { Snapshot } from "../../../engine/snapshots/snapshot.ts";
import { wallClockMs } from "../../../runtime/clock.ts";
import { SituError } from "../../../runtime/errors.ts";
import {
  DEVICE_OPERATIONS,
  DEVICE_WAITING_OPERATIONS,
  MAX_DEVICE_ELEMENTS,
} from "../../../runtime/limits.ts";
import { threadScript } from "../../../runtime/thread-script.ts";
import { type Accumulated, resultsOf } from "../../expressions/accumulate.ts";
import { merged } from "../../expressions/merge-accumulated.ts";
import { type Program, programText, type Task } from "../../expressions/program.ts";
import type { TableStore } from "../../indexes/table-store.ts";
import type { Changed } from "./change-job.ts";
import {
  type ChangeOrder,
  type Death,
  type ElementTask,
  errorFrom,
  type Order,
  type ReadOrder,
  type Request,
  SIGNAL_WORDS,
  STOPPED,
  TAKEN,
  type Told,
  type ToldError,
} from "./messages.ts";

const SCRIPT = "situ-device.js";

/** How a change is carried out. */
export interface ChangeOptions {
  readonly signal: AbortSignal | undefined;
  readonly waits: boolean;
  readonly timeoutMs: number;
}

/** What a thread tells of one operation. */
type Listener = (told: Told) => void;

class ElementThread {
  readonly #worker: Worker;
  readonly #listeners = new Map<number, Listener>();
  readonly ended: Promise<void>;
  isOver = false;

  constructor(task: ElementTask) {
    this.#worker = new Worker(threadScript(SCRIPT), {
      workerData: task,
      name: "situ device",
      execArgv: [],
    });
    this.#worker.unref();
    this.#worker.on("message", (told: Told) => this.#listeners.get(told.id)?.(told));
    this.#worker.on("error", (error) => this.#fail(error));
    this.ended = new Promise((resolve) => {
      this.#worker.on("exit", () => {
        this.#fail(new Error("it has ended"));
        resolve();
      });
    });
  }

  send(order: Order, listener: Listener): void {
    // While somebody waits for it, it keeps the process alive.
    if (this.#listeners.size === 0) this.#worker.ref();
    this.#listeners.set(order.id, listener);
    this.#worker.postMessage(order);
  }

  tell(request: Request): void {
    if (!this.isOver) this.#worker.postMessage(request);
  }

  forget(id: number): void {
    this.#listeners.delete(id);
    if (this.#listeners.size === 0) this.#worker.unref();
  }

  #fail(cause: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `a thread of the device has failed: ${why}`;
    const failure = { code: "SITU_LOST" as const, message, stack: undefined };
    for (const [id, listener] of [...this.#listeners]) listener({ id, failure });
    this.#listeners.clear();
  }

  async end(): Promise<void> {
    this.#worker.ref();
    this.tell({ kind: "end" });
    await this.ended;
  }
}

export class ElementPool {
  /** How many threads there are; for tests, before the first operation. */
  size = Math.max(1, Math.min(MAX_DEVICE_ELEMENTS, availableParallelism() - 1));
  /** For tests: the step at which updates are cut off. */
  death: Death | undefined;
  readonly #executor: Executor;
  readonly #memory: string | undefined;
  #threads: ElementThread[] = [];
  #ids = 0;
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #signals = new Set<Int32Array>();
  #isClosed = false;

  /** `memory` is the folder of the store's memory. */
  constructor(executor: Executor, memory: string | undefined) {
    this.#executor = executor;
    this.#memory = memory;
  }

  /** Whether the threads are there. */
  get isStarted(): boolean {
    return this.#threads.length > 0;
  }

  /** Aggregates the rows that a snapshot sees: one object, with `groupBy` a list of them. */
  async aggregate(store: TableStore, program: Program, snapshot: Snapshot): Promise<unknown> {
    const task = program.task as Task & { kind: "aggregate" };
    await this.#enter();
    const orders = this.#orders("aggregate", store, program, snapshot);
    try {
      const results = resultsOf(store.table, task, merged(task, await this.#readAll(orders)));
      return task.groupBy.length === 0 ? results[0] : results;
    } finally {
      this.#leave(orders);
    }
  }

  async #readAll(orders: readonly ReadOrder[]): Promise<Accumulated[]> {
    const threads = this.#started();
    const parts = orders.map(
      (order, i) =>
        new Promise<Accumulated>((resolve, reject) => {
          threads[i].send(order, ({ accumulated, failure }) => {
            threads[i].forget(order.id);
            if (failure !== undefined) reject(errorFrom(failure));
            else resolve(accumulated!);
          });
        }),
    );
    try {
      return await Promise.all(parts);
    } catch (error) {
      // The others need not go on; the snapshot is released when all of them have ended.
      stop(orders);
      await Promise.allSettled(parts);
      throw error;
    }
  }

  /** The rows of a selection, some at a time. To be ended by `return`. */
  async *select(
    store: TableStore,
    program: Program,
    snapshot: Snapshot,
  ): AsyncGenerator<readonly unknown[], undefined> {
    await this.#enter();
    const orders = this.#orders("select", store, program, snapshot);
    const arrived: { readonly rows: readonly unknown[]; readonly take: () => void }[] = [];
    let failure: Error | undefined;
    let left = 0;
    let wake = (): void => {};
    const threads: ElementThread[] = [];
    try {
      threads.push(...this.#started());
      for (const [i, order] of orders.entries()) {
        left++;
        threads[i].send(order, (told) => {
          if (told.rows !== undefined) {
            const take = (): void => {
              Atomics.add(order.signals, TAKEN, 1);
              threads[i].tell({ kind: "taken", id: order.id });
            };
            arrived.push({ rows: told.rows, take });
          } else {
            left--;
            threads[i].forget(order.id);
            if (told.failure !== undefined) failure ??= errorFrom(told.failure);
          }
          wake();
        });
      }
      for (;;) {
        if (failure !== undefined) throw failure;
        const next = arrived.shift();
        if (next !== undefined) {
          next.take();
          yield next.rows;
        } else if (left === 0) return;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      stop(orders);
      for (const [i, { id }] of orders.entries()) threads[i]?.tell({ kind: "taken", id });
      while (left > 0)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      this.#leave(orders);
    }
  }

  /** Changes rows in one transaction, by one of the threads. */
  async change(store: TableStore, program: Program, options: ChangeOptions): Promise<Changed> {
    await this.#enter();
    const { signal, waits, timeoutMs } = options;
    const { table, root } = store;
    const order: ChangeOrder = {
      kind: "change",
      id: ++this.#ids,
      table,
      root,
      program: programText(program),
      momentMs: wallClockMs(),
      timeoutMs,
      waits,
      signals: this.#newSignals(),
      death: this.death,
    };
    const abort = (): void => stop([order]);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      const threads = this.#started();
      const thread = threads[order.id % threads.length];
      return await new Promise<Changed>((resolve, reject) => {
        thread.send(order, ({ changed, failure }) => {
          thread.forget(order.id);
          if (changed !== undefined) resolve(changed);
          else reject(changeError(failure!, signal));
        });
      });
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#leave([order]);
    }
  }

  /** Stops what runs, and ends the threads. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const signals of this.#signals) Atomics.store(signals, STOPPED, 1);
    for (const wake of this.#waiting.splice(0)) wake();
    const threads = this.#threads;
    this.#threads = [];
    await Promise.all(threads.map((thread) => thread.end()));
  }

  #orders(
    kind: ReadOrder["kind"],
    store: TableStore,
    program: Program,
    snapshot: Snapshot,
  ): ReadOrder[] {
    const text = programText(program);
    const { table, root } = store;
    return Array.from({ length: this.size }, (_, part) => ({
      kind,
      id: ++this.#ids,
      table,
      root,
      program: text,
      snapshot: snapshot.share(),
      part,
      parts: this.size,
      signals: this.#newSignals(),
    }));
  }

  #newSignals(): Int32Array<SharedArrayBuffer> {
    const signals = new Int32Array(new SharedArrayBuffer(SIGNAL_WORDS * 4));
    this.#signals.add(signals);
    return signals;
  }

  /** The threads, all of them alive. */
  #started(): readonly ElementThread[] {
    const { path } = this.#executor.memory;
    if (path === undefined || this.#memory === undefined) {
      throw new SituError("SITU_UNSUPPORTED", "this store has no tables on the device");
    }
    const task: ElementTask = { path, memory: this.#memory };
    for (let i = 0; i < this.size; i++) {
      if (this.#threads[i] === undefined || this.#threads[i].isOver) {
        this.#threads[i] = new ElementThread(task);
      }
    }
    return this.#threads;
  }

  async #enter(): Promise<void> {
    if (this.#running >= DEVICE_OPERATIONS) {
      if (this.#waiting.length >= DEVICE_WAITING_OPERATIONS) {
        throw new SituError(
          "SITU_OVERLOADED",
          `${this.#running} operations run on the device, and ${this.#waiting.length} wait: try again later`,
        );
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    if (this.#isClosed) throw new SituError("SITU_CLOSED", "the database is closed: open it again");
  }

  #leave(orders: readonly Order[]): void {
    for (const { signals } of orders) this.#signals.delete(signals);
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }
}

function stop(orders: readonly Order[]): void {
  for (const { signals } of orders) Atomics.store(signals, STOPPED, 1);
}

function changeError(failure: ToldError, signal: AbortSignal | undefined): Error {
  if (failure.code === "SITU_ABORTED" && signal?.aborted === true) {
    const message = "the signal of the operation was aborted; nothing was changed";
    return new SituError("SITU_ABORTED", message, { cause: signal.reason });
  }
  // It may have died after its commit.
  if (failure.code === "SITU_LOST") {
    return new SituError(
      "SITU_UNKNOWN_OUTCOME",
      `${failure.message}; all rows were changed, or none: look at one`,
    );
  }
  return errorFrom(failure);
}
