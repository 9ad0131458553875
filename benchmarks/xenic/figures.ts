// Figures 8 and 9 of the paper Xenic, from the project's own coroutines on simulated servers with models of the paper's NICs. Virtual time:
// the load of this machine does not matter.
import { compare, FIGURE_8 } from "../../simulation/xenic/figures/figure8.ts";
import {
  DRTM_9A,
  DRTM_9B,
  FIGURE_9A,
  FIGURE_9B,
  retwisRate,
  type Step,
  smallbankMedianUs,
} from "../../simulation/xenic/figures/figure9.ts";
import type { System } from "../../simulation/xenic/figures/measure.ts";

const DRTM: System = { kind: "drtm+h" };

/** Line by line, as they are ready. */
export function* tellFigures(quick: boolean): Generator<string> {
  const scale = quick ? 0.5 : 1;
  yield* figure8(scale);
  yield "";
  yield* figure9a(scale);
  yield "";
  yield* figure9b(scale);
}

function* figure8(scale: number): Generator<string> {
  yield* [
    "Figure 8, six simulated servers: Xenic against DrTM+H's mixture of places (bars: factor 1.25, 8 points)",
    "",
    "| workload | Xenic, DrTM+H: M/s a server | times | paper | factor | | median at low load: µs | lower | paper | points | |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
  ];
  for (const row of FIGURE_8) {
    const { xenic, drtm, peak, lowerPercent } = compare(row, scale);
    const cells = [
      row.workload.name,
      `${xenic.peak.mtps.toFixed(2)}, ${drtm.peak.mtps.toFixed(2)}`,
      peak.toFixed(2),
      row.peak,
      factor(peak, row.peak),
      how(row.isPeakFitted),
      `${xenic.low.medianUs.toFixed(1)}, ${drtm.low.medianUs.toFixed(1)}`,
      `${lowerPercent.toFixed(0)} %`,
      `${row.lowerPercent} %`,
      (lowerPercent - row.lowerPercent).toFixed(1),
      how(row.isMedianFitted),
    ];
    yield `| ${cells.join(" | ")} |`;
  }
}

function figure9a(scale: number): Generator<string> {
  const title = "Figure 9a: throughput of Retwis against the baseline (follows; bar: factor 1.25)";
  return ablation(title, FIGURE_9A, DRTM_9A, (system) => retwisRate(system, scale), "M/s");
}

function figure9b(scale: number): Generator<string> {
  const title =
    "Figure 9b: median latency of SmallBank against the baseline (the first two steps are fitted; bar: factor 1.25)";
  return ablation(title, FIGURE_9B, DRTM_9B, (system) => smallbankMedianUs(system, scale), "µs");
}

function* ablation(
  title: string,
  steps: readonly Step[],
  drtm: number,
  measured: (system: System) => number,
  unit: string,
): Generator<string> {
  yield* [
    title,
    "",
    `| | ${unit} | against the baseline | paper | factor |`,
    "|---|---|---|---|---|",
  ];
  let first = 0;
  for (const { name, system, paper } of [...steps, { name: "DrTM+H", system: DRTM, paper: drtm }]) {
    const value = measured(system);
    if (first === 0) first = value;
    const cells = [
      name,
      value.toFixed(2),
      (value / first).toFixed(2),
      paper.toFixed(2),
      factor(value / first, paper),
    ];
    yield `| ${cells.join(" | ")} |`;
  }
}

function factor(simulated: number, paper: number): string {
  return Math.max(simulated / paper, paper / simulated).toFixed(2);
}

function how(isFitted: boolean): string {
  return isFitted ? "fitted" : "follows";
}
