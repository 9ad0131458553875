// The report: for people a table, for programs one JSON object on the last line.
import type { Bar, Figure } from "./figures.ts";
import type { Timing } from "./rounds.ts";
import { summarize } from "./statistics.ts";

export interface Report {
  readonly bench: string;
  /** What it was measured on and with. */
  readonly conditions: readonly string[];
  readonly timings: readonly Timing[];
  readonly figures: readonly Figure[];
  readonly notes: readonly string[];
}

export function printReport(report: Report, json: boolean): void {
  console.log(renderText(report));
  if (json) console.log(renderJson(report));
}

export function renderText({ bench, conditions, timings, figures, notes }: Report): string {
  const lines = [`Situ benchmark: ${bench}`, ...conditions.map(indent), ""];
  if (timings.length > 0) {
    const head = ["time per operation", "median", "min .. max", "per second"];
    lines.push(...table([head, ...timings.map(timingRow)]), "");
  }
  lines.push(...table([["figure", "result", "min .. max", "bar", ""], ...figures.map(figureRow)]));
  if (notes.length > 0) lines.push("", ...notes);
  const missed = figures.filter((figure) => "met" in figure && !figure.met).length;
  const missing = figures.filter((figure) => "missing" in figure).length;
  const met = figures.length - missed - missing;
  lines.push(
    "",
    `${met} of ${figures.length} bars met, ${missed} missed, ${missing} not measured.`,
  );
  return lines.join("\n");
}

export function renderJson({ bench, figures }: Report): string {
  return JSON.stringify({ bench, figures });
}

export function formatNanoseconds(value: number): string {
  if (value < 1000) return `${value.toFixed(value < 100 ? 1 : 0)} ns`;
  return `${(value / 1000).toFixed(value < 100_000 ? 2 : 1)} µs`;
}

export function formatRate(perSecond: number): string {
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(2)} M/s`;
  return `${(perSecond / 1e3).toFixed(1)} k/s`;
}

function timingRow({ name, nanoseconds }: Timing): string[] {
  const { median, min, max } = summarize(nanoseconds);
  const spread = `${formatNanoseconds(min)} .. ${formatNanoseconds(max)}`;
  return [name, formatNanoseconds(median), spread, formatRate(1e9 / median)];
}

function figureRow(figure: Figure): string[] {
  const bar = formatBar(figure.bar);
  if ("missing" in figure) return [figure.name, "-", "", bar, `not measured: ${figure.missing}`];
  const { name, ratio, unit, spread, met } = figure;
  const range = spread ? `${formatRatio(spread.min)} .. ${formatRatio(spread.max)}` : "";
  return [name, `${formatRatio(ratio)} ${unit}`, range, bar, met ? "met" : "MISSED"];
}

function formatBar(bar: Bar): string {
  return "atLeast" in bar ? `at least ${bar.atLeast}` : `at most ${bar.atMost}`;
}

function formatRatio(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

/** The first column is text, the others are aligned to the right except a trailing remark. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const last = widths.length - 1;
  const leftAligned = (column: number): boolean =>
    column === 0 || (column === last && rows[0][column] === "");
  return rows.map((row) =>
    indent(
      row
        .map((cell, column) =>
          leftAligned(column) ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
        )
        .join("   ")
        .trimEnd(),
    ),
  );
}

function indent(line: string): string {
  return `  ${line}`;
}
