/** Looks on from inside a store, without a part in its work: who writes the log, and how far it is. */

import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { counterSum } from "../../src/engine/slot.ts";
import { until } from "../helpers/engine-processes.ts";

export class LogWatch {
  readonly #executor: Executor;

  private constructor(executor: Executor) {
    this.#executor = executor;
  }

  static async open(path: string): Promise<LogWatch> {
    return new LogWatch(await attach(settingsOf({ path }), (attached) => attached.executor));
  }

  /** The process that writes the log, dead or alive. */
  get writer(): number | undefined {
    return this.#executor.durability.writer?.pid;
  }

  get durableEpoch(): number {
    return this.#executor.durability.epoch;
  }

  /** Waits until one of these processes writes the log; says which. */
  async writerAmong(pids: () => readonly number[], withinMs: number): Promise<number> {
    let found: number | undefined;
    await until(
      "a process that writes the log",
      () => {
        const { writer } = this;
        found = writer !== undefined && pids().includes(writer) ? writer : undefined;
        return found !== undefined;
      },
      withinMs,
    );
    return found!;
  }

  /** Waits until the log has got so far that a commit of now would be on disk. */
  async progress(withinMs: number): Promise<void> {
    const epoch = this.#executor.epochs.current();
    await until("the log moves", () => this.durableEpoch >= epoch, withinMs);
  }

  /** The transactions that were committed in this memory, by anyone. */
  get commits(): number {
    return counterSum(this.#executor.memory.control, "commits");
  }

  /** Waits until so many were committed. */
  async committed(commits: number, withinMs: number): Promise<void> {
    await until(`${commits} commits`, () => this.commits >= commits, withinMs);
  }

  close(): void {
    this.#executor.close();
  }
}
