/** Nesting, closing, and what stats tell. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { destroy, open } from "../../src/database/open.ts";
import { Pointer } from "../../src/memory/pointer.ts";
import { NESTED_LOOKS } from "../../src/runtime/limits.ts";
import { i64, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, Gate, MIB, sleep, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
const put = (db: Database, id: number, balance: bigint): void =>
  db.transactSync((tx) => tx.put(Account, { id, balance }));

describe("nested transactions", () => {
  it("transactSync in transactSync", async () => {
    const db = await stores.open({ tables: [Account] });
    db.transactSync((tx) => {
      tx.put(Account, { id: 1, balance: 1n });
      const error = failureSync("SITU_NESTED", () => put(db, 1, 2n));
      expect(error.message).toMatch(/use its tx/);
    });
    expect(db.get(Account, 1)?.balance).toBe(1n);
  });

  it("transact in transactSync", async () => {
    const db = await stores.open({ tables: [Account] });
    let inner: Promise<unknown> | undefined;
    db.transactSync((tx) => {
      inner = failure("SITU_NESTED", () =>
        db.transact((its) => its.put(Account, { id: 1, balance: 2n })),
      );
      tx.put(Account, { id: 1, balance: 1n });
    });
    await inner;
    expect(db.get(Account, 1)?.balance).toBe(1n);
  });

  it("transactSync and transact in transact, before and after an await, and deep inside", async () => {
    const db = await stores.open({ tables: [Account] });
    const deep = async (work: () => unknown): Promise<void> => {
      await sleep(1);
      await Promise.all([failure("SITU_NESTED", work)]);
    };
    await db.transact(async (tx) => {
      failureSync("SITU_NESTED", () => put(db, 1, 2n));
      await failure("SITU_NESTED", () => db.transact(() => 1));
      await tx.put(Account, { id: 1, balance: 1n });
      failureSync("SITU_NESTED", () => put(db, 1, 2n));
      await failure("SITU_NESTED", () => db.transact(() => 1));
      await deep(() => put(db, 1, 2n));
      await deep(() => db.transact(() => 1));
    });
    expect(db.get(Account, 1)?.balance).toBe(1n);
  });

  it("an uncaught one fails the outer transaction, and the database goes on", async () => {
    const db = await stores.open({ tables: [Account] });
    failureSync("SITU_NESTED", () =>
      db.transactSync((tx) => {
        tx.put(Account, { id: 1, balance: 1n });
        put(db, 2, 2n);
      }),
    );
    await failure("SITU_NESTED", () =>
      db.transact(async (tx) => {
        await tx.put(Account, { id: 1, balance: 1n });
        put(db, 2, 2n);
      }),
    );
    expect([db.get(Account, 1), db.get(Account, 2)]).toEqual([undefined, undefined]);
    put(db, 1, 3n);
    expect(db.get(Account, 1)?.balance).toBe(3n);
  });

  it("two stores are no nesting", async () => {
    const a = await stores.open({ tables: [Account] });
    const b = await stores.open({ tables: [Account] });
    a.transactSync((tx) => {
      tx.put(Account, { id: 1, balance: 1n });
      put(b, 1, 2n);
    });
    await a.transact(async (tx) => {
      await tx.put(Account, { id: 2, balance: 3n });
      put(b, 2, 4n);
      await b.transact((its) => its.put(Account, { id: 3, balance: 5n }));
    });
    expect([a.get(Account, 1)?.balance, a.get(Account, 2)?.balance]).toEqual([1n, 3n]);
    expect([1, 2, 3].map((id) => b.get(Account, id)?.balance)).toEqual([2n, 4n, 5n]);
  });

  it("lock-free reads inside an asynchronous transaction read beside it", async () => {
    const db = await stores.open({ tables: [Account] });
    put(db, 1, 1n);
    await db.transact(async (tx) => {
      await tx.update(Account, 1, { balance: 2n });
      expect(db.get(Account, 1)?.balance).toBe(1n);
      expect((await tx.get(Account, 1))?.balance).toBe(2n);
    });
    expect(db.get(Account, 1)?.balance).toBe(2n);
  });

  it("what a body has started may transact once the transaction has ended", async () => {
    const db = await stores.open({ tables: [Account] });
    const ended = new Gate();
    let later: Promise<unknown> | undefined;
    await db.transact(async (tx) => {
      await tx.put(Account, { id: 1, balance: 1n });
      later = ended.opened.then(async () => {
        put(db, 2, 2n);
        await db.transact((its) => its.put(Account, { id: 3, balance: 3n }));
      });
    });
    ended.open();
    await later;
    expect([2, 3].map((id) => db.get(Account, id)?.balance)).toEqual([2n, 3n]);
  });

  it("is found behind Promise.all, a loop over a scan and a then, and leaves stack traces as they were", async () => {
    const db = await stores.open({ tables: [Account] });
    const { stackTraceLimit, prepareStackTrace } = Error;
    put(db, 1, 1n);
    await db.transact(async (tx) => {
      await Promise.all(
        [1, 2].map(() => sleep(1).then(() => failureSync("SITU_NESTED", () => put(db, 2, 2n)))),
      );
      for await (const row of tx.scan(Account)) {
        expect(row.id).toBe(1);
        await failure("SITU_NESTED", () => db.transact(() => 1));
      }
    });
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
    expect(Error.prepareStackTrace).toBe(prepareStackTrace);
  });

  it("is not what runs beside a callback", async () => {
    const db = await stores.open({ tables: [Account] });
    let isOver = false;
    const running = db.transact(async (tx) => {
      await tx.put(Account, { id: 1, balance: 1n });
      while (!isOver) await sleep(1);
    });
    put(db, 2, 2n);
    await sleep(2);
    put(db, 3, 3n);
    await db.transact((tx) => tx.put(Account, { id: 4, balance: 4n }));
    isOver = true;
    await running;
    expect([1, 2, 3, 4].map((id) => db.get(Account, id)?.balance)).toEqual([1n, 2n, 3n, 4n]);
  });

  it("may open transactions after its deadline: then it is inside of none", async () => {
    const db = await stores.open({ tables: [Account] });
    let left: Promise<void> | undefined;
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    await failure("SITU_TIMEOUT", () =>
      db.transact(
        () => {
          left = gate.then(() => put(db, 1, 1n));
          return left;
        },
        { timeoutMs: 20 },
      ),
    );
    letGo();
    await left;
    expect(db.get(Account, 1)?.balance).toBe(1n);
  });

  it("is looked for while a transaction is run again, however many calls there were", async () => {
    const db = await stores.open({ tables: [Account] });
    const second = await stores.open({ path: db.path, tables: [Account] });
    put(db, 1, 0n);
    let isOver = false;
    const beside = db.transact(async () => {
      while (!isOver) await sleep(1);
    });
    await sleep(1);
    for (let i = 0; i < NESTED_LOOKS; i++) put(db, 2, BigInt(i));
    let runs = 0;
    const codes: unknown[] = [];
    await db.transact(async (tx) => {
      const { balance } = (await tx.get(Account, 1))!;
      // Not found the first time: it is a transaction of its own.
      await db
        .transact((its) => its.put(Account, { id: 3, balance: 3n }))
        .catch((error) => codes.push(error.code));
      if (++runs === 1) put(second, 1, 5n);
      await tx.update(Account, 1, { balance: balance + 1n });
    });
    isOver = true;
    await beside;
    expect([runs, codes, db.get(Account, 1)?.balance]).toEqual([2, ["SITU_NESTED"], 6n]);
  });
});

describe("close", () => {
  it("every use after it fails with SITU_CLOSED", async () => {
    const db = await stores.open({ tables: [Account] });
    put(db, 1, 1n);
    const pointer = db.transactSync((tx) => tx.alloc(8));
    await db.close();
    for (const use of [
      () => db.get(Account, 1),
      () => put(db, 1, 2n),
      () => db.readObject(pointer),
      () => db.stats(),
      () => db.transact(() => 1),
      () => db.transact((tx) => tx.get(Account, 1)),
    ]) {
      const error = await failure("SITU_CLOSED", use);
      expect(error.message).toMatch(/open it again/);
    }
    await db.close();
    const again = await stores.open({ path: db.path, tables: [Account] });
    expect(again.get(Account, 1)?.balance).toBe(1n);
    expect(again.readObject(pointer)).toEqual(new Uint8Array(8));
  });

  it("waits for transactions that are running, and lets them end", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account] });
    let ended = false;
    const [written, goOn] = [new Gate(), new Gate()];
    const running = db.transact(async (tx) => {
      await tx.put(Account, { id: 1, balance: 1n });
      written.open();
      await goOn.opened;
      expect((await tx.get(Account, 1))?.balance).toBe(1n);
      await tx.put(Account, { id: 2, balance: 2n });
      ended = true;
    });
    await written.opened;
    const closing = db.close();
    await failure("SITU_CLOSED", () => db.transact(() => 1));
    expect(ended).toBe(false);
    goOn.open();
    const second = db.close();
    await second;
    expect(ended).toBe(true);
    await Promise.all([running, closing]);
    await destroyedLater(path, [1n, 2n]);
  });

  /** The store holds these balances; then nobody has it open any more. */
  async function destroyedLater(path: string, balances: bigint[]): Promise<void> {
    const db = await open({ path, tables: [Account] });
    const found = balances.map((_, index) => db.get(Account, index + 1)?.balance);
    await db.close();
    expect(found).toEqual(balances);
    await destroy(path);
  }

  it("inside a transaction is refused, and the transaction goes on", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account] });
    const inside: Promise<unknown>[] = [];
    db.transactSync((tx) => {
      inside.push(failure("SITU_NESTED", () => db.close()));
      tx.put(Account, { id: 1, balance: 1n });
    });
    await db.transact(async (tx) => {
      await failure("SITU_NESTED", () => db.close());
      await tx.put(Account, { id: 2, balance: 2n });
      await failure("SITU_NESTED", () => db.close());
    });
    await Promise.all(inside);
    expect([1, 2].map((id) => db.get(Account, id)?.balance)).toEqual([1n, 2n]);
    await db.close();
    await destroy(path);
  });

  it("await using closes", async () => {
    const path = stores.folder();
    let kept: Database | undefined;
    {
      await using db = await open({ path, tables: [Account], memoryBytes: 16 * MIB });
      put(db, 1, 1n);
      kept = db;
    }
    failureSync("SITU_CLOSED", () => kept!.get(Account, 1));
    await destroy(path);
  });

  it("one handle closes, the others of the same store go on", async () => {
    const path = stores.folder();
    const a = await stores.open({ path, tables: [Account] });
    const b = await stores.open({ path, tables: [Account] });
    put(a, 1, 1n);
    await a.close();
    expect(b.get(Account, 1)?.balance).toBe(1n);
    for (let id = 0; id < 1_000; id++) put(b, id, BigInt(id));
    expect(b.get(Account, 999)?.balance).toBe(999n);
  });

  // More of them than there are slots; and some whose log starts and ends each time.
  it.each([
    ["none", 100],
    ["lazy", 10],
  ] as const)("a store outlives the handles, %s, %i times", async (durability, times) => {
    const path = stores.folder();
    for (let round = 0; round < times; round++) {
      const db = await open({ path, tables: [Account], memoryBytes: 16 * MIB, durability });
      expect(db.get(Account, round - 1 < 0 ? 5_000 : round - 1)?.balance).toBe(
        round === 0 ? undefined : BigInt(round - 1),
      );
      put(db, round, BigInt(round));
      expect(db.stats().executors.length).toBe(1);
      await db.close();
    }
  });
});

