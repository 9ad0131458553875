// The table of a cell, as texts: what Markdown prints and what stands behind a chart.
import {
  engineTitle,
  formatCount,
  formatNanoseconds,
  formatPart,
  formatRange,
  formatRate,
  formatTimes,
  formatTimesRange,
} from "./format.ts";
import {
  againstBestPeers,
  bestPeerOf,
  inOrder,
  isMeasured,
  isPeer,
  percentile,
  situOf,
  throughputRatio,
} from "./measures.ts";
import { notCompared, reason } from "./missing.ts";
import { fallenBehind } from "./peer-wins.ts";
import type { BarResult, Cell, Entry, SuiteResult } from "./result.ts";

export interface TextTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const nothing = "–";

export function cellTable(result: SuiteResult, cell: Cell): TextTable {
  const isOpen = cell.load.kind === "open";
  return {
    head: [
      "engine",
      "transactions/s",
      "min–max",
      "Situ / engine",
      "p50",
      "p99",
      "p99.9",
      "in flight",
      "retries",
      "refused",
      ...(isOpen ? ["dropped"] : []),
    ],
    rows: inOrder(cell.entries).map((entry) => entryRow(result, cell, entry, isOpen)),
  };
}

function entryRow(result: SuiteResult, cell: Cell, entry: Entry, isOpen: boolean): string[] {
  const title = engineTitle(result, entry.engine);
  if (!isMeasured(entry)) {
    const empty = Array<string>(isOpen ? 9 : 8).fill(nothing);
    return [title, `not measured: ${reason(entry.missing)}`, ...empty];
  }
  const situ = situOf(cell);
  const latency = (percent: number): string =>
    orNothing(percentile(entry.latency, percent), formatNanoseconds);
  return [
    title,
    formatCount(entry.throughput.median),
    formatRange(entry.throughput),
    situ !== undefined && isPeer(entry.engine)
      ? formatTimes(throughputRatio(situ, entry).median)
      : nothing,
    latency(50),
    latency(99),
    latency(99.9),
    orNothing(entry.inFlight, String),
    orNothing(entry.retriesPerTransaction, formatPart),
    orNothing(entry.refusedPart, formatPart),
    ...(isOpen ? [orNothing(entry.droppedPart, formatPart)] : []),
  ];
}

function orNothing(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? nothing : format(value);
}

/** What a reader should know about a cell, from the suite and from the numbers. */
export function cellNotes(result: SuiteResult, cell: Cell): string[] {
  const others = notCompared(result, cell);
  return [
    ...cell.notes,
    ...fallenBehind(result, cell),
    ...(others.length > 0 ? [`Not compared here: ${others.join(", ")}.`] : []),
  ];
}

export type Verdict = "met" | "missed" | "not measured";

export function verdictOf({ ratio, met }: BarResult): Verdict {
  if (ratio === undefined || met === undefined) return "not measured";
  return met ? "met" : "missed";
}

/** "5 of 7 bars met, 1 missed, 1 not measured." */
export function barsSentence(bars: readonly BarResult[]): string {
  const count = (verdict: Verdict): number =>
    bars.filter((bar) => verdictOf(bar) === verdict).length;
  if (bars.length === 0) return "No bars were part of this run.";
  const [missed, unknown] = [count("missed"), count("not measured")];
  return [
    `${count("met")} of ${bars.length} bars met`,
    ...(missed > 0 ? [`${missed} missed`] : []),
    ...(unknown > 0 ? [`${unknown} not measured`] : []),
  ].join(", ");
}

/** A bar may be against one peer by name; where another is better, that one is said too. */
export function opponent(result: SuiteResult, bar: BarResult): string {
  if (bar.best === undefined) return "the best peer";
  const named = engineTitle(result, bar.best);
  const cell = result.cells.find(({ id }) => id === bar.cell);
  const first = cell === undefined ? undefined : bestPeerOf(cell);
  if (first === undefined || first.engine === bar.best) return `${named}, the best peer`;
  return `${named}; ${engineTitle(result, first.engine)} is the best peer`;
}

/** How fast Situ is, and against whom: the headline workloads without our goals for them. */
export function headlineTable(result: SuiteResult): TextTable {
  const rows = againstBestPeers(result).bars.map((bar) => {
    const cell = result.cells.find(({ id }) => id === bar.cell);
    const entry = (engine: Entry["engine"] | undefined): Entry | undefined =>
      cell?.entries.find((entry) => entry.engine === engine);
    const rate = (entry: Entry | undefined): string =>
      entry?.throughput === undefined ? nothing : formatRate(entry.throughput.median);
    const peer = bar.ratio === undefined ? undefined : entry(bar.best);
    return [
      bar.title,
      rate(cell && situOf(cell)),
      peer === undefined ? nothing : `${engineTitle(result, peer.engine)} ${rate(peer)}`,
      bar.ratio === undefined ? nothing : formatTimes(bar.ratio),
      bar.spread === undefined ? nothing : formatTimesRange(bar.spread),
    ];
  });
  return { head: ["workload", "Situ", "best peer", "ratio", "min–max"], rows };
}

export function barsTable(result: SuiteResult): TextTable {
  return {
    head: ["workload", "bar", "reached", "min–max", "against", "verdict"],
    rows: result.bars.map((bar) => {
      const verdict = verdictOf(bar);
      return [
        bar.title,
        `${bar.atLeast}×`,
        bar.ratio === undefined ? "–" : formatTimes(bar.ratio),
        bar.spread === undefined ? "–" : formatTimesRange(bar.spread),
        bar.best === undefined ? "–" : opponent(result, bar),
        verdict === "not measured" ? `not measured: ${reason(bar.missing)}` : verdict,
      ];
    }),
  };
}
