/** The sentence on a cluster's health. */

import { describe, expect, test } from "vitest";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { healthOf } from "../../src/cluster/health.ts";
import {
  afterFailures,
  initialPlacement,
  nextStep,
  type PlacedConfiguration,
  withDraining,
  withFilled,
  withNode,
} from "../../src/cluster/planning/planning.ts";

const nodes = [0, 1, 2].map((id) => ({ id, host: "h", port: 1 }));

function placed(count: number, backups: number): PlacedConfiguration {
  const members = [...nodes, { id: 3, host: "h", port: 1 }].slice(0, count);
  const placement = initialPlacement(members, 8, backups);
  const given = { nodes: members, backups, partitions: 8, manager: 0, placement };
  return configurationOf(given, "a test") as PlacedConfiguration;
}

function sentence(configuration: Configuration, answering: readonly number[]): string {
  return healthOf(configuration, new Set(answering)).sentence;
}

describe("health", () => {
  test("of a whole cluster says how many nodes may fail", () => {
    expect(sentence(placed(3, 2), [0, 1, 2])).toBe(
      "healthy: any 1 of 3 nodes may fail; if 2 do at once, no row is lost, and the others wait for one of them",
    );
    expect(sentence(placed(3, 1), [0, 1, 2])).toBe("healthy: any 1 of 3 nodes may fail");
    expect(sentence(placed(4, 1), [0, 1, 2, 3])).toBe("healthy: any 1 of 4 nodes may fail");
    expect(sentence(placed(2, 0), [0, 1])).toBe(
      "healthy: all 2 nodes answer; each row has one copy, so no node may fail",
    );
    expect(healthOf(placed(3, 2), new Set([0, 1, 2]))).toMatchObject({
      state: "healthy",
      mayFail: 2,
      mayFailAtOnce: 1,
      silent: [],
      lacking: [],
    });
  });

  test("of two nodes says that they cannot go on without each other", () => {
    expect(sentence(placed(2, 1), [0, 1])).toBe(
      "healthy: all 2 nodes answer; if one fails, no row is lost, and the others wait until it is back. " +
        "With three nodes they could go on",
    );
    expect(sentence(placed(2, 1), [0])).toBe(
      "unavailable: 1 of 2 nodes answer, and 2 are needed; start node 1 again",
    );
    expect(sentence(placed(3, 2), [2])).toBe(
      "unavailable: 1 of 3 nodes answer, and 2 are needed; start nodes 0, 1 again",
    );
  });

  test("of a node that is drained says how far it is, and what to do next", () => {
    const draining = withDraining(placed(4, 2), 3, true);
    const [{ node, partitions }] = healthOf(draining, new Set([0, 1, 2, 3])).draining;
    expect([node, partitions]).toEqual([3, 6]);
    expect(sentence(draining, [0, 1, 2, 3])).toMatch(
      /; node 3 is being drained, with 6 partitions left$/,
    );
    const moving = nextStep(draining)!;
    const moved = moving.placement.filter(({ filling }) => filling.length > 0).length;
    expect(sentence(moving, [0, 1, 2, 3])).toContain(`; ${moved} partitions move; node 3 is being`);
    const all = moving.placement.flatMap(({ filling }, partition) =>
      filling.map((id) => ({ partition, node: id })),
    );
    const emptied = nextStep(withFilled(moving, all))!;
    expect(sentence(emptied, [0, 1, 2, 3])).toMatch(
      /; node 3 is drained: remove it with situ cluster remove 3$/,
    );
  });

  test("of a node that has joined says that it is the primary of nothing yet", () => {
    const joined = withNode(placed(3, 2), { id: 3, host: "h", port: 1 }, false);
    expect(sentence(joined, [0, 1, 2, 3])).toMatch(/^healthy: .*; node 3 gets its share$/);
    expect(sentence(placed(4, 2), [0, 1, 2, 3])).not.toContain("share");
  });

  test("of fixed nodes says that nobody takes over", () => {
    const fixed = configurationOf({ nodes }, "a test");
    expect(sentence(fixed, [0, 1, 2])).toMatch(
      /^healthy: any 2 of 3 nodes may fail; the nodes are fixed/,
    );
    expect(sentence(fixed, [0, 2])).toMatch(
      /^unavailable: node 1 does not answer, and \d+ of 256 partitions cannot be used; start it again$/,
    );
  });

  test("after a failure says what is missing, and what to do", () => {
    const before = placed(4, 2);
    const after = afterFailures(before, new Set([0, 1, 2]), 0);
    const lacking = after.placement.filter(({ filling }) => filling.length > 0).length;
    expect(sentence(before, [0, 1, 2])).toMatch(/^unavailable: node 3 does not answer/);
    expect(sentence(after, [0, 1, 2])).toBe(
      `restoring: ${lacking} of 8 partitions have fewer than 3 copies and are being copied; ` +
        "until then 1 more node may fail",
    );
    const filled = withFilled(
      after,
      after.placement.flatMap(({ filling }, partition) =>
        filling.map((node) => ({ partition, node })),
      ),
    );
    expect(sentence(filled, [0, 1, 2])).toMatch(/^healthy: any 1 of 3 nodes may fail; if 2 do/);
    const two = afterFailures(filled, new Set([0, 1]), 0);
    expect(sentence(two, [0, 1])).toBe(
      "degraded: 8 of 8 partitions have fewer than 3 copies, and if another node fails, no row is lost, " +
        "and the cluster waits until it is back; add a node",
    );
    const one = afterFailures(two, new Set([0]), 0);
    expect(sentence(one, [0])).toMatch(/and no node may fail; add a node$/);
  });

  test("of lost partitions says so first", () => {
    const after = afterFailures(placed(3, 0), new Set([0, 1]), 0);
    expect(healthOf(after, new Set([0, 1]))).toMatchObject({
      state: "lost",
      mayFail: 0,
      lostAt: [2],
    });
    expect(sentence(after, [0, 1])).toMatch(
      /^lost: all copies of ([23]) of 8 partitions are gone \((\d, ){1,2}\d\); start node 2 again, with/,
    );
  });
});
