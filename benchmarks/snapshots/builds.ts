// What the mere possibility of snapshots costs: transfers with no snapshot open, against a build
// that cannot keep versions. The difference sought is smaller than the noise of the machine and
// than what V8 makes of the same code from one process to the next. So there are many short turns,
// a ratio for each pair of them, and several processes.
import type { BenchOptions } from "../harness/options.ts";
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
  for (let round = 0; round < rounds; round++) {
    progress.show(`process ${round + 1} of ${rounds}: with and without versions`);
    const first = round % 2 === 0 ? "situ" : "situ-unversioned";
    const task: BuildsTask = { ...place, rows, seed: seed + round, first };
    const process = await MeasuringProcess.start<MeasureBuilds, BuildRates>(
      new URL("./builds-process.js", import.meta.url),
      task,
    );
    const rates = await process.ask({ warmUpMs: 1000, sliceMs, pairs: quick ? 20 : 40 });
    await process.stop();
    const pairs = ratiosPerRound(rates.situ, rates["situ-unversioned"]);
    ratios.push(summarize(pairs).median);
    versioned.push(summarize(rates.situ).median);
    unversioned.push(summarize(rates["situ-unversioned"]).median);
    pairRatios.push(...pairs);
  }
  return { ratios, versioned, unversioned, pairRatios };
}
