/**
 * The result in one look: for each headline workload, Situ beside a peer, in multiples of that peer,
 * from zero. The report also draws the goal of each workload as a cross line, with a verdict; the chart
 * of the README is for users, and has none.
 */
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "echarts";
import { engineTitle, formatRate, formatTimes } from "../format.ts";
import { situOf } from "../measures.ts";
import { reason } from "../missing.ts";
import type { BarResult, Entry, SuiteResult } from "../result.ts";
import { draw, type Frame } from "./draw.ts";
import type { Palette } from "./palette.ts";

const rowHeight = 58;
const narrowRowHeight = 92;

/** Of "16.4× 1.31 M/s", with room for wide fonts. */
const labelWidth = 140;

/** Below this, titles stand above their bars. */
const narrowWidth = 560;

export function headlineHeight({ bars }: SuiteResult, width: number): number {
  return bars.length * (width < narrowWidth ? narrowRowHeight : rowHeight) + 8;
}

export function headlineChart(result: SuiteResult, frame: Frame, showGoals = true): string {
  const { width, height, palette } = frame;
  const isNarrow = width < narrowWidth;
  const left = isNarrow ? 2 : Math.round(width * 0.3);
  const right = isNarrow ? 122 : showGoals ? 244 : labelWidth;
  const renderItem = (
    { dataIndex }: { dataIndex: number },
    api: CustomSeriesRenderItemAPI,
  ): CustomSeriesRenderItemReturn => {
    const [zero, middle] = api.coord([0, dataIndex]);
    const bar = result.bars[dataIndex];
    const at = (times: number): number => api.coord([times, dataIndex])[0];
    const y = isNarrow ? middle + 18 : middle;
    const title = isNarrow
      ? text(zero, y - 26, bar.title, palette.text, { verticalAlign: "bottom", ...wrapped(width) })
      : text(left - 14, y, bar.title, palette.text, {
          align: "right",
          ...wrapped(left - 18),
        });
    const verdict =
      bar.ratio === undefined || !showGoals
        ? []
        : [verdictText(bar, palette, width - 4, isNarrow ? y + 8.5 : y - 10)];
    return {
      type: "group",
      children: [title, ...row(result, bar, palette, zero, at, y, showGoals), ...verdict],
    } as CustomSeriesRenderItemReturn;
  };
  const option = {
    grid: { left, right, top: 4, bottom: 4 },
    xAxis: { type: "value", show: false, min: 0, max: most(result, showGoals) },
    yAxis: { type: "category", inverse: true, show: false, data: result.bars.map((_, row) => row) },
    series: [
      {
        type: "custom",
        silent: true,
        clip: false,
        data: result.bars.map((_, index) => [0, index]),
        renderItem,
      },
    ],
  };
  const name = "Situ against a peer with the same durability, by workload";
  return draw(option, { width, height, palette }, name);
}

/** Fonts differ by system; some are a fifth wider than what ECharts assumes. */
function wrapped(width: number): object {
  return { width: width * 0.8, overflow: "break", lineHeight: 17 };
}

/** Situ's bar above the middle line of the row, the peer's below. */
function row(
  result: SuiteResult,
  bar: BarResult,
  palette: Palette,
  zero: number,
  at: (times: number) => number,
  y: number,
  showGoals: boolean,
): object[] {
  if (bar.ratio === undefined) {
    const why = `not measured: ${reason(bar.missing)}`;
    return [text(zero, y, why, palette.muted, { width: 300, overflow: "truncate" })];
  }
  const { situ, peer } = sides(result, bar);
  const end = at(bar.ratio);
  const goal = at(bar.atLeast);
  // Beside the bar, unless the line of the goal would go through it.
  const isInTheWay = showGoals && goal > end && goal - end < labelWidth;
  const labelX = (isInTheWay ? goal : end) + 10;
  // They say why one bar is longer; latencies of an open loop have the same ones.
  const hasRates = bar.measure === undefined;
  const rates = {
    situ:
      !hasRates || situ?.throughput === undefined
        ? ""
        : `{rate|${formatRate(situ.throughput.median)}}`,
    peer:
      !hasRates || peer?.throughput === undefined ? "" : `  ${formatRate(peer.throughput.median)}`,
  };
  const peerName = bar.best === undefined ? "best peer" : engineTitle(result, bar.best);
  const peerColor = bar.best === undefined ? palette.muted : palette.engines[bar.best];
  const strong = { fontWeight: "bold", fontSize: 15, rich: { rate: rich(palette) } };
  const own = situ?.engine ?? "situ";
  return [
    bandFrom(zero, y - 20, end, 20, palette.engines[own]),
    text(labelX, y - 10, `${formatTimes(bar.ratio)}${rates.situ}`, palette.text, strong),
    bandFrom(zero, y + 3, at(1), 10, peerColor),
    ...(showGoals ? [goalLine(goal, y, palette)] : []),
    text(at(1) + 8, y + 8.5, `${peerName}${rates.peer}`, palette.muted, { fontSize: 12 }),
  ];
}

function goalLine(x: number, y: number, palette: Palette): object {
  const shape = { x1: x, y1: y - 24, x2: x, y2: y + 3 };
  return { type: "line", shape, style: { stroke: palette.text, lineWidth: 2 } };
}

/** In a column of its own, at the right. */
function verdictText(bar: BarResult, palette: Palette, x: number, y: number): object {
  const isMet = bar.met === true;
  const words = `bar ${bar.atLeast}×: ${isMet ? "met" : "missed"}`;
  return text(x, y, words, isMet ? palette.good : palette.bad, { fontSize: 12, align: "right" });
}

function rich(palette: Palette): object {
  return { fill: palette.muted, fontSize: 12, fontWeight: "normal", padding: [0, 0, 0, 8] };
}

function bandFrom(x: number, y: number, end: number, height: number, fill: string): object {
  const width = Math.max(1, end - x);
  return { type: "rect", shape: { x, y, width, height, r: [0, 3, 3, 0] }, style: { fill } };
}

function text(x: number, y: number, content: string, fill: string, more: object): object {
  const style = { x, y, text: content, fill, fontSize: 13, verticalAlign: "middle", ...more };
  return { type: "text", style };
}

function sides(result: SuiteResult, bar: BarResult): { situ?: Entry; peer?: Entry } {
  const cell = result.cells.find(({ id }) => id === bar.cell);
  if (cell === undefined) return {};
  const situ = situOf(cell);
  const peer = cell.entries.find(({ engine }) => engine === bar.best);
  return { ...(situ && { situ }), ...(peer && { peer }) };
}

function most({ bars }: SuiteResult, showGoals: boolean): number {
  return Math.max(
    1,
    ...bars.flatMap(({ ratio, atLeast }) =>
      ratio === undefined ? [] : showGoals ? [ratio, atLeast] : [ratio],
    ),
  );
}
