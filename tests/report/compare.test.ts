import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { summarize } from "../../benchmarks/harness/statistics.ts";
import { compareData, compareResults, judge } from "../../benchmarks/report/compare.ts";
import { renderComparison } from "../../benchmarks/report/compare-text.ts";
import type { SuiteResult } from "../../benchmarks/report/result.ts";
import { changedCell, changedEntry, fixtureResult } from "./fixture.ts";

const scaled = (factor: number): SuiteResult =>
  changedEntry("retwis-none-2", "situ", (entry) => {
    const perSecond = entry.perSecond!.map((rate) => rate * factor);
    return { ...entry, perSecond, throughput: summarize(perSecond) };
  });

const situOfRetwis = (before: SuiteResult, after: SuiteResult) =>
  compareData(before, after)
    .cells.find(({ id }) => id === "retwis-none-2")!
    .entries.find(({ engine }) => engine === "situ")!;

describe("data", () => {
  test("of a result and itself has no change anywhere", () => {
    const { cells, differences, onlyAfter, onlyBefore } = compareData(
      fixtureResult(),
      fixtureResult(),
    );
    expect(cells).toHaveLength(fixtureResult().cells.length);
    expect([differences, onlyAfter, onlyBefore]).toEqual([[], [], []]);
    for (const { throughput, p99 } of cells.flatMap(({ entries }) => entries)) {
      expect(throughput.percent).toBe(0);
      expect(throughput.verdict).toBe("same within spread");
      expect(p99?.percent).toBe(0);
    }
  });

  test("says faster and slower only beyond both spreads", () => {
    expect(situOfRetwis(fixtureResult(), scaled(1.5)).throughput.verdict).toBe("faster");
    expect(situOfRetwis(fixtureResult(), scaled(1.5)).throughput.percent).toBeCloseTo(50);
    expect(situOfRetwis(fixtureResult(), scaled(0.5)).throughput.verdict).toBe("slower");
    expect(situOfRetwis(fixtureResult(), scaled(1.02)).throughput.verdict).toBe(
      "same within spread",
    );
    const spread = { median: 10, min: 9, max: 11 };
    expect(judge(spread, { median: 12, min: 11, max: 13 })).toBe("same within spread");
    expect(judge(spread, { median: 12, min: 11.1, max: 13 })).toBe("faster");
    expect(judge(spread, { median: 8, min: 7, max: 9 })).toBe("same within spread");
    expect(judge(spread, { median: 8, min: 7, max: 8.9 })).toBe("slower");
  });

  test("gives the change of p99 where both have one", () => {
    const doubled = changedEntry("retwis-none-2", "situ", (entry) => ({
      ...entry,
      latency: {
        ...entry.latency!,
        percentiles: entry.latency!.percentiles.map((point) => ({
          ...point,
          nanoseconds: point.nanoseconds * 2,
        })),
      },
    }));
    expect(situOfRetwis(fixtureResult(), doubled).p99?.percent).toBeCloseTo(100);
    const { latency: _, ...without } = fixtureResult().cells.at(-2)!.entries[0];
    const none = changedEntry("retwis-none-2", "situ", () => without);
    expect(situOfRetwis(fixtureResult(), none).p99).toBeUndefined();
  });

  test("names cells and engines that only one has", () => {
    const before = fixtureResult();
    const after = { ...before, cells: before.cells.slice(1) };
    expect(compareData(before, after).onlyBefore).toEqual(["YCSB-B, one process"]);
    expect(compareData(after, before).onlyAfter).toEqual(["YCSB-B, one process"]);
    const lost = changedEntry("retwis-none-2", "redis", ({ engine }) => ({
      engine,
      missing: "gone",
    }));
    const unpaired = (one: SuiteResult, other: SuiteResult) =>
      compareData(one, other).cells.find(({ id }) => id === "retwis-none-2")!.unpaired;
    expect(unpaired(before, lost)).toContain("Redis: only before; now missing: gone");
    expect(unpaired(lost, before)).toContain("Redis: only after; before missing: gone");
    expect(unpaired(before, before)).toEqual([
      "lmdb: in neither; now missing: lmdb: Cannot find module 'lmdb'",
    ]);
  });

  test("says what else differs", () => {
    const before = fixtureResult();
    const after: SuiteResult = {
      ...changedCell("retwis-none-2", (cell) => ({
        ...cell,
        scale: "1,000 keys",
        load: { kind: "closed", inFlight: 64 },
        roundMs: 500,
        entries: cell.entries.map((entry) =>
          entry.engine === "redis" ? { ...entry, settings: "appendfsync always" } : entry,
        ),
      })),
      commit: "abcdef0",
      machine: ["another one", "Linux 6.1.0, Node v20.20.2, load before the start 3.00"],
      quick: true,
      seed: 7,
      engines: before.engines.map((engine) =>
        engine.engine === "redis" ? { ...engine, version: "8.0.0" } : engine,
      ),
    };
    const text = compareData(before, after).differences.join("\n");
    expect(text).toContain("commit: 7bcefa9+ → abcdef0");
    expect(text).toMatch(/machine: Intel.*→ another one/);
    expect(text).toContain("kind of run: full → quick");
    expect(text).toContain("seed: 42 → 7");
    expect(text).toContain("Redis: 7.0.15 → 8.0.0");
    expect(text).toContain("scale: 1,000,000 keys, values of 64 bytes, zipf 0.5 → 1,000 keys");
    expect(text).toContain("load: closed, 16 in flight → closed, 64 in flight");
    expect(text).toContain("rounds: 5 of 2000 ms → 5 of 500 ms");
    expect(text).toContain("settings of Redis: ioredis");
    expect(text).not.toContain("settings of Situ");
  });

  test("does not take another load of the same machine for another machine", () => {
    const [model, system] = fixtureResult().machine;
    const after = { ...fixtureResult(), machine: [model, system.replace("0.12", "1.75")] };
    expect(compareData(fixtureResult(), after).differences).toEqual([]);
  });
});

