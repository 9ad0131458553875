/** Interactive transactions: `db.begin()`, on a local database and on a cluster. */

import { afterEach, describe, expect, it } from "vitest";
import type { InteractiveTransaction } from "../../src/database/async-transaction.ts";
import type { TransactOptions } from "../../src/database/transact-options.ts";
import { ConflictError, SituError, TimeoutError } from "../../src/runtime/errors.ts";
import { i64, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { RemoteCluster } from "../helpers/remote-cluster.ts";
import { MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
const Note = table("note", { id: u32(), text: str(4_000) }, { key: "id" });

/** What the tests below use of either database. */
interface Bank {
  begin(options?: TransactOptions): Promise<InteractiveTransaction>;
  transact<T>(body: (tx: never) => Promise<T>): Promise<T>;
  get(table: typeof Account, key: number): unknown;
  close(): Promise<void>;
}

const clusters: RemoteCluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.close();
});

type Test = (open: () => Promise<Bank>) => Promise<void>;

/** The same test for both databases. In the cluster, virtual time goes on while it waits. */
function both(name: string, test: Test): void {
  it(`${name} (local)`, async () => {
    const path = stores.folder();
    await test(async () => (await stores.open({ path, tables: [Account] })) as unknown as Bank);
  });
  it(`${name} (remote)`, async () => {
    const cluster = new RemoteCluster({ seed: 1 });
    clusters.push(cluster);
    const clients = [await cluster.client([Account]), await cluster.client([Account])];
    await cluster.run(() => test(async () => clients.pop() as unknown as Bank));
  });
}

async function fill(db: Bank): Promise<void> {
  await using tx = await db.begin();
  for (let id = 0; id < 10; id++) await tx.put(Account, { id, balance: 100n });
  await tx.commit();
}

async function balanceOf(db: Bank, id: number): Promise<bigint | undefined> {
  return ((await db.get(Account, id)) as { balance: bigint } | undefined)?.balance;
}

async function failure(promise: Promise<unknown>): Promise<SituError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof SituError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

const codeOf = async (promise: Promise<unknown>): Promise<string> => (await failure(promise)).code;

