// `npm run bench -- trust`: whether the promises at the edges hold: a second memory refused, memory that can
// really be used, large transactions that get through, an event loop that turns, a store that idles.
import { describeMachine } from "../harness/machine.ts";
import { parseBenchArguments } from "../harness/options.ts";
import { createProgress } from "../harness/progress.ts";
import { printReport } from "../harness/report.ts";
import { releaseAll } from "../harness/resources.ts";
import { churn } from "./churn.ts";
import { eventLoop } from "./event-loop.ts";
import { idle } from "./idle.ts";
import { joining } from "./joining.ts";
import type { TrustMeasure, TrustResult } from "./measure.ts";
import { mixedRows } from "./mixed-rows.ts";
import { secondMemory } from "./second-memory.ts";
import { starvation } from "./starvation.ts";

const measures: readonly TrustMeasure[] = [
  secondMemory,
  mixedRows,
  churn,
  starvation,
  eventLoop,
  idle,
  joining,
];

async function main(): Promise<void> {
  const { names, options } = parseBenchArguments(process.argv.slice(2));
  const wanted = names.filter((name) => name !== "trust");
  const unknown = wanted.filter((name) => !measures.some((measure) => measure.name === name));
  if (unknown.length > 0) {
    const known = measures.map(({ name }) => name).join(", ");
    throw new TypeError(`trust has no measure "${unknown.join(" ")}"; it has ${known}`);
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
      bench: "trust",
      conditions: [...describeMachine(), `seed ${options.seed}`],
      timings: [],
      figures: results.flatMap(({ figures }) => figures),
      notes: results.flatMap(({ notes }) => notes),
    },
    options.json,
  );
}

try {
  await main();
} finally {
  // Also after a failure: the children and the folders in /dev/shm must not stay.
  releaseAll();
}
