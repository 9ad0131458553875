/** Consistent hashing over k rings (FaRM §3.3). */

import { describe, expect, test } from "vitest";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { partitionOf, tableId } from "../../src/tables/partitions.ts";
import { check, fc } from "../helpers/property.ts";

function placement(ids: readonly number[], more: Record<string, unknown> = {}): ClusterPlacement {
  const nodes = ids.map((id) => ({ id, host: "127.0.0.1", port: 7000 + id }));
  return new ClusterPlacement(configurationOf({ nodes, ...more }, "a test"));
}

function replicas(from: ClusterPlacement): number[][] {
  return Array.from({ length: from.partitions }, (_, partition) => [
    from.primaryOf(partition),
    ...from.backupsOf(partition),
  ]);
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe("placement", () => {
  test("replicas are distinct nodes of the configuration, primary and f backups", () => {
    const shapes = fc.record({
      ids: fc.uniqueArray(fc.nat(127), { minLength: 1, maxLength: 12 }),
      partitions: fc.integer({ min: 1, max: 600 }),
      rings: fc.integer({ min: 1, max: 200 }),
      backups: fc.nat(11),
    });
    check(
      fc.property(shapes, ({ ids, partitions, rings, backups }) => {
        const f = Math.min(backups, ids.length - 1);
        const all = replicas(placement(ids, { partitions, rings, backups: f }));
        for (const each of all) {
          expect(new Set(each).size).toBe(f + 1);
          for (const node of each) expect(ids).toContain(node);
        }
      }),
      30,
    );
  });

  test("no node has much more than its share, as primary or as backup", () => {
    for (const count of [3, 5, 10]) {
      const partitions = 8_192;
      const all = replicas(placement(upTo(count), { partitions, backups: 2 }));
      for (const role of [0, 1, 2]) {
        const shares = upTo(count).map((node) => all.filter((each) => each[role] === node).length);
        for (const share of shares) {
          expect(share).toBeGreaterThan((partitions / count) * 0.6);
          expect(share).toBeLessThan((partitions / count) * 1.5);
        }
      }
    }
  });

  test("a node that joins takes only what becomes its own; one that leaves moves only what it had", () => {
    const before = replicas(placement(upTo(8), { partitions: 4_096, backups: 2 }));
    const after = replicas(placement(upTo(9), { partitions: 4_096, backups: 2 }));
    let moved = 0;
    before.forEach((old, partition) => {
      const now = after[partition];
      if (!now.includes(8)) expect(now).toEqual(old);
      else {
        moved++;
        // Those that stay keep their order; the last one gives way.
        expect(now.filter((node) => node !== 8)).toEqual(old.slice(0, 2));
      }
    });
    expect(moved).toBeGreaterThan((4_096 * 3) / 9 / 2);
    expect(moved).toBeLessThan(((4_096 * 3) / 9) * 2);
  });

  test("what a node leaves goes to many others, with many rings (§3.3), to few with one", () => {
    const successors = (rings: number): number => {
      const all = replicas(placement(upTo(20), { partitions: 4_096, rings, backups: 1 }));
      return new Set(all.filter(([primary]) => primary === 4).map(([, backup]) => backup)).size;
    };
    expect(successors(1)).toBe(1);
    expect(successors(100)).toBeGreaterThan(15);
  });

  test("depends on the id and the cluster's name, not on addresses or the order of nodes", () => {
    const nodes = [2, 0, 1].map((id) => ({ id, host: `host-${id}`, port: 1 }));
    const moved = new ClusterPlacement(configurationOf({ nodes }, "a test"));
    expect(replicas(moved)).toEqual(replicas(placement([0, 1, 2])));
    expect(replicas(placement([0, 1, 2], { cluster: "another" }))).not.toEqual(replicas(moved));
  });

  test("is what the configuration says, if it says so", () => {
    const nodes = [0, 1, 2, 3].map((id) => ({ id, host: "127.0.0.1", port: 1 }));
    const state = [
      { primary: 2, backups: [0], filling: [3], primarySince: 2, replicasSince: 4 },
      { primary: 1, backups: [0, 3], filling: [], primarySince: 1, replicasSince: 1 },
    ];
    const configuration = { nodes, partitions: 2, configurationId: 4, placement: state };
    const placed = new ClusterPlacement(configurationOf(configuration, "a test"));
    expect([placed.primaryOf(0), placed.primaryOf(1)]).toEqual([2, 1]);
    expect([placed.backupsOf(0), placed.backupsOf(1)]).toEqual([
      [0, 3],
      [0, 3],
    ]);
    expect([placed.copiesOf(0), placed.copiesOf(1)]).toEqual([
      [2, 0],
      [1, 0, 3],
    ]);
    expect([placed.fillingOf(0), placed.fillingOf(1)]).toEqual([[3], []]);
    expect([placed.primarySince(0), placed.replicasSince(0)]).toEqual([2, 4]);
  });

  test("golden values: data that lies somewhere must be found there by later versions", () => {
    const all = replicas(placement([0, 1, 2]));
    const shown = all.map((each) => each.join("")).join(" ");
    expect(shown.slice(0, 63)).toMatchInlineSnapshot(
      `"120 210 210 102 210 120 102 210 210 120 102 210 210 120 021 102"`,
    );
    expect(tableId(shown)).toMatchInlineSnapshot(`941076394`);
    expect(`${tableId("accounts")} ${tableId("")}`).toMatchInlineSnapshot(
      `"-731719164 -1421968373"`,
    );
    const partitions = [0, 1, -1, 123_456_789].map((hash) => partitionOf(7, hash, 256));
    expect(partitions.join(" ")).toMatchInlineSnapshot(`"14 242 244 88"`);
  });

  test("keys spread over the partitions, and tables differently", () => {
    const counts = new Int32Array(64);
    let same = 0;
    for (let key = 0; key < 64_000; key++) {
      counts[partitionOf(tableId("a"), key, 64)]++;
      if (partitionOf(tableId("a"), key, 64) === partitionOf(tableId("b"), key, 64)) same++;
    }
    for (const count of counts) {
      expect(count).toBeGreaterThan(800);
      expect(count).toBeLessThan(1_200);
    }
    expect(same).toBeLessThan(2_000);
  });
});
