// The line from the least to the most that was measured, with a short cross line at both ends.
import type { CustomSeriesRenderItemReturn } from "echarts";

export interface Point {
  readonly x: number;
  readonly y: number;
}

const endSize = 4;
/** Shorter than this, only the ends would be seen: a smudge. */
const leastLength = 3;

export function whisker(from: Point, to: Point, color: string): CustomSeriesRenderItemReturn[] {
  const style = { stroke: color, lineWidth: 1.5, fill: "none" };
  const isFlat = from.y === to.y;
  if (Math.abs(from.x - to.x) + Math.abs(from.y - to.y) < leastLength) return [];
  const end = ({ x, y }: Point): CustomSeriesRenderItemReturn => ({
    type: "line",
    shape: isFlat
      ? { x1: x, x2: x, y1: y - endSize, y2: y + endSize }
      : { x1: x - endSize, x2: x + endSize, y1: y, y2: y },
    style,
  });
  return [
    { type: "line", shape: { x1: from.x, y1: from.y, x2: to.x, y2: to.y }, style },
    end(from),
    end(to),
  ];
}
