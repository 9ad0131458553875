/** The sentence on a cluster's health. */

import { describe, expect, test } from "vitest";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { healthOf } from "../../src/cluster/health.ts";
import {
  afterFailures,
  initialPlacement,
  type PlacedConfiguration,
  withFilled,
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
    expect(sentence(placed(3, 2), [0, 1, 2])).toBe("healthy: any 2 of 3 nodes may fail");
    expect(sentence(placed(4, 1), [0, 1, 2, 3])).toBe("healthy: any 1 of 4 nodes may fail");
    expect(sentence(placed(2, 0), [0, 1])).toBe(
      "healthy: all 2 nodes answer; each row has one copy, so no node may fail",
    );
    expect(healthOf(placed(3, 2), new Set([0, 1, 2]))).toMatchObject({
      state: "healthy",
      mayFail: 2,
      silent: [],
      lacking: [],
    });
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
    expect(sentence(filled, [0, 1, 2])).toBe("healthy: any 2 of 3 nodes may fail");
    const two = afterFailures(filled, new Set([0, 1]), 0);
    expect(sentence(two, [0, 1])).toBe(
      "degraded: 8 of 8 partitions have fewer than 3 copies, and 1 more node may fail; add a node",
    );
    const one = afterFailures(two, new Set([0]), 0);
    expect(sentence(one, [0])).toMatch(/and no node may fail; add a node$/);
  });

  test("of lost partitions says so first", () => {
    const after = afterFailures(placed(3, 0), new Set([0, 1]), 0);
    expect(healthOf(after, new Set([0, 1]))).toMatchObject({ state: "lost", mayFail: 0 });
    expect(sentence(after, [0, 1])).toMatch(
      /^lost: all copies of [23] of 8 partitions are gone; start one of the nodes that had them/,
    );
  });
});
