// The sections below the summary: workloads, latency, scaling.
import { hasCurve, latencyChart, percents } from "../charts/latency.ts";
import { scalingChart } from "../charts/scaling.ts";
import { throughputChart, throughputHeight } from "../charts/throughput.ts";
import {
  conditionsTitle,
  durabilityTitle,
  engineTitle,
  formatNanoseconds,
  formatPart,
  loadTitle,
} from "../format.ts";
import { byProcesses, byWorkload, type ScalingGroup, type WorkloadGroup } from "../groups.ts";
import { inOrder, percentile } from "../measures.ts";
import type { Cell, SuiteResult } from "../result.ts";
import { cellNotes, cellTable, type TextTable } from "../rows.ts";
import { scalingTable } from "../scaling-table.ts";
import { chart, dataTable, halfSizes, list } from "./figure.ts";
import { type Html, html, nothing } from "./html.ts";

export function workloadsSection(result: SuiteResult): Html {
  return html`<section id="throughput" aria-labelledby="throughput-title">
<h2 id="throughput-title">Throughput</h2>
<p class="about">Transactions per second of all processes together: the median of the rounds, with a line from the least to the most. Bars begin at zero.</p>
${byWorkload(result.cells).map((group) => workload(result, group))}
</section>`;
}

function workload(result: SuiteResult, group: WorkloadGroup): Html {
  const id = `workload-${anchor(group.workload)}`;
  return html`<section class="workload" aria-labelledby="${id}">
<div class="grid"><div class="workload-about"><h3 id="${id}">${group.title}</h3>
<dl class="facts">
<div><dt>Scale</dt><dd>${group.scales.join("; ")}</dd></div>
<div><dt>Mix</dt><dd>${group.mix.map(({ name, percent }) => `${name} ${formatPart(percent / 100)}`).join(", ")}</dd></div>
<div><dt>Source</dt><dd>${group.sources.join("; ")}</dd></div>
</dl></div>${group.cells.map((cell) => throughput(result, cell))}</div>
</section>`;
}

function throughput(result: SuiteResult, cell: Cell): Html {
  return html`<figure class="panel">
<figcaption><h4>${cell.title}</h4><p class="about">${conditionsTitle(cell)}</p></figcaption>
${chart(
  halfSizes,
  () => throughputHeight(cell),
  (frame) => throughputChart(result, cell, frame),
)}
${list(cellNotes(result, cell), "notes")}
${dataTable(cellTable(result, cell), `${cell.title}: all figures`)}
</figure>`;
}

export function latencySection(result: SuiteResult): Html {
  const cells = result.cells.filter((cell) => cell.entries.some(hasCurve));
  const open = cells.filter(({ load }) => load.kind === "open");
  const closed = cells.filter(({ load }) => load.kind === "closed");
  if (cells.length === 0) return nothing;
  return html`<section id="latency" aria-labelledby="latency-title">
<h2 id="latency-title">Latency</h2>
<p class="about">By percentile, both scales logarithmic: each step to the right is one nine more. Lower is better.</p>
${latencyGroup(
  result,
  open,
  "Open loop",
  "Transactions begin at a set rate, come what may, and latency counts from the intended start: whoever stalls pays for all that had to wait.",
)}
${latencyGroup(
  result,
  closed,
  "Closed loop",
  "The next transaction begins when one has ended, so each engine runs at its own full speed, and a stall delays no more than what is in flight. Engines with more in flight have longer latencies for it.",
)}
</section>`;
}

function latencyGroup(
  result: SuiteResult,
  cells: readonly Cell[],
  title: string,
  about: string,
): Html {
  if (cells.length === 0) return nothing;
  return html`<h3>${title}</h3>
<p class="about">${about}</p>
<div class="grid">${cells.map(
    (cell) => html`<figure class="panel">
<figcaption><h4>${cell.title}</h4><p class="about">${durabilityTitle(cell.durability)} · ${loadTitle(cell)}</p></figcaption>
${chart(
  halfSizes,
  () => 300,
  (frame) => latencyChart(result, cell, frame),
)}
${dataTable(latencyTable(result, cell), `${cell.title}: latency`)}
</figure>`,
  )}</div>`;
}

function latencyTable(result: SuiteResult, cell: Cell): TextTable {
  return {
    head: ["engine", ...percents.map((percent) => `p${percent}`), "mean", "max"],
    rows: inOrder(cell.entries)
      .filter(hasCurve)
      .map(({ engine, latency }) => [
        engineTitle(result, engine),
        ...[
          ...percents.map((percent) => percentile(latency, percent)),
          latency.mean,
          latency.max,
        ].map((value) => (value === undefined ? "–" : formatNanoseconds(value))),
      ]),
  };
}

export function scalingSection(result: SuiteResult): Html {
  const groups = byProcesses(result.cells);
  if (groups.length === 0) return nothing;
  return html`<section id="scaling" aria-labelledby="scaling-title">
<h2 id="scaling-title">Scaling by processes</h2>
<p class="about">The same workload with more processes, on a logarithmic scale: who doubles climbs equally steep everywhere. At the end of each line, its gain from the first point to the last. The machine’s cores are shared with servers, where an engine has one.</p>
<div class="grid">${groups.map((group) => scaling(result, group))}</div>
</section>`;
}

function scaling(result: SuiteResult, group: ScalingGroup): Html {
  const [cell] = group.cells;
  return html`<figure class="panel">
<figcaption><h4>${group.title}</h4><p class="about">${durabilityTitle(cell.durability)} · ${loadTitle(cell)}</p></figcaption>
${chart(
  halfSizes,
  () => 320,
  (frame) => scalingChart(result, group, frame),
)}
${dataTable(scalingTable(result, group), `${group.title}: throughput by processes`)}
</figure>`;
}

function anchor(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}
