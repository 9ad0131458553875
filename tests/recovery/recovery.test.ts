/** Recovery by messages: what nodes settle when some of them die, message by message and at random. */

import { afterEach, describe, expect, test } from "vitest";
import type { NodeId } from "../../src/fabric/fabric.ts";
import type { Head } from "../../src/protocols/records.ts";
import { NeedRecovery } from "../../src/protocols/recovery/phases/need-recovery.ts";
import { RECOVERY_HANDLERS } from "../../src/protocols/recovery/phases/table.ts";
import { isRecovering, settlerOf } from "../../src/protocols/recovery/recovering.ts";
import { keyOf } from "../../src/protocols/recovery/round.ts";
import {
  SAW_ABORT,
  SAW_COMMIT,
  SAW_LOCK,
  SAW_LOG,
  SAW_NOTHING,
} from "../../src/protocols/recovery/votes.ts";
import { forSeeds, SOAK } from "../helpers/seed.ts";
import { PaperCluster } from "./paper-cluster.ts";
import { writtenBy } from "./paper-replica.ts";

const clusters: PaperCluster[] = [];

afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.close();
});

function clusterOf(
  nodes: number,
  partitions: readonly (readonly NodeId[])[],
  seed = 1,
): PaperCluster {
  const cluster = new PaperCluster(seed, nodes, partitions);
  clusters.push(cluster);
  return cluster;
}

/** Kills nodes; the others recover. */
function lose(cluster: PaperCluster, ...ids: readonly NodeId[]): void {
  for (const id of ids) cluster.kill(id);
  cluster.reconfigure();
  cluster.adopt();
  cluster.fabric.run();
}

/** How a transaction ended, the same at all survivors that have a copy. */
function outcomeOf(cluster: PaperCluster, head: Head): string {
  const outcomes = new Set<string>();
  for (const [partition, { primary, backups }] of cluster.partitions.entries()) {
    if (!head.partitions.includes(partition)) continue;
    for (const node of [primary, ...backups]) {
      const { replica } = cluster.nodes[node];
      const installed = replica.installed.get(`${keyOf(head.name)} in ${partition}`);
      if (installed !== undefined) expect(installed).toBe(writtenBy(head.name, partition));
      outcomes.add(installed === undefined ? "abort" : "commit");
    }
  }
  expect([...outcomes]).toHaveLength(1);
  return [...outcomes][0];
}

function expectRest(cluster: PaperCluster): void {
  for (const { isUp, replica, recovery, driver, view } of cluster.nodes) {
    if (!isUp) continue;
    // What no change concerned is its coordinator's business.
    const recovering = [...replica.inDoubt()].filter((head) => isRecovering(head, view));
    expect(recovering).toEqual([]);
    if ([...replica.inDoubt()].length === 0) expect(replica.left).toBe(0);
    expect(driver.running).toBe(0);
    for (const partition of cluster.partitions.keys()) {
      expect(recovery.isBlocked(partition)).toBe(false);
    }
  }
}

/** Node 4 coordinates and lives; partition 0 loses both of its copies. */
describe("all copies of a partition are lost", () => {
  const begin = () => {
    const cluster = clusterOf(5, [
      [0, 1],
      [2, 3],
    ]);
    const head = cluster.head(4, [0, 1]);
    cluster.nodes[2].replica.see(head, 1, SAW_LOCK);
    cluster.nodes[3].replica.see(head, 1, SAW_LOG);
    return { cluster, head };
  };
  const comeBack = (cluster: PaperCluster, id: NodeId): void => {
    cluster.comeBack(id);
    cluster.adopt();
    cluster.fabric.run();
  };

  test("nothing is decided without it; the one that returns has never heard of it: aborted", () => {
    const { cluster, head } = begin();
    cluster.nodes[0].replica.see(head, 0, SAW_LOCK);
    lose(cluster, 0, 1);
    expect(cluster.told.size).toBe(0);
    expect(cluster.nodes[2].replica.isLocked(head.name, 1)).toBe(true);
    comeBack(cluster, 1);
    expect([...(cluster.told.get(keyOf(head.name)) ?? [])]).toEqual(["abort"]);
    expect(cluster.nodes[2].replica.isLocked(head.name, 1)).toBe(false);
    expectRest(cluster);
  });

  test("the one that returns has committed it: committed", () => {
    const { cluster, head } = begin();
    cluster.nodes[0].replica.see(head, 0, SAW_COMMIT);
    cluster.nodes[1].replica.see(head, 0, SAW_LOG);
    lose(cluster, 0, 1);
    expect(cluster.told.size).toBe(0);
    comeBack(cluster, 1);
    expect(outcomeOf(cluster, head)).toBe("commit");
    expectRest(cluster);
  });
});

