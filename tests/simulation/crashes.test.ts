/** Nodes that are killed and come back, or lose their power, in the middle of everything: what is promised then. */

import { describe, expect, test } from "vitest";
import { replayCommand, simulate, WORKLOADS } from "../../simulation/cluster/simulate.ts";
import { SOAK } from "../helpers/seed.ts";

const SIZE = { clients: 8, transactions: SOAK > 1 ? 15 : 8 } as const;

/** One for each protocol; with SITU_SOAK all for both. */
function seedsOf(protocol: "rpc" | "one-sided", seeds: readonly number[]): readonly number[] {
  return SOAK > 1 ? seeds : [seeds[protocol === "rpc" ? 0 : 1]];
}

describe("kept", () => {
  /** Whatever is told as committed is in the memory of the only node that has it. */
  test.each(WORKLOADS)("one node, killed again and again: %s", async (workload) => {
    let crashes = 0;
    for (const protocol of ["rpc", "one-sided"] as const) {
      for (const seed of seedsOf(protocol, [1, 3])) {
        const options = { ...SIZE, seed, nodes: 1, workload, faults: "crashes", protocol } as const;
        const report = await simulate(options);
        expect(report.problems, `replay: ${replayCommand(options)}`).toEqual([]);
        crashes += report.crashes;
      }
    }
    expect(crashes).toBeGreaterThan(0);
  });

  /**
   * A primary that dies between LOCK and COMMIT locks its rows again and learns the outcome; a coordinator that
   * dies settles what it has left: all copies agree, nothing is there in part, nothing acknowledged is lost.
   */
  test.each(["bank", "append"] as const)(
    "three nodes, killed again and again: %s",
    async (workload) => {
      let crashes = 0;
      for (const protocol of ["rpc", "one-sided"] as const) {
        for (const seed of seedsOf(protocol, [4, 17])) {
          const options = {
            ...SIZE,
            seed,
            nodes: 3,
            workload,
            faults: "crashes",
            protocol,
          } as const;
          const report = await simulate(options);
          expect(report.problems, `replay: ${replayCommand(options)}`).toEqual([]);
          crashes += report.crashes;
        }
      }
      expect(crashes).toBeGreaterThan(0);
    },
  );

  /** What is answered is on disk. */
  test.each([
    [1, [1]],
    [3, [1, 4]],
  ])("%i nodes that lose their power again and again", async (nodes, seeds) => {
    for (const seed of seeds) {
      const size = { clients: 4, transactions: 6, seed, nodes } as const;
      const options = { ...size, workload: "append", faults: "power", protocol: "rpc" } as const;
      const report = await simulate(options);
      expect(report.problems, `replay: ${replayCommand(options)}`).toEqual([]);
      expect(report.crashes).toBeGreaterThan(0);
    }
  });
});

test("the same seed gives the same trace, also with crashes and power losses", async () => {
  for (const faults of ["crashes", "power"] as const) {
    const size = faults === "power" ? { clients: 4, transactions: 6 } : SIZE;
    const options = { ...size, seed: 3, nodes: 3, workload: "append", faults } as const;
    const run = { ...options, protocol: "rpc" } as const;
    const [first, second] = [await simulate(run), await simulate(run)];
    expect(second).toEqual(first);
    expect(first.crashes).toBeGreaterThan(0);
  }
});
