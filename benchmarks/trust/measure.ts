// What one file of this folder measures. Each measure makes its own stores and removes them.

import type { BenchOptions } from "../harness/bench-options.ts";
import type { Figure } from "../harness/figures.ts";
import type { createProgress } from "../harness/progress.ts";

export interface TrustContext {
  readonly options: BenchOptions;
  readonly progress: ReturnType<typeof createProgress>;
  /** Where stores keep their memory: a folder of a file system in memory. */
  readonly memoryFolder: string;
}

export interface TrustResult {
  readonly figures: readonly Figure[];
  /** How it was measured, and what a figure alone does not tell. */
  readonly notes: readonly string[];
}

export interface TrustMeasure {
  /** `npm run bench -- trust <name>` runs this one alone. */
  readonly name: string;
  run(context: TrustContext): Promise<TrustResult>;
}
