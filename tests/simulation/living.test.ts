/**
 * Whole lives of clusters: leases, membership, recovery and copies as nodes have them, and the clients that users have.
 * Nothing acknowledged is lost or done twice, histories are strictly serializable, and when all is healed every copy is
 * there and equal.
 */

import { expect, test } from "vitest";
import { SimulatedClient } from "../../simulation/cluster/client.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { LEASE_MS, LivingNodes } from "../../simulation/living/nodes.ts";
import { livingRun, replayLiving, simulateLiving } from "../../simulation/living/simulate.ts";
import { NodeService, type ServiceOptions } from "../../src/cluster/service.ts";
import { type Procedure, procedure } from "../../src/database/procedure.ts";
import { u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { fixedSeed, SOAK } from "../helpers/seed.ts";

const FIRST = fixedSeed(1);
/** Lives that went wrong once, and what was the matter. */
const MENDED: readonly (readonly [string, number])[] = [
  ["a refusal of one copy of a request was taken for that of both, and done again: no lease", 1146],
  ["the same: another configuration", 1080],
  ["a node that returned dropped what it had logged with what it had locked", 1112],
  [
    "a primary did not tell one that copied of what it had logged, and installed in another partition",
    2021,
  ],
  [
    "a node that filled a partition took a transaction for done there that it had ended elsewhere",
    600175,
  ],
  ["a copy that was filled did not know what had been committed, and voted against it", 1954],
  ["a commit waited for a clock that it kept back itself, behind that of a rebuilt node", 52010],
];

test("nodes die, stop, are cut off and come back, again and again", async () => {
  let [crashes, copied] = [0, 0];
  for (let seed = FIRST; seed < FIRST + 3 * SOAK; seed++) {
    const report = await simulateLiving(livingRun(seed));
    expect(report.problems, `replay: ${replayLiving(seed)}`).toEqual([]);
    crashes += report.crashes;
    copied += report.copied;
  }
  expect(crashes).toBeGreaterThan(0);
  expect(copied).toBeGreaterThan(0);
});

test.each(MENDED)("%s (seed %d)", async (_, seed) => {
  expect((await simulateLiving(livingRun(seed))).problems).toEqual([]);
});

const CALLS = [18, 7, 29];
/** One of them in which somebody asks for the outcome of a call whose node has died. */
const ASKED = 29;

test.each(CALLS)(
  "procedures are done once, whoever of those that run them dies (seed %d)",
  async (seed) => {
    const run = livingRun(seed);
    expect(run.workload).toBe("calls");
    expect((await simulateLiving(run)).problems).toEqual([]);
  },
);

test("copies that forget for whom they have committed: a call is done twice, and that is found", async () => {
  const planted = {
    makeService: (options: ServiceOptions) => {
      const service = new NodeService(options);
      service.participant.committed = undefined;
      service.backup!.committed = undefined;
      return service;
    },
  };
  const { problems } = await simulateLiving(livingRun(ASKED), undefined, planted);
  expect(problems).toEqual([expect.stringMatching(/^counter \d+ has \d+; \d+ calls were/)]);
});

test("the same seed gives the same life", async () => {
  const run = livingRun(FIRST);
  expect(await simulateLiving(run)).toEqual(await simulateLiving(run));
});

test.each([1, 2])(
  "a node that was taken for dead in the middle of a call commits nothing any more (seed %d)",
  async (seed) => {
    const Counter = table("counters", { id: u32(), count: u32() }, { key: "id" });
    const fabric = new SimulatedFabric({ seed });
    let held: Promise<void> | undefined;
    let isRemoved = false;
    const ran: number[] = [];
    const deposit = procedure(
      "deposit",
      async (tx, id: number) => {
        const found = await tx.get(Counter, id);
        ran.push(cluster.configuration.configurationId);
        if (held !== undefined) await held;
        await tx.put(Counter, { id, count: (found?.count ?? 0) + 1 });
      },
      { tables: [Counter] as unknown as Table[] },
    );
    const cluster = new LivingNodes(fabric, {
      nodes: 3,
      backups: 2,
      partitions: 8,
      protocol: "one-sided",
      closesSlowly: true,
      procedures: [deposit] as unknown as readonly Procedure[],
      tell: (line) => {
        isRemoved ||= line.includes("finds itself removed");
      },
      ended: () => {},
    });
    const until = async (what: string, holds: () => boolean): Promise<void> => {
      const isSo = await fabric.settle(holds, fabric.nowUs + 60e6);
      expect(isSo, what).toBe(true);
    };
    const isWell = (): boolean => cluster.illness() === undefined;
    await until("the cluster begins", isWell);
    const client = new SimulatedClient(fabric, {
      number: 0,
      configuration: cluster.configuration,
      timeoutMs: 10_000,
      protocol: "one-sided",
      follows: true,
    });
    const ended = async <T>(what: string, running: Promise<T>): Promise<T> => {
      let isOver = false;
      const end = (): void => {
        isOver = true;
      };
      running.then(end, end);
      await until(what, () => isOver);
      return running;
    };
    await ended("it arrives", client.arrive([Counter as unknown as Table]));
    const primaryOf = (id: number): number => {
      const remote = client.db.tableOf(Counter as unknown as Table);
      return remote.primaryOf(remote.partitionOf(id));
    };
    const manager = cluster.configuration.manager!;
    const at = (node: number): number => {
      let id = 0;
      while (primaryOf(id) !== node) id++;
      return id;
    };
    const [stopped, other] = [(manager + 1) % 3, (manager + 2) % 3];
    const [near, id] = [at(stopped), at(other)];
    // So long that copies remember more than has happened since the call.
    await fabric.settle(() => false, fabric.nowUs + 1e6);
    let go = (): void => {};
    held = new Promise((resolve) => {
      go = resolve;
    });
    const calling = client.db.call("deposit", [id], { near: [Counter as unknown as Table, near] });
    await until("the call has begun", () => ran.length === 1);
    fabric.stop(stopped);
    held = undefined;
    await until("the node is removed", () => cluster.configuration.nodes.length === 2);
    // The client learns of it, and that the call was not done; so it is made again.
    await ended("a row is read", client.db.get(Counter as unknown as Table, id));
    await ended("the call is done", calling);
    expect(ran.length).toBe(2);
    fabric.resume(stopped);
    await until("it learns that it is no member", () => isRemoved);
    go();
    fabric.promised();
    await until("the node is back", isWell);
    await fabric.settle(() => false, fabric.nowUs + 4 * LEASE_MS * 1e3);
    const row = await ended("the row is read", client.db.get(Counter as unknown as Table, id));
    expect(row).toEqual({ id, count: 1 });
    client.vanish();
    for (const node of cluster.nodes) {
      node.service.copying!.stop();
      await node.close();
    }
  },
);
