/** Nodes of a cluster die while clients write to it: they see a pause, never a lost or a doubled commit. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import type { RemoteDatabase } from "../../src/index.ts";
import { eventually, situ } from "../helpers/cluster.ts";
import { LivingCluster, type LivingOptions } from "../helpers/living-cluster.ts";
import { Account, openAccounts, TABLES, TellerAtWork, wrongs } from "../helpers/tellers.ts";

const TELLERS = 3;

let cluster: LivingCluster;
let db: RemoteDatabase;
let tellers: TellerAtWork[] = [];

afterEach(async () => {
  await Promise.all(tellers.map((teller) => teller.stop()));
  tellers = [];
  await cluster?.remove();
});

async function begin(options: LivingOptions = {}): Promise<void> {
  cluster = await LivingCluster.start(options);
  db = await cluster.client(TABLES, { timeoutMs: 30_000 });
  await openAccounts(db, TELLERS);
  for (let id = 0; id < TELLERS; id++) {
    const own = await cluster.client(TABLES, { timeoutMs: 30_000 });
    tellers.push(new TellerAtWork(id, own, 7));
  }
  await progress();
}

/** Each teller commits some more. */
async function progress(): Promise<void> {
  const before = tellers.map(({ acknowledged }) => acknowledged);
  await eventually("all tellers go on", async () =>
    tellers.every(({ acknowledged }, i) => acknowledged >= before[i] + 10),
  );
}

async function stopped(): Promise<string[]> {
  await Promise.all(tellers.map((teller) => teller.stop()));
  return wrongs(db, tellers);
}

async function manager(): Promise<number> {
  return (await cluster.configuration()).manager!;
}

/** Kills nodes, and waits until the others go on without them. */
async function kill(...ids: number[]): Promise<void> {
  for (const id of ids) cluster.nodes[id].signal("SIGKILL");
  await eventually(`the cluster goes on without ${ids.join(", ")}`, async () => {
    const members = await cluster.members();
    return ids.every((id) => !members.includes(id));
  });
  await progress();
}

/** Starts a node that was killed, and waits until it has its copies and the others go on. */
async function returned(id: number): Promise<void> {
  await cluster.nodes[id].start();
  await cluster.whole(cluster.nodes.map((node) => node.id));
  await progress();
}

describe.each(["rpc", "one-sided"] as const)("%s", (protocol) => {
  test("a node is killed and comes back, then the manager", async () => {
    await begin({ protocol });
    const first = (await manager()) === 0 ? 1 : 0;
    await kill(first);
    await returned(first);
    const second = await manager();
    await kill(second);
    await returned(second);
    expect(await stopped()).toEqual([]);
  });
});

test("two nodes at once, one of them the manager, the other a primary", async () => {
  await begin({ nodes: 5 });
  const first = await manager();
  const { id } = (await cluster.primaryOf(Account, 0)) ?? {};
  await kill(first, id === first ? (first + 1) % 5 : id);
  expect(await stopped()).toEqual([]);
});

test("a node is paused past its lease, and resumed: it joins again, or stops when it is told to", async () => {
  await begin();
  const id = (await manager()) === 0 ? 1 : 0;
  const node = cluster.nodes[id];
  await node.halt();
  await eventually("it is removed", async () => !(await cluster.members()).includes(id));
  await progress();
  node.signal("SIGCONT");
  await eventually("it is a member again", async () => (await cluster.members()).includes(id));
  expect(node.isRunning).toBe(true);
  await progress();

  await node.halt();
  await eventually("it is removed again", async () => !(await cluster.members()).includes(id));
  const saidBefore = node.heard.stdout.length;
  node.signal("SIGCONT");
  await eventually("it hears of that", async () =>
    node.heard.stdout.slice(saidBefore).includes('"removed"'),
  );
  expect(await node.stop(), node.heard.stderr).toBe(0);
  expect(node.heard.stdout).toContain('"closed"');
  expect(await stopped()).toEqual([]);
});

test("all nodes are killed at once and started again: all that was acknowledged is there", async () => {
  await begin({ nodes: 3, durability: "sync" });
  for (const node of cluster.nodes) node.signal("SIGKILL");
  await Promise.all(cluster.nodes.map((node) => node.stop()));
  await Promise.all(cluster.nodes.map((node) => node.start()));
  await progress();
  expect(await stopped()).toEqual([]);
});

test("etcd is gone: all go on; a node that dies is replaced when etcd is back", async () => {
  await begin();
  const id = (await manager()) === 0 ? 1 : 0;
  cluster.etcd.pause(true);
  await progress();
  cluster.nodes[id].signal("SIGKILL");
  await sleep(2_000);
  cluster.etcd.pause(false);
  await kill(id);
  expect(await stopped()).toEqual([]);
});

test("more copies are lost than may be: status says what to do, and the rest goes on when one returns", async () => {
  await begin({ nodes: 3, backups: 0, durability: "sync" });
  await Promise.all(tellers.map((teller) => teller.stop()));
  const id = await manager();
  await cluster.nodes[id].stop("SIGKILL");
  await eventually("it is removed", async () => !(await cluster.members()).includes(id));
  const connect = cluster.connect.join();
  const shown = await situ(["cluster", "status", "--connect", connect, "--cluster", "living"]);
  expect(shown.stdout).toMatch(
    /^lost: all copies of \d+ of 32 partitions are gone \([\d, …]+\); start node \d again/,
  );
  expect(shown.code).toBe(1);
  await cluster.nodes[id].start();
  await eventually("nothing is lost", async () => {
    const { stdout } = await situ([
      "cluster",
      "status",
      "--connect",
      connect,
      "--cluster",
      "living",
    ]);
    return stdout.startsWith("healthy");
  });
  expect(await wrongs(db, tellers)).toEqual([]);
});
