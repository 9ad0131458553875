// report.md: everything that the page says, for terminals and for pull requests.
import {
  conditionsTitle,
  durabilityMeanings,
  durabilityTitle,
  engineTitle,
  formatDate,
  formatSeconds,
} from "./format.ts";
import { byProcesses, byWorkload, type WorkloadGroup } from "./groups.ts";
import { problemsOf } from "./measures.ts";
import { missingOf, reason } from "./missing.ts";
import { describeWin, peerWins } from "./peer-wins.ts";
import type { SuiteResult } from "./result.ts";
import {
  barsSentence,
  barsTable,
  cellNotes,
  cellTable,
  headlineTable,
  type TextTable,
} from "./rows.ts";
import { scalingTable } from "./scaling-table.ts";
import { settingsOf } from "./settings.ts";

export function renderMarkdown(result: SuiteResult): string {
  const blocks = [
    "# Situ benchmark",
    ...(result.quick
      ? ["**A quick run: it shows that everything works; its figures are not to be quoted.**"]
      : []),
    bullets([
      `${formatDate(result.date)}, ${formatSeconds(result.seconds)}, seed ${result.seed}, commit ${
        result.commit || "unknown"
      }`,
      ...result.machine,
    ]),
    ...problemBlocks(result),
    ...(result.bars.length > 0
      ? [
          "## Situ against its best peer",
          "Transactions per second, with the same durability, in the same run. A ratio is taken in " +
            "each round; shown are the median of the rounds, the least and the most.",
          table(headlineTable(result)),
        ]
      : []),
    "## Where a peer wins",
    winsBlock(result),
    "## What is missing",
    missingBlock(result),
    "## Results",
    "Transactions per second of all processes: median of the rounds, with the least and the most. " +
      "Latency is over all rounds; in an open loop it counts from the intended start. Retries are " +
      "attempts that conflicts undid, refused are transactions that a rule of the benchmark forbids " +
      "(an overdrawn account, say); both as a share of all transactions.",
    ...byWorkload(result.cells).flatMap((group) => workloadBlocks(result, group)),
    ...scalingBlocks(result),
    "## Goals",
    `${barsSentence(result.bars)}. What the project wants to reach, which is not always against the best peer.`,
    ...(result.bars.length > 0 ? [table(barsTable(result))] : []),
    "## Conditions",
    "Durability. All engines of a table have the same:",
    markup(durabilityMeanings.map(([mode, meaning]) => `**${durabilityTitle(mode)}**: ${meaning}`)),
    markup(
      result.engines.map(({ title, version, missing }) =>
        version === undefined
          ? `${plain(title)}: **missing**, ${plain(reason(missing))}`
          : plain(`${title} ${version}`),
      ),
    ),
    "Settings of each engine:",
    bullets(
      settingsOf(result).map(
        ({ title, settings, where }) => `${title} (${where.join(", ")}): ${settings}`,
      ),
    ),
  ];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

function problemBlocks(result: SuiteResult): string[] {
  const problems = problemsOf(result.cells);
  if (problems.length === 0) return [];
  return [
    "## Invariants that did not hold",
    markup(
      problems.map(
        ({ cell, engine, problem }) =>
          `**${plain(cell.title)}, ${plain(engineTitle(result, engine))}: ${plain(problem)}**`,
      ),
    ),
  ];
}

function winsBlock(result: SuiteResult): string {
  const wins = peerWins(result);
  if (wins.length === 0) return "Nowhere in this run, by throughput, p50 or p99.";
  return bullets(wins.map((win) => `${win.cell.title}: ${describeWin(result, win)}`));
}

function missingBlock(result: SuiteResult): string {
  const missing = missingOf(result);
  if (missing.length === 0) return "Nothing. Every engine was measured wherever it takes part.";
  return markup(missing.map(({ what, why }) => `**${plain(what)}**: ${plain(why)}`));
}

function workloadBlocks(result: SuiteResult, group: WorkloadGroup): string[] {
  return [
    `### ${plain(group.title)}`,
    bullets([
      ...group.scales,
      `Mix: ${group.mix.map(({ name, percent }) => `${name} ${percent} %`).join(", ")}`,
      ...group.sources.map((source) => `Source: ${source}`),
    ]),
    ...group.cells.flatMap((cell) => [
      `#### ${plain(cell.title)}`,
      plain(conditionsTitle(cell)),
      table(cellTable(result, cell)),
      bullets(cellNotes(result, cell)),
    ]),
  ];
}

function scalingBlocks(result: SuiteResult): string[] {
  const groups = byProcesses(result.cells);
  if (groups.length === 0) return [];
  return [
    "## Scaling by processes",
    ...groups.flatMap((group) => {
      const durability = durabilityTitle(group.cells[0].durability);
      return [`### ${plain(group.title)}, ${durability}`, table(scalingTable(result, group))];
    }),
  ];
}

/** Texts of others; `markup` is for lines that have bold parts of our own. */
function bullets(lines: readonly string[]): string {
  return markup(lines.map(plain));
}

function markup(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join("\n");
}

function table({ head, rows }: TextTable): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => plain(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  const alignment = head.map((_, column) => (column === 0 ? "---" : "--:")).join(" | ");
  return [line(head), `| ${alignment} |`, ...rows.map(line)].join("\n");
}

/** Text of others must not become markup: a "<" or a line break would. */
function plain(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replace(/([\\`*_[\]])/g, "\\$1");
}