describe("the coordinator dies", () => {
  /** Node 3 coordinates and has no copy of what is written, in two partitions. */
  const begin = () => {
    const cluster = clusterOf(4, [
      [0, 1],
      [1, 2],
    ]);
    const head = cluster.head(3, [0, 1]);
    const see = (node: NodeId, partition: number, seen: 2 | 3 | 4 | 5): void =>
      cluster.nodes[node].replica.see(head, partition, seen);
    return { cluster, head, see };
  };

  test("after one LOCK: aborted, and the lock is released", () => {
    const { cluster, head, see } = begin();
    see(0, 0, SAW_LOCK);
    lose(cluster, 3);
    expect(outcomeOf(cluster, head)).toBe("abort");
    expect(cluster.nodes[0].replica.isLocked(head.name, 0)).toBe(false);
    expectRest(cluster);
  });

  test("after all LOCKs: aborted", () => {
    const { cluster, head, see } = begin();
    see(0, 0, SAW_LOCK);
    see(1, 1, SAW_LOCK);
    lose(cluster, 3);
    expect(outcomeOf(cluster, head)).toBe("abort");
    expectRest(cluster);
  });

  test("after one LOG: committed, and who did not log has it", () => {
    const { cluster, head, see } = begin();
    see(0, 0, SAW_LOCK);
    see(1, 1, SAW_LOCK);
    see(2, 1, SAW_LOG);
    lose(cluster, 3);
    expect(outcomeOf(cluster, head)).toBe("commit");
    expectRest(cluster);
  });

  test("after one COMMIT: committed", () => {
    const { cluster, head, see } = begin();
    see(0, 0, SAW_COMMIT);
    see(1, 0, SAW_LOG);
    see(1, 1, SAW_LOCK);
    see(2, 1, SAW_LOG);
    lose(cluster, 3);
    expect(outcomeOf(cluster, head)).toBe("commit");
    expectRest(cluster);
  });

  test("with the primary of a partition whose backup has not logged: aborted", () => {
    const { cluster, head, see } = begin();
    see(0, 0, SAW_LOCK);
    see(1, 1, SAW_LOCK);
    see(2, 1, SAW_LOG);
    lose(cluster, 3, 0);
    expect(outcomeOf(cluster, head)).toBe("abort");
    expectRest(cluster);
  });

  test("and its outcome is told by one of the others, once decided", () => {
    const { cluster, head, see } = begin();
    see(0, 0, SAW_LOCK);
    see(1, 0, SAW_LOG);
    see(1, 1, SAW_LOCK);
    see(2, 1, SAW_LOG);
    lose(cluster, 3, 0);
    expect([...cluster.told.get(keyOf(head.name))!]).toEqual(["commit"]);
    expect(outcomeOf(cluster, head)).toBe("commit");
    expectRest(cluster);
  });
});

test("a new primary is not served before it has the locks of what others have logged", () => {
  const cluster = clusterOf(3, [[0, 1, 2]]);
  const head = cluster.head(0, [0]);
  // Node 1 becomes the primary, and has not heard of it.
  cluster.nodes[2].replica.see(head, 0, SAW_LOG);
  cluster.kill(0);
  cluster.reconfigure();
  cluster.adopt();
  const { recovery, replica } = cluster.nodes[1];
  let wasBlocked = false;
  while (cluster.fabric.step()) {
    if (recovery.isBlocked(0)) wasBlocked = true;
    else if (wasBlocked && cluster.told.size === 0) {
      expect(replica.isLocked(head.name, 0)).toBe(true);
    }
  }
  expect(wasBlocked).toBe(true);
  expect(outcomeOf(cluster, head)).toBe("commit");
  expectRest(cluster);
});

test("what is aborted is unlocked when no backup has a record of it any more", () => {
  const cluster = clusterOf(5, [
    [0, 1],
    [2, 3],
  ]);
  const head = cluster.head(4, [0, 1]);
  cluster.nodes[0].replica.see(head, 0, SAW_LOCK);
  cluster.nodes[1].replica.see(head, 0, SAW_LOG);
  // Nobody has heard of it in the other partition.
  cluster.kill(4);
  cluster.reconfigure();
  cluster.adopt();
  const isLocked = (): boolean => cluster.nodes[0].replica.isLocked(head.name, 0);
  const hasRecord = (): boolean => cluster.nodes[1].replica.writes(head.name, 0) !== undefined;
  let steps = 0;
  while (cluster.fabric.step()) {
    if (hasRecord()) expect(isLocked()).toBe(true);
    else steps++;
  }
  expect(steps).toBeGreaterThan(0);
  expect(isLocked()).toBe(false);
  expect(outcomeOf(cluster, head)).toBe("abort");
  expectRest(cluster);
});

