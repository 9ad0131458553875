// Throughput by number of processes: a line per engine, with the spread at each point.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";
import type { EngineName } from "../../engines/engine.ts";
import { engineTitle, formatRate, formatTimes, trimZeros } from "../format.ts";
import type { ScalingGroup } from "../groups.ts";
import { inOrder, isMeasured, type MeasuredEntry } from "../measures.ts";
import type { SuiteResult } from "../result.ts";
import { draw, type Frame } from "./draw.ts";
import { axisLook, engineLine, logAxisLook, type Pair } from "./lines.ts";
import { logAxis } from "./log-axis.ts";
import { whisker } from "./whisker.ts";

/** An engine's entries at each number of processes; undefined where it was not measured. */
export interface ScalingLine {
  readonly engine: EngineName;
  readonly entries: readonly (MeasuredEntry | undefined)[];
}

/** Lines of one point say nothing about scaling. */
export function scalingLines({ cells }: ScalingGroup): ScalingLine[] {
  const last = cells[cells.length - 1];
  const engines = inOrder([...last.entries, ...cells.flatMap(({ entries }) => entries)]).map(
    ({ engine }) => engine,
  );
  return [...new Set(engines)]
    .map((engine) => ({
      engine,
      entries: cells.map(({ entries }) => {
        const entry = entries.find((candidate) => candidate.engine === engine);
        return entry !== undefined && isMeasured(entry) ? entry : undefined;
      }),
    }))
    .filter(({ entries }) => entries.filter((entry) => entry !== undefined).length > 1);
}

export function scalingChart(result: SuiteResult, group: ScalingGroup, frame: Frame): string {
  const { palette } = frame;
  const look = axisLook(palette);
  const lines = scalingLines(group);
  const names = group.cells.map(({ processes }) => String(processes));
  const spreads = lines.flatMap(({ engine, entries }) =>
    entries.flatMap((entry, index) =>
      isDrawn(entry) ? [{ engine, index, throughput: entry.throughput }] : [],
    ),
  );
  const scale = logAxis(spreads.flatMap(({ throughput: { min, max } }) => [min, max]));
  const renderItem = (
    { dataIndex }: { dataIndex: number },
    api: CustomSeriesRenderItemAPI,
  ): CustomSeriesRenderItemReturn => {
    const { engine, index, throughput } = spreads[dataIndex];
    const [x, bottom] = api.coord([index, throughput.min]);
    const [, top] = api.coord([index, throughput.max]);
    const children = whisker({ x, y: bottom }, { x, y: top }, palette.engines[engine]);
    return { type: "group", children } as CustomSeriesRenderItemReturn;
  };
  const option = {
    grid: { left: 66, right: 126, top: 14, bottom: 42 },
    xAxis: {
      ...look,
      type: "category",
      boundaryGap: false,
      data: names,
      name: "processes",
      nameLocation: "middle",
      nameGap: 26,
      splitLine: { show: false },
    },
    // Who doubles climbs equally steep, whether from ten or from a million.
    yAxis: logAxisLook(scale, palette, (value) => trimZeros(formatRate(value))),
    series: [
      ...lines.flatMap(({ engine, entries }) => {
        const points = entries.flatMap((entry, index): Pair[] =>
          isDrawn(entry) ? [[names[index], entry.throughput.median]] : [],
        );
        if (points.length === 0) return [];
        const gain = formatTimes(points[points.length - 1][1] / points[0][1]);
        const label = `${engineTitle(result, engine)} ${gain}`;
        return engineLine(engine, label, palette, points, points);
      }),
      {
        type: "custom",
        silent: true,
        data: spreads.map(({ index, throughput }) => [index, throughput.median]),
        renderItem,
      },
    ],
  };
  return draw(option, frame, `Throughput by number of processes, ${group.title}`);
}

/** Who did nothing in a round has no place on a logarithmic scale; the table has it. */
function isDrawn(entry: MeasuredEntry | undefined): entry is MeasuredEntry {
  return entry !== undefined && entry.throughput.min > 0;
}
