/**
 * What an open database does in the background, on timers that keep no process alive: it looks for
 * dead executors, after old versions, after memory that others could use, and whether the store's memory is
 * still there. Nothing depends on it, and any process may do it.
 */

import { clearInterval, setInterval } from "node:timers";
import type { Executor } from "../../engine/executor.ts";
import { AssertionError } from "../../runtime/assert.ts";
import { KEEPER_MS, SWEEP_MS, SWEPT_SLOTS } from "../../runtime/limits.ts";

export class Upkeep {
  readonly #executor: Executor;
  readonly #sweeper: NodeJS.Timeout;
  #keeper: NodeJS.Timeout | undefined;
  #hasWarned = false;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#sweeper = setInterval(() => quietly(() => this.#sweep()), SWEEP_MS).unref();
  }

  /** Has versions moved and collected often, for as long as there are snapshots in the store. */
  lookAfterVersions(): void {
    this.#keeper ??= setInterval(() => {
      const { registry, keeper } = this.#executor.versions;
      // The last round comes after the last snapshot.
      if (registry.inUse === 0) {
        clearInterval(this.#keeper);
        this.#keeper = undefined;
      }
      quietly(() => keeper.tick());
    }, KEEPER_MS).unref();
  }

  stop(): void {
    clearInterval(this.#sweeper);
    clearInterval(this.#keeper);
  }

  #warnOfLoss(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { message } = this.#executor.durability.failed("nothing more is committed");
    process.emitWarning(message, { code: "SITU_MEMORY_LOST" });
  }

  #sweep(): void {
    const { slabs, versions, durability } = this.#executor;
    if (durability.lookAtMemory()) this.#warnOfLoss();
    this.#executor.sweepSome(SWEPT_SLOTS);
    versions.keeper.tick();
    slabs.tidy();
  }
}

/** Work that can wait, where nobody could do anything about its failure: another round will come. */
function quietly(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (error instanceof AssertionError) throw error;
  }
}
