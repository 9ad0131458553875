// A distribution of times: percentiles from Node's HDR histogram, and a picture of it.
import { createHistogram } from "node:perf_hooks";
import { formatNanoseconds } from "./report.ts";

/** By name, in nanoseconds. */
export type Percentiles = Readonly<Record<string, number>>;

const wanted = [50, 90, 99, 99.9];
const widest = 40;

export function percentilesOf(nanoseconds: readonly number[]): Percentiles {
  const histogram = createHistogram({ figures: 3 });
  for (const value of nanoseconds) histogram.record(Math.max(1, Math.round(value)));
  const percentiles = wanted.map((percent) => [`p${percent}`, histogram.percentile(percent)]);
  return { ...Object.fromEntries(percentiles), max: histogram.max };
}

/** One line of percentiles, then one for each doubling of the time. */
export function renderDistribution(name: string, nanoseconds: readonly number[]): string[] {
  const percentiles = Object.entries(percentilesOf(nanoseconds))
    .map(([percentile, value]) => `${percentile} ${formatNanoseconds(value)}`)
    .join(", ");
  const counts: number[] = [];
  for (const value of nanoseconds) {
    const octave = Math.max(0, Math.floor(Math.log2(value)));
    counts[octave] = (counts[octave] ?? 0) + 1;
  }
  const most = Math.max(...counts.filter((count) => count !== undefined));
  const first = counts.findIndex((count) => count !== undefined);
  const lines = Array.from({ length: counts.length - first }, (_, index) => {
    const count = counts[first + index] ?? 0;
    const bar = "#".repeat(Math.ceil((count / most) * widest));
    const from = formatNanoseconds(2 ** (first + index)).padStart(10);
    return `  from ${from} ${String(count).padStart(7)} ${bar}`.trimEnd();
  });
  return [`${name}: ${percentiles}`, ...lines];
}
