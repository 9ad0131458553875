/** What operators do with a cluster: it grows, a node is drained, and all the while it is healthy. */

import { afterEach, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { str, table, u32 } from "../../src/index.ts";
import { Account } from "../cluster/procedures.ts";
import { copiesApplied, eventually, situ } from "../helpers/cluster.ts";
import { LivingCluster } from "../helpers/living-cluster.ts";

let cluster: LivingCluster;
afterEach(() => cluster?.remove());

function operate(...words: string[]): ReturnType<typeof situ> {
  const connect = cluster.connect.join();
  return situ(["cluster", ...words, "--connect", connect, "--cluster", "living"]);
}

/** Waits until the first line of `status` is like that: a node that is slow to answer counts as silent for a moment. */
async function becomes(health: RegExp): Promise<void> {
  await eventually(`status says ${health}`, async () => {
    const { stdout, stderr } = await operate("status");
    return stderr === "" && health.test(stdout.split("\n")[0]);
  });
}

test("three nodes form a cluster, a fourth joins, and one is drained, or stays", async () => {
  cluster = await LivingCluster.start({ nodes: 3, leaseMs: 2_000 });
  await becomes(/^healthy: any 1 of 3 nodes may fail/);
  const manager = (await cluster.configuration()).manager!;
  const leaving = (manager + 1) % 3;

  // What would leave rows with too few copies is refused, and says what to do.
  for (const [words, why] of [
    [["drain", `${leaving}`], /each row has 3 copies.*add a node first/],
    [["remove", `${leaving}`], /drain it first/],
    [["drain", "7"], /the cluster has no node 7/],
  ] as const) {
    const refused = await operate(...words);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(why)]);
  }
  expect(await cluster.members()).toEqual([0, 1, 2]);

  const [metricsPort] = await freePorts(1);
  const fourth = await cluster.make({ metrics: { port: metricsPort } });
  await fourth.start();
  expect(await cluster.members()).toEqual([0, 1, 2, 3]);
  await becomes(/^healthy: any 1 of 4 nodes may fail/);
  await eventually("partitions move there", async () => {
    const { placement } = await cluster.configuration();
    // The first ones may be there before anybody looks.
    return placement!.some(({ filling, backups }) => [...filling, ...backups].includes(3));
  });

  const served = `http://127.0.0.1:${metricsPort}`;
  const page = await (await fetch(`${served}/metrics`)).text();
  expect(page).toMatch(/^situ_node_members 4$/m);
  expect(page).toMatch(/^situ_node_partitions\{role="primary"\} \d+$/m);
  await eventually("it is ready", async () => (await fetch(`${served}/readyz`)).status === 200);

  // What it was asked for goes on when nobody watches any more.
  const watched = await operate("drain", `${leaving}`, "--timeout", "1ms", "--json");
  expect([watched.code, watched.stderr]).toEqual([1, expect.stringContaining("goes on by itself")]);
  await eventually("the node is being drained", async () => {
    const { nodes } = await cluster.configuration();
    return nodes.find(({ id }) => id === leaving)?.draining === true;
  });
  await becomes(new RegExp(`^healthy: .*; node ${leaving} is (being )?drained`));
  const kept = await operate("drain", `${leaving}`, "--cancel");
  expect(kept).toMatchObject({ code: 0, stdout: expect.stringContaining("stays") });
  await becomes(/^healthy: (?!.*drained)/);
});

test("a node is drained and removed while rows are written and procedures called: it ends, and the others have all copies", async () => {
  const Row = table("row", { id: u32(), text: str(16) }, { key: "id" });
  cluster = await LivingCluster.start({ nodes: 4, leaseMs: 2_000, procedures: true });
  const db = await cluster.client([Row, Account], { timeoutMs: 60_000 });
  for (let id = 0; id < 100; id++) await db.put(Row, { id, text: "first" });
  const leaving = ((await cluster.configuration()).manager! + 1) % 4;
  let isOver = false;
  const write = async (): Promise<void> => {
    for (let id = 0; !isOver; id = (id + 1) % 100) {
      await db.put(Row, { id, text: "second" });
      await db.delete(Row, (id + 50) % 100);
    }
  };
  const accounts = [...Array(8).keys()];
  const deposits = accounts.map(() => 0n);
  /** Each is done once, at whichever node it begins. */
  const call = async (id: number): Promise<void> => {
    for (let near = 0; !isOver; near++) {
      await db.call("deposit", [id, 1n], { near: [Row, near % 100] });
      deposits[id]++;
    }
  };
  const writing = Promise.all([write(), ...accounts.map(call)]);
  // Told below.
  writing.catch(() => {});
  try {
    const drained = await operate("drain", `${leaving}`);
    expect(drained.code, drained.stderr).toBe(0);
    const removed = await operate("remove", `${leaving}`);
    expect(removed.code, removed.stderr).toBe(0);
    await eventually("its process ends", async () => !cluster.nodes[leaving].isRunning);
    expect(cluster.nodes[leaving].child?.exitCode).toBe(0);
  } finally {
    isOver = true;
    await writing;
  }
  for (const id of accounts) expect((await db.get(Account, id))?.balance).toBe(deposits[id]);
  const left = [0, 1, 2, 3].filter((id) => id !== leaving);
  await cluster.whole(left);
  await becomes(/^healthy: any 1 of 3 nodes may fail/);
  await copiesApplied(left.map((id) => cluster.nodes[id]));
  const configuration = await cluster.configuration();
  await cluster.close();
  expect(await cluster.problems(configuration, [Row, Account] as never)).toEqual([]);
});
