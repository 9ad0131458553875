/** Runs before vitest's first worker and after the last: starts the guard of the run. */

import { type Run, startRun } from "../../benchmarks/harness/guard/guard.ts";

// Each tier is a project of vitest, which loads this file and calls it: they share one run.
const shared = globalThis as { situRun?: { readonly run: Run; tiers: number } | undefined };

/** Returns what vitest calls at the end of the run, which fails if anything was left behind. */
export function setup(): () => Promise<void> {
  shared.situRun ??= { run: startRun(), tiers: 0 };
  const current = shared.situRun;
  current.tiers++;
  return async () => {
    if (--current.tiers > 0) return;
    shared.situRun = undefined;
    const leftovers = await current.run.end();
    if (leftovers.length === 0) return;
    throw new Error(`the tests left behind:\n${leftovers.join("\n")}`);
  };
}
