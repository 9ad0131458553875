/**
 * Recovery with real stores: a coordinator that is killed at each message of a commit, together with others
 * or alone, and the survivors, which get the next configuration from the test. What they settle is the
 * same at all copies, all or nothing, and agrees with what the client was told.
 */

import { describe, expect, test } from "vitest";
import { RecoveringNodes } from "../../simulation/cluster/recovering-nodes.ts";
import { leftOvers } from "../../simulation/cluster/rest.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { COMMIT, LOCK, LOG, TRUNCATE } from "../../src/protocols/kinds.ts";
import { Scene, transfer } from "../simulation/scene.ts";

/** A scene whose nodes recover when they are told to. */
class RecoveringScene extends Scene {
  readonly recovering = new RecoveringNodes(this.fabric, this.nodes, this.configuration);

  copiesOf(account: number): NodeId[] {
    return this.recovering.copiesOf(this.accounts.partitionOf(account));
  }

  /** All survivors are at rest; the balance of an account, the same at all copies. */
  settled(account: number): bigint {
    expect(leftOvers(this.recovering.up)).toEqual([]);
    const copies = this.copiesOf(account);
    const found = new Set(copies.map((node) => this.balances(node).get(`n${account}`)));
    expect(
      found.size,
      `copies of ${account} at ${copies.join(", ")}: ${[...found].join(", ")}`,
    ).toBe(1);
    for (const node of copies) {
      expect(this.recovering.isBlocked(node, this.accounts.partitionOf(account))).toBe(false);
    }
    return [...found][0]!;
  }
}

/** The coordinator is node 0, as the primary of the first account; the other one's is node 1. */
async function transferAndKill(
  kind: number,
  times: number,
  victims: (scene: RecoveringScene, a: number, b: number) => readonly NodeId[],
  second?: (scene: RecoveringScene, a: number, b: number) => readonly NodeId[],
): Promise<{ outcome: string; told: string | undefined; wasSent: boolean }> {
  const scene = new RecoveringScene({ nodes: 5, backups: 2, recovers: true });
  const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
  scene.open([a, b]);
  const client = await scene.client();
  let wasSent = false;
  const kill = (ids: readonly NodeId[]): void => {
    for (const id of ids) if (scene.nodes[id].isUp) scene.nodes[id].crash();
  };
  scene.when(
    "served",
    kind,
    () => {
      wasSent = true;
      scene.fabric.at(scene.fabric.nowUs, () => kill(victims(scene, a, b)));
    },
    undefined,
    times,
  );
  const transferred = scene.start(transfer(client, a, b));
  await scene.work(5);
  if (!wasSent) kill(victims(scene, a, b));
  client.vanish();
  scene.recovering.recover();
  if (second !== undefined) {
    // In the middle of it.
    scene.fabric.run(scene.fabric.nowUs + 25);
    kill(second(scene, a, b));
    scene.recovering.recover();
  }
  scene.pass(5_000);
  const [from, to] = [scene.settled(a), scene.settled(b)];
  expect(from + to).toBe(200n);
  return {
    outcome: from === 99n ? "commit" : "abort",
    told: transferred.result?.kind,
    wasSent,
  };
}

describe("the coordinator is killed", () => {
  const coordinator = (): readonly NodeId[] => [0];

  test("when a primary has locked: aborted", async () => {
    expect(await transferAndKill(LOCK, 1, coordinator)).toMatchObject({ outcome: "abort" });
  });

  test.each([1, 2, 3])("when LOG was served %d times: committed", async (times) => {
    const { outcome, wasSent } = await transferAndKill(LOG, times, coordinator);
    expect({ outcome, wasSent }).toEqual({ outcome: "commit", wasSent: true });
  });

  test("when another primary has installed: committed", async () => {
    const { outcome, wasSent } = await transferAndKill(COMMIT, 1, coordinator);
    expect({ outcome, wasSent }).toEqual({ outcome: "commit", wasSent: true });
  });

  test("when a backup has applied: committed", async () => {
    const { outcome } = await transferAndKill(TRUNCATE, 1, coordinator);
    expect(outcome).toBe("commit");
  });

  test("with another primary, which has only locked: aborted", async () => {
    expect(await transferAndKill(LOCK, 1, () => [0, 1])).toMatchObject({ outcome: "abort" });
  });

  test("with another primary, when it has installed: committed", async () => {
    expect(await transferAndKill(COMMIT, 1, () => [0, 1])).toMatchObject({ outcome: "commit" });
  });

  test.each([1, 2, 3, 4])(
    "with a backup, when LOG was served %d times: all or nothing",
    async (times) => {
      const backup = (scene: RecoveringScene, _: number, b: number): NodeId[] => [
        0,
        scene.copiesOf(b).findLast((node) => node !== 0 && node !== 1)!,
      ];
      const { outcome, told } = await transferAndKill(LOG, times, backup);
      if (told === "ok") expect(outcome).toBe("commit");
    },
  );

  test.each([
    [LOG, 1],
    [LOG, 3],
    [COMMIT, 1],
  ])("by message %d, %d times, and a new primary during recovery", async (kind, times) => {
    const next = (scene: RecoveringScene, a: number): NodeId[] => [scene.copiesOf(a)[0]];
    const { outcome, told } = await transferAndKill(kind, times, coordinator, next);
    if (told === "ok" || kind === COMMIT) expect(outcome).toBe("commit");
  });
});
