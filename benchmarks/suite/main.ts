// npm run bench: the workloads of the papers on Situ and on what people would use instead, in one
// run on one machine, and a report of it.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { engineTitles } from "../engines/drivers.ts";
import type { EngineName } from "../engines/engine.ts";
import { describeMachine } from "../harness/machine.ts";
import { peersFolder } from "../harness/peers.ts";
import { createProgress } from "../harness/progress.ts";
import { releaseAll } from "../harness/resources.ts";
import { renderMarkdown } from "../report/markdown.ts";
import {
  type Cell,
  type EngineVersion,
  resultVersion,
  type SuiteResult,
} from "../report/result.ts";
import { writeReport } from "../report/write.ts";
import { barResult } from "./bars.ts";
import { type GroupResult, runGroup } from "./contest.ts";
import { expectedMs } from "./estimates.ts";
import { exitCodeOf } from "./exit-code.ts";
import { bars } from "./plan.ts";
import { Steps } from "./steps.ts";
import { parseSuiteArguments, type SuiteOptions, suiteUsage } from "./suite-options.ts";

const benchmarksFolder = dirname(peersFolder);

function parse(): SuiteOptions {
  try {
    const options = parseSuiteArguments(process.argv.slice(2));
    const { folder } = options;
    // Now, and not after half an hour of measuring.
    if (folder !== undefined && existsSync(folder) && !statSync(folder).isDirectory()) {
      throw new TypeError(`--out ${folder}: that is a file`);
    }
    return options;
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${suiteUsage}`);
    process.exit(2);
  }
}

function commitOf(folder: string): string {
  const git = (...args: string[]): string =>
    spawnSync("git", args, { cwd: folder, encoding: "utf8" }).stdout?.trim() ?? "";
  const commit = git("rev-parse", "--short", "HEAD");
  return commit === "" || git("status", "--porcelain") === "" ? commit : `${commit}+`;
}

function versionsOf(
  results: readonly GroupResult[],
  engines: ReadonlySet<EngineName>,
): EngineVersion[] {
  return [...engines].map((engine): EngineVersion => {
    const title = engineTitles[engine];
    const version = results.map(({ versions }) => versions.get(engine)).find((found) => found);
    if (version !== undefined) return { engine, title, version };
    const missing = results.map((result) => result.missing.get(engine)).find((found) => found);
    return { engine, title, missing: missing ?? "was not started" };
  });
}

const options = parse();
const { groups, quick, seed } = options;
const begin = new Date();
const beginMs = performance.now();
const machine = describeMachine();
const progress = createProgress();
const totalMs = groups.reduce((sum, plan) => sum + expectedMs(plan, options), 0);
const steps = new Steps(progress, totalMs, (line) => console.error(line));
const results: GroupResult[] = [];
try {
  for (const plan of groups) {
    steps.say(`${plan.id}: ${plan.cells.map(({ id }) => id).join(", ")}`);
    results.push(await runGroup(plan, options, steps));
  }
} finally {
  progress.clear();
  releaseAll();
}
const cells: Cell[] = results.flatMap((result) => result.cells);
const measured = options.hasBars
  ? bars.filter(({ cell }) => options.isWhole || cells.some(({ id }) => id === cell))
  : [];
const result: SuiteResult = {
  version: resultVersion,
  date: begin.toISOString(),
  seconds: Math.round((performance.now() - beginMs) / 1_000),
  quick,
  seed,
  machine,
  commit: commitOf(benchmarksFolder),
  engines: versionsOf(results, new Set(groups.flatMap(({ engines }) => engines))),
  cells,
  bars: measured.map((bar) => barResult(bar, cells)),
};
const folder =
  options.folder ??
  join(benchmarksFolder, "results", begin.toISOString().slice(0, 19).replaceAll(":", "-"));
mkdirSync(folder, { recursive: true });
await writeReport(result, folder);
console.log(renderMarkdown(result));
console.log(`\nreport: ${join(folder, "report.html")}`);
if (options.json) console.log(JSON.stringify(result));
process.exitCode = exitCodeOf(cells);
