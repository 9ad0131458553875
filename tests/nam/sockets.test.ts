/**
 * NAM-DB over sockets: memory servers that are processes of their own, and compute servers that are whoever opens the database.
 * Transactions, what is refused and why, what a commit costs in messages, and what becomes of it all when compute servers are
 * killed and memory servers go away.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { CLIENT } from "../../src/fabric/fabric.ts";
import { openTcp, type TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import { dump, graph, load, open, type RemoteDatabase, table, u32 } from "../../src/index.ts";
import { memoryNodeOf } from "../../src/node/memory-configuration.ts";
import { MemoryNode } from "../../src/node/memory-node.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { NAM_EXTENTS, NAM_MEMBERS } from "../../src/protocols/kinds.ts";
import { claimPair } from "../../src/protocols/nam/claim.ts";
import { ComputeThread } from "../../src/protocols/nam/compute-thread.ts";
import { formMemory } from "../../src/protocols/nam/formation.ts";
import { MAX_TIMESTAMP } from "../../src/protocols/nam/header.ts";
import { JsonMessage } from "../../src/protocols/nam/json-message.ts";
import {
  FIRST_TABLE,
  JOURNALS,
  OVERFLOW,
  TIMESTAMPS,
  VECTOR_AT,
} from "../../src/protocols/nam/segments.ts";
import { ReadVerb, WriteVerb } from "../../src/protocols/nam/verbs.ts";
import { eventually, RealCluster, situ } from "../helpers/cluster.ts";
import { endAll, start } from "../helpers/engine-processes.ts";
import { ACCOUNTS, Account, BALANCE } from "./accounts.ts";

const Extra = table("extra", { id: u32() }, { key: "id" });
const SNAPSHOT = { isolation: "snapshot" } as const;
const PATIENT = { timeoutMs: 120_000 };

let cluster: RealCluster | undefined;
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  endAll();
  for (const close of closing.splice(0).reverse()) await close();
  await cluster?.remove();
  cluster = undefined;
});

/** Memory servers in this process, each in its thread, so that their figures can be asked for. */
async function startHere(
  count: number,
  threads = 16,
  more: object = {},
): Promise<{ nodes: MemoryNode[]; connect: string[] }> {
  const ports = await freePorts(count);
  const given = { nodes: ports.map((port, id) => ({ id, host: "127.0.0.1", port })) };
  const nodes: MemoryNode[] = [];
  for (const id of ports.keys()) {
    const values = {
      id,
      cluster: given,
      protocol: "nam",
      threads,
      overflowBytes: 2 ** 20,
      ...more,
    };
    const node = await MemoryNode.start(memoryNodeOf(values, ".", "test"), (error) => {
      throw error;
    });
    nodes.push(node);
    closing.push(() => node.close());
  }
  return { nodes, connect: ports.map((port) => `127.0.0.1:${port}`) };
}

async function openHere(connect: readonly string[]): Promise<RemoteDatabase> {
  const db = await open({ connect, tables: [Account], ...PATIENT });
  closing.push(() => db.close());
  return db;
}

const account = (id: number, balance = BALANCE, owner = `owner ${id}`) => ({ id, balance, owner });

async function served(nodes: readonly MemoryNode[]): Promise<number> {
  let sum = 0;
  for (const node of nodes) sum += (await node.stats()).counters.requestsServed;
  return sum;
}

