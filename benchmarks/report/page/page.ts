// report.html: one file that needs nothing else, neither a network nor a script.
import { formatDate } from "../format.ts";
import type { SuiteResult } from "../result.ts";
import { conditionsSection, missingSection, peerWinsSection } from "./conditions.ts";
import { html, trusted } from "./html.ts";
import { latencySection, scalingSection, workloadsSection } from "./sections.ts";
import { styles } from "./styles.ts";
import { pageHeader, summarySection } from "./summary.ts";

const sections = [
  { id: "summary", title: "Summary", render: summarySection },
  { id: "throughput", title: "Throughput", render: workloadsSection },
  { id: "latency", title: "Latency", render: latencySection },
  { id: "scaling", title: "Scaling", render: scalingSection },
  { id: "conditions", title: "Conditions", render: conditionsSection },
  { id: "peer-wins", title: "Where a peer wins", render: peerWinsSection },
  { id: "missing", title: "What is missing", render: missingSection },
] as const;

export function renderPage(result: SuiteResult): string {
  const rendered = sections
    .map(({ id, title, render }) => ({ id, title, body: render(result) }))
    .filter(({ body }) => body.text !== "");
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Situ benchmark, ${formatDate(result.date)}</title>
<link rel="icon" href="data:,">
<style>${trusted(styles)}</style>
</head>
<body>
<div class="page">
${pageHeader(result)}
<nav aria-label="Sections"><ul>${rendered.map(
    ({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`,
  )}</ul></nav>
<main>
${rendered.map(({ body }) => body)}
</main>
<footer>All numbers are in results.json beside this page. <code>npm run bench</code> repeats them.</footer>
</div>
</body>
</html>
`.text;
}
