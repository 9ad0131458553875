/**
 * Nodes that end and come back, and connections that are cut between a request and its reply. Nobody
 * takes a node's place here: clients wait, or get a code, and what was committed is there once.
 */

import { mkdirSync, rmSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { open, type RemoteDatabase, type Table } from "../../src/index.ts";
import { eventually, RealCluster } from "../helpers/cluster.ts";
import { CuttingProxy } from "../helpers/cluster-proxy.ts";
import { codeOf } from "../helpers/failure.ts";
import { Account } from "./procedures.ts";

const TABLES = [Account] as unknown as readonly Table[];
const TABLE = Account as unknown as Table;

let cluster: RealCluster | undefined;
const proxies: CuttingProxy[] = [];

afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.stop();
  await cluster?.remove();
  cluster = undefined;
});

function add(db: RemoteDatabase, id: number, amount = 1n): Promise<void> {
  return db.transact(async (tx) => {
    const { balance } = (await tx.get(Account, id)) ?? { balance: 0n };
    await tx.put(Account, { id, balance: balance + amount });
  });
}

/** An account of each node. */
function accountsOf(running: RealCluster): number[] {
  const found: number[] = [];
  for (let id = 0; found.filter((each) => each !== undefined).length < 3; id++) {
    found[running.primaryOf(TABLE, id).id] ??= id;
  }
  return found;
}

describe.each(["rpc", "one-sided"] as const)("a node ends and comes back (%s)", (protocol) => {
  test("while all is quiet: clients go on", async () => {
    cluster = await RealCluster.start({ protocol, procedures: true, durability: "sync" });
    const db = await cluster.client(TABLES, { timeoutMs: 120_000 });
    const hasty = await cluster.client(TABLES, { timeoutMs: 1_000 });
    const ids = accountsOf(cluster);
    for (const id of ids) await add(db, id, 10n);
    expect(((await db.call("deposit", [ids[1], 1n])) as { balance: bigint }).balance).toBe(11n);
    await cluster.copiesApplied();
    const [, node] = cluster.nodes;
    expect(await node.stop()).toBe(0);
    expect(await codeOf(hasty.get(Account, ids[1]))).toMatch(/^SITU_(LOST|TIMEOUT|UNREACHABLE)$/);
    await node.start();
    await eventually(
      "the node is met again",
      async () => (await codeOf(add(db, ids[1]))) === "done",
    );
    await eventually("by the other client, too", async () => {
      return (await codeOf(hasty.get(Account, ids[1]))) === "done";
    });
    for (const id of ids) expect(await codeOf(add(db, id))).toBe("done");
    expect(await codeOf(db.call("deposit", [ids[1], 1n]))).toMatch(/^(done|SITU_UNKNOWN_OUTCOME)$/);
    await eventually("calls go there", async () => {
      return (await codeOf(db.call("deposit", [ids[1], 0n]))) === "done";
    });
    const balance = (await db.get(Account, ids[0]))?.balance;
    expect(balance).toBe(11n);
    expect((await db.get(Account, ids[1]))!.balance).toBeGreaterThanOrEqual(13n);
  });

  test("killed while it holds locks: they are let go, and its store is sound", async () => {
    cluster = await RealCluster.start({ protocol, procedures: true });
    const ids = accountsOf(cluster);
    const db = await cluster.client(TABLES, { timeoutMs: 1_000 });
    for (const id of ids)
      await eventually("a first row", async () => (await codeOf(add(db, id))) === "done");
    const [, node] = cluster.nodes;
    // A procedure of the node that locks a row there and does not come back; and many transactions
    // that commit, some of them at other nodes, which wait for this one to log them.
    const dawdling = codeOf(db.call("dawdle", [ids[1], 600_000], { timeoutMs: 5_000 }));
    // One-sided reads lock nothing; then the procedure is merely under way.
    if (protocol === "rpc") {
      await eventually("the row is locked", async () => {
        return (await codeOf(add(db, ids[1]))) !== "done";
      });
    }
    const busy = Array.from({ length: 40 }, (_, i) => codeOf(add(db, ids[1] + 1_000 * (i + 1))));
    await Promise.race(busy);
    await node.stop("SIGKILL");
    const codes = new Set([await dawdling, ...(await Promise.all(busy))]);
    for (const code of codes) expect(ALLOWED).toContain(code);
    await node.start();
    const other = await cluster.client(TABLES, { timeoutMs: 5_000 });
    for (const id of [ids[1], ids[0], ids[2]]) {
      await eventually(`row ${id} can be written`, async () => {
        return (await codeOf(add(other, id))) === "done";
      });
    }
    await cluster.close();
    const local = await open({ path: node.path, tables: TABLES });
    expect((await local.verify()).problems).toEqual([]);
    await local.close();
  });

  test("stopped while others need it: they are told in time, and go on when it does", async () => {
    cluster = await RealCluster.start({ protocol, procedures: true });
    const ids = accountsOf(cluster);
    const db = await cluster.client(TABLES, { timeoutMs: 1_000 });
    const patient = await cluster.client(TABLES, { timeoutMs: 120_000 });
    for (const id of ids) await add(patient, id, 10n);
    await patient.close();
    const [, node] = cluster.nodes;
    await node.halt();
    // Each row has a copy at the stopped node, so no commit can be acknowledged.
    const commits = await Promise.all([ids[0], ids[2]].map((id) => codeOf(add(db, id))));
    expect(commits).toEqual(["SITU_UNKNOWN_OUTCOME", "SITU_UNKNOWN_OUTCOME"]);
    const called = await codeOf(db.call("deposit", [ids[0] + 1_000_000, 1n], { near: [TABLE, 0] }));
    expect(ALLOWED).toContain(called);
    expect(called).not.toBe("done");
    // Nor does who leaves wait for it.
    await db.close();
    node.signal("SIGCONT");
    const other = await cluster.client(TABLES, { timeoutMs: 5_000 });
    for (const id of ids) {
      await eventually(`row ${id} can be written`, async () => {
        return (await codeOf(add(other, id))) === "done";
      });
    }
    // What was not known to be committed has been, once.
    for (const id of [ids[0], ids[2]]) {
      expect((await other.get(Account, id))!.balance).toBeGreaterThanOrEqual(12n);
    }
    expect(await cluster.close()).toEqual([0, 0, 0]);
  });
});

