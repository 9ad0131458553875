// The sections that let a reader judge the others: how it was measured, who wins, what is missing.
import {
  durabilityMeanings,
  durabilityTitle,
  formatDate,
  formatNanoseconds,
  formatSeconds,
  trimZeros,
} from "../format.ts";
import { missingOf, reason } from "../missing.ts";
import { describeWin, type PeerWin, peerWins } from "../peer-wins.ts";
import type { SuiteResult } from "../result.ts";
import { settingsOf } from "../settings.ts";
import { list } from "./figure.ts";
import { type Html, html } from "./html.ts";

export function conditionsSection(result: SuiteResult): Html {
  return html`<section id="conditions" aria-labelledby="conditions-title">
<h2 id="conditions-title">Conditions</h2>
<dl class="facts panel">
<div><dt>When</dt><dd>${formatDate(result.date)}, for ${formatSeconds(result.seconds)}</dd></div>
<div><dt>Machine</dt><dd>${result.machine.map((line) => html`${line}<br>`)}</dd></div>
<div><dt>Commit</dt><dd>${result.commit || "unknown"}</dd></div>
<div><dt>Seed</dt><dd>${result.seed}</dd></div>
<div><dt>Versions</dt><dd>${list(
    result.engines.map(({ title, version, missing }) =>
      version === undefined
        ? html`${title}: <strong>missing</strong>, ${reason(missing)}`
        : html`${title} ${version}`,
    ),
  )}</dd></div>
<div><dt>Settings</dt><dd>${list(
    settingsOf(result).map(
      ({ title, settings, where }) =>
        html`<strong>${title}</strong> <span class="muted">(${where.join(", ")})</span>: ${settings}`,
    ),
  )}</dd></div>
<div><dt>Durability</dt><dd>${list(
    durabilityMeanings.map(
      ([mode, meaning]) => html`<strong>${durabilityTitle(mode)}</strong>: ${meaning}`,
    ),
  )}Engines of one chart always have the same.</dd></div>
<div><dt>Method</dt><dd>${list(methodOf(result))}</dd></div>
</dl>
</section>`;
}

function methodOf({ cells }: SuiteResult): string[] {
  const rounds = [
    ...new Set(
      cells.map((cell) => `${cell.rounds} of ${trimZeros(formatNanoseconds(cell.roundMs * 1e6))}`),
    ),
  ];
  return [
    "All engines get the same transactions with the same parameters in the same order, from the seed; each runs them in the way that its makers advise.",
    `After a warm-up, the rounds of all engines of a cell are interleaved (${rounds.join("; ")}), so that all meet the same neighbours on the machine. Medians, with the least and the most.`,
    "A ratio is taken per round; its median counts.",
    "Latencies are in HDR histograms over all rounds. Closed loop: from the start of a transaction to its end. Open loop: from the intended start.",
    "After each run the workload’s invariant is checked over all rows, on every engine.",
  ];
}

export function peerWinsSection(result: SuiteResult): Html {
  const wins = peerWins(result);
  const cells = [...new Set(wins.map(({ cell }) => cell))];
  const sentences = (own: readonly PeerWin[]): Html =>
    list(own.map((win) => describeWin(result, win)));
  return html`<section id="peer-wins" aria-labelledby="peer-wins-title">
<h2 id="peer-wins-title">Where a peer wins</h2>
${
  wins.length === 0
    ? html`<p>Nowhere in this run, by throughput, p50 or p99.</p>`
    : html`<dl class="facts panel">${cells.map(
        (cell) =>
          html`<div><dt>${cell.title}</dt><dd>${sentences(wins.filter((win) => win.cell === cell))}</dd></div>`,
      )}</dl>`
}
</section>`;
}

export function missingSection(result: SuiteResult): Html {
  const missing = missingOf(result);
  return html`<section id="missing" aria-labelledby="missing-title">
<h2 id="missing-title">What is missing</h2>
${
  missing.length === 0
    ? html`<p>Nothing. Every engine was measured wherever it takes part.</p>`
    : html`<dl class="facts panel">${missing.map(
        ({ what, why }) => html`<div><dt>${what}</dt><dd>${why}</dd></div>`,
      )}</dl>`
}
</section>`;
}
