/** Clients of a cluster whose nodes are away, come back, or have another configuration than before. */

import { readFileSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { open, type RemoteDatabase } from "../../src/index.ts";
import { eventually, RealCluster } from "../helpers/cluster.ts";
import { codeOf } from "../helpers/failure.ts";
import { SharedCluster } from "../helpers/shared-cluster.ts";
import { Account } from "./procedures.ts";

const shared = {
  rpc: new SharedCluster({ protocol: "rpc", procedures: true }),
  "one-sided": new SharedCluster({ protocol: "one-sided", procedures: true }),
};

const IDS = Array.from({ length: 40 }, (_, id) => id);

function transfer(db: RemoteDatabase, from: number, to: number): Promise<void> {
  return db.transact(async (tx) => {
    const [a, b] = await tx.getMany(Account, [from, to]);
    await tx.put(Account, { id: from, balance: a!.balance - 1n });
    await tx.put(Account, { id: to, balance: b!.balance + 1n });
  });
}

async function sumOf(db: RemoteDatabase): Promise<bigint> {
  let sum = 0n;
  for await (const { balance } of db.scan(Account)) sum += balance;
  return sum;
}

async function fill(db: RemoteDatabase): Promise<void> {
  await db.transact(async (tx) => {
    for (const id of IDS) await tx.put(Account, { id, balance: 100n });
  });
}

/** The nodes have another configuration when they start again. */
function renumber(config: string): void {
  const given = JSON.parse(readFileSync(config, "utf8"));
  given.cluster.configurationId = (given.cluster.configurationId ?? 1) + 1;
  writeFileSync(config, JSON.stringify(given));
}

test("one node that answers is enough: rows of the others can be used", async () => {
  const cluster = await RealCluster.start({ backups: 0 });
  onTestFinished(() => cluster.remove());
  await fill(await cluster.client([Account]));
  const [dead, ...others] = cluster.nodes;
  await dead.stop("SIGKILL");
  const [nobody] = await freePorts(1);
  const connect = [`127.0.0.1:${nobody}`, ...cluster.connect];
  const db = await open({ connect, tables: [Account], timeoutMs: 2_000 });
  cluster.keep(db);
  const idAt = (node: unknown): number =>
    IDS.find((id) => cluster.primaryOf(Account, id) === node)!;
  const [a, b] = others.map(idAt);
  await transfer(db, a, b);
  expect((await db.get(Account, b))?.balance).toBe(101n);
  // What is at the node that is away is not there, and the caller is told why.
  const lost = idAt(dead);
  expect(await codeOf(db.get(Account, lost))).toBe("SITU_LOST");
  const why = await transfer(db, a, lost).catch((error: Error) => error.message);
  expect(why).toMatch(/nothing was committed: .*node 0/);
  // It comes back, and is met.
  await dead.start();
  await eventually("its rows can be used", async () => {
    return (await codeOf(transfer(db, a, lost))) === "done";
  });
  expect(await sumOf(db)).toBe(4_000n);
});

test("a table that a node did not hear of is opened there when it comes", async () => {
  // The first one in this cluster: nobody has opened the table yet.
  const cluster = await shared.rpc.forTest();
  const [dead] = cluster.nodes;
  await dead.stop();
  const db = await cluster.client([Account]);
  const filling = fill(db);
  await dead.start();
  await filling;
  expect(await sumOf(db)).toBe(4_000n);
});

test.each(["rpc", "one-sided"] as const)(
  "a later configuration is found and followed, under load (%s)",
  async (protocol) => {
    const cluster = await shared[protocol].forTest();
    const { nodes, connect } = cluster;
    const db = await cluster.client([Account]);
    await fill(db);
    let isOver = false;
    let done = 0;
    const load = IDS.slice(0, 8).map(async (id) => {
      while (!isOver) {
        // What was under way at a node when it stopped may be known to nobody; all else is done again.
        expect(["done", "SITU_UNKNOWN_OUTCOME"]).toContain(await codeOf(transfer(db, id, id + 8)));
        await db.get(Account, id + 8);
        expect(["done", "SITU_UNKNOWN_OUTCOME"]).toContain(await codeOf(db.call("echo", [id])));
        done++;
      }
    });
    for (const node of nodes) await node.stop();
    for (const { config } of nodes) renumber(config);
    for (const node of nodes) await node.start();
    const before = done;
    await eventually("work goes on", async () => done > before + 50);
    isOver = true;
    await Promise.all(load);
    expect(await sumOf(db)).toBe(4_000n);
    const other = await open({ connect, tables: [Account] });
    cluster.keep(other);
    expect(await sumOf(other)).toBe(4_000n);
  },
);

test("an interactive transaction that meets a later configuration is told to begin again", async () => {
  const cluster = await shared.rpc.forTest();
  const db = await cluster.client([Account]);
  await fill(db);
  const tx = await db.begin();
  await tx.get(Account, 1);
  for (const node of cluster.nodes) {
    await node.stop();
    renumber(node.config);
  }
  for (const node of cluster.nodes) await node.start();
  await db.get(Account, 1);
  await tx.put(Account, { id: 1, balance: 7n }).catch(() => {});
  const error = await tx.commit().catch((each: unknown) => each);
  expect(error).toMatchObject({ code: "SITU_CONFLICT", retryable: true });
  expect(String(error)).toMatch(/nodes of the cluster have changed.*Begin it again/s);
  expect((await db.get(Account, 1))?.balance).toBe(100n);
});
