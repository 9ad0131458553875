// The bars of the snapshots bench and how its measurements become figures.
import { type Percentiles, percentilesOf, renderDistribution } from "../harness/distribution.ts";
import {
  compared,
  counted,
  type Figure,
  timesFasterThanAll,
  timesMore,
} from "../harness/figures.ts";
import { formatNanoseconds, formatRate } from "../harness/report.ts";
import { timingOf } from "../harness/rounds.ts";
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import type { BesideScanner } from "./beside-scanner.ts";
import type { BuildsMeasured } from "./builds.ts";
import type { Embedded } from "./embedded.ts";

const bars = {
  "transfer-unversioned": { atLeast: 0.97 },
  "transfer-while-scanning": { atLeast: 0.8 },
  "snapshot-aborts": { atMost: 0 },
  "scan-vs-embedded": { atLeast: 3 },
  "ordered-get-vs-embedded": { atLeast: 2 },
  "range-vs-embedded": { atLeast: 2 },
  "snapshot-time": { atMost: 50 },
} as const;

export function buildsFigure({ ratios, versioned, unversioned }: BuildsMeasured): Figure {
  const name = "transfer-unversioned";
  return compared(
    name,
    bars[name],
    ratios,
    { name: "versions possible, no snapshot open", values: versioned },
    { name: "versions compiled out", values: unversioned },
    "per second",
  );
}

export function scannerFigures({ transfers, conflicts, snapshotNs }: BesideScanner): Figure[] {
  return [
    timesMore(
      "transfer-while-scanning",
      bars["transfer-while-scanning"],
      { name: "one snapshot scanned all the time", values: transfers["one-snapshot"] },
      { name: "scanner idle", values: transfers.idle },
    ),
    counted("snapshot-aborts", bars["snapshot-aborts"], conflicts, "aborts"),
    snapshotFigure(snapshotNs),
  ];
}

export function embeddedFigures({ lmdb, sqlite, timings }: Embedded): Figure[] {
  const versus = (name: keyof typeof bars, operation: string): Figure =>
    timesFasterThanAll(name, bars[name], timings, `situ ${operation}`, [
      { peer: lmdb, name: `lmdb ${operation}` },
      { peer: sqlite, name: `sqlite ${operation}` },
    ]);
  return [
    versus("scan-vs-embedded", "scan"),
    versus("ordered-get-vs-embedded", "get"),
    versus("range-vs-embedded", "range"),
  ];
}

function snapshotFigure(nanoseconds: readonly number[]): Figure {
  const inMicroseconds = (percentiles: Percentiles): Percentiles =>
    Object.fromEntries(Object.entries(percentiles).map(([name, value]) => [name, value / 1000]));
  const distribution = inMicroseconds(percentilesOf(nanoseconds));
  const figure = counted("snapshot-time", bars["snapshot-time"], distribution.p50, "µs");
  return { ...figure, distribution };
}

export function notesOf(
  builds: BuildsMeasured,
  beside: BesideScanner,
  embedded: Embedded,
): string[] {
  const { transfers, passes, versionsKept, versionsMoved, snapshotNs, whileTaking } = beside;
  const relative = (kind: keyof typeof transfers): string => {
    const { median, min, max } = summarize(ratiosPerRound(transfers[kind], transfers.idle));
    return `${median.toFixed(2)} x (${min.toFixed(2)} .. ${max.toFixed(2)})`;
  };
  const passesOf = (kind: keyof typeof passes): string => summarize(passes[kind]).median.toFixed(1);
  const limit = summarize(timingOf(embedded.timings, "bare-scan into objects")).median;
  return [
    spreadOfPairs(builds),
    `one snapshot scanned again and again: transfers ${relative("one-snapshot")}, ` +
      `${passesOf("one-snapshot")} passes per second`,
    `a new snapshot for each pass: transfers ${relative("new-snapshots")}, ` +
      `${passesOf("new-snapshots")} passes per second`,
    `the other process scans memory of its own: transfers ${relative("bare")}, ` +
      `${passesOf("bare")} passes per second`,
    `${versionsKept} versions kept for the snapshots, ${versionsMoved} of them moved on`,
    `a bare loop makes row objects of memory in ${formatNanoseconds(limit)} each`,
    ...renderDistribution(
      `${snapshotNs.length} snapshots beside ${formatRate(whileTaking)} transfers`,
      snapshotNs,
    ),
  ];
}

function spreadOfPairs({ pairRatios }: BuildsMeasured): string {
  const sorted = [...pairRatios].sort((left, right) => left - right);
  const at = (part: number): string => sorted[Math.floor(part * (sorted.length - 1))].toFixed(3);
  return (
    `with and without versions, ${sorted.length} pairs of turns in all processes: ` +
    `median ${at(0.5)}, half of them within ${at(0.25)} .. ${at(0.75)}`
  );
}
