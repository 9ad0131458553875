// One cell: latency by percentile. The scale is that of HDR plots: every step to the right is one
// nine more, so the few slow ones get as much room as the many quick ones.
import { engineTitle, formatNanoseconds, trimZeros } from "../format.ts";
import { inOrder, percentile } from "../measures.ts";
import type { Cell, Entry, Latency, SuiteResult } from "../result.ts";
import { draw, type Frame } from "./draw.ts";
import { axisLook, engineLine, logAxisLook, type Pair } from "./lines.ts";
import { logAxis } from "./log-axis.ts";

/** What the axis names, and where curves have marks. */
export const percents = [50, 90, 99, 99.9, 99.99] as const;

/** Nines: 90 % is 1, 99 % is 2. */
export function nines(percent: number): number {
  return -Math.log10(1 - percent / 100);
}

export function hasCurve(entry: Entry): entry is Entry & { readonly latency: Latency } {
  return entry.latency !== undefined && curve(entry.latency).length > 1;
}

/** From the median on, as far as there is a transaction that such a percentile speaks of. */
export function curve({ count, percentiles }: Latency): Pair[] {
  const last = Math.min(lastPercent, 100 * (1 - 1 / count));
  return percentiles
    .filter(
      ({ percent, nanoseconds }) => percent >= percents[0] && percent <= last && nanoseconds > 0,
    )
    .map(({ percent, nanoseconds }) => [nines(percent), nanoseconds]);
}

const lastPercent = percents[percents.length - 1];

export function latencyChart(result: SuiteResult, cell: Cell, frame: Frame): string {
  const { palette, width } = frame;
  const look = axisLook(palette);
  const entries = inOrder(cell.entries).filter(hasCurve);
  const values = entries.flatMap(({ latency }) => curve(latency).map(([, value]) => value));
  const scale = logAxis(values);
  const ticks = percents.map(nines);
  const option = {
    grid: { left: 58, right: 92, top: 14, bottom: 40 },
    xAxis: {
      ...look,
      type: "value",
      min: ticks[0],
      max: ticks[ticks.length - 1],
      name: "percentile of the transactions",
      nameLocation: "middle",
      nameGap: 26,
      axisTick: { show: true, customValues: ticks, lineStyle: { color: palette.axis } },
      axisLabel: {
        color: palette.muted,
        fontSize: 12,
        customValues: ticks,
        formatter: (value: number) => percentName(value, width),
      },
      splitLine: { show: false },
    },
    yAxis: logAxisLook(scale, palette, (value) => trimZeros(formatNanoseconds(value))),
    series: entries.flatMap(({ engine, latency }) => {
      const points = curve(latency);
      const end = points[points.length - 1][0] as number;
      const marks = percents
        .filter((percent) => nines(percent) <= end + 1e-9)
        .map((percent): Pair => [nines(percent), percentile(latency, percent) ?? Number.NaN]);
      return engineLine(engine, engineTitle(result, engine), palette, points, marks);
    }),
  };
  return draw(option, frame, `Latency by percentile, ${cell.title}`);
}

function percentName(value: number, width: number): string {
  const percent = percents.find((candidate) => Math.abs(nines(candidate) - value) < 1e-6);
  if (percent === undefined) return "";
  return width < 420 ? `${percent}` : `${percent} %`;
}
