/** List-append on simulated NAM-DB under every layout of timestamps, with faults: snapshot isolation, and no lock stays. */

import { expect, it } from "vitest";
import type { Fault } from "../../simulation/fabric/faults.ts";
import { simulateNamAppend } from "../../simulation/nam/append.ts";
import { NamScene } from "./scene.ts";

const HEAVY = [
  { kind: "delay", probability: 0.05, maxUs: 300 },
  { kind: "duplicate", probability: 0.03, maxUs: 2_000 },
  { kind: "loss", probability: 0.002 },
  { kind: "reorder", probability: 0.05, maxUs: 200 },
] as const;

it.each(["vector", "background", "compressed", "both"] as const)(
  "%s: lost, late, doubled messages; compute servers killed and paused",
  (layout) => {
    const run = (seed: number) =>
      simulateNamAppend({
        seed,
        timestamps: { layout },
        faults: HEAVY,
        kills: 4,
        pauses: 4,
        transactions: 200,
      });
    const reports = [1, 2].map(run);
    expect(reports.flatMap(({ problems }) => problems)).toEqual([]);
    const sum = (pick: (report: (typeof reports)[number]) => number): number =>
      reports.reduce((total, report) => total + pick(report), 0);
    expect(sum(({ committed }) => committed)).toBeGreaterThan(300);
    expect(sum(({ refusedVerbs }) => refusedVerbs)).toBeGreaterThan(0);
    expect(sum(({ moved }) => moved)).toBeGreaterThan(50);
    const settled = reports.flatMap(({ settlements }) => Object.keys(settlements));
    expect(settled).toEqual(expect.arrayContaining(["other's: back", "other's: forward"]));
  },
);

it("a vector in parts: two readers may see two commits in opposite orders (NAM-DB §4.2)", () => {
  const scene = new NamScene({ computeServers: 4, isVectorCut: true });
  const { fabric } = scene.cluster;
  // One reader gets the second part late, the other one the first.
  const late = { kind: "delay", probability: 1, frames: "requests", minUs: 2_000, maxUs: 2_000 };
  fabric.addFault({ ...late, from: scene.compute[1].id, to: 1 } as Fault);
  fabric.addFault({ ...late, from: scene.compute[3].id, to: 0 } as Fault);
  const readers = [1, 3].map((number) => {
    const transaction = scene.transaction(number);
    scene.compute[number].driver.run(transaction.begin(), 0, ignore, ignore);
    return { number, transaction };
  });
  fabric.run(fabric.nowUs + 100);
  // Slots 0 and 2 are in different parts.
  expect(scene.write({ 1: 1 }, 0).kind).toBe("committed");
  expect(scene.write({ 2: 2 }, 2).kind).toBe("committed");
  fabric.clearFaults();
  fabric.run(fabric.nowUs + 4_000);
  const seen = readers.map(({ number, transaction }) => scene.readIn(transaction, [1, 2], number));
  expect(seen).toEqual([
    [undefined, 2],
    [1, undefined],
  ]);
});

it("the same seed gives the same run", () => {
  const run = () =>
    simulateNamAppend({ seed: 5, faults: HEAVY, kills: 2, transactions: 60 }).traceHash;
  expect(run()).toBe(run());
});

function ignore(): void {}
