/**
 * Reads that are awaited, of tables on the device: a step that needs a page which is not in the buffer is cut short
 * with PAGE_MISS, the page is read while the event loop turns, and the step is carried out again. Cursors can repeat a
 * step that was cut short. Where pages keep leaving the buffer before they are used, a step waits for the disk itself.
 *
 * Only for those who await: `for … of` and `toArray` have nowhere to wait, and read through the source itself.
 */

import type { Executor } from "../../engine/executor.ts";
import { PAGE_MISS } from "../../engine/signals.ts";
import type { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { DEVICE_MISS_ROUNDS } from "../../runtime/limits.ts";
import type { ScanSource } from "../../tables/scan-plan.ts";
import type { Steps } from "./bulk-run.ts";
import { AsyncRowIterator, CursorBatches, type OpenedScan } from "./row-scan.ts";

export class PagedSource implements ScanSource {
  readonly #source: ScanSource;
  readonly #executor: Executor;
  /** Times that the step was cut short. */
  #misses = 0;

  constructor(source: ScanSource, executor: Executor) {
    this.#source = source;
    this.#executor = executor;
  }

  run<A, T>(step: (tx: EngineTransaction, argument: A) => T, argument: A): T {
    const loads = this.#executor.pageLoads;
    if (loads === undefined) return this.#source.run(step, argument);
    const result = this.#source.run((tx: EngineTransaction, given: A): T => {
      loads.beginOperation(this.#misses < DEVICE_MISS_ROUNDS, tx);
      try {
        return step(tx, given);
      } finally {
        loads.endOperation();
      }
    }, argument);
    this.#misses = 0;
    return result;
  }

  check(): void {
    this.#source.check();
  }

  release(): void {
    this.#source.release();
  }

  /** After a step that has failed: reads the pages that it has asked for, if that was why. */
  async load(error: unknown): Promise<void> {
    if (error !== PAGE_MISS) throw error;
    this.#misses++;
    await this.#executor.pageLoads!.load();
  }
}

/** All steps of what reads through the source, with turns of the event loop in between. */
export async function finishPaged<Run extends Steps>(run: Run, source: PagedSource): Promise<Run> {
  for (;;) {
    if (isTurnDue()) await nextTurn();
    try {
      if (!run.step()) return run;
    } catch (error) {
      await source.load(error);
    }
  }
}

/** An iteration that waits for its pages. */
export function pagedRows<Row>(
  executor: Executor,
  open: () => OpenedScan<Row>,
): AsyncIterableIterator<Row> {
  let paged: PagedSource | undefined;
  const batches = new CursorBatches<Row>(() => {
    const { source, plan } = open();
    paged = new PagedSource(source, executor);
    return { source: paged, plan };
  });
  return new AsyncRowIterator(batches, async () => {
    for (;;) {
      try {
        return batches.read();
      } catch (error) {
        if (paged === undefined) throw error;
        await paged.load(error);
      }
    }
  });
}
