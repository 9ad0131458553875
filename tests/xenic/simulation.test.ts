/** List-append on simulated Xenic, with faults and deaths, under each table of techniques: strictly serializable. */

import { expect, it } from "vitest";
import { simulateXenicAppend, type XenicAppendOptions } from "../../simulation/xenic/append.ts";

const HEAVY = [
  { kind: "delay", probability: 0.05, maxUs: 300 },
  { kind: "duplicate", probability: 0.03, maxUs: 2_000 },
  { kind: "loss", probability: 0.01 },
  { kind: "reorder", probability: 0.05, maxUs: 200 },
] as const;

const TABLES: readonly [string, Partial<XenicAppendOptions>][] = [
  ["everything on", {}],
  ["rows are read and locked by different messages", { switches: { combines: false } }],
  ["procedures run at the host", { switches: { runsAtNic: false } }],
  ["without multi-hop", { switches: { hops: false } }],
];

it.each(TABLES)("%s: lost, late, doubled messages, and two deaths", (_name, table) => {
  const reports = [1, 2].map((seed) =>
    simulateXenicAppend({
      ...table,
      seed,
      faults: HEAVY,
      killsAt: [150 * seed, 250 * seed + 7],
      transactions: 100,
    }),
  );
  expect(reports.flatMap(({ problems }) => problems)).toEqual([]);
  expect(reports.every(({ recoveries }) => recoveries > 0)).toBe(true);
  expect(reports.reduce((sum, { committed }) => sum + committed, 0)).toBeGreaterThan(150);
});

it("a death during the recovery from another one", () => {
  const report = simulateXenicAppend({ seed: 5, killsAt: [200, 203], transactions: 150 });
  expect(report.problems).toEqual([]);
});

it("a NIC full of pinned rows and hosts that stop applying: back-pressure, and bounded logs", () => {
  const report = simulateXenicAppend({
    seed: 3,
    faults: HEAVY,
    keys: 60,
    // Room for five rows of different segments, of the ten or so that a shard has.
    memoryBytes: 3_800,
    logRecords: 5,
    stalls: 10,
    transactions: 200,
  });
  expect(report.problems).toEqual([]);
  expect(report.committed).toBe(200);
  expect(report.busy).toBeGreaterThan(0);
  expect(report.evictions).toBeGreaterThan(0);
  // The limit, and what is under way: ten clients with up to four rows each, of three copies.
  expect(report.longestLog).toBeLessThan(5 + 10 * 4);
});

it("local reads that do not ask the NIC miss what others were told: the paper's way is not strict", () => {
  const options = { localPercent: 50, transactions: 300 };
  const anomalies = [3, 4].map(
    (seed) =>
      simulateXenicAppend({ ...options, seed, switches: { asksNic: false } }).anomalies.size,
  );
  expect(Math.max(...anomalies)).toBeGreaterThan(0);
  expect(simulateXenicAppend({ ...options, seed: 3 }).problems).toEqual([]);
});

it("the same seed is the same run", () => {
  const run = () =>
    simulateXenicAppend({ seed: 9, faults: HEAVY, killsAt: [200], transactions: 60 });
  expect(run().traceHash).toBe(run().traceHash);
});
