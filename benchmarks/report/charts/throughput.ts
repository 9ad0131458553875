// One cell: a bar per engine from zero, so that lengths compare as the numbers do, with the spread
// and the number itself beside it.
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";
import { engineTitle, formatRate, formatTimes } from "../format.ts";
import { inOrder, isMeasured, isPeer, situOf, throughputRatio } from "../measures.ts";
import type { Cell, Entry, SuiteResult } from "../result.ts";
import { draw, type Frame } from "./draw.ts";
import { whisker } from "./whisker.ts";

const rowHeight = 38;
const nameWidth = 92;

export function throughputHeight(cell: Cell): number {
  return cell.entries.length * rowHeight + 12;
}

export function throughputChart(result: SuiteResult, cell: Cell, frame: Frame): string {
  const { palette, width } = frame;
  const entries = inOrder(cell.entries);
  const situ = situOf(cell);
  const isRoomy = width >= 420;
  const ratio = (entry: Entry): string => {
    if (!isRoomy || situ === undefined || !isMeasured(entry) || !isPeer(entry.engine)) return "";
    return `Situ ${formatTimes(throughputRatio(situ, entry).median)}`;
  };
  const renderItem = (
    { dataIndex }: { dataIndex: number },
    api: CustomSeriesRenderItemAPI,
  ): CustomSeriesRenderItemReturn => {
    const entry = entries[dataIndex];
    const { min, max, median } = entry.throughput ?? { min: 0, max: 0, median: 0 };
    const [left, y] = api.coord([min, dataIndex]);
    const [right] = api.coord([Math.max(max, median), dataIndex]);
    const isOwn = entry.engine === situ?.engine;
    return {
      type: "group",
      children: [
        ...whisker({ x: left, y }, { x: right, y }, palette.text),
        {
          type: "text",
          style: {
            x: right + 8,
            y,
            text: isMeasured(entry) ? formatRate(median) : "not measured",
            verticalAlign: "middle",
            fill: isMeasured(entry) ? palette.text : palette.muted,
            fontSize: 13,
            fontWeight: isOwn ? "bold" : "normal",
          },
        },
        {
          type: "text",
          style: {
            x: width - 2,
            y,
            text: ratio(entry),
            align: "right",
            verticalAlign: "middle",
            fill: palette.muted,
            fontSize: 12,
          },
        },
      ],
    } as CustomSeriesRenderItemReturn;
  };
  const option = {
    grid: { left: nameWidth, right: isRoomy ? 168 : 84, top: 4, bottom: 4 },
    xAxis: { type: "value", show: false, min: 0, max: most(cell) },
    yAxis: {
      type: "category",
      inverse: true,
      data: entries.map(({ engine }) => engineTitle(result, engine)),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: palette.axis } },
      axisLabel: {
        color: palette.text,
        fontSize: 13,
        formatter: (name: string, index: number) =>
          entries[index].engine === situ?.engine ? `{own|${name}}` : name,
        rich: { own: { fontWeight: "bold", color: palette.text, fontSize: 13 } },
      },
    },
    series: [
      {
        type: "bar",
        silent: true,
        barWidth: 20,
        // A hundredth of Situ would be less than a pixel; the number beside it tells the length.
        barMinHeight: 3,
        data: entries.map(({ engine, throughput }) => ({
          // A bar of no length would still be drawn.
          value: throughput?.median ?? "-",
          itemStyle: { color: palette.engines[engine], borderRadius: [0, 3, 3, 0] },
        })),
      },
      {
        type: "custom",
        silent: true,
        clip: false,
        z: 5,
        data: entries.map((_, index) => [0, index]),
        renderItem,
      },
    ],
  };
  return draw(option, frame, `Throughput, ${cell.title}: transactions per second by engine`);
}

function most(cell: Cell): number {
  return Math.max(1, ...cell.entries.filter(isMeasured).map(({ throughput }) => throughput.max));
}