test("rows are read and written; two clients see each other's; a snapshot stays", async () => {
  const { connect } = await startHere(3);
  const [db, other] = [await openHere(connect), await openHere(connect)];
  await db.insert(Account, account(1));
  await expect(db.insert(Account, account(1))).rejects.toMatchObject({ code: "SITU_EXISTS" });
  await db.put(Account, account(2, 5, "ä".repeat(40)));
  expect(await other.getMany(Account, [1, 2, 3])).toEqual([
    account(1),
    account(2, 5, "ä".repeat(40)),
    undefined,
  ]);
  await using before = await other.snapshot();
  await db.update(Account, 1, { balance: 7 });
  expect(await db.delete(Account, 2)).toBe(true);
  expect(await other.get(Account, 1)).toEqual(account(1, 7));
  expect(await before.getMany(Account, [1, 2])).toEqual([
    account(1),
    account(2, 5, "ä".repeat(40)),
  ]);
  // All rows are of that state, too.
  const byId = (rows: { id: number }[]): object[] => rows.sort((a, b) => a.id - b.id);
  const then = [account(1), account(2, 5, "ä".repeat(40))];
  expect(byId(await before.scan(Account).toArray())).toEqual(then);
  expect(await before.count(Account)).toBe(2);
  expect(await db.count(Account)).toBe(1);
  for (let id = 100; id < 300; id++) await db.put(Account, account(id));
  const now = [account(1, 7), ...Array.from({ length: 200 }, (_, i) => account(100 + i))];
  expect(byId(await db.scan(Account).toArray())).toEqual(now);
  expect(await other.count(Account)).toBe(201);
  expect(await other.scan(Account, { limit: 20 }).toArray()).toHaveLength(20);
  expect(byId(await before.scan(Account).toArray())).toEqual(then);
  // Out as text, and in again.
  const folder = mkdtempSync(join(tmpdir(), "situ-dump-"));
  try {
    const dumped = await dump({ connect }, join(folder, "dump"));
    expect(dumped.tables).toMatchObject([{ name: "account", rows: now.length }]);
    for (const id of [1, 150]) await db.delete(Account, id);
    const loaded = await load(join(folder, "dump"), { connect }, { onConflict: "skip" });
    expect(loaded.tables).toMatchObject([{ rows: 2, skipped: now.length - 2 }]);
    expect(byId(await db.scan(Account).toArray())).toEqual(now);
  } finally {
    rmSync(folder, { recursive: true });
  }
  await db.put(Account, account(2));
  expect(await other.get(Account, 2)).toEqual(account(2));
  expect(await before.has(Account, 2)).toBe(true);
  await expect(db.put(Account, account(3, 0, "x".repeat(300)))).rejects.toMatchObject({
    code: "SITU_TOO_LARGE",
  });
});

test("isolation is snapshot isolation, and has to be asked for: write skew is there, getForUpdate is the way out", async () => {
  const { connect } = await startHere(2);
  const db = await openHere(connect);
  await expect(db.transact(() => 1)).rejects.toMatchObject({ code: "SITU_UNSUPPORTED" });
  const serializable = { isolation: "strict-serializable" } as const;
  await expect(db.begin(serializable)).rejects.toMatchObject({ code: "SITU_UNSUPPORTED" });
  await db.put(Account, account(1));
  await db.put(Account, account(2));
  for (const read of ["get", "getForUpdate"] as const) {
    const one = await db.begin(SNAPSHOT);
    const two = await db.begin(SNAPSHOT);
    await one[read](Account, 1);
    await two[read](Account, 2);
    await one.put(Account, account(2, 0));
    await two.put(Account, account(1, 0));
    await one.commit();
    if (read === "get") await two.commit();
    else await expect(two.commit()).rejects.toMatchObject({ code: "SITU_CONFLICT" });
  }
  // A row that is not there is protected, too.
  const one = await db.begin(SNAPSHOT);
  expect(await one.getForUpdate(Account, 9)).toBeUndefined();
  await db.insert(Account, account(9));
  await one.put(Account, account(1));
  await expect(one.commit()).rejects.toMatchObject({ code: "SITU_CONFLICT" });
  expect(await db.get(Account, 1)).toEqual(account(1, 0));
});

