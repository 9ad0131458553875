/**
 * Xenic on real nodes: processes and threads, sockets, host memory that two threads share. Transactions, procedures at the NIC and at
 * the host, what is refused and why, what a commit costs in messages, and what is told when a node goes away.
 */

import { afterEach, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import type { Operation, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { graph, open, type RemoteDatabase, str, table, u32 } from "../../src/index.ts";
import { xenicNodeOf } from "../../src/node/xenic/xenic-configuration.ts";
import { XenicNode, type XenicNodeStats } from "../../src/node/xenic/xenic-node.ts";
import { eventually, RealCluster } from "../helpers/cluster.ts";
import { compiled } from "../helpers/project-root.ts";
import { Account, Lists, Named } from "./node-procedures.ts";

const PROCEDURES = compiled("tests/xenic/node-procedures.js");
const PATIENT = { timeoutMs: 60_000 };

let cluster: RealCluster | undefined;
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await cluster?.remove();
  cluster = undefined;
});

/** Three nodes in this process, each with its threads, so that their figures can be asked for. */
async function startHere(
  more: Readonly<Record<string, unknown>> = {},
): Promise<{ nodes: XenicNode[]; connect: string[] }> {
  const ports = await freePorts(3);
  const given = { nodes: ports.map((port, id) => ({ id, host: "127.0.0.1", port })), backups: 2 };
  const nodes = await Promise.all(
    [...ports.keys()].map((id) => {
      const values = { id, cluster: given, protocol: "xenic", procedures: [PROCEDURES], ...more };
      return XenicNode.start(xenicNodeOf(values, ".", "test"), (error) => {
        throw error;
      });
    }),
  );
  closing.push(() => Promise.all(nodes.map((node) => node.close())));
  return { nodes, connect: ports.map((port) => `127.0.0.1:${port}`) };
}

async function openHere(connect: readonly string[], extents = {}): Promise<RemoteDatabase> {
  const db = await open({ connect, tables: [Account, Named, Lists], extents, ...PATIENT });
  closing.push(() => db.close());
  return db;
}

/** Of all nodes together, when nothing is under way. */
async function quiet(nodes: readonly XenicNode[]): Promise<XenicNodeStats[]> {
  let stats: XenicNodeStats[] = [];
  await eventually("all transactions are over", async () => {
    stats = await Promise.all(nodes.map((node) => node.stats()));
    return stats.every(({ open: count, locked }) => count === 0 && locked === 0);
  });
  return stats;
}

test("rows by keys of all kinds, transactions over several nodes, errors of callbacks, and procedures", async () => {
  const { nodes, connect } = await startHere();
  const db = await openHere(connect);
  await db.transact(async (tx) => {
    for (let id = 0; id < 20; id++) await tx.put(Account, { id, balance: 100 });
    await tx.put(Named, { name: "a", value: "b" });
    await tx.put(Named, { name: "b", value: "c" });
  });
  expect(await db.get(Account, 7)).toEqual({ id: 7, balance: 100 });
  expect(await db.get(Account, 99)).toBeUndefined();
  expect(await db.getMany(Named, ["a", "b", "c"])).toMatchObject([
    { value: "b" },
    { value: "c" },
    undefined,
  ]);
  await expect(db.insert(Account, { id: 7, balance: 1 })).rejects.toMatchObject({
    code: "SITU_EXISTS",
  });
  await db.update(Account, 7, { balance: 90 });
  expect(await db.delete(Account, 8)).toBe(true);
  expect(await db.delete(Account, 8)).toBe(false);
  await expect(
    db.transact(async (tx) => {
      await tx.getMany(Account, [1, 2, 3]);
      await tx.put(Account, { id: 1, balance: 0 });
      throw new RangeError("mine");
    }),
  ).rejects.toThrow("mine");
  expect((await db.get(Account, 1))?.balance).toBe(100);
  // Procedures: one-shot and multi-shot at the NIC, and at the host.
  expect(await db.call("transfer", [1, 2, 30])).toBe(70);
  expect(await db.getMany(Account, [1, 2])).toMatchObject([{ balance: 70 }, { balance: 130 }]);
  await expect(db.call("transfer", [1, 2, 1_000])).rejects.toMatchObject({
    code: "SITU_PROCEDURE",
    message: "procedure transfer failed: Error: not enough",
  });
  expect(await db.call("follow", ["a", 5])).toBe("c");
  expect((await db.get(Named, "last"))?.value).toBe("c");
  for (let i = 1; i <= 5; i++) expect(await db.call("deposit", [500, 10])).toBe(10 * i);
  const stats = await quiet(nodes);
  expect(stats.reduce((sum, { committed }) => sum + committed, 0)).toBeGreaterThan(10);
  // Another client finds the same tables, and one with another schema is refused.
  const again = await open({ connect, tables: [Account], ...PATIENT });
  closing.push(() => again.close());
  expect((await again.get(Account, 2))?.balance).toBe(130);
  const other = table("accounts", { id: u32(), note: str() }, { key: "id" });
  await expect(open({ connect, tables: [other] })).rejects.toMatchObject({ code: "SITU_SCHEMA" });
});

test("a procedure at the NIC that loops, hangs, allocates, leaves or strays fails with a code, and others go on", async () => {
  const { connect } = await startHere();
  const db = await openHere(connect);
  await db.put(Account, { id: 1, balance: 5 });
  await db.put(Account, { id: 2, balance: 5 });
  const failed = (name: string, why: RegExp) =>
    expect(db.call(name)).rejects.toMatchObject({
      code: "SITU_PROCEDURE",
      message: expect.stringMatching(why),
    });
  await failed("loops", /took more than 3000 ms/);
  await failed("hangs", /took more than 3000 ms/);
  await failed("allocates", /took more than 3000 ms|more than 64 MiB of heap/);
  await failed("leaves", /ended its worker/);
  await failed("strays", /its rows\(\) does not say/);
  await expect(db.call("nothing")).rejects.toMatchObject({ code: "SITU_UNKNOWN_PROCEDURE" });
  // The NIC was never held up, and has a worker again.
  expect((await db.get(Account, 1))?.balance).toBe(5);
  expect(await db.call("transfer", [1, 2, 5])).toBe(0);
});

