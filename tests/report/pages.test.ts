// report.md, report.html and the charts as texts; what they look like is the browser's test.
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { curve, nines } from "../../benchmarks/report/charts/latency.ts";
import { logAxis } from "../../benchmarks/report/charts/log-axis.ts";
import { scalingLines } from "../../benchmarks/report/charts/scaling.ts";
import { byProcesses } from "../../benchmarks/report/groups.ts";
import { renderMarkdown } from "../../benchmarks/report/markdown.ts";
import { escapeHtml, html } from "../../benchmarks/report/page/html.ts";
import { renderPage } from "../../benchmarks/report/page/page.ts";
import type { SuiteResult } from "../../benchmarks/report/result.ts";
import { writeReport } from "../../benchmarks/report/write.ts";
import { changedEntry, fixtureResult } from "./fixture.ts";

const hostile = `<img src=x onerror=alert(1)> & "quoted" 'single' **bold** | [a](b)`;

/** The fixture with something hostile in every text that it has. */
function hostileResult(): SuiteResult {
  const keep = new Set(["engine", "best", "kind", "id", "cell", "durability", "date"]);
  const replace = (value: unknown, key: string): unknown => {
    if (typeof value === "string") return keep.has(key) ? value : `${value} ${hostile}`;
    if (Array.isArray(value)) return value.map((item) => replace(item, key));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, own]) => [name, replace(own, name)]),
    );
  };
  const broken = changedEntry("tatp-none-2", "redis", (entry) => ({
    ...entry,
    problems: ["Lost"],
  }));
  return replace(broken, "") as SuiteResult;
}

describe("report.md", () => {
  const text = renderMarkdown(fixtureResult());

  test("says when, where, with what", () => {
    expect(text).toContain("2026-11-15 15:04 UTC, 21 min 52 s, seed 42, commit 7bcefa9+");
    expect(text).toContain("Intel(R) Xeon(R) Processor @ 2.70GHz, 2 cores");
    expect(text).toContain("- Redis 7.0.15");
    expect(text).toContain("- lmdb: **missing**, lmdb: Cannot find module 'lmdb'");
    expect(text).toContain("**sync**: what was acknowledged is on disk");
    expect(text).toContain("PostgreSQL (in memory, sync): pg pool of 8");
  });

  test("begins with Situ against the best peer, without our goals", () => {
    const [, summary] = /## Situ against its best peer\n([\s\S]*?)\n## /.exec(text) ?? [];
    expect(summary).toMatch(/\| YCSB-B.* \| [\d.]+ k\/s \| SQLite [\d.]+ k\/s \| 2\.57× \|/);
    expect(summary).not.toMatch(/missed|goal|bar/);
  });

  test("names the best peer where the goal is against another one", () => {
    const [bar] = fixtureResult().bars;
    const against = { ...bar, best: "postgres", ratio: 40, spread: { min: 30, max: 50 } } as const;
    const text = renderMarkdown({ ...fixtureResult(), bars: [against] });
    expect(text).toMatch(/\| YCSB-B.* \| SQLite [\d.]+ k\/s \| 2\.57× \| 2\.51–2\.74× \|/);
    expect(text).toMatch(/\| YCSB-B.* \| 40.0× \|.*PostgreSQL; SQLite is the best peer/);
  });

  test("has the bars with spread and verdict", () => {
    expect(text).toContain("5 of 7 bars met, 1 missed, 1 not measured");
    expect(text).toMatch(
      /\| YCSB-B.* \| 3× \| 2\.57× \| 2\.51–2\.74× \| SQLite, the best peer \| missed \|/,
    );
    expect(text).toMatch(
      /\| Retwis.* \| 5× \| – \| – \| – \| not measured: lmdb was not measured \|/,
    );
  });

  test("has a table per cell, with notes", () => {
    for (const { title } of fixtureResult().cells) expect(text).toContain(`#### ${title}\n`);
    expect(text).toMatch(/\| Redis \| 81\.6 k \| .* \| 6\.43× \| .* \| 16 \| 0\.04 % \| 0 % \|/);
    expect(text).toContain("- Four processes share two cores.");
    expect(text).toContain("- Not compared here: lmdb, SQLite, Redis.");
  });

  test("every row of a table has the columns of its head", () => {
    const tables = text.split("\n\n").filter((block) => block.startsWith("|"));
    expect(tables.length).toBeGreaterThan(14);
    for (const table of tables) {
      const columns = table.split("\n").map((line) => line.split(/(?<!\\)\|/).length);
      expect(new Set(columns).size, table).toBe(1);
    }
  });

  test("says where a peer wins, and where nobody does", () => {
    expect(text).toContain("- YCSB-E, one process: SQLite does 1.10× the transactions of Situ");
    const cells = fixtureResult().cells.filter(({ workload }) => workload === "tatp");
    const other = renderMarkdown({ ...fixtureResult(), cells });
    expect(other).toContain("Nowhere in this run, by throughput, p50 or p99.");
  });

  test("prints what did not hold in bold", () => {
    const result = changedEntry("tatp-none-2", "redis", (entry) => ({
      ...entry,
      problems: ["3 subscribers were lost"],
    }));
    expect(renderMarkdown(result)).toContain(
      "- **TATP, two processes, in memory, Redis: 3 subscribers were lost**",
    );
    expect(text).not.toContain("did not hold");
  });

  test("a quick run says so", () => {
    expect(renderMarkdown({ ...fixtureResult(), quick: true })).toContain("not to be quoted");
    expect(text).not.toContain("not to be quoted");
  });

  test("texts do not become markup", () => {
    const escaped = renderMarkdown(hostileResult());
    expect(escaped).toContain("&lt;img src=x onerror=alert(1)&gt; &amp; ");
    expect(escaped).not.toContain("<img");
    expect(escaped).not.toContain("**bold**");
    expect(escaped).not.toContain("[a](b)");
  });
});

