/**
 * Nodes that are killed and come back, in the middle of everything. What today's protocol promises then, and
 * what it does not: each broken promise is found within a few seeds. Whoever mends one moves it to the first part.
 */

import { describe, expect, test } from "vitest";
import {
  replayCommand,
  type SimulationOptions,
  simulate,
  WORKLOADS,
} from "../../simulation/cluster/simulate.ts";

const SIZE = { clients: 8, transactions: 20 } as const;

describe("kept", () => {
  /** Whatever is told as committed is in the memory of the only node that has it. */
  test.each(WORKLOADS)("one node, killed again and again: %s", async (workload) => {
    let crashes = 0;
    for (const protocol of ["rpc", "one-sided"] as const) {
      for (const seed of [1, 3]) {
        const options = { ...SIZE, seed, nodes: 1, workload, faults: "crashes", protocol } as const;
        const report = await simulate(options);
        expect(report.problems, `replay: ${replayCommand(options)}`).toEqual([]);
        crashes += report.crashes;
      }
    }
    expect(crashes).toBeGreaterThan(0);
  });
});

interface Broken extends Pick<SimulationOptions, "workload" | "nodes"> {
  readonly faults: "crashes" | "power";
  /** What one of the problems of a run looks like. */
  readonly found: RegExp;
}

const SEEDS = 8;

const BROKEN: Readonly<Record<string, Broken>> = {
  // Its locks die with it; the backups have logged, so the coordinator goes on, and the new life refuses COMMIT.
  "a primary that dies between LOCK and COMMIT loses what was told as committed": {
    workload: "bank",
    nodes: 3,
    faults: "crashes",
    found: /worker \d+ counted \d+ transfers/,
  },
  "its backups have what it has lost": {
    workload: "bank",
    nodes: 3,
    faults: "crashes",
    found: /a backup, has/,
  },
  // One primary has installed, the other has lost its locks: half of a transaction is seen.
  "a transaction is there in part": {
    workload: "append",
    nodes: 3,
    faults: "crashes",
    found: /anomalies: /,
  },
  // Nobody decides for it: its record heads the queue of a backup, and all that come later wait.
  "a coordinator that dies after LOG leaves records that are never applied": {
    workload: "append",
    nodes: 3,
    faults: "crashes",
    found: /records wait to be applied/,
  },
  // LOG and COMMIT are answered before anything is on disk.
  "a node that loses its power forgets what it has acknowledged": {
    workload: "bank",
    nodes: 1,
    faults: "power",
    found: /worker \d+ counted \d+ transfers/,
  },
};

describe("broken", () => {
  test.each(Object.entries(BROKEN))("%s", async (_, { workload, nodes, faults, found }) => {
    const seen: string[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const options = { ...SIZE, seed, nodes, workload, faults, protocol: "rpc" } as const;
      const { problems } = await simulate(options);
      if (problems.some((each) => found.test(each))) return;
      seen.push(...problems);
    }
    expect.fail(`none of ${SEEDS} seeds shows it any more: ${seen.join("\n")}`);
  });
});

test("the same seed gives the same trace, also with crashes and power losses", async () => {
  for (const faults of ["crashes", "power"] as const) {
    const options = { ...SIZE, seed: 5, nodes: 3, workload: "append", faults } as const;
    const run = { ...options, protocol: "rpc" } as const;
    const [first, second] = [await simulate(run), await simulate(run)];
    expect(second).toEqual(first);
    expect(first.crashes).toBeGreaterThan(0);
  }
});
