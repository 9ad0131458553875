/**
 * Procedures at the NIC, seen from the NIC: each run goes to a worker (procedure-worker.ts) and comes back, or does not. The NIC never
 * waits for one: after XENIC_PROCEDURE_MS a worker is ended, and the call fails with SITU_PROCEDURE; so it does if it needs
 * more heap than a worker has, or if the process has grown by more than a procedure may take in buffers, which are in no heap. Then there
 * is a new worker for the others. A worker has one run at a time, so it is known whose fault it was; and a run that has left timers
 * or much memory behind is the last one of its worker.
 */

import { Worker } from "node:worker_threads";
import type { Timer } from "../../fabric/fabric.ts";
import type { OpenedTable } from "../../protocols/xenic/client-messages.ts";
import { type Item, rowId } from "../../protocols/xenic/message.ts";
import type { Execution, Wanted, XenicProcedure } from "../../protocols/xenic/procedure.ts";
import { realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  XENIC_PROCEDURE_GROWTH_MIB,
  XENIC_PROCEDURE_HEAP_MIB,
  XENIC_PROCEDURE_LOOK_MS,
  XENIC_PROCEDURE_MS,
  XENIC_PROCEDURE_QUEUE,
  XENIC_PROCEDURE_ROWS,
  XENIC_PROCEDURE_WORKERS,
  XENIC_TRANSACTION_BYTES,
} from "../../runtime/limits.ts";
import { threadScript } from "../../runtime/thread-script.ts";
import {
  type FromWorker,
  type ProcedureTask,
  type RunAnswer,
  type ToWorker,
  wordsOf,
} from "./procedure-worker.ts";

/** What is known of one before it runs. */
export interface NicProcedure {
  readonly name: string;
  /** Whether it names all its rows, and so is one-shot. */
  readonly hasRows: boolean;
  readonly tables: readonly string[];
}

interface Job {
  readonly name: string;
  readonly message: ToWorker;
  done(answer: RunAnswer): void;
}

interface Thread {
  readonly worker: Worker;
  isReady: boolean;
  job: Job | undefined;
  timer: Timer | undefined;
  /** Looks at the memory of the process while the job runs. */
  look: Timer | undefined;
}

export class NicProcedures {
  readonly #modules: readonly string[];
  readonly #tables: OpenedTable[] = [];
  readonly #waiting: Job[] = [];
  readonly #threads = new Set<Thread>();
  #isClosed = false;

  constructor(modules: readonly string[], procedures: readonly NicProcedure[]) {
    this.#modules = modules;
    if (procedures.length === 0) return;
    for (let i = 0; i < XENIC_PROCEDURE_WORKERS; i++) this.#start();
  }

  addTable(table: OpenedTable): void {
    this.#tables[table.number] = table;
    for (const { worker } of this.#threads) worker.postMessage({ what: "table", table });
  }

  /** As the coordinator sees it. */
  asProcedure({ name, hasRows }: NicProcedure): XenicProcedure {
    return {
      runs: "nic",
      isOneShot: hasRows,
      run: () => ({ kind: "refused" }),
      runElsewhere: (args, items, done) => this.#run(name, args, items, done),
    };
  }

  /** Which rows a call begins with; or that it has ended already. */
  plan(name: string, args: Int32Array, done: (planned: Wanted | Int32Array) => void): void {
    this.#enqueue(name, { what: "plan", name, args }, (answer) => {
      if (answer.what === "more") done(this.#refusal(name, [answer]) ?? answer);
      else done(answer.result);
    });
  }

  /** The workers end with the thread of the NIC at the latest. */
  close(): void {
    this.#isClosed = true;
    for (const { timer, look, worker } of this.#threads) {
      timer?.cancel();
      look?.cancel();
      void worker.terminate();
    }
  }

