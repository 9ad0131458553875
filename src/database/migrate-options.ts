/** What `db.migrate` takes, checked. */

import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { show } from "../runtime/show.ts";
import type { MigrationProgress } from "../tables/migrations/context.ts";
import type { MigrationStep } from "../tables/migrations/steps.ts";
import type { Table } from "../tables/table.ts";

/** What `db.migrate` takes beside the steps. */
export interface MigrateOptions {
  /** New declarations: what they add, widen or index anew is done too. */
  readonly tables?: readonly Table[];
  /** Returns the plan and changes nothing. */
  readonly dryRun?: boolean;
  /** Called while rows are copied, by this process or another one. */
  readonly onProgress?: (progress: MigrationProgress) => void;
  /**
   * Ends the call with SITU_ABORTED, at the next step: a wait for transactions that are open goes on up to
   * `timeoutMs`. What was begun is finished by whoever migrates next, or opens the store with an index that is missing.
   */
  readonly signal?: AbortSignal;
}

export function checkedMigration(
  steps: readonly MigrationStep[],
  options: MigrateOptions,
): MigrateOptions {
  checkSteps("migrate", steps);
  refuseUnknownOptions("migrate", options, ["tables", "dryRun", "onProgress", "signal"]);
  const { tables = [], onProgress, signal } = options;
  if (!Array.isArray(tables) || tables.some((table) => typeof table?.ordinal !== "number")) {
    throw new SituError("SITU_CONFIG", "migrate: tables must be a list of what table() returns");
  }
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw new SituError("SITU_CONFIG", "migrate: onProgress must be a function");
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new SituError("SITU_CONFIG", "migrate: signal must be an AbortSignal");
  }
  return options;
}

/** Refuses what is no list of steps. */
export function checkSteps(call: string, steps: unknown): void {
  const isList = Array.isArray(steps) && steps.every((each) => typeof each?.step === "string");
  if (isList) return;
  throw new SituError(
    "SITU_CONFIG",
    `${call}: steps are a list of what addField(), dropField() and so on return, not ${show(steps)}`,
  );
}
