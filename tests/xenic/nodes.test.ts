/**
 * Xenic on real nodes: processes and threads, sockets, host memory that two threads share. Transactions, procedures at the NIC and at
 * the host, what is refused and why, what each kind of commit costs in messages and calls of hosts, and what is told when a node goes away.
 */

import { afterEach, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { countCommits, type KindName } from "../../benchmarks/xenic/commits.ts";
import type { Operation, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { graph, open, type RemoteDatabase, str, table, u32 } from "../../src/index.ts";
import { xenicNodeOf } from "../../src/node/xenic/xenic-configuration.ts";
import { XenicNode, type XenicNodeStats } from "../../src/node/xenic/xenic-node.ts";
import { CachingIndex } from "../../src/protocols/xenic/caching-index.ts";
import { fixedPlacement } from "../../src/protocols/xenic/fixed-placement.ts";
import { SharedTable, sharedTableBytes } from "../../src/protocols/xenic/shared-table.ts";
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

test("a procedure at the NIC that takes memory in buffers, or leaves a timer behind, harms no later one", async () => {
  const { connect } = await startHere();
  const db = await openHere(connect);
  await db.put(Account, { id: 1, balance: 5 });
  await db.put(Account, { id: 2, balance: 5 });
  await expect(db.call("hoards")).rejects.toMatchObject({
    code: "SITU_PROCEDURE",
    message: expect.stringMatching(/more than 256 MiB of memory|took more than 3000 ms/),
  });
  // At each of the nodes.
  for (let i = 0; i < 3; i++) {
    expect(await db.call("litters")).toBe("done");
    expect(await db.call("transfer", [1, 2, 1], { near: [Account, 1] })).toBe(4 - i);
  }
});

test("what is too large for a procedure at the NIC is told, before anything is locked", async () => {
  const { nodes, connect } = await startHere();
  const db = await openHere(connect);
  await db.put(Account, { id: 0, balance: 7 });
  expect(await db.call("names", [1_024])).toBe(7);
  expect(await db.call("wants", [1_024])).toBe(1_024);
  const tooLarge = (message: RegExp) => ({
    code: "SITU_TOO_LARGE",
    message: expect.stringMatching(message),
  });
  await expect(db.call("names", [1_025])).rejects.toMatchObject(tooLarge(/uses 1025 rows/));
  await expect(db.call("wants", [1_025])).rejects.toMatchObject(tooLarge(/uses 1025 rows/));
  const most = 2 * 2 ** 20;
  await expect(db.call("returns", [most + 1])).rejects.toMatchObject(tooLarge(/the result of/));
  await expect(db.call("returns", [1, "x".repeat(most)])).rejects.toMatchObject(
    tooLarge(/the arguments of/),
  );
  expect(String(await db.call("returns", [most - 1_024]))).toHaveLength(most - 1_024);
  await quiet(nodes);
});

test("a NIC's memory that is full, and one that is too small", async () => {
  // Room for one page of rows, of one segment, in the index of each node.
  const shape = { rows: 32, valueWords: 2 };
  const { segments, keyWords } = new SharedTable(shape);
  let indexBytes = 0;
  const pagesIn = (memoryBytes: number): number => {
    try {
      return new CachingIndex({ memoryBytes, segments, keyWords, valueWords: 2 }).pages;
    } catch {
      return 0;
    }
  };
  while (pagesIn(indexBytes) < 1) indexBytes += 8;
  const memoryBytes = 256 * 2 ** 20;
  const nicMemoryBytes = Math.ceil(
    ((indexBytes + 8) * memoryBytes) / (3 * sharedTableBytes(shape)),
  );
  const { nodes, connect } = await startHere({ memoryBytes, nicMemoryBytes });
  const db = await open({
    connect,
    tables: [Account],
    extents: { accounts: { rows: shape.rows } },
    ...PATIENT,
  });
  closing.push(() => db.close());
  // Two rows of one node in different segments.
  const { primaryOf, shardOf } = fixedPlacement([0, 1, 2], 2, 1);
  const at = new SharedTable(shape);
  const segmentOf = (id: number): number => at.segmentOf(at.homeOf(id));
  const own = Array.from({ length: 200 }, (_, id) => id).filter(
    (id) => primaryOf(shardOf(0, id)) === 0,
  );
  const [one] = own;
  const other = own.find((id) => segmentOf(id) !== segmentOf(one))!;
  for (const id of [one, other, one]) await db.put(Account, { id, balance: id });
  const tooLarge = { code: "SITU_TOO_LARGE", message: expect.stringContaining("nicMemoryBytes") };
  const both = async (tx: { put(table: typeof Account, row: object): Promise<void> }) => {
    await tx.put(Account, { id: one, balance: 1 });
    await tx.put(Account, { id: other, balance: 1 });
  };
  await expect(db.transact(both as never)).rejects.toMatchObject(tooLarge);
  await expect(db.call("fills", [[one, other], 0])).rejects.toMatchObject(tooLarge);
  // While one is locked there is no room for the other, until there is.
  const overloaded = { code: "SITU_OVERLOADED" };
  await eventually("a client and a procedure find no room", async () => {
    let isOver = false;
    const filling = db
      .call("fills", [[one], 2_000], { near: [Account, one] })
      .catch(() => {})
      .then(() => {
        isOver = true;
      });
    await eventually("one is locked", async () => isOver || (await nodes[0].stats()).locked > 0);
    const tries = await Promise.allSettled([
      db.transact((tx) => tx.put(Account, { id: other, balance: 2 }), { timeoutMs: 700 }),
      db.call("fills", [[other], 0], { near: [Account, other], timeoutMs: 700 }),
    ]);
    await filling;
    for (const each of tries) {
      if (each.status !== "rejected") return false;
      // The procedure may not have been told in time; nothing may be called a conflict.
      expect(["SITU_OVERLOADED", "SITU_UNKNOWN_OUTCOME", "SITU_TIMEOUT"]).toContain(
        each.reason.code,
      );
    }
    return tries[0].status === "rejected" && tries[0].reason.code === overloaded.code;
  });
  await db.put(Account, { id: other, balance: 3 });
  await quiet(nodes);
});

test("messages between nodes and calls of hosts, of each kind of commit", async () => {
  const { nodes, connect } = await startHere({
    procedures: [compiled("benchmarks/xenic/procedures.js")],
  });
  const counted = await countCommits(nodes, connect);
  const messages = Object.fromEntries([...counted].map(([name, each]) => [name, each.messages]));
  const shipped = (logs: number, logged: number) => ({
    ship: 1,
    "log by the NIC": logs,
    logged,
    "commit at the NIC": 1,
    committed: 1,
  });
  const executed = (nodesAsked: number, validated: number, logs: number, written: number) => ({
    execute: nodesAsked,
    executed: nodesAsked,
    ...(validated === 0 ? {} : { "validate at the NIC": validated, validated }),
    ...(logs === 0 ? {} : { "log by the NIC": logs, logged: logs }),
    ...(written === 0 ? {} : { "commit at the NIC": written, committed: written }),
  });
  expect(messages).toEqual({
    "own shard": { "log by the NIC": 2, logged: 2 },
    "one remote shard": shipped(2, 1),
    "own and one remote shard": shipped(3, 3),
    // A LOG more to each primary that is written, whose backup coordinates.
    "two remote shards": executed(2, 0, 4, 2),
    "two remote shards, one only read": executed(2, 1, 2, 1),
    "two shots": executed(2, 1, 2, 1),
    "read at one remote shard": { ship: 1, shipped: 1 },
    "read at two remote shards": executed(2, 2, 0, 0),
    "at the host, own and one remote shard": shipped(3, 3),
    "by a client, two shards, one only read": shipped(1, 2),
  } satisfies Record<KindName, Record<string, number>>);
  for (const [name, { hostCalls, crossings, applied }] of counted) {
    // The call, the read of the remote row, and the commit.
    expect(crossings, name).toEqual(name.startsWith("at the host") ? [3, 0, 0] : [0, 0, 0]);
    for (const [i, records] of applied.entries()) {
      // One that has logged and committed may have gone to sleep between the two.
      expect(hostCalls[i], name).toBeGreaterThanOrEqual(Math.min(records, 1));
      expect(hostCalls[i], name).toBeLessThanOrEqual(Math.min(records, 2));
    }
  }
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
  expect(() => xenicNodeOf({ ...values, techniques: { hop: false } }, ".", "test")).toThrow(
    "techniques says true or false",
  );
  expect(() => xenicNodeOf({ ...values, path: "x" }, ".", "test")).toThrow("leave out path");
  expect(() => xenicNodeOf({ ...values, durability: "sync" }, ".", "test")).toThrow(
    "nothing to disk",
  );
});

test.each([{}, { combines: false }, { runsAtNic: false }, { hops: false }])(
  "list-append histories of clients and procedures are strictly serializable: %j",
  async (techniques) => {
    const { nodes, connect } = await startHere({ techniques });
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
    const { anomalies } = checkListAppend(history, {
      isolation: "strict-serializable",
      finalReads,
    });
    expect(anomalies).toEqual([]);
    await quiet(nodes);
  },
);

test("a node of four is killed: nothing is written, others are read, also by new clients, and it is refused when it comes back", async () => {
  cluster = await RealCluster.start({ protocol: "xenic", nodes: 4, backups: 1 });
  const { connect } = cluster;
  const db = await open({ connect, tables: [Account], timeoutMs: 4_000 });
  closing.push(() => db.close());
  for (let id = 0; id < 16; id++) await db.put(Account, { id, balance: id });
  await cluster.nodes[2].stop("SIGKILL");
  // Rows that nobody has tried to write before: those of commits that were under way stay locked.
  let next = 1_000;
  await eventually("writes are refused at once, wherever their copies are", async () => {
    const codes = await Promise.all(
      Array.from({ length: 16 }, () =>
        db.put(Account, { id: next++, balance: 0 }).catch((error) => error.code),
      ),
    );
    return codes.every((code) => code === "SITU_UNREACHABLE");
  });
  const { primaryOf, shardOf } = fixedPlacement([0, 1, 2, 3], 1, 1);
  const isLost = (id: number): boolean => primaryOf(shardOf(0, id)) === 2;
  const another = await open({ connect: connect.toReversed(), tables: [Account], ...PATIENT });
  closing.push(() => another.close());
  for (let id = 0; id < 16; id++) {
    for (const client of [db, another]) {
      const found = client.get(Account, id);
      if (isLost(id)) await expect(found).rejects.toMatchObject({ code: "SITU_UNREACHABLE" });
      else expect(await found).toEqual({ id, balance: id });
    }
  }
  const left = Array.from({ length: 16 }, (_, id) => id).filter((id) => !isLost(id));
  expect(await another.getMany(Account, left)).toEqual(left.map((id) => ({ id, balance: id })));
  await expect(open({ connect, tables: [Named], ...PATIENT })).rejects.toMatchObject({
    code: "SITU_UNREACHABLE",
  });
  await expect(cluster.nodes[2].start()).rejects.toThrow("what it held is lost");
  // The node that coordinates may have heard of it, or not.
  const code = await db.put(Account, { id: next, balance: 0 }).catch((error) => error.code);
  expect(["SITU_MEMORY_LOST", "SITU_UNREACHABLE"]).toContain(code);
});