test("what no change concerns is left alone", () => {
  const cluster = clusterOf(4, [
    [0, 1],
    [2, 3],
  ]);
  const head = cluster.head(0, [0]);
  cluster.nodes[0].replica.see(head, 0, SAW_LOCK);
  lose(cluster, 3);
  expect(cluster.told.size).toBe(0);
  expect(cluster.nodes[0].replica.isLocked(head.name, 0)).toBe(true);
});

test("more transactions are in doubt than a message tells of", () => {
  const cluster = clusterOf(3, [[0, 1, 2]]);
  const heads = Array.from({ length: 600 }, () => cluster.head(0, [0]));
  for (const head of heads) {
    cluster.nodes[0].replica.see(head, 0, SAW_LOCK);
    cluster.nodes[2].replica.see(head, 0, SAW_LOG);
  }
  lose(cluster, 0);
  for (const head of heads) expect(outcomeOf(cluster, head)).toBe("commit");
  expectRest(cluster);
});

test("the only one that had logged dies once the outcome is told: the last copy knows, too", () => {
  const cluster = clusterOf(4, [[0, 1, 2]]);
  cluster.kill(3);
  // One that node 0 settles.
  let head = cluster.head(3, [0]);
  while (settlerOf(head, cluster.view(0)) !== 0) head = cluster.head(3, [0]);
  cluster.nodes[0].replica.see(head, 0, SAW_LOCK);
  cluster.nodes[1].replica.see(head, 0, SAW_LOG);
  cluster.reconfigure();
  cluster.adopt();
  while (cluster.told.size === 0) expect(cluster.fabric.step()).toBe(true);
  lose(cluster, 0, 1);
  expect(outcomeOf(cluster, head)).toBe("commit");
  expect([...cluster.told.get(keyOf(head.name))!]).toEqual(["commit"]);
  expectRest(cluster);
});

test("a backup that has dropped it is asked, though it has nothing to say by itself", () => {
  const cluster = clusterOf(4, [[0, 1, 2]]);
  const head = cluster.head(3, [0]);
  cluster.nodes[0].replica.see(head, 0, SAW_LOCK);
  cluster.nodes[1].replica.see(head, 0, SAW_LOG);
  cluster.nodes[2].replica.see(head, 0, SAW_LOG);
  cluster.nodes[2].replica.see(head, 0, SAW_ABORT);
  lose(cluster, 3, 0);
  expect(outcomeOf(cluster, head)).toBe("abort");
  expectRest(cluster);
});

test("a client has no part in it", () => {
  const cluster = clusterOf(2, [[0, 1]]);
  lose(cluster, 1);
  const client = cluster.fabric.endpoint({ self: -1, configurationId: cluster.configurationId });
  const message = new NeedRecovery(0, cluster.nodes[0].recovery.current, [0]);
  let code: string | undefined;
  message.waiting = {
    ended: ({ error }) => {
      code = error?.code;
    },
  };
  client.send(0, message);
  cluster.fabric.run();
  expect(code).toBe("SITU_PERMISSION");
});

test("messages that make no sense are refused, and change nothing", () => {
  const cluster = clusterOf(2, [[0, 1]]);
  cluster.reconfigure();
  cluster.adopt();
  cluster.fabric.run();
  const random = cluster.fabric.random("garbage");
  const codes = new Set<string>();
  for (const { kind } of RECOVERY_HANDLERS) {
    for (let i = 0; i < 100; i++) {
      cluster.nodes[1].endpoint.send(0, {
        kind,
        encode: (out) => {
          for (let words = random.below(24); words > 0; words--) {
            out.word(random.below(3) === 0 ? random.below(2 ** 32) | 0 : random.below(4));
          }
        },
        replied: () => {},
        failed: ({ code }) => codes.add(code),
      });
      cluster.fabric.run();
    }
  }
  // What only the coordinator's own node may ask is refused before it is read.
  expect([...codes].sort()).toEqual(["SITU_PERMISSION", "SITU_PROTOCOL"]);
});