test("what such a cluster cannot do is refused, with the way out", async () => {
  const { connect } = await startHere();
  const db = await openHere(connect, { accounts: { rows: 32 } });
  const refused = { code: "SITU_UNSUPPORTED", message: expect.stringContaining("xenic") };
  expect(() => db.scan(Account)).toThrow(expect.objectContaining(refused));
  await expect(db.snapshot()).rejects.toMatchObject(refused);
  await expect(graph(db, { objects: { user: {} }, associations: {} })).rejects.toMatchObject(
    refused,
  );
  await expect(db.transact(async () => {}, { isolation: "snapshot" })).rejects.toMatchObject(
    refused,
  );
  const ordered = table("ordered", { id: u32() }, { key: "id", ordered: true });
  await expect(open({ connect, tables: [ordered] })).rejects.toMatchObject(refused);
  // A full table takes no new row, and goes on with those that it has.
  await eventually("the table is full", async () => {
    try {
      for (let i = 0; i < 16; i++)
        await db.put(Account, { id: Math.floor(Math.random() * 1e9), balance: 1 });
      return false;
    } catch (error) {
      expect(error).toMatchObject({ code: "SITU_FULL" });
      return true;
    }
  });
  const values = {
    id: 0,
    cluster: { nodes: [{ id: 0, host: "127.0.0.1", port: 1 }] },
    protocol: "xenic",
  };
  expect(() => xenicNodeOf({ ...values, path: "x" }, ".", "test")).toThrow("leave out path");
  expect(() => xenicNodeOf({ ...values, durability: "sync" }, ".", "test")).toThrow(
    "nothing to disk",
  );
});

test("list-append histories of clients and procedures are strictly serializable", async () => {
  const { nodes, connect } = await startHere();
  // Clients that open new tables at the same time.
  const clients = await Promise.all([0, 1, 2].map(() => openHere(connect)));
  const history: Transaction[] = [];
  let next = 1;
  const client = async (process: number): Promise<void> => {
    const db = clients[process % 3];
    for (let i = 0; i < 25; i++) {
      const value = next++;
      const keys = [...new Set([value % 5, (value * 7 + process) % 5, (value * 3 + i) % 5])];
      const writes = keys.filter((_, at) => (value + at) % 2 === 0);
      const start = performance.now();
      const run = async (): Promise<number[][]> => {
        if (process % 2 === 0)
          return (await db.call("append", [keys, writes, value])) as number[][];
        return db.transact(async (tx) => {
          const rows = await tx.getMany(Lists, keys);
          const read = rows.map((row) => (row?.values ?? []) as number[]);
          for (const [at, id] of keys.entries()) {
            if (writes.includes(id)) await tx.put(Lists, { id, values: [...read[at], value] });
          }
          return read;
        });
      };
      const lists = await run();
      const operations = keys.flatMap((key, at): Operation[] => [
        { kind: "read", key, list: lists[at] },
        ...(writes.includes(key) ? [{ kind: "append" as const, key, value }] : []),
      ]);
      history.push({ process, operations, outcome: "ok", start, end: performance.now() });
    }
  };
  await Promise.all([0, 1, 2, 3, 4, 5].map(client));
  const finalReads = new Map<number, number[]>();
  for (let id = 0; id < 5; id++) {
    finalReads.set(id, ((await clients[0].get(Lists, id))?.values ?? []) as number[]);
  }
  const { anomalies } = checkListAppend(history, { isolation: "strict-serializable", finalReads });
  expect(anomalies).toEqual([]);
  await quiet(nodes);
});

test("a node that is killed is told of, and started anew it is refused", async () => {
  cluster = await RealCluster.start({ protocol: "xenic" });
  const db = await open({ connect: cluster.connect, tables: [Account], timeoutMs: 4_000 });
  closing.push(() => db.close());
  for (let id = 0; id < 12; id++) await db.put(Account, { id, balance: id });
  await cluster.nodes[2].stop("SIGKILL");
  // Rows that nobody has tried to write before: those of commits that were under way stay locked.
  let next = 1_000;
  await eventually("writes are refused at once", async () => {
    const codes = await Promise.all(
      Array.from({ length: 12 }, () =>
        db.put(Account, { id: next++, balance: 0 }).catch((error) => error.code),
      ),
    );
    return codes.every((code) => code === "SITU_UNREACHABLE");
  });
  // What was acknowledged is still there, or what nobody can be told of yet; nothing else.
  const seen = await Promise.all(
    Array.from({ length: 12 }, (_, id) =>
      db
        .transact((tx) => tx.get(Account, id), { timeoutMs: 1_000 })
        .then((row) => (row?.balance === id || row?.balance === 0 ? "right" : row))
        .catch((error) => error.code),
    ),
  );
  const told = ["right", "SITU_UNREACHABLE", "SITU_CONFLICT", "SITU_TIMEOUT"];
  expect(seen.filter((each) => !told.includes(each))).toEqual([]);
  await expect(cluster.nodes[2].start()).rejects.toThrow("what it held is lost");
  // The node that coordinates may have heard of it, or not.
  const code = await db.put(Account, { id: next, balance: 0 }).catch((error) => error.code);
  expect(["SITU_MEMORY_LOST", "SITU_UNREACHABLE"]).toContain(code);
});