describe("report.html", () => {
  const page = renderPage(fixtureResult());

  test("escapes every text", () => {
    expect(escapeHtml(`<>&"'`)).toBe("&lt;&gt;&amp;&quot;&#39;");
    expect(html`<p title="${'"'}">${["<", html`<b>`]}</p>`.text).toBe(
      '<p title="&quot;">&lt;<b></p>',
    );
    const escaped = renderPage(hostileResult());
    expect(escaped).toContain("&lt;img src=x onerror=alert(1)&gt; &amp; &quot;quoted&quot;");
    expect(escaped).not.toContain("<img");
    expect(escaped).not.toMatch(/"quoted"/);
  });

  test("needs nothing else: no script, no address that could be fetched", () => {
    expect(page).not.toContain("<script");
    expect(page).not.toMatch(/@import|url\((?!#)/);
    expect(page.match(/(?:src|href)="(?!#|data:,")[^"]*"/g)).toBeNull();
  });

  test("ids are there once, and links within the page lead somewhere", () => {
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const links = [...page.matchAll(/(?:href="#|url\(#|labelledby=")([^")]+)/g)].map(
      ([, id]) => id,
    );
    expect(links.length).toBeGreaterThan(8);
    for (const id of links) expect(ids).toContain(id);
  });

  test("each chart has a name, and its data behind it", () => {
    const drawings = page.match(/<svg[^>]*>.{0,12}/g) ?? [];
    const figures = page.match(/<figure/g) ?? [];
    // One for each cell's throughput and latency, two for scaling, one for the bars; wide and narrow.
    expect(figures).toHaveLength(14 * 2 + 2 + 1);
    expect(drawings).toHaveLength(figures.length * 2);
    for (const drawing of drawings)
      expect(drawing).toMatch(/role="img" aria-label="[^"]+"><title>/);
    expect(page.match(/<details>/g)).toHaveLength(figures.length);
    expect(page).not.toMatch(/ecmeta_|NaN|undefined|Infinity/);
  });

  test("has the sections, the bars as they are, and the sentences", () => {
    for (const title of [
      "Throughput",
      "Open loop",
      "Closed loop",
      "Scaling by processes",
      "Conditions",
    ])
      expect(page).toContain(`>${title}</h`);
    expect(page.match(/class="card met"/g)).toHaveLength(5);
    expect(page.match(/class="card missed"/g)).toHaveLength(1);
    expect(page.match(/class="card not-measured"/g)).toHaveLength(1);
    expect(page).toContain("SQLite has the shorter p50 by 1.08×");
    expect(page).toContain("from the intended start");
    expect(page).toContain("Cannot find module &#39;lmdb&#39;");
    expect(page).toContain("getSubscriberData 35 %");
    expect(page).not.toContain("did not hold");
    expect(renderPage(hostileResult())).toMatch(/<strong>TATP.*Redis.*: Lost/);
  });

  test.each<[string, Partial<SuiteResult>]>([
    ["no bars", { bars: [] }],
    ["no cells", { cells: [], bars: [] }],
    ["nothing at all", { cells: [], bars: [], engines: [], machine: [], commit: "" }],
    ["no measurement", { bars: [], cells: unmeasured() }],
    ["an engine that did nothing", stalled()],
  ])("can be written with %s", (_, change) => {
    const text = renderPage({ ...fixtureResult(), ...change });
    expect(text).toContain("</html>");
    expect(text).not.toMatch(/NaN|undefined|Infinity/);
    expect(renderMarkdown({ ...fixtureResult(), ...change })).not.toMatch(/NaN|undefined|Infinity/);
  });
});

function stalled(): SuiteResult {
  const nothing = { median: 0, min: 0, max: 0 };
  return changedEntry("ycsb-a-none-2", "redis", (entry) => ({
    ...entry,
    perSecond: [0, 0, 0, 0, 0],
    throughput: nothing,
    latency: { count: 0, mean: 0, max: 0, percentiles: [{ percent: 100, nanoseconds: 0 }] },
  }));
}

function unmeasured(): SuiteResult["cells"] {
  return fixtureResult().cells.map((cell) => ({
    ...cell,
    entries: cell.entries.map(({ engine }) => ({ engine, missing: "the disk is full" })),
  }));
}

describe("curves", () => {
  test("go from the median as far as there are transactions for it", () => {
    const percentiles = [0, 50, 90, 99, 99.9, 99.99, 100].map((percent) => ({
      percent,
      nanoseconds: percent + 1,
    }));
    const at = (count: number): number[] =>
      curve({ count, mean: 1, max: 1, percentiles }).map(([, value]) => value);
    expect(at(1e6)).toEqual([51, 91, 100, 100.9, 100.99]);
    expect(at(1_000)).toEqual([51, 91, 100, 100.9]);
    expect(at(1)).toEqual([]);
  });

  test("each nine is one step", () => {
    expect([90, 99, 99.9, 99.99].map((percent) => Math.round(nines(percent) * 1e9) / 1e9)).toEqual([
      1, 2, 3, 4,
    ]);
  });

  test("logarithmic axes hold all values and have lines enough", () => {
    for (const [min, max] of [
      [1, 1],
      [20, 90],
      [1e3, 2e7],
      [0.3, 4],
    ]) {
      const axis = logAxis([max, min]);
      expect(axis.min).toBeLessThan(min);
      expect(axis.max).toBeGreaterThan(max);
      expect(axis.ticks.length).toBeGreaterThan(0);
      for (const tick of axis.ticks) {
        expect(tick).toBeGreaterThanOrEqual(axis.min);
        expect(tick).toBeLessThanOrEqual(axis.max);
      }
    }
    expect(logAxis([1e3, 2e6]).ticks).toEqual([1e3, 1e4, 1e5, 1e6]);
    expect(logAxis([20, 90]).ticks).toEqual([20, 50, 100]);
    expect(logAxis([30, 35]).ticks).toEqual([30, 40]);
    expect(logAxis([0]).ticks).toEqual([1, 10]);
  });

  test("scaling has a line for each engine with two points or more", () => {
    const [ycsb] = byProcesses(fixtureResult().cells);
    const lines = scalingLines(ycsb);
    expect(lines.map(({ engine }) => engine)).toEqual([
      "situ",
      "cluster",
      "redis",
      "sqlite",
      "postgres",
    ]);
    expect(lines[0].entries.map((entry) => Math.round(entry!.throughput.median / 1e5))).toEqual([
      3, 5, 6,
    ]);
  });
});

describe("writing", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "situ-report-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test("leaves all files, and the result as it was", async () => {
    const place = join(folder, "new", "run");
    await writeReport(fixtureResult(), place);
    expect((await readdir(place)).sort()).toEqual([
      "chart-dark.svg",
      "chart-light.svg",
      "report.html",
      "report.md",
      "results.json",
    ]);
    const result = JSON.parse(await readFile(join(place, "results.json"), "utf8"));
    expect(result).toEqual(fixtureResult());
    for (const name of ["chart-light.svg", "chart-dark.svg"]) {
      const svg = await readFile(join(place, name), "utf8");
      expect(svg).toMatch(
        /^<svg width="800" height="\d+" xmlns="http:\/\/www\.w3\.org\/2000\/svg"/,
      );
      expect(svg).not.toContain("var(");
      expect(svg).toContain(">16.4×<");
      // What we want to reach is for the report: a user reads how fast it is, and against whom.
      expect(svg).not.toMatch(/bar|missed|goal/);
    }
  });
});