describe("begin", () => {
  both("reads its own writes, and shows them to others with the commit", async (open) => {
    const db = await open();
    await fill(db);
    const tx = await db.begin();
    expect(tx.isOpen).toBe(true);
    const row = await tx.get(Account, 1);
    await tx.update(Account, 1, { balance: (row?.balance ?? 0n) - 30n });
    await tx.insert(Account, { id: 50, balance: 30n });
    expect(await tx.delete(Account, 9)).toBe(true);
    expect(await tx.get(Account, 1)).toEqual({ id: 1, balance: 70n });
    expect(await tx.getForUpdate(Account, 50)).toEqual({ id: 50, balance: 30n });
    expect(await tx.has(Account, 9)).toBe(false);
    expect(await tx.getMany(Account, [1, 9])).toEqual([{ id: 1, balance: 70n }, undefined]);
    expect(await tx.count(Account)).toBe(10);
    expect((await tx.scan(Account).toArray()).length).toBe(10);
    expect([await balanceOf(db, 1), await balanceOf(db, 50)]).toEqual([100n, undefined]);
    await tx.commit();
    expect(tx.isOpen).toBe(false);
    expect([await balanceOf(db, 1), await balanceOf(db, 50)]).toEqual([70n, 30n]);
    expect(await balanceOf(db, 9)).toBe(undefined);
  });

  both("rollback changes nothing, and may be called again", async (open) => {
    const db = await open();
    await fill(db);
    const tx = await db.begin();
    await tx.update(Account, 1, { balance: 0n });
    await tx.rollback();
    await tx.rollback();
    expect(tx.isOpen).toBe(false);
    expect(await codeOf(tx.commit())).toBe("SITU_CLOSED");
    expect(await balanceOf(db, 1)).toBe(100n);
  });

  both("after the commit nothing can be done with it", async (open) => {
    const db = await open();
    await fill(db);
    const tx = await db.begin();
    const scan = tx.scan(Account);
    await tx.commit();
    expect(await codeOf(tx.get(Account, 1))).toBe("SITU_CLOSED");
    expect(await codeOf(tx.put(Account, { id: 1, balance: 1n }))).toBe("SITU_CLOSED");
    expect(await codeOf(scan.toArray())).toBe("SITU_CLOSED");
    expect(await codeOf(tx.commit())).toBe("SITU_CLOSED");
    expect(await codeOf(tx.rollback())).toBe("SITU_CLOSED");
    await tx[Symbol.asyncDispose]();
    expect(await balanceOf(db, 1)).toBe(100n);
  });

  both("leaving its scope rolls it back, unless it was committed", async (open) => {
    const db = await open();
    await fill(db);
    {
      await using tx = await db.begin();
      await tx.update(Account, 1, { balance: 0n });
    }
    expect(await balanceOf(db, 1)).toBe(100n);
    {
      await using tx = await db.begin();
      await tx.update(Account, 1, { balance: 1n });
      await tx.commit();
    }
    expect(await balanceOf(db, 1)).toBe(1n);
  });

  both("of two that change the same row, the first to commit wins", async (open) => {
    const db = await open();
    const other = await open();
    await fill(db);
    const [a, b] = [await db.begin(), await other.begin()];
    for (const tx of [a, b]) {
      const row = await tx.get(Account, 1);
      await tx.update(Account, 1, { balance: (row?.balance ?? 0n) + 1n });
    }
    await b.commit();
    const error = await failure(a.commit());
    expect(error).toBeInstanceOf(ConflictError);
    expect(error.retryable).toBe(true);
    expect(await failure(a.get(Account, 1))).toBe(error);
    await a.rollback();
    expect(await balanceOf(db, 1)).toBe(101n);
  });

  both("two at once in one database do not see each other", async (open) => {
    const db = await open();
    await fill(db);
    const [a, b] = [await db.begin(), await db.begin()];
    await a.update(Account, 1, { balance: 1n });
    await b.update(Account, 2, { balance: 2n });
    expect((await b.get(Account, 3))?.balance).toBe(100n);
    await a.commit();
    await b.commit();
    expect([await balanceOf(db, 1), await balanceOf(db, 2)]).toEqual([1n, 2n]);
  });

  both("write skew is a conflict", async (open) => {
    const db = await open();
    await fill(db);
    const [a, b] = [await db.begin(), await db.begin()];
    for (const tx of [a, b]) await tx.getMany(Account, [1, 2]);
    await a.update(Account, 1, { balance: 0n });
    await b.update(Account, 2, { balance: 0n });
    await a.commit();
    expect(await failure(b.commit())).toBeInstanceOf(ConflictError);
  });

  both(
    "a failed operation can be handled; one that nobody awaited fails the commit",
    async (open) => {
      const db = await open();
      await fill(db);
      const tx = await db.begin();
      expect(await codeOf(tx.insert(Account, { id: 1, balance: 0n }))).toBe("SITU_EXISTS");
      await tx.update(Account, 1, { balance: 5n });
      await tx.commit();
      expect(await balanceOf(db, 1)).toBe(5n);
      const careless = await db.begin();
      void careless.insert(Account, { id: 2, balance: 0n });
      void careless.update(Account, 1, { balance: 6n });
      expect(await codeOf(careless.commit())).toBe("SITU_EXISTS");
      expect(await balanceOf(db, 1)).toBe(5n);
    },
  );

  both("an operation's error is not told if what it rests on has changed", async (open) => {
    const db = await open();
    const other = await open();
    await fill(db);
    const tx = await db.begin();
    await tx.get(Account, 1);
    const change = await other.begin();
    await change.update(Account, 1, { balance: 7n });
    await change.insert(Account, { id: 40, balance: 7n });
    await change.commit();
    expect(await failure(tx.insert(Account, { id: 40, balance: 0n }))).toBeInstanceOf(
      ConflictError,
    );
    expect(tx.isOpen).toBe(false);
    expect(await failure(tx.commit())).toBeInstanceOf(ConflictError);
  });

  both("it ends with its time", async (open) => {
    const db = await open();
    await fill(db);
    const tx = await db.begin({ timeoutMs: 20 });
    // Its time may be over already.
    await tx.update(Account, 1, { balance: 0n }).catch(() => {});
    while (tx.isOpen) await new Promise((resolve) => setTimeout(resolve, 5));
    const error = await failure(tx.commit());
    expect(error).toBeInstanceOf(TimeoutError);
    expect(await failure(tx.get(Account, 1))).toBe(error);
    await tx.rollback();
    expect(await balanceOf(db, 1)).toBe(100n);
  });

  both("it ends with its signal", async (open) => {
    const db = await open();
    await fill(db);
    const controller = new AbortController();
    const { signal } = controller;
    const tx = await db.begin({ signal });
    await tx.update(Account, 1, { balance: 0n });
    controller.abort();
    expect(await codeOf(tx.commit())).toBe("SITU_ABORTED");
    expect(await codeOf(db.begin({ signal }))).toBe("SITU_ABORTED");
    expect(await balanceOf(db, 1)).toBe(100n);
  });

  both("closing the database rolls it back", async (open) => {
    const db = await open();
    const other = await open();
    await fill(db);
    const tx = await db.begin();
    await tx.update(Account, 1, { balance: 0n });
    await db.close();
    expect(tx.isOpen).toBe(false);
    expect(await codeOf(tx.get(Account, 1))).toBe("SITU_CLOSED");
    expect(await codeOf(tx.commit())).toBe("SITU_CLOSED");
    await tx.rollback();
    expect(await codeOf(db.begin())).toBe("SITU_CLOSED");
    expect(await balanceOf(other, 1)).toBe(100n);
  });

  both("closing the database while it begins", async (open) => {
    const db = await open();
    await fill(db);
    const beginning = [db.begin(), db.begin({ timeoutMs: 1_000 })];
    await db.close();
    for (const tx of await Promise.all(beginning)) {
      expect(tx.isOpen).toBe(false);
      expect(await codeOf(tx.get(Account, 1))).toBe("SITU_CLOSED");
    }
  });

  both("closing waits for a commit that has begun", async (open) => {
    const db = await open();
    const other = await open();
    await fill(db);
    const tx = await db.begin();
    await tx.update(Account, 1, { balance: 0n });
    const committing = tx.commit();
    expect(await codeOf(tx.commit())).toBe("SITU_CLOSED");
    await Promise.all([committing, db.close()]);
    expect(await balanceOf(other, 1)).toBe(0n);
  });

  both("not inside a transaction; beside others it may", async (open) => {
    const db = await open();
    await fill(db);
    expect(await codeOf(db.transact(() => db.begin()))).toBe("SITU_NESTED");
    await using tx = await db.begin();
    await tx.update(Account, 1, { balance: 1n });
    await db.transact(async (inner: InteractiveTransaction) => {
      await inner.update(Account, 2, { balance: 2n });
    });
    await tx.commit();
    expect([await balanceOf(db, 1), await balanceOf(db, 2)]).toEqual([1n, 2n]);
  });

  both("options are checked", async (open) => {
    const db = await open();
    expect(await codeOf(db.begin({ timeoutMs: -1 }))).toBe("SITU_CONFIG");
    expect(await codeOf(db.begin({ isolation: "none" as never }))).toBe("SITU_CONFIG");
    expect(await codeOf(db.begin({ retries: 1 } as never))).toBe("SITU_CONFIG");
  });
});

