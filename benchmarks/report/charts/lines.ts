// What the charts with lines share: the look of a line, its marks, and the name at its end.
import type { EngineName } from "../../engines/engine.ts";
import type { LogAxis } from "./log-axis.ts";
import { engineSymbols, type Palette } from "./palette.ts";

export type Pair = readonly [number | string, number];

/** Marks are apart from the line's points: a curve has a hundred of those. */
export function engineLine(
  engine: EngineName,
  title: string,
  palette: Palette,
  points: readonly Pair[],
  marks: readonly Pair[],
): object[] {
  const color = palette.engines[engine];
  const isSitu = engine === "situ";
  return [
    {
      type: "line",
      silent: true,
      data: points,
      showSymbol: false,
      z: isSitu ? 5 : 3,
      lineStyle: {
        color,
        width: isSitu ? 3.5 : 2,
        type: engine === "cluster" ? "dashed" : "solid",
      },
      endLabel: {
        show: true,
        formatter: title,
        color: palette.text,
        fontSize: 12,
        lineHeight: 15,
        // Some curves end in the middle of others.
        textBorderColor: palette.ground,
        textBorderWidth: 3,
        fontWeight: isSitu ? "bold" : "normal",
        distance: 8,
      },
      labelLayout: { moveOverlap: "shiftY" },
    },
    {
      type: "scatter",
      silent: true,
      data: marks,
      z: isSitu ? 6 : 4,
      symbol: engineSymbols[engine],
      symbolSize: isSitu ? 9 : 8,
      itemStyle: {
        color: engine === "cluster" ? palette.ground : color,
        borderColor: engine === "cluster" ? color : palette.ground,
        borderWidth: engine === "cluster" ? 2 : 1,
        opacity: 1,
      },
    },
  ];
}

export function axisLook(palette: Palette): object {
  return {
    axisLine: { show: true, onZero: false, lineStyle: { color: palette.axis } },
    axisTick: { show: false, lineStyle: { color: palette.axis } },
    axisLabel: { color: palette.muted, fontSize: 12, hideOverlap: false },
    nameTextStyle: { color: palette.muted, fontSize: 12 },
    splitLine: { show: true, lineStyle: { color: palette.grid } },
    minorTick: { show: false },
  };
}

/** An upright axis with the lines and labels of `scale`. */
export function logAxisLook(
  { min, max, ticks }: LogAxis,
  palette: Palette,
  format: (value: number) => string,
): object {
  return {
    ...axisLook(palette),
    type: "log",
    min,
    max,
    axisTick: { show: false, customValues: ticks },
    axisLabel: { customValues: ticks, color: palette.muted, fontSize: 12, formatter: format },
  };
}
