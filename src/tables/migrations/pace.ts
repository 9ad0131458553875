/**
 * Work in the background that leaves the machine to others. After some milliseconds of work it rests for
 * longer than it has worked, if others have committed anything meanwhile; else it goes on at once.
 */

import type { Executor } from "../../engine/executor.ts";
import { COMMITS, counterSum } from "../../engine/slot.ts";
import { nowMs, sleep } from "../../runtime/clock.ts";
import { MIGRATION_REST, MIGRATION_SLICE_MS } from "../../runtime/limits.ts";

export class Pace {
  readonly #executor: Executor;
  #sinceMs = nowMs();
  #others: number;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#others = this.#commitsOfOthers();
  }

  /** To be called after each piece of work. */
  async rest(): Promise<void> {
    const workedMs = nowMs() - this.#sinceMs;
    if (workedMs < MIGRATION_SLICE_MS) return;
    const others = this.#commitsOfOthers();
    if (others !== this.#others) await sleep(workedMs * MIGRATION_REST);
    this.#others = this.#commitsOfOthers();
    this.#sinceMs = nowMs();
  }

  #commitsOfOthers(): number {
    const { memory, counters, counterBase } = this.#executor;
    return counterSum(memory.control, "commits") - counters[counterBase + COMMITS];
  }
}
