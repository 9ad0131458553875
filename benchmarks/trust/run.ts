// Runs the measures of a bench that consists of independent ones, or those that the command line names.

import { parseBenchArguments } from "../harness/bench-options.ts";
import { describeMachine } from "../harness/machine.ts";
import { createProgress } from "../harness/progress.ts";
import { printReport } from "../harness/report.ts";
import { releaseAll } from "../harness/resources.ts";
import type { TrustMeasure, TrustResult } from "./measure.ts";

export async function runMeasures(bench: string, measures: readonly TrustMeasure[]): Promise<void> {
  try {
    await runWanted(bench, measures);
  } finally {
    // Also after a failure: the children and the folders in /dev/shm must not stay.
    releaseAll();
  }
}

async function runWanted(bench: string, measures: readonly TrustMeasure[]): Promise<void> {
  const { names, options } = parseBenchArguments(process.argv.slice(2));
  const wanted = names.filter((name) => name !== bench);
  const unknown = wanted.filter((name) => !measures.some((measure) => measure.name === name));
  if (unknown.length > 0) {
    const known = measures.map(({ name }) => name).join(", ");
    throw new TypeError(`${bench} has no measure "${unknown.join(" ")}"; it has ${known}`);
  }
  const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
  const progress = createProgress();
  const results: TrustResult[] = [];
  for (const measure of measures) {
    if (wanted.length > 0 && !wanted.includes(measure.name)) continue;
    progress.show(measure.name);
    results.push(await measure.run({ options, progress, memoryFolder }));
  }
  progress.clear();
  printReport(
    {
      bench,
      conditions: [...describeMachine(), `seed ${options.seed}`],
      timings: [],
      figures: results.flatMap(({ figures }) => figures),
      notes: results.flatMap(({ notes }) => notes),
    },
    options.json,
  );
}
