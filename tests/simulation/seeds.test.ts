/**
 * Clusters of one to five nodes from a set of seeds: every workload at every level of faults. A failure
 * names the seed, and the command that replays it.
 */

import { describe, expect, test } from "vitest";
import {
  replayCommand,
  type SimulationOptions,
  simulate,
  WORKLOADS,
} from "../../simulation/cluster/simulate.ts";
import type { Fault } from "../../simulation/fabric/faults.ts";
import type { ProtocolName } from "../../src/protocols/places.ts";
import { SOAK } from "../helpers/seed.ts";

/** Five nodes are for the hunts in planted-bugs.test.ts and failover.test.ts. */
const SIZES = SOAK > 1 ? [1, 2, 3, 4, 5] : [1, 3, 4];
/** For nodes that crash see crashes.test.ts. */
const LEVELS = ["none", "light", "heavy"] as const;
/** Of each client. */
const transactions = SOAK > 1 ? 25 : 12;
const PROTOCOLS: readonly ProtocolName[] = ["rpc", "one-sided"];

describe.each(WORKLOADS)("%s", (workload) => {
  describe.each(LEVELS)("faults: %s", (faults) => {
    test.each(SIZES)("%d nodes", async (nodes) => {
      const [row, column] = [WORKLOADS.indexOf(workload), LEVELS.indexOf(faults)];
      const seed = 1_000 * nodes + 100 * row + 10 * column;
      const protocol = PROTOCOLS[(nodes + row + column) % 2];
      await expectHolds({ seed, nodes, workload, clients: 8, transactions, faults, protocol });
    });
  });
});

/** docs/FAULTS.md, "messages dropped, duplicated, reordered, delayed past the time-out: idempotent". */
describe("many messages are", () => {
  const kinds: Readonly<Record<string, Fault>> = {
    dropped: { kind: "loss", probability: 0.05 },
    duplicated: { kind: "duplicate", probability: 0.5, maxUs: 5_000 },
    "duplicated, and the copies come late": {
      kind: "duplicate",
      probability: 0.2,
      minUs: 1e6,
      maxUs: 5e6,
    },
    reordered: { kind: "reorder", probability: 0.5, maxUs: 5_000 },
    "delayed past the time-out": { kind: "delay", probability: 0.03, minUs: 1e6, maxUs: 4e6 },
  };
  test.each(Object.entries(kinds))("%s", async (_, frames) => {
    for (const workload of WORKLOADS) {
      await expectHolds({
        seed: 11,
        nodes: 3,
        workload,
        clients: 6,
        transactions: 12,
        faults: "none",
        protocol: "rpc",
        frames: [frames],
      });
    }
  });
});

async function expectHolds(options: SimulationOptions): Promise<void> {
  const { problems, counts } = await simulate(options);
  expect(problems, `replay: ${replayCommand(options)}`).toEqual([]);
  const { clients, transactions } = options;
  expect(counts.committed + counts.unknown).toBeGreaterThan((clients * transactions) / 2);
}

/** Every node of a run with faults has a clock of its own rate; see Simulation. */
test("clock rates drift by 5 %: time-outs come early and late, and nothing is wrong", async () => {
  for (const seed of [51, 52, 53]) {
    const frames: Fault[] = [{ kind: "delay", probability: 0.02, minUs: 0.9e6, maxUs: 1.1e6 }];
    const options = {
      seed,
      nodes: 3,
      workload: "registers",
      clients: 6,
      transactions: 15,
    } as const;
    await expectHolds({ ...options, faults: "light", protocol: "rpc", frames });
  }
});

test("ten times the load: 80 workers on the same rows all get to their ends", async () => {
  const options = {
    seed: 7,
    nodes: 3,
    workload: "append",
    clients: 80,
    transactions: 3,
    faults: "light",
    protocol: "rpc",
  } as const;
  const { problems, counts } = await simulate(options);
  expect(problems, `replay: ${replayCommand(options)}`).toEqual([]);
  expect(counts.committed + counts.unknown).toBeGreaterThanOrEqual(80 * 3);
});
