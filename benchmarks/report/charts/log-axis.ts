// The ends and the lines of a logarithmic axis. ECharts would begin and end it at powers of ten,
// which leaves most of a chart empty when the values span half a decade.

export interface LogAxis {
  readonly min: number;
  readonly max: number;
  /** Powers of ten; with others between them where there would be too few. */
  readonly ticks: readonly number[];
}

const enough = 3;

/** From the fewest lines to the most. */
const stepsToTry = [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]] as const;

/** Zero has no place on it. */
export function logAxis(values: readonly number[]): LogAxis {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (positive.length === 0) return { min: 1, max: 10, ticks: [1, 10] };
  const min = Math.min(...positive) / 1.4;
  const max = Math.max(...positive) * 1.4;
  const choices = stepsToTry.map((steps) => ticksBetween(min, max, steps));
  return { min, max, ticks: choices.find(({ length }) => length >= enough) ?? choices[2] };
}

function ticksBetween(min: number, max: number, steps: readonly number[]): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power++) {
    for (const step of steps) {
      // 10 ** -1 * 2 and its like are not exact; the label would show it.
      const tick = Number(`${step}e${power}`);
      if (tick >= min && tick <= max) ticks.push(tick);
    }
  }
  return ticks;
}