describe("stats", () => {
  it("tell who is there, how much memory is used, which tables there are, what happened", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account], memoryBytes: 16 * MIB });
    const before = db.stats();
    expect(before.executors).toEqual([
      { pid: process.pid, threadId: expect.any(Number), slot: expect.any(Number) },
    ]);
    expect(before.memory.limitBytes).toBe(16 * MIB);
    expect(before.memory.reservedBytes).toBeLessThanOrEqual(16 * MIB);
    expect(before.memory.freeBytes).toBeLessThan(before.memory.reservedBytes);
    expect(before.tables).toEqual([
      {
        name: "account",
        fields: { balance: "i64", id: "u32" },
        key: ["id"],
        ordered: false,
        indexes: [],
      },
    ]);
    const second = await stores.open({ path, tables: [Account] });
    put(db, 1, 1n);
    db.transactSync((tx) => tx.get(Account, 1));
    const pointer = db.transactSync((tx) => tx.alloc(8));
    second.transactSync((tx) => tx.free(pointer));
    const after = db.stats();
    expect(after.executors.length).toBe(2);
    expect(new Set(after.executors.map(({ slot }) => slot)).size).toBe(2);
    expect(after.counters.commits).toBeGreaterThanOrEqual(before.counters.commits + 3);
    expect(after.counters.readOnlyCommits).toBeGreaterThan(before.counters.readOnlyCommits);
    expect(after.counters.frees).toBe(before.counters.frees + 1);
    expect(after.epoch).toBeGreaterThanOrEqual(before.epoch);
    // The counters of one who left still count.
    await second.close();
    expect(db.stats().counters.frees).toBe(after.counters.frees);
    expect(pointer).toBeInstanceOf(Pointer);
  });

  it.each([8, 10, 64, 65, 100, 200])(
    "a store of %i MiB has so much, not more",
    async (mebibytes) => {
      const db = await stores.open({ memoryBytes: mebibytes * MIB });
      const limit = db.stats().memory.limitBytes / MIB;
      expect(limit).toBeLessThanOrEqual(mebibytes);
      // Regions are of one size, in whole mebibytes: a few may be left over.
      expect(limit).toBeGreaterThan(mebibytes - Math.ceil(mebibytes / 64));
    },
  );
});
