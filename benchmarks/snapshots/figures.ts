// The bars of the snapshots bench and how its measurements become figures.
import { type Percentiles, percentilesOf, renderDistribution } from "../harness/distribution.ts";
import {
  compared,
  counted,
  type Figure,
  meets,
  timesFasterThanAll,
  timesMore,
} from "../harness/figures.ts";
import { formatNanoseconds, formatRate } from "../harness/report.ts";
import { timingOf } from "../harness/rounds.ts";
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import { type Beside, type BesideScanner, quietRounds } from "./beside-scanner.ts";
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

/**
 * The mean of all processes, not the median: what differs between them is V8's luck with the one
 * build or the other, to both sides alike, and then a mean wavers less.
 */
export function buildsFigure({ ratios, versioned, unversioned }: BuildsMeasured): Figure {
  const name = "transfer-unversioned";
  const figure = compared(
    name,
    bars[name],
    ratios,
    { name: "versions possible, no snapshot open", values: versioned },
    { name: "versions compiled out", values: unversioned },
    "per second",
  );
  const ratio = Math.exp(average(ratios.map(Math.log)));
  return { ...figure, ratio, met: meets(bars[name], ratio) };
}

export function scannerFigures(beside: BesideScanner): Figure[] {
  const { transfers, conflicts, snapshotNs } = beside;
  const rounds = quietRounds(beside, "one-snapshot");
  const inRounds = (values: readonly number[]): number[] => rounds.map((round) => values[round]);
  return [
    timesMore(
      "transfer-while-scanning",
      bars["transfer-while-scanning"],
      { name: "one snapshot scanned all the time", values: inRounds(transfers["one-snapshot"]) },
      { name: "scanner idle", values: inRounds(transfers.idle) },
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
  const { versionsKept, versionsMoved, snapshotNs, whileTaking } = beside;
  const limit = summarize(timingOf(embedded.timings, "bare-scan into objects")).median;
  return [
    spreadOfBuilds(builds),
    besideNote("one snapshot scanned again and again", beside, "one-snapshot"),
    besideNote("a new snapshot for each pass", beside, "new-snapshots"),
    besideNote("the other process scans memory of its own", beside, "bare"),
    waitedNote(beside),
    `${versionsKept} versions kept for the snapshots, ${versionsMoved} of them moved on`,
    `a bare loop makes row objects of memory in ${formatNanoseconds(limit)} each`,
    ...renderDistribution(
      `${snapshotNs.length} snapshots beside ${formatRate(whileTaking)} transfers`,
      snapshotNs,
    ),
  ];
}

function besideNote(what: string, beside: BesideScanner, kind: Beside): string {
  const { transfers, passes } = beside;
  const rounds = quietRounds(beside, kind);
  const ratios = ratiosPerRound(transfers[kind], transfers.idle);
  const { median, min, max } = summarize(rounds.map((round) => ratios[round]));
  return (
    `${what}: transfers ${median.toFixed(2)} x (${min.toFixed(2)} .. ${max.toFixed(2)}, ` +
    `${rounds.length} rounds), ${summarize(passes[kind]).median.toFixed(1)} passes per second`
  );
}

function waitedNote({ repeated, waited }: BesideScanner): string {
  const { median, max } = summarize(Object.values(waited).flat());
  const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;
  return (
    `the writer waited ${percent(median)} of its time for a processor, ${percent(max)} at most; ` +
    `${repeated} turns were measured again because of other programs, disturbed rounds left out`
  );
}

/** The processes disagree by more than the bar leaves: how sure is their mean? */
function spreadOfBuilds({ ratios, pairRatios }: BuildsMeasured): string {
  const sorted = [...pairRatios].sort((left, right) => left - right);
  const at = (part: number): string => sorted[Math.floor(part * (sorted.length - 1))].toFixed(3);
  const logarithms = ratios.map(Math.log);
  const mean = average(logarithms);
  const variance = average(logarithms.map((value) => (value - mean) ** 2));
  const error = Math.sqrt(variance / Math.max(1, ratios.length - 1));
  return (
    `with and without versions in ${ratios.length} processes: mean ${Math.exp(mean).toFixed(3)} ` +
    `with a standard error of ${error.toFixed(3)}; of ${sorted.length} pairs of turns ` +
    `half lie within ${at(0.25)} .. ${at(0.75)}`
  );
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
