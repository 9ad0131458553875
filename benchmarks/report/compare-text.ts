// A comparison as a text for the terminal.
import type { Change, Comparison } from "./compare.ts";
import { formatChange, formatNanoseconds, formatRate, formatTimes } from "./format.ts";

export function renderComparison(comparison: Comparison): string {
  const { before, after, differences, cells, bars, onlyBefore, onlyAfter } = comparison;
  const lines = [`before  ${before}`, `after   ${after}`, ""];
  lines.push(
    ...(differences.length === 0
      ? ["Same machine, commit, versions, scale and settings."]
      : ["What else differs:", ...differences.map((text) => `  ${text}`)]),
  );
  for (const { title, entries, unpaired } of cells) {
    lines.push("", title);
    const rows = entries.map(({ title: engine, throughput, p99 }) => [
      engine,
      `${formatRate(throughput.before)} → ${formatRate(throughput.after)}`,
      formatChange(throughput.percent),
      throughput.verdict,
      p99Text(p99),
    ]);
    lines.push(...aligned(rows), ...unpaired.map((text) => `  ${text}`));
  }
  if (bars.length > 0) {
    const times = (ratio?: number): string =>
      ratio === undefined ? "not measured" : formatTimes(ratio);
    lines.push("", "Bars");
    lines.push(
      ...aligned(
        bars.map((bar) => [
          bar.title,
          `${times(bar.before)} → ${times(bar.after)}`,
          `bar ${bar.atLeast}×`,
          verdict(bar.after, bar.atLeast),
        ]),
      ),
    );
  }
  lines.push(...section("Only before:", onlyBefore), ...section("Only after:", onlyAfter));
  return lines.join("\n");
}

function p99Text(p99: Change | undefined): string {
  if (p99 === undefined) return "";
  const values = `${formatNanoseconds(p99.before)} → ${formatNanoseconds(p99.after)}`;
  return `p99 ${values} (${formatChange(p99.percent)})`;
}

function verdict(ratio: number | undefined, atLeast: number): string {
  return ratio === undefined ? "" : ratio >= atLeast ? "met" : "MISSED";
}

function section(title: string, items: readonly string[]): string[] {
  return items.length === 0 ? [] : ["", title, ...items.map((item) => `  ${item}`)];
}

function aligned(rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows.map((row) =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column])).join("   ")}`.trimEnd(),
  );
}
