// What a run says to a script that started it. A broken invariant is worth more than any figure; a
// peer that could not be had is none of our failures, and the report names it.
import type { Cell } from "../report/result.ts";

export function exitCodeOf(cells: readonly Pick<Cell, "entries">[]): 0 | 1 {
  const isBroken = cells.some(({ entries }) =>
    entries.some(({ problems = [] }) => problems.length > 0),
  );
  return isBroken ? 1 : 0;
}