test("what memory servers cannot do fails with a code", async () => {
  const { connect } = await startHere(1);
  const db = await openHere(connect);
  await expect(db.transact((tx) => tx.count(Account), SNAPSHOT)).rejects.toMatchObject({
    code: "SITU_UNSUPPORTED",
  });
  expect(() => db.select(Account)).toThrow(expect.objectContaining({ code: "SITU_UNSUPPORTED" }));
  expect(() => db.scan(Account, { eq: 1 } as object)).toThrow(/account/);
  await expect(db.call("x")).rejects.toMatchObject({ code: "SITU_UNSUPPORTED" });
  await expect(graph(db, { objects: { user: {} }, associations: {} })).rejects.toMatchObject({
    code: "SITU_UNSUPPORTED",
    message: expect.stringContaining('keep them on a cluster with the protocol "rpc"'),
  });
  const ordered = table("ordered", { id: u32() }, { key: "id", ordered: true });
  await expect(open({ connect, tables: [ordered], ...PATIENT })).rejects.toMatchObject({
    code: "SITU_UNSUPPORTED",
  });
  const other = table("account", { id: u32() }, { key: "id" });
  await expect(open({ connect, tables: [other], ...PATIENT })).rejects.toMatchObject({
    code: "SITU_SCHEMA",
  });
  const large = table("large", { id: u32() }, { key: "id" });
  const extents = { large: { rows: 2 ** 28 } };
  for (let times = 0; times < 2; times++) {
    const opening = open({ connect, tables: [large], extents, ...PATIENT });
    await expect(opening).rejects.toMatchObject({ code: "SITU_FULL" });
  }
  // The name is free again: whoever asks for less gets it.
  closing.push(await open({ connect, tables: [large], ...PATIENT }).then((db) => () => db.close()));
});

test("threads go from one client to the next, whose tables are others; when all are taken, that is said", async () => {
  const { connect } = await startHere(2, 2);
  const first = await open({ connect, tables: [Account], ...PATIENT });
  await first.put(Account, account(1));
  await expect(open({ connect, tables: [Account], ...PATIENT })).rejects.toMatchObject({
    code: "SITU_FULL",
  });
  await first.close();
  // Their journals are about a table that this client does not use.
  const Other = table("other", { id: u32() }, { key: "id" });
  for (let times = 0; times < 2; times++) {
    const db = await open({ connect, tables: [Other], ...PATIENT });
    await db.put(Other, { id: times });
    expect(await db.getMany(Other, [0, 1])).toHaveLength(2);
    await db.close();
  }
  const last = await openHere(connect);
  expect(await last.get(Account, 1)).toEqual(account(1));
});

test.each([1, 2])(
  "a commit of four reads and two writes with %i copies is as many requests as the paper counts, and those for journals and versions",
  async (copies) => {
    const { nodes, connect } = await startHere(3, 16, { copies });
    const db = await openHere(connect);
    const rows = [1, 2, 3, 4];
    const commit = (): Promise<void> =>
      db.transact(async (tx) => {
        const found = await tx.getMany(Account, rows);
        for (const row of found.slice(0, 2)) await tx.put(Account, { ...row!, balance: 1 });
      }, SNAPSHOT);
    for (const id of rows) await db.put(Account, account(id));
    await commit();
    // Beats come in between, at their own times: the least of several rounds has none.
    let least = Number.POSITIVE_INFINITY;
    for (let times = 0; times < 12; times++) {
      const before = await served(nodes);
      await commit();
      least = Math.min(least, (await served(nodes)) - before);
    }
    const paper = copies * 1 + 4 + 2 + copies * 2 + copies * 1;
    const journals = 2;
    const versions = 2 * 3;
    expect(least).toBe(paper + journals + versions);
  },
);

let claimants = 1_000;

