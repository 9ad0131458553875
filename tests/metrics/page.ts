/** The tables of docs/METRICS.md, as the table of metrics has them. */

import { METRICS, type Metric } from "../../src/gateways/metrics/metric-table.ts";
import { NODE_METRICS } from "../../src/gateways/metrics/node-metrics.ts";

type Row = Omit<Metric, "read" | "counter">;

const ROWS: readonly Row[] = [...METRICS, ...NODE_METRICS];

/** The page with the table of each section replaced by the one that it should have. */
export function withTables(page: string): string {
  const sections = new Set(ROWS.map(({ section }) => section));
  let text = page;
  for (const section of sections) {
    const heading = text.indexOf(`\n### ${section}\n`);
    if (heading < 0) throw new Error(`the page has no section ${section}`);
    const start = text.indexOf("\n| metric |", heading) + 1;
    const end = text.indexOf("\n\n", start) + 1;
    text = text.slice(0, start) + tableOf(section) + text.slice(end);
  }
  return text;
}

function tableOf(section: string): string {
  const rows = ROWS.filter((each) => each.section === section).map(rowOf);
  return ["| metric | type | meaning | look into it when |", "|---|---|---|---|", ...rows, ""].join(
    "\n",
  );
}

function rowOf({ name, type, help, label, values, worry = "" }: Row): string {
  const shown = values?.map((value) => `\`${value}\``).join(", ");
  const labels = label === undefined ? "" : ` By \`${label}\`${shown ? `: ${shown}` : ""}.`;
  return `| \`${name}\` | ${type} | ${help}${labels} | ${worry} |`;
}