test("the text has a line per engine, bars, and the conditions first", () => {
  const text = renderComparison(compareData(fixtureResult(), scaled(1.5)));
  expect(text).toContain("Same machine, commit, versions, scale and settings.");
  expect(text).toMatch(/Situ +\d+ k\/s → \d+ k\/s +\+50\.0 % +faster +p99 .* → .*\(0\.0 %\)/);
  expect(text).toMatch(/YCSB-B, 1 KB rows, one process +2\.57× → 2\.57× +bar 3× +MISSED/);
  expect(text).toMatch(/Retwis, two processes, in memory +not measured → not measured +bar 5×/);
});

describe("from files", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "situ-compare-"));
    // The one file of a report that is read again; to draw the others takes seconds.
    for (const [name, result] of [["a", fixtureResult()] as const, ["b", scaled(1.5)] as const]) {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "results.json"), JSON.stringify(result));
    }
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("folders and files are the same", async () => {
    const [a, b] = [join(folder, "a"), join(folder, "b")];
    const text = await compareResults(a, b);
    expect(text).toBe(renderComparison(compareData(fixtureResult(), scaled(1.5))));
    expect(await compareResults(join(a, "results.json"), join(b, "results.json"))).toBe(text);
  });

  test("names are looked up in benchmarks/results", async () => {
    const results = join(import.meta.dirname, "../../benchmarks/results");
    const name = `test-${process.pid}`;
    const wasThere = existsSync(results);
    try {
      await mkdir(join(results, name), { recursive: true });
      await writeFile(join(results, name, "results.json"), JSON.stringify(fixtureResult()));
      expect(await compareResults(name, name)).toContain("Same machine");
    } finally {
      await rm(wasThere ? join(results, name) : results, { recursive: true, force: true });
    }
  });

  test("what cannot be compared is refused with what to do", async () => {
    const good = join(folder, "a");
    const file = async (name: string, text: string): Promise<string> => {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    };
    const refused = async (path: string, words: RegExp): Promise<void> => {
      await expect(compareResults(good, path)).rejects.toThrow(words);
      await expect(compareResults(path, good)).rejects.toThrow(words);
      await expect(compareResults(good, path)).rejects.toBeInstanceOf(TypeError);
    };
    await refused(join(folder, "none"), /no result at .*none.*benchmarks\/results/);
    await refused(folder, /no result at .*a folder with a results\.json/);
    await refused("", /no result at/);
    await refused(await file("broken.json", '{"version": 1,'), /no JSON.*npm run bench/);
    await refused(await file("empty.json", ""), /no JSON/);
    await refused(await file("list.json", "[1]"), /no result of `npm run bench`/);
    await refused(await file("null.json", "null"), /no result of/);
    const result = fixtureResult();
    await refused(
      await file("old.json", JSON.stringify({ ...result, version: 99 })),
      /version 99.*reads version 1/,
    );
    const { cells: _, ...noCells } = result;
    await refused(await file("part.json", JSON.stringify(noCells)), /lacks parts/);
    const odd = [
      { cells: [{}] },
      { cells: [null] },
      { cells: [{ ...result.cells[0], entries: [{ engine: "situ", throughput: 3 }] }] },
      { cells: [{ ...result.cells[0], entries: [{ engine: "situ", latency: {} }] }] },
      { date: 3 },
    ];
    for (const [index, change] of odd.entries()) {
      const path = await file(`odd-${index}.json`, JSON.stringify({ ...result, ...change }));
      await refused(path, /lacks parts/);
    }
  });
});
