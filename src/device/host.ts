/**
 * What an open process does about the log: it sees to it that there is a device thread somewhere. If
 * there is none, or the one there was is dead, this process starts one; should two start one at the
 * same moment, the word DEVICE decides, and the other's thread ends at once.
 */

import { clearInterval, setInterval } from "node:timers";
import type { Worker } from "node:worker_threads";
import { FAILED } from "../engine/durability.ts";
import type { Executor } from "../engine/executor.ts";
import { DEVICE } from "../memory/control.ts";
import { nowMs } from "../runtime/clock.ts";
import { DEVICE_WATCH_MS } from "../runtime/limits.ts";
import { startThread } from "./thread.ts";
import { type DeviceTask, ENDED, STOP } from "./worker.ts";

export type DeviceOptions = Omit<DeviceTask, "role" | "signals">;

/** A thread that ended is not started again before this; twice as long after each error in a row. */
const RESTART_MS = 100;
const MAX_RESTART_MS = 5_000;

/** A thread that was started here. It is told to end, and tells that it has, in shared memory. */
interface DeviceThread {
  readonly worker: Worker;
  readonly signals: Int32Array<SharedArrayBuffer>;
  readonly ended: Promise<void>;
}

export class DeviceHost {
  readonly #executor: Executor;
  readonly #options: DeviceOptions;
  readonly #watch: NodeJS.Timeout;
  /** The last one that was started; it may have ended, and its event not have come. */
  #thread: DeviceThread | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;
  #restartMs = RESTART_MS;
  /** What was warned of last. */
  #warnedOf = "";

  constructor(executor: Executor, options: DeviceOptions) {
    this.#executor = executor;
    this.#options = options;
    executor.durability.ensureDevice = () => this.#look();
    this.#look();
    this.#watch = setInterval(() => this.#look(), DEVICE_WATCH_MS).unref();
  }

  /** Ends the thread of this process, if it has one, after a last round of the log. */
  async stop(): Promise<void> {
    clearInterval(this.#watch);
    this.#executor.durability.ensureDevice = () => {};
    const thread = this.#thread;
    if (thread === undefined) return;
    thread.worker.ref();
    Atomics.store(thread.signals, STOP, 1);
    this.#executor.durability.call();
    await thread.ended;
  }

  /** Also called by one who waits for the disk, and whose event loop does not turn. */
  #look(): void {
    if (this.#isRunning || nowMs() - this.#startedMs < this.#restartMs) return;
    // A log that has failed is not written; memory that is lost cannot be joined by a new thread.
    if (this.#executor.durability.state >= FAILED) return;
    const holder = Atomics.load(this.#executor.memory.control.i32, DEVICE) - 1;
    // A dead one's recovery gives the role back.
    if (holder >= 0 && !this.#executor.recoverIfDead(holder)) return;
    this.#start();
  }

  get #isRunning(): boolean {
    return this.#thread !== undefined && Atomics.load(this.#thread.signals, ENDED) === 0;
  }

  #start(): void {
    const signals = new Int32Array(new SharedArrayBuffer(8));
    const worker = startThread({ role: "log", signals, ...this.#options });
    // It must not keep a process alive that has forgotten to close its store.
    worker.unref();
    this.#startedMs = nowMs();
    worker.on("error", (error) => this.#warn(error));
    const ended = new Promise<void>((resolve) => {
      worker.on("exit", (code) => {
        if (code === 0) this.#restartMs = RESTART_MS;
        // Also for one that did not get so far as to say it.
        Atomics.store(signals, ENDED, 1);
        resolve();
      });
    });
    this.#thread = { worker, signals, ended };
  }

  #warn(error: Error): void {
    this.#restartMs = Math.min(2 * this.#restartMs, MAX_RESTART_MS);
    if (error.message === this.#warnedOf) return;
    this.#warnedOf = error.message;
    process.emitWarning(`the thread that writes the log has failed: ${error.message}`, {
      code: "SITU_DEVICE",
      detail: error.stack,
    });
  }
}
