/** Bulk operations on their way, in one go; and what is told of their plans. */

import type { Choice, Plan } from "../../tables/bulk/plan.ts";
import type { AggregateRun, ChangeRun, Deleted, Updated } from "../../tables/bulk/runs.ts";
import type { ChosenPlace } from "../../tables/device/place-cost.ts";
import type { Program } from "../../tables/expressions/program.ts";

/** What takes many steps. */
export interface Steps {
  /** False when all is done. */
  step(): boolean;
}

/** All steps, one after the other. */
export function finish<Run extends Steps>(run: Run): Run {
  while (run.step());
  return run;
}

/** What the caller of a program is told. */
export function resultOf(program: Program, run: AggregateRun | ChangeRun): unknown {
  if ("result" in run) return run.result();
  const { matched, changed } = run;
  const deleted: Deleted = { matched, place: "host" };
  const updated: Updated = { matched, changed, place: "host" };
  return program.task.kind === "delete" ? deleted : updated;
}

/** What `explain` tells. */
export function planOf(
  program: Program,
  { path, gathersFirst, candidates, why }: Choice,
  chosenPlace?: ChosenPlace,
): Plan {
  const chosen = candidates.find(
    ({ access, index }) => access === path.by && index === path.index,
  )!;
  const { table, task } = program;
  return {
    ...chosen,
    table,
    operation: task.kind,
    ...(chosenPlace === undefined
      ? { place: "host" as const }
      : { place: chosenPlace.place, places: chosenPlace.costs }),
    gathersFirst: gathersFirst && (task.kind === "update" || task.kind === "delete"),
    candidates,
    why: chosenPlace === undefined ? why : `${why}; ${chosenPlace.why}`,
  };
}

/** The limit of a `select`, which was checked with its other options. */
export function limitOf(options: unknown): number {
  const { limit = Number.POSITIVE_INFINITY } = (options ?? {}) as { readonly limit?: number };
  return limit;
}
