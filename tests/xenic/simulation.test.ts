/** List-append on simulated Xenic, with faults and deaths, under each table of techniques: strictly serializable. */

import { expect, it } from "vitest";
import { simulateXenicAppend } from "../../simulation/xenic/append.ts";
import {
  XENIC_HEAVY as HEAVY,
  runXenic,
  XENIC_BUGS,
  XENIC_TABLES,
} from "../../simulation/xenic/runs.ts";

const TABLES = Object.entries(XENIC_TABLES);

it.each(TABLES)("%s: lost, late, doubled messages, and two deaths", (_name, switches) => {
  const reports = [1, 2].map((seed) =>
    simulateXenicAppend({
      switches,
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

/** Seeds at which each was found when this was written, and others after them. */
const HUNTS: Readonly<Record<string, { firstSeed: number; faults: "none" | "failover" }>> = {
  "skip validation": { firstSeed: 4, faults: "none" },
  "count the own memory as a copy": { firstSeed: 164, faults: "failover" },
};

it.each(Object.entries(XENIC_BUGS))("the checks find a planted mistake: %s", (name, bug) => {
  const { firstSeed, faults } = HUNTS[name];
  const run = { nodes: 3, transactions: 150, faults };
  let found: readonly string[] = [];
  let seed = firstSeed;
  for (; found.length === 0 && seed < firstSeed + 200; seed++) {
    found = runXenic({ ...run, seed }, bug).problems;
  }
  expect(found).not.toEqual([]);
  expect(runXenic({ ...run, seed: seed - 1 }).problems).toEqual([]);
});

it("the same seed is the same run", () => {
  const run = () =>
    simulateXenicAppend({ seed: 9, faults: HEAVY, killsAt: [200], transactions: 60 });
  expect(run().traceHash).toBe(run().traceHash);
});