  #run(
    name: string,
    args: Int32Array,
    items: readonly Item[],
    done: (execution: Execution) => void,
  ): void {
    this.#enqueue(name, { what: "run", name, args, items }, (answer) => {
      if (answer.what === "more") {
        const refusal = this.#refusal(name, [{ reads: items, writes: [] }, answer]);
        if (refusal !== undefined) done({ kind: "done", writes: [], result: refusal });
        else done({ kind: "more", reads: answer.reads, writes: answer.writes });
        return;
      }
      const { writes, result } = answer;
      // It travels in the messages that log the writes.
      if (result.length * 4 > XENIC_TRANSACTION_BYTES) {
        const large = tooManyBytes(`the result of procedure ${name}`, result.length * 4);
        done({ kind: "done", writes: [], result: errorWords(large.code, large.message) });
      } else done({ kind: "done", writes, result });
    });
  }

  /** Why so many rows cannot be used by one procedure. It is said before they are locked and read: their values must fit a message. */
  #refusal(name: string, wanted: readonly Wanted[]): Int32Array | undefined {
    const rows = new Map<string, number>();
    for (const { reads, writes } of wanted) {
      for (const row of [...reads, ...writes]) rows.set(rowId(row), row.table);
    }
    if (rows.size > XENIC_PROCEDURE_ROWS) {
      const why = `procedure ${name} uses ${rows.size} rows, and at the NIC one may use ${XENIC_PROCEDURE_ROWS}: let it run at the host`;
      return errorWords("SITU_TOO_LARGE", why);
    }
    const bytes = [...rows.values()].reduce((sum, table) => sum + rowRoom(this.#tables[table]), 0);
    if (bytes <= XENIC_TRANSACTION_BYTES) return undefined;
    const { code, message } = tooLarge(`procedure ${name}`, bytes);
    return errorWords(code, message);
  }

  #enqueue(name: string, message: ToWorker, done: (answer: RunAnswer) => void): void {
    if (this.#waiting.length >= XENIC_PROCEDURE_QUEUE) {
      const why = `procedure ${name} was not begun: too many wait at the NIC`;
      done({ what: "done", writes: [], result: errorWords("SITU_OVERLOADED", why) });
      return;
    }
    this.#waiting.push({ name, message, done });
    this.#pump();
  }

  #pump(): void {
    for (const thread of this.#threads) {
      if (!thread.isReady || thread.job !== undefined) continue;
      const job = this.#waiting.shift();
      if (job === undefined) return;
      thread.job = job;
      thread.timer = realClock.after(XENIC_PROCEDURE_MS, () => {
        this.#end(thread, `took more than ${XENIC_PROCEDURE_MS} ms at the NIC`);
      });
      this.#watch(thread, process.memoryUsage.rss());
      thread.worker.postMessage(job.message);
    }
  }

  /** A buffer's memory is the process's: what it has grown by during a run is that run's, or nearly so. */
  #watch(thread: Thread, before: number): void {
    thread.look = realClock.after(XENIC_PROCEDURE_LOOK_MS, () => {
      if (process.memoryUsage.rss() - before <= XENIC_PROCEDURE_GROWTH_MIB * 2 ** 20) {
        this.#watch(thread, before);
      } else {
        const why = `needed more than ${XENIC_PROCEDURE_GROWTH_MIB} MiB of memory at the NIC`;
        this.#end(thread, why);
      }
    });
  }

  #start(): void {
    const task: ProcedureTask = { procedureModules: this.#modules };
    const worker = new Worker(threadScript("situ-nic.js"), {
      workerData: task,
      name: "situ procedures",
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: XENIC_PROCEDURE_HEAP_MIB },
    });
    const thread = {
      worker,
      isReady: false,
      job: undefined,
      timer: undefined,
      look: undefined,
    } as Thread;
    this.#threads.add(thread);
    for (const table of this.#tables) {
      // Numbers are not always given in order.
      if (table !== undefined) worker.postMessage({ what: "table", table });
    }
    worker.on("message", (answer: FromWorker) => {
      if (answer.what === "ready") thread.isReady = true;
      else {
        this.#answered(thread, answer);
        if (answer.isSpent === true) this.#replace(thread);
      }
      this.#pump();
    });
    worker.on("error", (error: Error & { code?: string }) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      const why = isMemory
        ? `needed more than ${XENIC_PROCEDURE_HEAP_MIB} MiB of heap at the NIC`
        : `has ended its worker: ${error.message}`;
      this.#end(thread, why);
    });
    // By process.exit, for one.
    worker.on("exit", () => this.#end(thread, "has ended its worker"));
  }

  #answered(thread: Thread, answer: RunAnswer): void {
    const { job } = thread;
    thread.timer?.cancel();
    thread.look?.cancel();
    thread.job = undefined;
    job?.done(answer);
  }

  /** For the next run, before the one that was given back is long over. */
  #replace(thread: Thread): void {
    if (!this.#threads.delete(thread) || this.#isClosed) return;
    void thread.worker.terminate();
    this.#start();
  }

  /** A worker is of no more use. */
  #end(thread: Thread, why: string): void {
    if (!this.#threads.delete(thread) || this.#isClosed) return;
    void thread.worker.terminate();
    const result = errorWords("SITU_PROCEDURE", `procedure ${thread.job?.name} ${why}`);
    this.#answered(thread, { what: "done", writes: [], result });
    // One that cannot even be started is not started all the time.
    if (thread.isReady) this.#start();
    else realClock.after(RESTART_MS, () => this.#isClosed || this.#start());
  }
}

const RESTART_MS = 1_000;

const ITEM_BYTES = 48;

/** What a row of a table takes in a message at most. */
export function rowRoom({ shape }: OpenedTable): number {
  return ITEM_BYTES + 4 * shape.valueWords;
}

export function tooLarge(what: string, bytes: number): SituError {
  return new SituError(
    "SITU_TOO_LARGE",
    `${what} uses rows with room for ${bytes} bytes, and one transaction may use ${XENIC_TRANSACTION_BYTES}: use fewer rows at once, or give their table a smaller rowBytes`,
  );
}

export function tooManyBytes(what: string, bytes: number): SituError {
  const why = `${what} has ${bytes} bytes, and at the NIC it may have ${XENIC_TRANSACTION_BYTES}`;
  return new SituError("SITU_TOO_LARGE", why);
}

function errorWords(code: string, message: string): Int32Array {
  return wordsOf({ isDone: false, code, message });
}
