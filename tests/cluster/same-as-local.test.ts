/** One suite over a local database and over clusters: the same calls, results and codes. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type AnyDatabase,
  count,
  type Database,
  type InferRow,
  open,
  pointer,
  type RowExpressions,
  SituError,
  str,
  sum,
  type Table,
  table,
  u32,
} from "../../src/index.ts";
import { type ClusterOptions, RealCluster } from "../helpers/cluster.ts";
import { StoreFolder } from "../helpers/engine-processes.ts";
import { Account, Note } from "./procedures.ts";

const Stranger = table("strangers", { id: u32(), name: str() }, { key: "id" });
const TABLES = [Account, Note] as unknown as readonly Table[];

interface Setting {
  readonly name: string;
  readonly cluster: ClusterOptions | undefined;
}

const SETTINGS: readonly Setting[] = [
  { name: "local", cluster: undefined },
  { name: "rpc, nic", cluster: { protocol: "rpc", place: "nic" } },
  { name: "one-sided, nic, secret", cluster: { protocol: "one-sided", secret: "between us" } },
  { name: "rpc, host", cluster: { protocol: "rpc", place: "host" } },
  { name: "one-sided, host", cluster: { protocol: "one-sided", place: "host", backups: 1 } },
];

const code = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "no error",
    (error: unknown) => (error instanceof SituError ? error.code : String(error)),
  );

describe.each(SETTINGS)("$name", ({ cluster: options }) => {
  let folder: StoreFolder | undefined;
  let cluster: RealCluster | undefined;
  let db: AnyDatabase;

  beforeAll(async () => {
    if (options === undefined) {
      folder = new StoreFolder();
      db = await open({ path: folder.path, tables: TABLES, durability: "none" });
    } else {
      cluster = await RealCluster.start(options);
      db = await cluster.client(TABLES);
    }
  });

  afterAll(async () => {
    try {
      if (cluster !== undefined) {
        // What is committed reaches the backups' rows a moment later.
        await cluster.copiesApplied();
        expect(await cluster.close()).toEqual([0, 0, 0]);
        expect(await cluster.problems(TABLES)).toEqual([]);
      } else await db.close();
    } finally {
      await cluster?.remove();
      await folder?.remove();
    }
  });

  beforeEach(async () => {
    await db.transact(async (tx) => {
      for (let id = 0; id < 20; id++) await tx.put(Account, { id, balance: BigInt(id) });
      for (let id = 20; id < 40; id++) await tx.delete(Account, id);
    });
  });

  const get = (id: number): Promise<bigint | undefined> =>
    db.transact(async (tx) => (await tx.get(Account, id))?.balance);

  test("get, has, getMany", async () => {
    expect(await db.get(Account, 7)).toEqual({ id: 7, balance: 7n });
    expect(await db.get(Account, 30)).toBeUndefined();
    await db.transact(async (tx) => {
      expect(await tx.get(Account, 3)).toEqual({ id: 3, balance: 3n });
      expect(await tx.has(Account, 3)).toBe(true);
      expect(await tx.has(Account, 33)).toBe(false);
      const many = await tx.getMany(Account, [5, 25, 6]);
      expect(many.map((row) => row?.balance)).toEqual([5n, undefined, 6n]);
      expect(await tx.getMany(Account, [])).toEqual([]);
    });
  });

  test("bulk operations", async () => {
    const values = (a: RowExpressions<InferRow<typeof Account>>) => ({
      n: count(),
      total: sum(a.balance),
    });
    expect(await db.aggregate(Account, { where: (a) => a.id.lt(20), values })).toEqual({
      n: 20,
      total: 190n,
    });
    const updated = await db.updateWhere(Account, {
      where: (a) => a.id.lt(10).and(a.balance.gt(4n)),
      set: (a) => ({ balance: a.balance.times(10n) }),
    });
    expect(updated).toEqual({ matched: 5, changed: 5, place: "host" });
    expect([await get(4), await get(5), await get(9), await get(10)]).toEqual([4n, 50n, 90n, 10n]);
    await db.transact(async (tx) => {
      await tx.put(Account, { id: 25, balance: 1n });
      const gone = await tx.deleteWhere(Account, { where: (a) => a.id.in([3, 25, 33]) });
      expect(gone).toEqual({ matched: 2, place: "host" });
      const rows = tx.select(Account, { where: (a) => a.id.lt(5), columns: ["id"] });
      const ids = (await rows.toArray()).map(({ id }) => id);
      expect(ids.sort((a, b) => a - b)).toEqual([0, 1, 2, 4]);
      expect((await tx.explain(Account, { where: (a) => a.id.eq(1) })).access).toBe("key");
    });
    const failing = db.updateWhere(Account, { set: (a) => ({ balance: a.balance.dividedBy(0n) }) });
    expect(await code(failing)).toBe("SITU_ARITHMETIC");
    const wrong = db.updateWhere(Account, { set: { id: 1 } } as never);
    expect(await code(wrong)).toBe("SITU_TYPE");
    expect(await get(5)).toBe(50n);
  });

  test("an interactive transaction commits, or conflicts", async () => {
    // Copies of other rows lie in the same objects as this row, and are written a moment after the transaction
    // that fills the table: an interactive transaction would conflict with that, and is not run again.
    await cluster?.copiesApplied();
    const [first, second] = [await db.begin(), await db.begin()];
    for (const tx of [first, second]) {
      const row = await tx.get(Account, 2);
      await tx.update(Account, 2, { balance: (row?.balance ?? 0n) + 1n });
    }
    await first.commit();
    expect(await code(second.commit())).toBe("SITU_CONFLICT");
    expect(await code(first.get(Account, 2))).toBe("SITU_CLOSED");
    expect(await get(2)).toBe(3n);
  });

  test("insert, put, update, delete, and their own reads", async () => {
    await db.transact(async (tx) => {
      await tx.insert(Account, { id: 20, balance: 1n });
      expect(await tx.get(Account, 20)).toEqual({ id: 20, balance: 1n });
      await tx.update(Account, 20, { balance: 2n });
      await tx.put(Account, { id: 21, balance: 3n });
      expect((await tx.getMany(Account, [20, 21])).map((row) => row?.balance)).toEqual([2n, 3n]);
      expect(await tx.delete(Account, 1)).toBe(true);
      expect(await tx.delete(Account, 1)).toBe(false);
      expect(await tx.has(Account, 1)).toBe(false);
    });
    expect([await get(20), await get(21), await get(1)]).toEqual([2n, 3n, undefined]);
  });

  test("rows of any size, keys of text", async () => {
    const data = Buffer.alloc(40_000, 7);
    await db.transact(async (tx) => {
      await tx.put(Note, { name: "größe", size: 1, data });
      await tx.put(Note, { name: "", size: 2, data: new Uint8Array(0) });
    });
    const found = await db.get(Note, "größe");
    expect(found?.data.length).toBe(40_000);
    expect(Buffer.compare(found!.data, data)).toBe(0);
    expect((await db.get(Note, ""))?.size).toBe(2);
    await db.transact(async (tx) => {
      await tx.delete(Note, "größe");
      await tx.delete(Note, "");
    });
  });

  test("scans, by key and by index", async () => {
    await db.transact(async (tx) => {
      for (let i = 0; i < 30; i++) {
        await tx.put(Note, { name: `n${String(i).padStart(2, "0")}`, size: 30 - i, data: NOTHING });
      }
    });
    const names = await db.transact(async (tx) => {
      const found: string[] = [];
      for await (const { name } of tx.scan(Note, { gte: "n05", lt: "n09" })) found.push(name);
      return found;
    });
    expect(names).toEqual(["n05", "n06", "n07", "n08"]);
    const sizes = await db.transact(async (tx) => {
      const found: number[] = [];
      for await (const { size } of tx.scan(Note, { index: "bySize", lte: 3 })) found.push(size);
      return found;
    });
    expect(sizes).toEqual([1, 2, 3]);
    expect(await db.transact((tx) => tx.count(Note, { index: "bySize", gt: 10 }))).toBe(20);
    expect(await code(db.transact((tx) => tx.count(Note, { index: "no" as never })))).toBe(
      "SITU_UNKNOWN_INDEX",
    );
  });

  test("errors have the same codes, and nothing is done", async () => {
    const attempts: [string, () => Promise<unknown>][] = [
      ["SITU_EXISTS", () => db.transact((tx) => tx.insert(Account, { id: 3, balance: 1n }))],
      ["SITU_MISSING", () => db.transact((tx) => tx.update(Account, 30, { balance: 1n }))],
      ["SITU_UNKNOWN_TABLE", () => db.transact((tx) => tx.get(Stranger, 1))],
      ["SITU_TYPE", () => db.transact((tx) => tx.put(Account, { id: 1, balance: 1 as never }))],
      ["SITU_TYPE", () => db.transact((tx) => tx.put(Account, { id: -1, balance: 1n }))],
      ["SITU_TYPE", () => db.transact((tx) => tx.get(Account, "1" as never))],
      ["SITU_TYPE", () => db.transact((tx) => tx.update(Account, 1, { nothing: 1 } as never))],
      ["SITU_TYPE", () => db.transact("no function" as never)],
      ["SITU_NESTED", () => db.transact(() => db.transact(() => 1))],
      ["SITU_CONFIG", () => db.transact(() => 1, { timeout: 5 } as never)],
      ["SITU_CONFIG", () => db.transact(() => 1, { timeoutMs: -1 })],
    ];
    for (const [wanted, attempt] of attempts) expect(await code(attempt())).toBe(wanted);
    expect(await get(3)).toBe(3n);
    expect(await get(1)).toBe(1n);
  });

  test("what a body throws is the caller's, and nothing is written", async () => {
    class Mine extends Error {}
    const failing = db.transact(async (tx) => {
      await tx.put(Account, { id: 5, balance: 55n });
      expect((await tx.get(Account, 6))?.balance).toBe(6n);
      throw new Mine("no");
    });
    await expect(failing).rejects.toBeInstanceOf(Mine);
    expect(await get(5)).toBe(5n);
    // Also an operation that nobody waits for.
    const unseen = db.transact((tx) => {
      void tx.insert(Account, { id: 5, balance: 1n });
    });
    expect(await code(unseen)).toBe("SITU_EXISTS");
  });

  test("a signal aborts, a deadline ends", async () => {
    const controller = new AbortController();
    const aborted = db.transact(
      async (tx) => {
        await tx.put(Account, { id: 8, balance: 88n });
        controller.abort();
        await new Promise((resolve) => setTimeout(resolve, 5_000).unref());
      },
      { signal: controller.signal },
    );
    expect(await code(aborted)).toBe("SITU_ABORTED");
    const before = db.transact(() => 1, { signal: AbortSignal.abort() });
    expect(await code(before)).toBe("SITU_ABORTED");
    const late = db.transact(
      async (tx) => {
        await tx.put(Account, { id: 8, balance: 88n });
        await new Promise((resolve) => setTimeout(resolve, 5_000).unref());
      },
      { timeoutMs: 50 },
    );
    expect(await code(late)).toBe("SITU_TIMEOUT");
    expect(await get(8)).toBe(8n);
  });

  test("a transaction that has ended cannot be used", async () => {
    let kept: { get(): Promise<unknown> } | undefined;
    await db.transact((tx) => {
      kept = { get: () => tx.get(Account, 1) };
    });
    expect(await code(kept!.get())).toMatch(/^SITU_/);
  });

  test("transactions that meet each other: both are there", async () => {
    const adds = Array.from({ length: 24 }, (_, i) =>
      db.transact(async (tx) => {
        const [a, b] = await tx.getMany(Account, [10, 11]);
        await tx.put(Account, { id: 10, balance: a!.balance + 1n });
        await tx.put(Account, { id: 11, balance: b!.balance + BigInt(i) });
      }),
    );
    await Promise.all(adds);
    expect([await get(10), await get(11)]).toEqual([34n, 287n]);
  });

  test("what only one machine has", async () => {
    if (cluster === undefined) return;
    const local = db as unknown as Database;
    expect(() => local.transactSync(() => 1)).toThrow(
      expect.objectContaining({ code: "SITU_UNSUPPORTED" }),
    );
    expect(await code(db.transact(() => 1, { durability: "sync" }))).toBe("SITU_UNSUPPORTED");
    const Unique = table(
      "unique",
      { id: u32(), mail: str() },
      { key: "id", indexes: { byMail: { on: ["mail"], unique: true } } },
    );
    const Pointing = table("pointing", { id: u32(), next: pointer() }, { key: "id" });
    const Own = table("situ backup log", { id: u32() }, { key: "id" });
    for (const [wanted, each] of [
      ["SITU_UNSUPPORTED", Unique],
      ["SITU_UNSUPPORTED", Pointing],
      ["SITU_PERMISSION", Own],
    ] as const) {
      expect(await code(cluster.client([each as unknown as Table]))).toBe(wanted);
    }
    const Other = table("accounts", { id: u32(), balance: u32() }, { key: "id" });
    expect(await code(cluster.client([Other as unknown as Table]))).toBe("SITU_SCHEMA");
  });

  test("after close: a code", async () => {
    if (cluster === undefined) return;
    const other = await cluster.client(TABLES);
    const running = other.transact((tx) => tx.get(Account, 2));
    await other.close();
    expect(await running).toEqual({ id: 2, balance: 2n });
    expect(await code(other.transact(() => 1))).toBe("SITU_CLOSED");
    expect(await code(other.get(Account, 2))).toBe("SITU_CLOSED");
    expect(await code(other.call("pid"))).toBe("SITU_CLOSED");
  });
});

const NOTHING = new Uint8Array(0);
