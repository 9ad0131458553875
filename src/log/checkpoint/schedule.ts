/**
 * When checkpoints are taken: when somebody asks for one, when the log has grown by so much since
 * the last, or after some time if it has grown at all. Each is taken by a thread of its own, so
 * that the log does not wait for it.
 */

import type { Worker } from "node:worker_threads";
import { FAILED } from "../../engine/durability.ts";
import type { Executor } from "../../engine/executor.ts";
import { CHECKPOINTS_DONE, CHECKPOINTS_WANTED } from "../../memory/control.ts";
import { nowMs, wallClockMs } from "../../runtime/clock.ts";
import { CHECKPOINT_RETRY_MS, MAX_LOG_SEGMENTS } from "../../runtime/limits.ts";
import { addToFigure, figureOf, setFigure } from "../figures.ts";
import type { LogTask } from "../tasks.ts";
import { startThread } from "../thread.ts";
import type { TakenCheckpoint } from "./take.ts";

export class CheckpointSchedule {
  readonly #executor: Executor;
  readonly #task: LogTask;
  #worker: Worker | undefined;
  #ended: Promise<void> = Promise.resolve();
  #retryMs = 0;
  #isStopped = false;

  constructor(executor: Executor, task: LogTask) {
    this.#executor = executor;
    this.#task = task;
    const { memory } = executor;
    if (figureOf(memory, "checkpointAtMs") === 0)
      setFigure(memory, "checkpointAtMs", wallClockMs());
  }

  /** Starts a checkpoint if one is due and none is being taken. Whether one is. */
  look(): boolean {
    if (this.#worker === undefined && this.#isDue()) this.#start();
    return this.#worker !== undefined;
  }

  /**
   * Gives up one that is being taken: the next writer of the log will take it. But not for ever: if
   * all who write the log live shortly, one of them must wait for its checkpoint.
   */
  async stop(): Promise<void> {
    if (this.#isOverdue()) {
      this.look();
    } else {
      this.#isStopped = true;
      await this.#worker?.terminate();
    }
    await this.#ended;
  }

  #isOverdue(): boolean {
    const { memory, durability } = this.#executor;
    if (durability.state >= FAILED) return false;
    const segments = figureOf(memory, "segment") - figureOf(memory, "checkpointSegment");
    return this.#grown >= 2 * this.#task.checkpointBytes || segments >= MAX_LOG_SEGMENTS;
  }

  get #grown(): number {
    const { memory } = this.#executor;
    return figureOf(memory, "logBytes") - figureOf(memory, "checkpointLogBytes");
  }

  #isDue(): boolean {
    const { memory } = this.#executor;
    const { i32 } = memory.control;
    if (Atomics.load(i32, CHECKPOINTS_WANTED) !== Atomics.load(i32, CHECKPOINTS_DONE)) return true;
    if (nowMs() < this.#retryMs) return false;
    const { checkpointBytes, checkpointMs } = this.#task;
    if (this.#grown >= checkpointBytes || this.#isOverdue()) return true;
    return this.#grown > 0 && wallClockMs() - figureOf(memory, "checkpointAtMs") >= checkpointMs;
  }

  #start(): void {
    const { memory } = this.#executor;
    const wanted = Atomics.load(memory.control.i32, CHECKPOINTS_WANTED);
    const logBytes = figureOf(memory, "logBytes");
    const segment = figureOf(memory, "segment");
    const atMs = wallClockMs();
    const startMs = nowMs();
    let taken: TakenCheckpoint | undefined;
    const worker = startThread({ ...this.#task, role: "checkpoint" });
    this.#worker = worker;
    this.#ended = new Promise((resolve) => {
      worker.on("message", (message: TakenCheckpoint) => {
        taken = message;
      });
      // Told by the count of failed ones; what it left is removed by the next.
      worker.on("error", () => {});
      worker.on("exit", () => {
        this.#worker = undefined;
        resolve();
        // One that was given up is taken by the next writer of the log, for those who wait for it.
        if (taken === undefined && this.#isStopped) return;
        if (taken === undefined) {
          this.#retryMs = nowMs() + CHECKPOINT_RETRY_MS;
          addToFigure(memory, "failedCheckpoints", 1);
        } else {
          addToFigure(memory, "checkpoints", 1);
          setFigure(memory, "checkpointEpoch", taken.startEpoch);
          setFigure(memory, "checkpointBytes", taken.bytes);
          setFigure(memory, "checkpointMs", nowMs() - startMs);
          setFigure(memory, "checkpointIsDelta", taken.kind === "delta" ? 1 : 0);
          setFigure(memory, "checkpointAtMs", atMs);
          setFigure(memory, "checkpointLogBytes", logBytes);
          setFigure(memory, "checkpointSegment", segment);
        }
        Atomics.store(memory.control.i32, CHECKPOINTS_DONE, wanted);
      });
    });
  }
}
