/**
 * How tools read a whole store while others work in it: through a snapshot, step by step, letting
 * the event loop turn in between. A snapshot that was released because writers needed the room is
 * no fault of the store: the work that read through it begins again, a few times.
 */

import type { Executor } from "../../engine/executor.ts";
import { readAtSnapshot } from "../../engine/run.ts";
import { Snapshot } from "../../engine/snapshots/snapshot.ts";
import { Transaction } from "../../engine/transaction.ts";
import { nowMs, turn } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { KEEPER_MS, SCAN_YIELD_MS } from "../../runtime/limits.ts";
import type { Run } from "../structures/reader.ts";

/** Tools may take long; whoever needs the room that their snapshot holds has it released. */
const TOOL_SNAPSHOT_MS = 3600 * 1000;
/** How often a piece of work begins again with another snapshot. */
const SNAPSHOT_ATTEMPTS = 3;

export interface Progress {
  /** What is being read just now, as in "table accounts". */
  readonly subject: string;
  /** Rows, or index entries, that have been read of it so far. */
  readonly rows: number;
}

export interface ToolOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called between pieces of work. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** Some work of a tool, in pieces. */
export type Work<T> = Generator<void, T>;

export class ToolRun {
  readonly executor: Executor;
  readonly #options: ToolOptions;
  readonly #tx: Transaction;
  #snapshot: Snapshot | undefined;
  #turnMs = nowMs();
  #keeperMs = nowMs();
  /** What is being worked on, for those who want to know. */
  subject = "";
  rows = 0;

  constructor(executor: Executor, options: ToolOptions) {
    this.executor = executor;
    this.#options = options;
    this.#tx = new Transaction(executor);
  }

  /** Runs work that reads through one snapshot, again with a later one if that was released. */
  async withSnapshot<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      this.#check();
      const { executor } = this;
      this.#snapshot = Snapshot.take(executor, TOOL_SNAPSHOT_MS, executor.timeoutMs);
      try {
        return await work();
      } catch (error) {
        const isTooOld = error instanceof SituError && error.code === "SITU_SNAPSHOT_TOO_OLD";
        if (!isTooOld || attempt >= SNAPSHOT_ATTEMPTS) throw error;
      } finally {
        // Who closes the store releases what is registered for its slot.
        if (this.#isOpen) this.#snapshot.release();
        this.#snapshot = undefined;
      }
    }
  }

  /** Runs one step through the snapshot. */
  readonly run: Run = (step, argument) =>
    readAtSnapshot(this.executor, this.#tx, this.#snapshot!, step, argument);

  /** Does work piece by piece; `after` each one there may be something to do with its outcome. */
  async complete<T>(work: Work<T>, after: () => void = () => {}): Promise<T> {
    for (;;) {
      const step = work.next();
      after();
      if (step.done === true) return step.value;
      if (nowMs() - this.#turnMs >= SCAN_YIELD_MS) await this.#turn();
    }
  }

  async #turn(): Promise<void> {
    this.#options.onProgress?.({ subject: this.subject, rows: this.rows });
    await turn();
    this.#turnMs = nowMs();
    this.#check();
    if (this.#turnMs - this.#keeperMs < KEEPER_MS) return;
    this.#keeperMs = this.#turnMs;
    this.executor.versions.keeper.tick();
  }

  get #isOpen(): boolean {
    return this.executor.memory.control.i32.length > 0;
  }

  #check(): void {
    this.#options.signal?.throwIfAborted();
    if (!this.#isOpen) throw new SituError("SITU_CLOSED", "the store was closed meanwhile");
  }
}
