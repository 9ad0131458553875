/**
 * What an open process does about the log: it sees to it that there is a log thread somewhere. If
 * there is none, or the one there was is dead, this process starts one. A thread takes tens of
 * milliseconds of processor time to start, so of many processes only one does: the one whose slot is in the
 * word LOG_STARTER, until its thread has begun, or it dies, or has not managed in
 * LOG_START_PATIENCE_MS. Should two threads be started all the same, the word LOG_WRITER decides, and the
 * other ends at once.
 *
 * How soon a dead writer is noticed: by a process that waits for the log, at once; otherwise within
 * LOG_WATCH_MS of an event loop that turns. Where many processes have the store open they share the watch:
 * each looks less often, and all of them together as often as one alone, at most LOG_SHARED_WATCH_MS apart.
 * While the log rests nothing is to be written, and no timer is set for the watch: it is part of the
 * background sweep (`watchLogWriter`). The commit that ends a rest starts the timer of its process, and the
 * sweep those of the others.
 */

import { clearTimeout, setTimeout } from "node:timers";
import type { Worker } from "node:worker_threads";
import { FAILED } from "../engine/durability.ts";
import type { Executor } from "../engine/executor.ts";
import { isOpener, slotsInUse } from "../engine/slot.ts";
import { LOG_STARTER, LOG_WRITER } from "../memory/control.ts";
import { nowMs } from "../runtime/clock.ts";
import { LOG_SHARED_WATCH_MS, LOG_START_PATIENCE_MS, LOG_WATCH_MS } from "../runtime/limits.ts";
import { ENDED, type LogTask, STOP } from "./tasks.ts";
import { startThread } from "./thread.ts";

export type LogThreadOptions = Omit<LogTask, "role" | "signals" | "starter">;

/** A thread that ended is not started again before this; twice as long after each error in a row. */
const RESTART_MS = 100;
const MAX_RESTART_MS = 5_000;

/** A thread that was started here. It is told to end, and tells that it has, in shared memory. */
interface LogThread {
  readonly worker: Worker;
  readonly signals: Int32Array<SharedArrayBuffer>;
  readonly ended: Promise<void>;
}

/** What wakes the threads of this process that may be resting, when it ends without closing its stores. */
const sleepers = new Set<() => void>();

function onExit(wake: () => void): void {
  if (sleepers.size === 0) process.on("exit", wakeAll);
  sleepers.add(wake);
}

function notOnExit(wake: () => void): void {
  sleepers.delete(wake);
  if (sleepers.size === 0) process.off("exit", wakeAll);
}

function wakeAll(): void {
  for (const wake of sleepers) wake();
}

export class LogThreadKeeper {
  readonly #executor: Executor;
  readonly #options: LogThreadOptions;
  /** None while the log rests. */
  #watch: NodeJS.Timeout | undefined;
  /** Another process that starts a thread, and since when this one has known. */
  #starter = 0;
  #starterMs = 0;
  /** The last one that was started; it may have ended, and its event not have come. */
  #thread: LogThread | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;
  #restartMs = RESTART_MS;
  /** What was warned of last. */
  #warnedOf = "";

  constructor(executor: Executor, options: LogThreadOptions) {
    this.#executor = executor;
    this.#options = options;
    const { durability } = executor;
    durability.ensureLogWriter = () => {
      this.#look();
      this.#watch ??= this.#watchAfter(LOG_WATCH_MS);
    };
    durability.watchLogWriter = () => {
      this.#look();
      if (!durability.rests) this.#watch ??= this.#watchAfter(this.#shareMs());
    };
    durability.ensureLogWriter();
  }

