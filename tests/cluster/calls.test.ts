/** Procedures at real nodes: results, errors, where they run, and once only. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Operation, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { type RemoteDatabase, SituError, type Table } from "../../src/index.ts";
import { type ClusterOptions, RealCluster } from "../helpers/cluster.ts";
import { Account, List } from "./procedures.ts";

const TABLES = [Account, List] as unknown as readonly Table[];
const SETTINGS: readonly ClusterOptions[] = [
  { protocol: "rpc", place: "nic" },
  { protocol: "one-sided", place: "nic" },
  { protocol: "rpc", place: "host" },
];

const failure = (promise: Promise<unknown>): Promise<SituError> =>
  promise.then(
    () => expect.fail("no error"),
    (error: unknown) => {
      expect(error).toBeInstanceOf(SituError);
      return error as SituError;
    },
  );

describe.each(SETTINGS)("procedures ($protocol, $place)", (options) => {
  let cluster: RealCluster;
  let db: RemoteDatabase;

  beforeAll(async () => {
    cluster = await RealCluster.start({ ...options, procedures: true });
    db = await cluster.client(TABLES);
    await db.transact(async (tx) => {
      for (let id = 0; id < 60; id++) await tx.put(Account, { id, balance: 100n });
    });
  });

  afterAll(async () => {
    try {
      await cluster.copiesApplied();
      expect(await cluster.close()).toEqual([0, 0, 0]);
      expect(await cluster.problems(TABLES)).toEqual([]);
    } finally {
      await cluster.remove();
    }
  });

  test("values go there and back", async () => {
    const values = [1, -0.5, "ü", 7n, true, null, undefined, [1, [2]], { a: { b: [3n] } }];
    expect(await db.call("echo", values)).toEqual(values);
    expect(await db.call("echo", [new Uint8Array([1, 2, 3])])).toEqual([new Uint8Array([1, 2, 3])]);
    expect(await db.call("echo")).toEqual([]);
  });

  test("errors: unknown names, what bodies throw, what cannot be sent", async () => {
    expect((await failure(db.call("nobody"))).code).toBe("SITU_UNKNOWN_PROCEDURE");
    const poor = await failure(db.call("transfer", [1, 2, 5_000n]));
    expect(poor.code).toBe("SITU_PROCEDURE");
    expect(poor.message).toContain("only 100 left");
    expect((await failure(db.call("insertTwice", [1_000]))).code).toBe("SITU_EXISTS");
    expect(await db.get(Account, 1_000)).toBeUndefined();
    expect((await failure(db.call("throwNothing"))).code).toBe("SITU_PROCEDURE");
    expect((await failure(db.call("returnFunction"))).code).toBe("SITU_TYPE");
    expect((await failure(db.call("echo", [() => 1]))).code).toBe("SITU_TYPE");
    expect((await failure(db.call("deposit", ["no key", 1n]))).code).toBe("SITU_TYPE");
    // The node goes on.
    expect(await db.call("echo", ["still there"])).toEqual(["still there"]);
  });

  test("they run at the node that has the row", async () => {
    for (const id of [3, 4, 5, 6, 7, 8]) {
      const { pid } = (await db.call("deposit", [id, 0n])) as { pid: number };
      expect(pid).toBe(cluster.primaryOf(Account as unknown as Table, id).child?.pid);
      const near = await db.call("pid", [], { near: [Account as unknown as Table, id] });
      expect(near).toBe(pid);
    }
  });

  test("many at once, with transactions of a client among them: the sum holds", async () => {
    const calls = Array.from({ length: 120 }, (_, i) => {
      const [from, to] = [(i * 7) % 50, (i * 7 + 1 + (i % 40)) % 50];
      if (from === to) return undefined;
      if (i % 3 > 0) return db.call("transfer", [from, to, 1n]);
      return db.transact(async (tx) => {
        const [a, b] = await tx.getMany(Account, [from, to]);
        await tx.put(Account, { id: from, balance: a!.balance - 1n });
        await tx.put(Account, { id: to, balance: b!.balance + 1n });
      });
    });
    await Promise.all(calls);
    const ids = Array.from({ length: 50 }, (_, i) => i);
    const rows = await db.transact((tx) => tx.getMany(Account, ids));
    expect(rows.reduce((sum, row) => sum + row!.balance, 0n)).toBe(5_000n);
  });

  test("calls of several clients at one row: each once, each with its own result", async () => {
    const clients = [db, ...(await Promise.all([1, 2, 3].map(() => cluster.client(TABLES))))];
    const id = 57;
    await db.put(Account, { id, balance: 0n });
    const calls: Promise<unknown>[] = [];
    for (let i = 0; i < 40; i++) {
      for (const client of clients) calls.push(client.call("deposit", [id, 1n]));
      // Among them those that fail, and transactions that are not combined with anything.
      const refused = clients[i % 4].call("transfer", [id, 58, 1_000n]);
      calls.push(failure(refused).then(({ message }) => void expect(message).toContain("left")));
      if (i % 10 > 0) continue;
      calls.push(
        clients[1].transact(async (tx) => {
          const { balance } = (await tx.get(Account, id))!;
          await tx.put(Account, { id, balance: balance + 1n });
          return { balance: balance + 1n };
        }),
      );
    }
    const done = (await Promise.all(calls)).filter((each) => each !== undefined);
    const balances = (done as { balance: bigint }[]).map(({ balance }) => Number(balance));
    // Everybody has added to what somebody else has left.
    expect(balances.sort((a, b) => a - b)).toEqual(balances.map((_, i) => i + 1));
    expect(balances).toHaveLength(164);
    expect((await db.get(Account, id))?.balance).toBe(164n);
    for (const client of clients.slice(1)) await client.close();
  });

  test("appends and reads of two lists by several clients: strictly serializable", async () => {
    const clients = [db, ...(await Promise.all([1, 2].map(() => cluster.client(TABLES))))];
    const history: Transaction[] = [];
    const work = async (process: number): Promise<void> => {
      for (let i = 0; i < 15; i++) {
        const key = i % 4 === 3 ? 2 : 1;
        const value = i % 3 === 2 ? null : process * 1_000 + i;
        const start = Number(globalThis.process.hrtime.bigint());
        const list = (await clients[process % 3].call("append", [key, value])) as number[];
        const operations: Operation[] = [{ kind: "read", key, list }];
        if (value !== null) operations.push({ kind: "append", key, value });
        const end = Number(globalThis.process.hrtime.bigint());
        history.push({ process, start, end, operations, outcome: "ok" });
      }
    };
    await Promise.all(Array.from({ length: 9 }, (_, process) => work(process)));
    const lists = await db.transact((tx) => tx.getMany(List, [1, 2]));
    const finalReads = new Map(lists.map((row) => [row!.id, row!.values]));
    const { ok, anomalies } = checkListAppend(history, {
      isolation: "strict-serializable",
      finalReads,
    });
    expect(ok, JSON.stringify(anomalies.slice(0, 3), undefined, 1)).toBe(true);
    for (const client of clients.slice(1)) await client.close();
  });

  test("one that takes too long ends with a code, and leaves no lock", async () => {
    const late = await failure(db.call("dawdle", [55, 2_000], { timeoutMs: 100 }));
    expect(["SITU_TIMEOUT", "SITU_LOST", "SITU_UNKNOWN_OUTCOME"]).toContain(late.code);
    await db.transact((tx) => tx.put(Account, { id: 55, balance: 7n }));
    expect((await db.get(Account, 55))?.balance).toBe(7n);
  });
});