async function rawThread(
  connect: readonly string[],
  pair: number,
): Promise<{ driver: Driver; thread: ComputeThread; endpoint: TcpEndpoint }> {
  const servers = connect.map((_, id) => id);
  const nodes = new Map(
    connect.map((each, id) => [id, { host: "127.0.0.1", port: Number(each.split(":")[1]) }]),
  );
  const endpoint = await openTcp({ self: CLIENT, nodes, configurationId: 1, cluster: "situ" });
  closing.push(() => endpoint.close());
  const driver = new Driver(endpoint);
  closing.push(async () => driver.close());
  const { formation, settings } = await driver.start(formMemory(servers, 77), 120_000);
  const thread = new ComputeThread(pair, {
    servers,
    tables: [],
    pairs: settings.threads,
    pairsPerSlot: 1,
    journalWords: settings.journalWords,
    overflowWords: settings.overflowWords,
    journalCopies: 1,
    formation,
    timestampServers: [0],
  });
  await driver.start(claimPair(thread, ++claimants), 120_000);
  return { driver, thread, endpoint };
}

test("a client that writes where it may not is refused, and counted; so is one whose thread is another's now", async () => {
  const { nodes, connect } = await startHere(1);
  const db = await openHere(connect);
  await db.put(Account, account(1));
  const { driver, thread } = await rawThread(connect, 9);
  const places: readonly (readonly [segment: number, word: number, words: number])[] = [
    [TIMESTAMPS, 2, 1],
    [TIMESTAMPS, 2 + 10, 1],
    [JOURNALS, 0, 2],
    [OVERFLOW, 0, 2],
    [FIRST_TABLE, 0, 2],
    [FIRST_TABLE + 1, 2, 2],
    [FIRST_TABLE + 300, 0, 2],
    [-1, 0, 1],
    [TIMESTAMPS, -5, 1],
  ];
  for (const [segment, word, words] of places) {
    const verb = new WriteVerb(thread, 0, segment, word, new Int32Array(words).fill(3));
    await expect(driver.start(thread.send([verb]), 120_000)).rejects.toMatchObject({
      code: "SITU_PERMISSION",
    });
  }
  expect((await nodes[0].stats()).refusedVerbs).toBe(places.length);
  const other = await rawThread(connect, 9);
  const late = new WriteVerb(thread, 0, JOURNALS, 9 * 16_384, new Int32Array(2));
  await expect(driver.start(thread.send([late]), 120_000)).rejects.toMatchObject({
    code: "SITU_STALE_CONFIGURATION",
  });
  expect(other.thread.incarnation).toBeGreaterThan(thread.incarnation);
  expect((await nodes[0].stats()).refusedVerbs).toBe(places.length + 1);
  // Nor is a message taken at its word.
  const { formation } = other.thread.directory;
  const messages: readonly (readonly [kind: number, request: object])[] = [
    [NAM_EXTENTS, { what: "free", id: 0 }],
    [NAM_MEMBERS, { what: "enter", epoch: 2, ballot: 5, alive: [0] }],
    [NAM_MEMBERS, { what: "ready", epoch: 2, ballot: 5 }],
  ];
  for (const [kind, request] of messages) {
    const message = new JsonMessage<object>(0, kind, { formation, ...request });
    const asking = (function* () {
      yield [message];
      return message.answer;
    })();
    await expect(driver.start(asking, 120_000)).rejects.toMatchObject({ code: "SITU_PERMISSION" });
  }
  expect((await nodes[0].stats()).refusedVerbs).toBe(places.length + 1 + messages.length);
  await db.put(Account, account(1, 8));
  expect(await db.get(Account, 1)).toEqual(account(1, 8));
});

test("a slot that has no timestamps left is left, and nobody is told of it", async () => {
  const { connect } = await startHere(1, 4);
  const { driver, thread } = await rawThread(connect, 1);
  const word = VECTOR_AT + 1;
  const words = new Int32Array([MAX_TIMESTAMP - 1]);
  await driver.start(thread.send([new WriteVerb(thread, 0, TIMESTAMPS, word, words)]), 120_000);
  // The first thread reads, the second one has one timestamp left.
  const db = await openHere(connect);
  for (let id = 0; id < 4; id++) await db.put(Account, account(id));
  const other = await rawThread(connect, 3);
  const read = new ReadVerb(other.thread, 0, TIMESTAMPS, word, 1);
  await other.driver.start(other.thread.sendHarmless([read]), 120_000);
  expect(read.words[0] >>> 0).toBe(MAX_TIMESTAMP);
  expect(await db.getMany(Account, [0, 1, 2, 3])).toEqual([0, 1, 2, 3].map((id) => account(id)));
});

