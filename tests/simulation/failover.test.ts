/** Nodes that are killed and do not come back: the others go on without them, and so do their coordinators and clients. */

import { describe, expect, test } from "vitest";
import { RecoveringNodes } from "../../simulation/cluster/recovering-nodes.ts";
import { leftOvers } from "../../simulation/cluster/rest.ts";
import { replayCommand, simulate } from "../../simulation/cluster/simulate.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import {
  COMMIT,
  COMMIT_RECOVERY,
  FETCH_TX_STATE,
  LOCK,
  LOG,
  NEED_RECOVERY,
  RECOVERY_VOTE,
  REPLICATE_TX_STATE,
  REQUEST_VOTE,
  TRUNCATE_RECOVERY,
} from "../../src/protocols/kinds.ts";
import { SOAK } from "../helpers/seed.ts";
import { Scene, transfer } from "./scene.ts";

const SIZE = { clients: 6, transactions: 15 } as const;

/** Nothing acknowledged is lost or done twice, copies agree, and nothing is left locked or open. */
describe.each(["rpc", "one-sided"] as const)("nodes are lost while others work: %s", (protocol) => {
  test.each([
    ["append", 3],
    ["bank", 3],
    ["append", 5],
  ] as const)("%s, %i nodes", async (workload, nodes) => {
    let crashes = 0;
    for (let seed = 1; seed <= 2 * SOAK; seed++) {
      const options = { ...SIZE, seed, nodes, workload, faults: "failover", protocol } as const;
      const report = await simulate(options);
      expect(report.problems, `replay: ${replayCommand(options)}`).toEqual([]);
      crashes += report.crashes;
    }
    expect(crashes).toBeGreaterThan(0);
  });
});

test("the same seed gives the same trace, also with configurations that change", async () => {
  const size = { ...SIZE, seed: 3, nodes: 3, workload: "append" } as const;
  const options = { ...size, faults: "failover", protocol: "rpc" } as const;
  const [first, second] = [await simulate(options), await simulate(options)];
  expect(second).toEqual(first);
  expect(first.crashes).toBeGreaterThan(0);
});

/** The primary of the second account dies in the middle of a commit, and another copy at a message of the recovery. */
describe("a coordinator that lives hears the truth", () => {
  const moments = [LOCK, LOG, COMMIT];
  const messages = [
    NEED_RECOVERY,
    FETCH_TX_STATE,
    REPLICATE_TX_STATE,
    RECOVERY_VOTE,
    REQUEST_VOTE,
    COMMIT_RECOVERY,
    TRUNCATE_RECOVERY,
  ];

  test.each(moments.flatMap((moment) => messages.map((message) => [moment, message] as const)))(
    "a death at message %i, and one at %i of the recovery",
    async (moment, message) => {
      const scene = new Scene({ nodes: 4, backups: 2, recovers: true });
      const recovering = new RecoveringNodes(scene.fabric, scene.nodes, scene.configuration);
      const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
      const copies = recovering.copiesOf(scene.accounts.partitionOf(b));
      scene.open([a, b]);
      const client = await scene.client();
      const kill = (node: NodeId): void => {
        scene.fabric.at(scene.fabric.nowUs, () => {
          if (scene.nodes[node].isUp) scene.nodes[node].crash();
        });
      };
      scene.when("served", moment, () => kill(1));
      const transferred = scene.start(transfer(client, a, b));
      await scene.work(2);
      kill(1);
      await scene.work(1);
      scene.when("served", message, () => kill(copies.find((node) => node > 1)!));
      recovering.recover();
      await scene.work(10);
      recovering.recover(() => client.adopt(recovering.configuration));
      await scene.work(10_000);
      const balanceOf = (account: number): bigint => {
        const nodes = recovering.copiesOf(scene.accounts.partitionOf(account));
        const found = new Set(nodes.map((node) => scene.balances(node).get(`n${account}`)!));
        expect(found.size, `copies of ${account} at ${nodes.join(", ")}`).toBe(1);
        return [...found][0];
      };
      expect(leftOvers(recovering.up)).toEqual([]);
      // The client tries again what was aborted.
      expect(transferred.result?.kind).toBe("ok");
      expect([balanceOf(a), balanceOf(b)]).toEqual([99n, 101n]);
    },
  );
});
