/** A node whose thread stands still between the look at its lease and its answer: what it has read is not told. */

import { expect, test } from "vitest";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { Random } from "../../src/runtime/random.ts";
import { Account } from "../simulation/scene.ts";

test("a read at the own node waits until there is a lease before and after it", async () => {
  const fabric = new SimulatedFabric({ seed: 1 });
  const given = { nodes: [{ id: 0, host: "one", port: 1 }], backups: 0 };
  let looks = 0;
  let isSlow = false;
  // While it is slow, the lease that was there at each first look is over at the second.
  const mayServe = (): boolean => !isSlow || looks++ % 2 === 0;
  const node = new SimulatedNode(fabric, 0, configurationOf(given, "a test"), {
    recovers: true,
    mayServe,
  });
  try {
    const db = node.database("a test", new Random(1), 60_000);
    let isDone = false;
    const work = async (): Promise<void> => {
      await db.openTables([Account]);
      await db.put(Account, { id: 1, balance: 7n });
      isDone = true;
    };
    const working = work();
    await fabric.settle(() => isDone, 60e6);
    await working;
    isSlow = true;
    let row: unknown;
    const reading = db.get(Account, 1).then((found) => {
      row = found;
    });
    await fabric.settle(() => row !== undefined, fabric.nowUs + 1e6);
    expect(looks).toBeGreaterThan(2);
    expect(row).toBeUndefined();
    isSlow = false;
    await fabric.settle(() => row !== undefined, fabric.nowUs + 60e6);
    await reading;
    expect(row).toEqual({ id: 1, balance: 7n });
  } finally {
    await node.close();
  }
});
