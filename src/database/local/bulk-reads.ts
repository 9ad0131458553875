/** Aggregates and selections that read through a snapshot: one of the caller's, or one of their own. */

import type { Executor } from "../../engine/executor.ts";
import { planProgram } from "../../tables/bulk/count-rows.ts";
import { programCursor } from "../../tables/bulk/cursor.ts";
import { AggregateRun, selectPlan } from "../../tables/bulk/runs.ts";
import type { Program } from "../../tables/expressions/program.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";
import type { ScanPlan, ScanSource } from "../../tables/scan-plan.ts";
import { resultOf } from "../run/bulk-run.ts";
import { finishPaged, PagedSource } from "../run/paged-source.ts";

/** Runs an aggregate while the event loop turns, and lets go of what it read through. */
export async function aggregateOver(
  executor: Executor,
  source: ScanSource,
  store: TableStore,
  program: Program,
): Promise<unknown> {
  try {
    const { path } = planProgram(store, program, source);
    const cursor = programCursor(store, program, path);
    const paged = new PagedSource(source, executor);
    const run = new AggregateRun(paged, cursor, store.table, program);
    return resultOf(program, await finishPaged(run, paged));
  } finally {
    source.release();
  }
}

/** How a selection reads its rows. */
export function selectScan(
  store: TableStore,
  program: Program,
  source: ScanSource,
  limit: number,
): ScanPlan<never> {
  const { path } = planProgram(store, program, source);
  return selectPlan(() => programCursor(store, program, path), limit) as ScanPlan<never>;
}