test("where there is no room for old versions that is said, not a conflict", async () => {
  const { connect } = await startHere(1, 16, { overflowBytes: 4_096 });
  const db = await openHere(connect);
  const again = (timeoutMs: number): Promise<void> =>
    db.transact((tx) => tx.put(Account, account(1)), { ...SNAPSHOT, timeoutMs });
  const outcomes: unknown[] = [];
  while (outcomes.length === 0) await again(1_000).catch((error) => outcomes.push(error));
  expect(outcomes).toMatchObject([{ code: "SITU_FULL" }]);
  const tx = await db.begin(SNAPSHOT);
  await tx.put(Account, account(1));
  await expect(tx.commit()).rejects.toMatchObject({ code: "SITU_FULL" });
});

test("compute servers that are killed are settled by others: no lock stays, no money is lost", async () => {
  cluster = await RealCluster.start({ protocol: "nam" });
  const db = await cluster.client([Account], PATIENT);
  for (let id = 0; id < ACCOUNTS; id++) await db.put(Account, account(id));
  const connect = cluster.connect;
  for (let round = 0; round < 2; round++) {
    const killed = [0, 1].map((each) => start("nam-child", { connect, seed: each }));
    await Promise.all(
      killed.map(
        ({ child }) => new Promise((resolve) => child.stdout?.once("data", () => resolve(0))),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 150 + 100 * round));
    for (const { child, ended } of killed) {
      child.kill("SIGKILL");
      await ended;
    }
  }
  // Every account can be written, and none has changed by half.
  for (let id = 0; id < ACCOUNTS; id++) {
    const touch = async (): Promise<void> => db.update(Account, id, { owner: "the settler" });
    await touch();
  }
  const rows = await db.getMany(Account, [...Array(ACCOUNTS).keys()]);
  expect(rows.reduce((sum, row) => sum + row!.balance, 0)).toBe(ACCOUNTS * BALANCE);
  expect(rows.every((row) => row!.owner === "the settler")).toBe(true);
});

test("a memory server that is gone is told of with a code; one that was started again has lost its memory", async () => {
  cluster = await RealCluster.start({ protocol: "nam", nodes: 2 });
  const db = await cluster.client([Account], { timeoutMs: 4_000 });
  for (let id = 0; id < ACCOUNTS; id++) await db.put(Account, account(id));
  await cluster.nodes[1].stop("SIGKILL");
  const whole = db.getMany(Account, [...Array(ACCOUNTS).keys()]);
  const failure = await whole.catch((error: unknown) => error);
  expect(["SITU_TIMEOUT", "SITU_LOST", "SITU_UNREACHABLE"]).toContain(
    (failure as { code: string }).code,
  );
  await cluster.nodes[1].start();
  const opening = open({ connect: cluster.connect, tables: [Account], ...PATIENT });
  await expect(opening).rejects.toMatchObject({ code: "SITU_MEMORY_LOST" });
  await eventually("the client that was connected finds out, too", async () => {
    const error = await db
      .getMany(Account, [...Array(ACCOUNTS).keys()])
      .catch((thrown: unknown) => thrown);
    return (error as { code?: string }).code === "SITU_MEMORY_LOST";
  });
});

