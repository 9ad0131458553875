// What the mere possibility of snapshots costs: transfers with no snapshot open, against a build
// that cannot keep versions. The difference sought is smaller than the noise of the machine, so
// there are many short turns, and a ratio for each pair of them: two executors that run the same
// optimized code differ by 1 % then. It is also smaller than V8's luck with what it inlines: two
// copies of the very same build differ by 8 % from one process to the next, up or down. So there
// are many processes too.
import type { BenchOptions } from "../harness/bench-options.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import type { StorePlace } from "../memory/situ.ts";
import type { BuildRates, BuildsTask, MeasureBuilds } from "./builds-process.ts";

export interface BuildsMeasured {
  /** The median of the pairs, one entry per process. */
  readonly ratios: readonly number[];
  readonly versioned: readonly number[];
  readonly unversioned: readonly number[];
  /** Of all pairs in all processes. */
  readonly pairRatios: readonly number[];
}

const sliceMs = 25;
/** V8 is done after a third of it. */
const warmUpMs = 600;
const processesPerRound = 4;

export async function measureBuilds(
  place: StorePlace,
  rows: number,
  { quick, rounds, seed }: BenchOptions,
  progress: Progress,
): Promise<BuildsMeasured> {
  const ratios: number[] = [];
  const versioned: number[] = [];
  const unversioned: number[] = [];
  const pairRatios: number[] = [];
  const processes = rounds * processesPerRound;
  for (let index = 0; index < processes; index++) {
    progress.show(`process ${index + 1} of ${processes}: with and without versions`);
    const first = index % 2 === 0 ? "situ" : "situ-unversioned";
    const task: BuildsTask = { ...place, rows, seed: seed + index, first };
    const process = await MeasuringProcess.start<MeasureBuilds, BuildRates>(
      new URL("./builds-process.js", import.meta.url),
      task,
    );
    const rates = await process.ask({ warmUpMs, sliceMs, pairs: quick ? 10 : 16 });
    await process.stop();
    const pairs = ratiosPerRound(rates.situ, rates["situ-unversioned"]);
    ratios.push(summarize(pairs).median);
    versioned.push(summarize(rates.situ).median);
    unversioned.push(summarize(rates["situ-unversioned"]).median);
    pairRatios.push(...pairs);
  }
  return { ratios, versioned, unversioned, pairRatios };
}
