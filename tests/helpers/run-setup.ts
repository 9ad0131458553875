/** Runs before vitest's first worker and after the last: starts the guard of the run. */

import { startRun } from "../../benchmarks/harness/guard/guard.ts";

/** Returns what vitest calls at the end of the run, which fails if anything was left behind. */
export function setup(): () => Promise<void> {
  const run = startRun();
  return async () => {
    const leftovers = await run.end();
    if (leftovers.length === 0) return;
    throw new Error(`the tests left behind:\n${leftovers.join("\n")}`);
  };
}
