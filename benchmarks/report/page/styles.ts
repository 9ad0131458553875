// The style sheet of the page. Colours are the palette's, by scheme; nothing is fetched.
import { fontFamily } from "../charts/draw.ts";
import { darkPalette, lightPalette, paletteDeclarations } from "../charts/palette.ts";

export const styles = `
:root { color-scheme: light dark; ${paletteDeclarations(lightPalette)} }
@media (prefers-color-scheme: dark) { :root { ${paletteDeclarations(darkPalette)} } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 ${fontFamily};
  font-variant-numeric: tabular-nums; overflow-wrap: break-word; }
a { color: inherit; text-decoration-color: var(--engine-situ); text-decoration-thickness: 2px; text-underline-offset: 3px; }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid var(--engine-situ); outline-offset: 3px; border-radius: 4px; }
.page { max-width: 1120px; margin: 0 auto; padding: 0 clamp(14px, 3vw, 32px) 72px; }
header { padding: clamp(32px, 6vw, 72px) 0 8px; }
.eyebrow { margin: 0 0 10px; color: var(--muted); font-size: 14px; letter-spacing: .02em; }
h1 { margin: 0; font-size: clamp(30px, 5.2vw, 52px); line-height: 1.08; letter-spacing: -.025em; font-weight: 700; text-wrap: balance; }
.lead { max-width: 44em; margin: 18px 0 0; font-size: clamp(16px, 1.7vw, 19px); color: var(--muted); }
.lead a { color: var(--text); }
h2 { margin: 0 0 6px; font-size: clamp(23px, 2.6vw, 30px); line-height: 1.2; letter-spacing: -.015em; }
h3 { margin: 0 0 4px; font-size: 20px; line-height: 1.3; letter-spacing: -.01em; }
h4 { margin: 0; font-size: 16px; line-height: 1.35; }
section { margin-top: clamp(40px, 6vw, 72px); }
section.workload { margin-top: 18px; padding-top: 18px; }
.workload-about { padding: 18px 8px 8px 0; border-top: 3px solid var(--text); }
section > h3 { margin-top: 32px; }
.about { margin: 2px 0 0; color: var(--muted); font-size: 14px; max-width: 62em; }
.muted { color: var(--muted); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 22px; margin: 24px 0 0; padding: 12px 0; border: solid var(--grid); border-width: 1px 0; font-size: 15px; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; text-decoration-color: var(--engine-situ); text-decoration-thickness: 2px; }
.panel, .card { background: var(--ground); border: 1px solid var(--grid); border-radius: 14px; }
.panel { margin: 18px 0 0; padding: 18px clamp(14px, 2vw, 24px); min-width: 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 430px), 1fr)); gap: 18px; margin-top: 18px; }
.grid .panel { margin: 0; display: flex; flex-direction: column; }
.cards { list-style: none; margin: 20px 0 0; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 236px), 1fr)); gap: 14px; }
.card { padding: 16px 18px 14px; display: flex; flex-direction: column; border-top: 4px solid var(--axis); }
.card.met { border-top-color: var(--good); }
.card.missed { border-top-color: var(--bad); }
.card p { margin: 0; }
.card .what { font-size: 14px; line-height: 1.4; min-height: 2.8em; }
.card .ratio { font-size: 42px; line-height: 1.15; font-weight: 700; letter-spacing: -.03em; margin-top: 6px; }
.card .verdict { margin-top: auto; padding-top: 12px; font-weight: 600; font-size: 15px; color: var(--muted); }
.card.met .verdict { color: var(--good); }
.card.missed .verdict { color: var(--bad); }
@media (max-width: 560px) { .cards { grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px; } .card { padding: 12px 12px 10px; } .card .ratio { font-size: 32px; } }
.goal { float: right; font-weight: 400; color: var(--muted); }
.chart { container-type: inline-size; margin-top: 14px; }
.chart svg { display: block; width: 100%; height: auto; }
.chart .narrow { display: none; max-width: 400px; }
.grid .chart .wide { max-width: 560px; }
@container (max-width: 419px) { .chart .wide { display: none; } .chart .narrow { display: block; } }
.facts { margin: 12px 0 0; font-size: 15px; }
.facts > div { display: grid; grid-template-columns: minmax(90px, 160px) minmax(0, 1fr); gap: 4px 20px; padding: 5px 0; }
.facts.panel { margin-top: 18px; padding-block: 10px; }
.facts.panel > div { padding: 11px 0; }
.facts.panel > div + div { border-top: 1px solid var(--grid); }
dt { color: var(--muted); }
.facts.panel dt { color: var(--text); font-weight: 600; }
dd { margin: 0; min-width: 0; }
dd ul { margin: 0; padding-left: 1.1em; }
dd li + li { margin-top: 4px; }
.workload .facts { font-size: 15px; }
.workload .facts > div { grid-template-columns: 60px minmax(0, 1fr); padding: 4px 0; }
@media (max-width: 560px) { .facts.panel > div { grid-template-columns: 1fr; } }
.notes { margin: 12px 0 0; padding-left: 1.1em; color: var(--muted); font-size: 14px; }
details { margin-top: auto; padding-top: 12px; font-size: 14px; }
summary { cursor: pointer; color: var(--muted); width: fit-content; }
.scroll { overflow-x: auto; margin-top: 8px; }
table { border-collapse: collapse; font-size: 13px; white-space: nowrap; }
caption { text-align: left; color: var(--muted); padding-bottom: 6px; position: sticky; left: 0; }
th, td { padding: 5px 14px 5px 0; text-align: right; border-bottom: 1px solid var(--grid); font-weight: 400; }
thead th { color: var(--muted); vertical-align: bottom; }
tbody th, thead th:first-child { text-align: left; }
tbody th { font-weight: 600; }
.notice, .alarm { border-radius: 10px; border: 1px solid var(--axis); background: var(--ground); padding: 12px 16px; max-width: 52em; }
.notice { margin: 20px 0 0; font-weight: 600; }
.alarm { margin-top: 20px; border: 2px solid var(--bad); color: var(--bad); }
.alarm h2 { font-size: 18px; }
.alarm ul { margin: 6px 0 0; padding-left: 1.2em; }
footer { margin-top: 64px; padding-top: 16px; border-top: 1px solid var(--grid); color: var(--muted); font-size: 14px; }
@media print { body { background: none; } .panel, .card { break-inside: avoid; } nav { display: none; } }
`;
