import { describe, expect, test } from "vitest";
import {
  formatChange,
  formatCount,
  formatDate,
  formatNanoseconds,
  formatPart,
  formatTimes,
  trimZeros,
  workloadTitle,
} from "../../benchmarks/report/format.ts";
import { byProcesses, byWorkload } from "../../benchmarks/report/groups.ts";
import {
  inOrder,
  type MeasuredEntry,
  percentile,
  problemsOf,
  situOf,
  throughputRatio,
} from "../../benchmarks/report/measures.ts";
import { missingOf, notCompared } from "../../benchmarks/report/missing.ts";
import type { Cell, Entry } from "../../benchmarks/report/result.ts";
import {
  barsSentence,
  cellNotes,
  cellTable,
  opponent,
  verdictOf,
} from "../../benchmarks/report/rows.ts";
import { settingsOf } from "../../benchmarks/report/settings.ts";
import { cellOf, changedCell, fixtureResult } from "./fixture.ts";

describe("ratios", () => {
  const entry = (engine: Entry["engine"], perSecond: readonly number[]): MeasuredEntry => ({
    engine,
    perSecond,
    throughput: { median: 10, min: 5, max: 20 },
  });

  test("are taken per round", () => {
    const ratio = throughputRatio(entry("situ", [10, 40, 30]), entry("redis", [5, 10, 30]));
    expect(ratio).toEqual({ median: 2, min: 1, max: 4 });
  });

  test("without rounds that pair up are as wide as both spreads allow", () => {
    const ratio = throughputRatio(entry("situ", [1]), entry("redis", []));
    expect(ratio).toEqual({ median: 1, min: 0.25, max: 4 });
  });

  test("are against Situ on one machine, or the cluster where there is none", () => {
    const cell = cellOf("ycsb-a-none-2");
    expect(situOf(cell)?.engine).toBe("situ");
    const others = cell.entries.filter(({ engine }) => engine !== "situ");
    expect(situOf({ ...cell, entries: others })?.engine).toBe("cluster");
    const broken: Cell = { ...cell, entries: [{ engine: "situ", missing: "x" }, ...others] };
    expect(situOf(broken)).toBeUndefined();
  });
});

test("a percentile is the first recorded one that reaches it", () => {
  const percentiles = [
    { percent: 40, nanoseconds: 4 },
    { percent: 60, nanoseconds: 6 },
    { percent: 99, nanoseconds: 9 },
  ];
  const latency = { count: 3, mean: 5, max: 9, percentiles };
  expect(percentile(latency, 40)).toBe(4);
  expect(percentile(latency, 50)).toBe(6);
  expect(percentile(latency, 99.9)).toBeUndefined();
  expect(percentile(undefined, 50)).toBeUndefined();
});

test("engines are in order: Situ, its cluster, peers by throughput, and who is missing", () => {
  const order = inOrder(cellOf("ycsb-a-none-2").entries).map(({ engine }) => engine);
  expect(order).toEqual(["situ", "cluster", "redis", "sqlite", "postgres", "lmdb"]);
});

describe("missing", () => {
  test("engines are named once, with their reason", () => {
    expect(missingOf(fixtureResult())).toEqual([
      { what: "lmdb", why: "lmdb: Cannot find module 'lmdb'" },
    ]);
  });

  test("an engine that fails in one cell is named with the cell", () => {
    const result = changedCell("tatp-none-2", (cell) => ({
      ...cell,
      entries: cell.entries.map((entry) =>
        entry.engine === "redis" ? { engine: "redis", missing: "it ran out of memory" } : entry,
      ),
    }));
    expect(missingOf(result)).toContainEqual({
      what: "Redis in “TATP, two processes, in memory”",
      why: "it ran out of memory",
    });
  });

  test("an entry without a reason is not passed over", () => {
    const result = changedCell("tatp-none-2", (cell) => ({
      ...cell,
      entries: [{ engine: "redis" }],
    }));
    expect(missingOf(result)[1].why).toBe("no reason was given");
  });

  test("peers that a cell does not compare are named", () => {
    const result = fixtureResult();
    expect(notCompared(result, cellOf("smallbank-sync-1"))).toEqual(["lmdb", "SQLite", "Redis"]);
    expect(notCompared(result, cellOf("ycsb-a-none-2"))).toEqual([]);
  });
});

describe("bars", () => {
  test("are met, missed or not measured, never something between", () => {
    expect(fixtureResult().bars.map(verdictOf)).toEqual([
      "missed",
      "met",
      "met",
      "met",
      "met",
      "met",
      "not measured",
    ]);
    expect(barsSentence(fixtureResult().bars)).toBe("5 of 7 bars met, 1 missed, 1 not measured");
    expect(barsSentence([])).toBe("No bars were part of this run.");
  });
});

test("a bar against a peer by name says who is better than that one", () => {
  const result = fixtureResult();
  const bar = result.bars[2];
  expect(opponent(result, bar)).toBe("Redis, the best peer");
  expect(opponent(result, { ...bar, best: "postgres" })).toBe("PostgreSQL; Redis is the best peer");
  expect(opponent(result, { ...bar, cell: "gone" })).toBe("Redis, the best peer");
});

