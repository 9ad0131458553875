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

const SIZE = { clients: 8, transactions: 15 } as const;

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
  /** What some of the problems of these runs look like, by the promise that is broken. */
  readonly found: Readonly<Record<string, RegExp>>;
}

const SEEDS = 12;

const BROKEN: readonly Broken[] = [
  {
    workload: "bank",
    nodes: 3,
    faults: "crashes",
    found: {
      // Its locks die with it; the backups have logged, so the coordinator goes on, and the new life refuses COMMIT.
      "a primary that dies between LOCK and COMMIT loses what it is told to commit":
        /node \d, a backup, has/,
      // The other primary has installed its half.
      "a transaction is there in part": /found \d+ instead of|there are \d+ instead of/,
      // Nobody decides for it: its record heads the queue of a backup, and all that come later wait.
      "a coordinator that dies after LOG leaves records that nobody applies":
        /records wait to be applied/,
    },
  },
  {
    workload: "append",
    nodes: 3,
    faults: "crashes",
    found: { "what was acknowledged is lost": /^lost-write: .* was acknowledged/ },
  },
  {
    workload: "append",
    nodes: 1,
    faults: "power",
    found: {
      // LOG and COMMIT are answered before anything is on disk.
      "a node that loses its power forgets what it has acknowledged":
        /^lost-write: .* was acknowledged/,
    },
  },
];

describe("broken", () => {
  test.each(BROKEN)("$nodes nodes, $faults, $workload", async (broken) => {
    const { workload, nodes, faults, found } = broken;
    const left = new Map(Object.entries(found));
    const seen: string[] = [];
    for (let seed = 1; seed <= SEEDS && left.size > 0; seed++) {
      const options = { ...SIZE, seed, nodes, workload, faults, protocol: "rpc" } as const;
      const { problems } = await simulate(options);
      for (const [promise, looks] of left) {
        if (problems.some((each) => looks.test(each))) left.delete(promise);
      }
      seen.push(...problems);
    }
    expect(
      [...left.keys()],
      `none of ${SEEDS} seeds shows it any more: ${seen.join("\n")}`,
    ).toEqual([]);
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
