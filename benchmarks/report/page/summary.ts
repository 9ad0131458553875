// The head of the page: what was claimed, and whether it holds.
import { headlineChart, headlineHeight } from "../charts/headline.ts";
import { engineTitle, formatDate, formatTimes, formatTimesRange } from "../format.ts";
import { problemsOf } from "../measures.ts";
import { missingOf, reason } from "../missing.ts";
import { peerWins } from "../peer-wins.ts";
import type { BarResult, SuiteResult } from "../result.ts";
import { barsSentence, barsTable, opponent, verdictOf } from "../rows.ts";
import { chart, dataTable, fullSizes, list } from "./figure.ts";
import { type Html, html, nothing } from "./html.ts";

export function pageHeader(result: SuiteResult): Html {
  const wins = peerWins(result).length;
  const absent = missingOf(result).length;
  return html`<header>
<p class="eyebrow">Situ benchmark · ${formatDate(result.date)}</p>
<h1>${unbroken(barsSentence(result.bars))}</h1>
<p class="lead">Situ beside the systems that people would use instead, in one run, on one machine, with the same durability.
${wins === 0 ? "No peer wins by throughput, p50 or p99." : html`<a href="#peer-wins">A peer wins ${howOften(wins)}</a>, by throughput, p50 or p99.`}
${absent === 0 ? "" : html` <a href="#missing">${absent === 1 ? "One thing is" : `${absent} things are`} missing</a>.`}</p>
${result.quick ? html`<p class="notice">A quick run: it shows that everything works; its figures are not to be quoted.</p>` : nothing}
${problems(result)}
</header>`;
}

/** Numbers stay on the line of what they count. */
function unbroken(text: string): string {
  return text.replace(/(\d) /g, "$1\u00a0");
}

function howOften(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${count} times`;
}

function problems(result: SuiteResult): Html {
  const found = problemsOf(result.cells);
  if (found.length === 0) return nothing;
  return html`<section class="alarm" role="alert" aria-labelledby="invariants">
<h2 id="invariants">Invariants that did not hold</h2>
${list(
  found.map(
    ({ cell, engine, problem }) =>
      html`<strong>${cell.title}, ${engineTitle(result, engine)}: ${problem}</strong>`,
  ),
)}</section>`;
}

export function summarySection(result: SuiteResult): Html {
  if (result.bars.length === 0) return nothing;
  return html`<section id="summary" aria-labelledby="summary-title">
<h2 id="summary-title">What Situ must reach</h2>
<ul class="cards">${result.bars.map((bar) => card(result, bar))}</ul>
<figure class="panel">
<figcaption><h3>Situ beside its peer</h3>
<p class="about">In multiples of the peer that the bar is against, from zero: throughput, or how many times shorter a percentile is where the title names one. The upright line is the bar.</p></figcaption>
${chart(
  fullSizes,
  (width) => headlineHeight(result, width),
  (frame) => headlineChart(result, frame),
)}
${dataTable(barsTable(result), "Situ against the peer of each bar")}
</figure>
</section>`;
}

const marks = { met: "✓", missed: "✗", "not measured": "–" } as const;

function card(result: SuiteResult, bar: BarResult): Html {
  const verdict = verdictOf(bar);
  const state = verdict.replace(" ", "-");
  const details =
    bar.ratio === undefined
      ? html`<p class="about">${reason(bar.missing)}</p>`
      : html`<p class="about">against ${opponent(result, bar)}${
          bar.spread === undefined ? "" : html`<br>rounds ${formatTimesRange(bar.spread)}`
        }</p>`;
  return html`<li class="card ${state}">
<p class="what">${bar.title}</p>
<p class="ratio">${bar.ratio === undefined ? "–" : formatTimes(bar.ratio)}</p>
${details}
<p class="verdict"><span aria-hidden="true">${marks[verdict]}</span> ${verdict} <span class="goal">bar ${bar.atLeast}×</span></p>
</li>`;
}