describe("begin on a local database", () => {
  it("names the keys of a conflict", async () => {
    const db = await stores.open({ tables: [Account] });
    db.transactSync((tx) => tx.put(Account, { id: 1, balance: 1n }));
    const tx = await db.begin();
    await tx.update(Account, 1, { balance: 2n });
    db.transactSync((sync) => sync.update(Account, 1, { balance: 3n }));
    const error = await failure(tx.commit());
    expect(error).toBeInstanceOf(ConflictError);
    expect((error as ConflictError).keys).toEqual([{ table: "account", key: 1 }]);
  });

  it("with snapshot isolation it reads one state, and has write skew", async () => {
    // What it writes lies in a table of its own: rows of one table may share a bucket, and then conflict.
    const db = await stores.open({ tables: [Account, Note] });
    db.transactSync((tx) => {
      for (let id = 0; id < 2; id++) tx.put(Account, { id, balance: 1n });
      tx.put(Note, { id: 2, text: "before" });
    });
    const tx = await db.begin({ isolation: "snapshot" });
    expect((await tx.get(Account, 0))?.balance).toBe(1n);
    db.transactSync((sync) => {
      for (let id = 0; id < 2; id++) sync.update(Account, id, { balance: 9n });
    });
    expect((await tx.get(Account, 1))?.balance).toBe(1n);
    await tx.update(Note, 2, { text: "after" });
    await tx.commit();
    expect([0, 1].map((id) => db.get(Account, id)?.balance)).toEqual([9n, 9n]);
    expect(db.get(Note, 2)?.text).toBe("after");
    const loser = await db.begin({ isolation: "snapshot" });
    await loser.get(Account, 0);
    db.transactSync((sync) => sync.update(Account, 0, { balance: 10n }));
    const lost = await failure(
      loser.update(Account, 0, { balance: 11n }).then(() => loser.commit()),
    );
    expect(lost).toBeInstanceOf(ConflictError);
    expect(db.stats().snapshots.open).toBe(0);
  });

  it("has objects, too", async () => {
    const db = await stores.open({ tables: [Account] });
    await using tx = await db.begin();
    const pointer = await tx.alloc(8);
    await tx.write(pointer, Uint8Array.of(1, 2));
    await tx.commit();
    expect(db.readObject(pointer).slice(0, 2)).toEqual(Uint8Array.of(1, 2));
  });

  it("waits for the disk where it is to be durable", async () => {
    const db = await stores.open({ tables: [Account], durability: "lazy" });
    await using tx = await db.begin({ durability: "sync" });
    await tx.put(Account, { id: 1, balance: 1n });
    await tx.commit();
    const { durableEpoch } = db.stats().durability;
    expect(durableEpoch).toBeGreaterThan(0);
  });

  it("fails where the store is full, and leaves room for others", async () => {
    const db = await stores.open({ tables: [Note], memoryBytes: 16 * MIB });
    const text = "x".repeat(4_000);
    const fillUp = (): void => {
      for (let id = 0; id < 10_000; id++) db.transactSync((tx) => tx.put(Note, { id, text }));
    };
    expect(fillUp).toThrow(expect.objectContaining({ code: "SITU_FULL" }) as Error);
    const rows = db.count(Note);
    const tx = await db.begin();
    expect(await tx.delete(Note, 0)).toBe(true);
    expect(await codeOf(tx.put(Note, { id: 20_000, text }))).toBe("SITU_FULL");
    expect(tx.isOpen).toBe(false);
    expect(db.count(Note)).toBe(rows);
    db.transactSync((sync) => sync.delete(Note, 0));
    db.transactSync((sync) => sync.put(Note, { id: 20_000, text }));
  });

  it("counts as a transaction of the store", async () => {
    const db = await stores.open({ tables: [Account] });
    const tx = await db.begin();
    await tx.put(Account, { id: 1, balance: 1n });
    await tx.commit();
    const undone = await db.begin();
    await undone.rollback();
    const { latency, failures, counters } = db.stats();
    expect(latency.async.count).toBe(2);
    expect(failures.rolledBack).toBe(1);
    expect(counters.commits).toBeGreaterThan(0);
  });
});
