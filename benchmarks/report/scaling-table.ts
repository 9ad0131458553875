// Throughput by number of processes, as texts.
import { scalingLines } from "./charts/scaling.ts";
import { engineTitle, formatCount, formatTimes, processesTitle } from "./format.ts";
import type { ScalingGroup } from "./groups.ts";
import type { SuiteResult } from "./result.ts";
import type { TextTable } from "./rows.ts";

export function scalingTable(result: SuiteResult, group: ScalingGroup): TextTable {
  return {
    head: [
      "engine",
      ...group.cells.map(({ processes }) => processesTitle(processes)),
      "last / first",
    ],
    rows: scalingLines(group).map(({ engine, entries }) => {
      const measured = entries.filter((entry) => entry !== undefined);
      const [first, last] = [measured[0], measured[measured.length - 1]];
      return [
        engineTitle(result, engine),
        ...entries.map((entry) =>
          entry === undefined ? "–" : `${formatCount(entry.throughput.median)}/s`,
        ),
        formatTimes(last.throughput.median / first.throughput.median),
      ];
    }),
  };
}