test("a client that only calls goes on after a restart", async () => {
  cluster = await RealCluster.start({ procedures: true });
  const db = await cluster.client(TABLES, { timeoutMs: 1_000 });
  expect(await db.call("echo", [1])).toEqual([1]);
  const [node] = cluster.nodes;
  expect(await node.stop()).toBe(0);
  await node.start();
  const codes: string[] = [];
  await eventually("calls are answered", async () => {
    codes.push(await codeOf(db.call("echo", [2])));
    return codes.at(-1) === "done";
  });
  for (const code of codes) expect(ALLOWED).toContain(code);
});

test.each(["rpc", "one-sided"] as const)(
  "power lost at a node: read as it is now (%s)",
  async (protocol) => {
    cluster = await RealCluster.start({ protocol, durability: "sync", hasOwnMemory: true });
    const db = await cluster.client(TABLES, { timeoutMs: 120_000 });
    const [, node] = cluster.nodes;
    const ids: number[] = [];
    for (let id = 0; ids.length < 60; id++) if (cluster.primaryOf(TABLE, id) === node) ids.push(id);
    // Rows come and go, so that what is recovered lies elsewhere.
    for (const id of ids) await add(db, id, BigInt(id) + 1n);
    for (const id of ids.filter((each) => each % 2 === 0)) {
      await db.transact((tx) => tx.delete(Account, id));
    }
    for (const id of ids) expect(await db.get(Account, id)).toEqual(rowOf(id));
    await cluster.copiesApplied();
    expect(await node.stop()).toBe(0);
    rmSync(node.memoryDir!, { recursive: true });
    mkdirSync(node.memoryDir!);
    await node.start();
    await eventually("it is met again", async () => (await codeOf(add(db, ids[0], 0n))) === "done");
    await db.transact((tx) => tx.delete(Account, ids[0]));
    await add(db, ids[0], 0n);
    for (const id of ids.slice(1)) expect(await db.get(Account, id), `${id}`).toEqual(rowOf(id));
    const rows = await db.transact((tx) => tx.getMany(Account, ids.slice(1)));
    expect(rows).toEqual(ids.slice(1).map(rowOf));
  },
);

function rowOf(id: number): { id: number; balance: bigint } | undefined {
  return id % 2 === 0 ? undefined : { id, balance: BigInt(id) + 1n };
}

const ALLOWED = [
  "done",
  "SITU_LOST",
  "SITU_TIMEOUT",
  "SITU_CONFLICT",
  "SITU_UNREACHABLE",
  "SITU_UNKNOWN_OUTCOME",
];

describe("a connection is cut between a request and its reply", () => {
  /** A client whose way to every node leads through a proxy. */
  async function throughProxies(running: RealCluster): Promise<RemoteDatabase> {
    for (const address of running.connect) {
      proxies.push(await CuttingProxy.start(Number(address.split(":")[1])));
    }
    return CuttingProxy.connect(running, proxies, TABLES);
  }

  test("SUBMIT: the client asks again and gets the first outcome; applied once", async () => {
    cluster = await RealCluster.start({ protocol: "rpc" });
    const db = await throughProxies(cluster);
    await add(db, 1, 0n);
    const proxy = proxies[cluster.primaryOf(TABLE, 1).id];
    for (let round = 0; round < 20; round++) {
      const read = await db.get(Account, 1);
      expect(read?.balance).toBe(BigInt(round));
      // Blind: the next thing that goes to the node is the SUBMIT, and its reply is what is lost.
      proxy.cutNextReply();
      await db.transact(async (tx) => {
        await tx.put(Account, { id: 1, balance: BigInt(round + 1) });
        await tx.put(Account, { id: 100 + round, balance: BigInt(round) });
      });
    }
    expect(proxies.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(5);
    expect((await db.get(Account, 1))?.balance).toBe(20n);
  });

  test("increments under cuts at any moment: each is applied once", async () => {
    cluster = await RealCluster.start({ protocol: "rpc", procedures: true });
    const db = await throughProxies(cluster);
    await add(db, 1, 0n);
    await add(db, 2, 0n);
    for (let i = 0; i < 60; i++) {
      // Whatever the node says next, about a read, a commit or a call, is lost.
      if (i % 4 === 0) proxies[(i / 4) % 3].cutNextReply();
      await Promise.all([add(db, 1), db.call("deposit", [2, 1n])]);
    }
    expect(proxies.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(3);
    expect((await db.get(Account, 1))?.balance).toBe(60n);
    expect((await db.get(Account, 2))?.balance).toBe(60n);
  });
});