/** What a transaction that was left halfway must come to, if anybody can know. */
type Bound = "commit" | "abort" | undefined;

/** Leaves a transaction somewhere between its first message and its last. */
function leave(cluster: PaperCluster, below: (n: number) => number): [Head, Bound] {
  const { nodes, partitions } = cluster;
  const all = [...partitions.keys()].filter(() => below(2) === 0);
  const written = all.length === 0 ? [below(partitions.length)] : all;
  const coordinator = below(nodes.length);
  const head = cluster.head(coordinator, written);
  const stage = below(5);
  let bound: Bound = stage === 0 && below(2) === 0 ? "abort" : undefined;
  let isTold = stage >= 2 && written.some((each) => partitions[each].primary === coordinator);
  for (const partition of written) {
    const { primary, backups } = partitions[partition];
    const at = nodes[primary].replica;
    if (stage > 0 || below(2) === 0) at.see(head, partition, SAW_LOCK);
    if (bound === "abort" && below(2) === 0) at.see(head, partition, SAW_ABORT);
    for (const backup of backups) {
      if (stage >= 2 || (stage === 1 && below(2) === 0)) {
        nodes[backup].replica.see(head, partition, SAW_LOG);
      }
    }
    // A coordinator that lives says so for its own copy.
    const speaks = primary === coordinator && stage >= 2;
    if (stage >= 3 || speaks || (stage === 2 && below(2) === 0)) {
      at.see(head, partition, SAW_COMMIT);
      isTold = true;
    }
    for (const backup of backups) {
      if (stage === 4 || (stage === 3 && below(2) === 0)) {
        nodes[backup].replica.see(head, partition, SAW_COMMIT);
      }
    }
  }
  if (isTold) bound = "commit";
  return [head, bound];
}

test("whatever was left halfway, whoever dies, and dies during recovery", () => {
  let deaths = 0;
  let aborts = 0;
  let commits = 0;
  forSeeds(150 * SOAK, 1, (seed) => {
    const cluster = clusterOf(
      6,
      [
        [0, 1, 2],
        [1, 2, 3],
        [3, 4, 0],
        [5, 3, 1],
      ],
      seed,
    );
    const { fabric } = cluster;
    const random = fabric.random("test");
    const below = (n: number): number => random.below(n);
    const left = Array.from({ length: 12 }, () => leave(cluster, below));
    fabric.addFault({ kind: "loss", probability: 0.02 });
    fabric.addFault({ kind: "duplicate", probability: 0.05, maxUs: 500 });
    fabric.addFault({ kind: "delay", probability: 0.2, maxUs: 300 });
    const fill = (_: number, copies: readonly NodeId[]): NodeId[] => {
      const free = cluster.members.filter((node) => !copies.includes(node));
      return below(2) === 0 ? [] : free.slice(0, 1);
    };
    const first = below(6);
    const second = (first + 1 + below(5)) % 6;
    const atOnce = below(3) === 0;
    const killSecond = (): void => {
      deaths++;
      cluster.kill(second);
    };
    cluster.kill(first);
    if (atOnce) killSecond();
    const next = (): void => {
      cluster.reconfigure(fill);
      cluster.adopt(() => below(100));
    };
    next();
    if (!atOnce) {
      for (let steps = 1 + below(250); steps > 0; steps--) fabric.step();
      killSecond();
      for (let steps = below(30); steps > 0; steps--) fabric.step();
      next();
    }
    fabric.run(fabric.nowUs + 20e6);
    const view = cluster.view(cluster.members[0]);
    for (const [head, bound] of left) {
      if (!isRecovering(head, view)) continue;
      const outcome = outcomeOf(cluster, head);
      if (outcome === "commit") commits++;
      else aborts++;
      if (bound !== undefined) expect(outcome, `${keyOf(head.name)} of seed ${seed}`).toBe(bound);
      const told = cluster.told.get(keyOf(head.name)) ?? new Set([outcome]);
      expect([...told]).toEqual([outcome]);
    }
    expectRest(cluster);
  });
  expect(Math.min(deaths, aborts, commits)).toBeGreaterThan(100);
});

test("a replica that has seen nothing has no doubt", () => {
  const cluster = clusterOf(3, [[0, 1, 2]]);
  lose(cluster, 0);
  expect(cluster.told.size).toBe(0);
  expect(cluster.nodes[1].replica.seen(cluster.head(0, [0]).name, 0)).toBe(SAW_NOTHING);
  expectRest(cluster);
});