test("a memory server of three is killed: nothing that was acknowledged is lost, and too few say so", async () => {
  cluster = await RealCluster.start({ protocol: "nam" });
  const { nodes } = cluster;
  const db = await cluster.client([Account], PATIENT);
  for (let id = 0; id < ACCOUNTS; id++) await db.put(Account, account(id));
  const before = await db.snapshot();
  // Each worker adds to an account of its own, and moves money between two others.
  let isOver = false;
  const added = [0, 0, 0];
  const work = async (worker: number): Promise<void> => {
    while (!isOver) {
      await db.transact(async (tx) => {
        const own = await tx.get(Account, worker);
        await tx.put(Account, { ...own!, owner: String(added[worker] + 1) });
        const from = 3 + worker;
        const [one, two] = await tx.getMany(Account, [from, from + 3]);
        await tx.put(Account, { ...one!, balance: one!.balance - 1 });
        await tx.put(Account, { ...two!, balance: two!.balance + 1 });
      }, SNAPSHOT);
      added[worker]++;
    }
  };
  const working = added.map((_, worker) => work(worker));
  await eventually("work has begun", async () => added.every((each) => each > 2));
  await nodes[0].stop("SIGKILL");
  const atDeath = [...added];
  await eventually("work goes on", async () => added.every((each, i) => each > atDeath[i] + 2));
  isOver = true;
  await Promise.all(working);
  const check = async (client: RemoteDatabase): Promise<void> => {
    const rows = await client.getMany(Account, [...Array(ACCOUNTS).keys()]);
    expect(rows.slice(0, 3).map((row) => row!.owner)).toEqual(added.map(String));
    expect(rows.reduce((sum, row) => sum + row!.balance, 0)).toBe(ACCOUNTS * BALANCE);
  };
  await check(db);
  await expect(before.get(Account, 0)).rejects.toMatchObject({ code: "SITU_SNAPSHOT_TOO_OLD" });
  // It has nothing when it is back, and nobody takes it for what it was. Others can open the database, and make tables.
  await nodes[0].start();
  const other = await cluster.client([Account, Extra], PATIENT);
  await check(other);
  await other.put(Extra, { id: 1 });
  expect(await other.get(Extra, 1)).toEqual({ id: 1 });
  await nodes[1].stop("SIGKILL");
  await eventually("one of three says that it is alone", async () => {
    const reading = other.transact((tx) => tx.get(Account, 1), { ...SNAPSHOT, timeoutMs: 1_000 });
    const found = await reading.catch((error: unknown) => error);
    expect(found).toMatchObject({ code: expect.stringMatching(/SITU_/) });
    return /^1 of 3 memory servers can be reached/.test((found as Error).message);
  });
});

test("a memory server's file is checked", async () => {
  const nodes = [{ id: 0, host: "10.0.0.1", port: 7000 }];
  const given = { id: 0, cluster: { nodes }, protocol: "nam" };
  const of = (more: object): unknown => memoryNodeOf({ ...given, ...more }, ".", "test");
  expect(() => of({})).toThrow(/set secret, secretFile or SITU_SECRET/);
  expect(of({ secret: "s" })).toMatchObject({ secret: "s" });
  expect(() => of({ secret: "s", path: "x" })).toThrow(/a memory server has no "path"/);
  expect(() => of({ secret: "s", durability: "sync" })).toThrow(/no log/);
  expect(() => of({ secret: "s", overflowBytes: 5_000 })).toThrow(/power of two/);
  expect(() => of({ secret: "s", threads: 0 })).toThrow(/threads/);
  expect(() => of({ secret: "s", cluster: { etcd: "http://127.0.0.1:1" } })).toThrow(
    expect.objectContaining({ code: "SITU_UNSUPPORTED" }),
  );
  expect(configurationOf({ nodes }, "test").nodes).toHaveLength(1);
  cluster = await RealCluster.start({ protocol: "nam", nodes: 1, secret: "a secret" });
  await expect(open({ connect: cluster.connect, ...PATIENT })).rejects.toMatchObject({
    code: "SITU_SECRET",
  });
  const db = await cluster.client([Account], PATIENT);
  await db.put(Account, account(1));
  expect((await situ(["node", "--role", "disk", "--config", "x.json"])).code).not.toBe(0);
});