  #watchAfter(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const { rests } = this.#executor.durability;
      this.#look();
      this.#watch = rests ? undefined : this.#watchAfter(this.#shareMs());
    }, ms).unref();
  }

  /** How often this process looks, of all that have the store open. */
  #shareMs(): number {
    const { control } = this.#executor.memory;
    let openers = 0;
    for (let slot = 0; slot < slotsInUse(control); slot++) if (isOpener(control, slot)) openers++;
    return Math.min(LOG_WATCH_MS * Math.max(openers, 1), LOG_SHARED_WATCH_MS);
  }

  /** Ends the thread of this process, if it has one, after a last round of the log. */
  async stop(): Promise<void> {
    clearTimeout(this.#watch);
    const { durability } = this.#executor;
    durability.ensureLogWriter = () => {};
    durability.watchLogWriter = () => {};
    const thread = this.#thread;
    if (thread === undefined) return;
    thread.worker.ref();
    Atomics.store(thread.signals, STOP, 1);
    durability.call();
    await thread.ended;
    this.#giveUpStarting();
  }

  #giveUpStarting(): void {
    const { slot, memory } = this.#executor;
    Atomics.compareExchange(memory.control.i32, LOG_STARTER, slot + 1, 0);
  }

  /** Also called by one who waits for the disk, and whose event loop does not turn. */
  #look(): void {
    if (this.#isRunning || nowMs() - this.#startedMs < this.#restartMs) return;
    // A log that has failed is not written; memory that is lost cannot be joined by a new thread.
    if (this.#executor.durability.state >= FAILED) return;
    const holder = Atomics.load(this.#executor.memory.control.i32, LOG_WRITER) - 1;
    // A dead one's recovery gives the role back.
    if (holder >= 0 && !this.#executor.recoverIfDead(holder)) return;
    if (this.#mayStart()) this.#start();
  }

  /** Whether it is this process that starts a thread now. */
  #mayStart(): boolean {
    const { i32 } = this.#executor.memory.control;
    const mine = this.#executor.slot + 1;
    const starter = Atomics.compareExchange(i32, LOG_STARTER, 0, mine);
    if (starter === 0 || starter === mine) return true;
    if (starter !== this.#starter) {
      this.#starter = starter;
      this.#starterMs = nowMs();
    }
    const isLate = nowMs() - this.#starterMs >= LOG_START_PATIENCE_MS;
    // A dead one's recovery has cleared the word.
    const seen = this.#executor.recoverIfDead(starter - 1) ? 0 : starter;
    if (seen !== 0 && !isLate) return false;
    return Atomics.compareExchange(i32, LOG_STARTER, seen, mine) === seen;
  }

  get #isRunning(): boolean {
    return this.#thread !== undefined && Atomics.load(this.#thread.signals, ENDED) === 0;
  }

  #start(): void {
    const signals = new Int32Array(new SharedArrayBuffer(8));
    const starter = this.#executor.slot + 1;
    const worker = startThread({ role: "log", signals, starter, ...this.#options });
    // It must not keep a process alive that has forgotten to close its store.
    worker.unref();
    this.#startedMs = nowMs();
    worker.on("error", (error) => this.#warn(error));
    const ended = new Promise<void>((resolve) => {
      worker.on("exit", (code) => {
        if (code === 0) this.#restartMs = RESTART_MS;
        // Also for one that did not get so far as to say it.
        Atomics.store(signals, ENDED, 1);
        if (this.#thread?.signals === signals) this.#giveUpStarting();
        resolve();
      });
    });
    this.#thread = { worker, signals, ended };
    const { durability } = this.#executor;
    const wake = (): void => {
      Atomics.store(signals, STOP, 1);
      durability.call();
    };
    onExit(wake);
    void ended.then(() => notOnExit(wake));
  }

  #warn(error: Error): void {
    this.#restartMs = Math.min(2 * this.#restartMs, MAX_RESTART_MS);
    if (error.message === this.#warnedOf) return;
    this.#warnedOf = error.message;
    process.emitWarning(`the thread that writes the log has failed: ${error.message}`, {
      code: "SITU_LOG_THREAD",
      detail: error.stack,
    });
  }
}