describe("a cell's table", () => {
  test("has a row per engine with the ratio of Situ to it", () => {
    const { head, rows } = cellTable(fixtureResult(), cellOf("ycsb-a-none-2"));
    expect(rows.map(([title]) => title)).toEqual([
      "Situ",
      "Situ cluster",
      "Redis",
      "SQLite",
      "PostgreSQL",
      "lmdb",
    ]);
    for (const row of rows) expect(row).toHaveLength(head.length);
    const ratio = head.indexOf("Situ / engine");
    expect(rows[0][ratio]).toBe("–");
    expect(rows[1][ratio]).toBe("–");
    expect(rows[2][ratio]).toBe("6.43×");
    expect(rows[5][1]).toBe("not measured: lmdb: Cannot find module 'lmdb'");
  });

  test("of an open loop shows what was dropped, and its notes who fell behind", () => {
    const cell = cellOf("smallbank-none-2-open");
    const { head, rows } = cellTable(fixtureResult(), cell);
    expect(head.at(-1)).toBe("dropped");
    expect(rows.find(([title]) => title === "PostgreSQL")?.at(-1)).toBe("59.5 %");
    for (const row of rows) expect(row).toHaveLength(head.length);
    expect(cellNotes(fixtureResult(), cell)).toEqual([
      "PostgreSQL could not keep the rate: 59.5 % of it was not done.",
    ]);
  });
});

describe("groups", () => {
  test("by workload keep the order of the run and all cells", () => {
    const { cells } = fixtureResult();
    const groups = byWorkload(cells);
    expect(groups.map(({ title }) => title)).toEqual([
      "YCSB-B",
      "YCSB-C",
      "YCSB-A",
      "YCSB-E",
      "SmallBank",
      "TATP",
      "Retwis",
      "FaSST's O(4, 2)",
    ]);
    expect(groups.flatMap((group) => group.cells)).toHaveLength(cells.length);
  });

  test("by processes differ in nothing else, and leave open loops out", () => {
    const groups = byProcesses(fixtureResult().cells);
    expect(groups.map(({ cells }) => cells.map(({ id }) => id))).toEqual([
      ["ycsb-a-none-1", "ycsb-a-none-2", "ycsb-a-none-4"],
      ["smallbank-none-1", "smallbank-none-2"],
    ]);
  });

  test("another scale is another group", () => {
    const { cells } = changedCell("smallbank-none-2", (cell) => ({ ...cell, scale: "less" }));
    expect(byProcesses(cells)).toHaveLength(1);
  });
});

test("settings are said once, with the durability that they are for", () => {
  const settings = settingsOf(fixtureResult());
  expect(settings.map(({ title }) => title)).toEqual([
    "Situ",
    "Situ cluster",
    "SQLite",
    "Redis",
    "PostgreSQL",
  ]);
  expect(settings[0].where).toEqual(["in memory", "sync"]);
});

test("settings that differ within a durability name their cells", () => {
  const result = changedCell("tatp-none-2", (cell) => ({
    ...cell,
    entries: cell.entries.map((entry) =>
      entry.engine === "redis" ? { ...entry, settings: "other" } : entry,
    ),
  }));
  const other = settingsOf(result).find(({ settings }) => settings === "other");
  expect(other?.where).toEqual(["TATP in memory, 2p"]);
});

test("problems are found in every entry", () => {
  const result = changedCell("tatp-none-2", (cell) => ({
    ...cell,
    entries: cell.entries.map((entry) =>
      entry.engine === "redis" ? { ...entry, problems: ["a", "b"] } : entry,
    ),
  }));
  expect(problemsOf(result.cells).map(({ engine, problem }) => [engine, problem])).toEqual([
    ["redis", "a"],
    ["redis", "b"],
  ]);
});

describe("numbers", () => {
  test.each([
    [formatCount(999.4), "999"],
    [formatCount(999.6), "1.00 k"],
    [formatCount(93_249), "93.2 k"],
    [formatCount(999_499), "999 k"],
    [formatCount(999_500), "1.00 M"],
    [formatCount(1_152_000), "1.15 M"],
    [formatNanoseconds(820), "820 ns"],
    [formatNanoseconds(12_345), "12.3 µs"],
    [formatNanoseconds(999_600), "1.00 ms"],
    [formatNanoseconds(2e9), "2.00 s"],
    [formatTimes(9.996), "10.0×"],
    [formatTimes(0.456), "0.46×"],
    [formatPart(0), "0 %"],
    [formatPart(0.00001), "< 0.01 %"],
    [formatPart(0.0031), "0.31 %"],
    [formatPart(0.5), "50 %"],
    [formatPart(1), "100 %"],
    [formatChange(0.04), "0.0 %"],
    [formatChange(-12.34), "−12.3 %"],
    [formatChange(12.34), "+12.3 %"],
    [trimZeros("100 k/s"), "100 k/s"],
    [trimZeros("20.0 k/s"), "20 k/s"],
    [trimZeros("1.50 ms"), "1.5 ms"],
    [trimZeros("2.00 s"), "2 s"],
    [formatDate("2026-11-15T15:04:05.000Z"), "2026-11-15 15:04 UTC"],
    [formatDate("yesterday"), "yesterday"],
    [workloadTitle("ycsb-f"), "YCSB-F"],
    [workloadTitle("objects-1-0"), "FaSST's O(1, 0)"],
    [workloadTitle("else"), "else"],
  ])("%s is %s", (text, expected) => {
    expect(text).toBe(expected);
  });
});
