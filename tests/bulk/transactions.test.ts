/** Bulk operations in transactions and snapshots, and what becomes of those that fail. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { count, sum } from "../../src/tables/expressions/aggregates.ts";
import { enumOf, i32, nullable, str, timestamp, u8, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Account = table(
  "account",
  { id: u32(), branch: u32(), balance: i32(), level: u8(), name: nullable(str(10)) },
  {
    key: "id",
    ordered: true,
    indexes: { byBranch: { on: ["branch"] }, byName: { on: ["name"], unique: true } },
  },
);
const Session = table(
  "session",
  { id: u32(), state: enumOf("new", "used"), until: nullable(timestamp()) },
  { key: "id", expires: "until" },
);

const ROWS = 600;

async function filled(): Promise<Database> {
  const db = await stores.open({ tables: [Account, Session] });
  db.transactSync((tx) => {
    for (let id = 0; id < ROWS; id++) {
      const name = id % 2 === 0 ? `n${id}` : null;
      tx.insert(Account, { id, branch: id % 20, balance: 100, level: id % 256, name });
    }
  });
  return db;
}

const total = async (db: Database): Promise<number> =>
  (await db.aggregate(Account, { values: (a) => ({ sum: sum(a.balance) }) })).sum;

describe("in a transaction", () => {
  it("sees what the transaction has done, and is undone with it", async () => {
    const db = await filled();
    await db.transact(async (tx) => {
      await tx.update(Account, 1, { balance: 500 });
      const first = await tx.updateWhere(Account, {
        where: (a) => a.balance.gt(400),
        set: (a) => ({ balance: a.balance.plus(1) }),
      });
      expect(first).toEqual({ matched: 1, changed: 1, place: "host" });
      await tx.deleteWhere(Account, { where: (a) => a.id.gte(300) });
      const rows = await tx.select(Account, { where: (a) => a.balance.ne(100) }).toArray();
      expect(rows.map(({ id, balance }) => [id, balance])).toEqual([[1, 501]]);
      const { n } = await tx.aggregate(Account, { values: () => ({ n: count() }) });
      expect(n).toBe(300);
    });
    const error = new Error("changed my mind");
    const failed = db.transact(async (tx) => {
      await tx.updateWhere(Account, { set: { balance: 0 } });
      throw error;
    });
    await expect(failed).rejects.toBe(error);
    expect(await total(db)).toBe(299 * 100 + 501);
  });

  it("synchronously", async () => {
    const db = await filled();
    const result = db.transactSync((tx) => {
      const updated = tx.updateWhere(Account, {
        where: (a) => a.branch.eq(3),
        set: (a) => ({ balance: a.balance.minus(10), branch: 4 }),
      });
      const gone = tx.deleteWhere(Account, { where: (a) => a.branch.eq(4).and(a.id.lt(10)) });
      const left = tx.aggregate(Account, {
        where: (a) => a.branch.in([3, 4]),
        groupBy: ["branch"],
        values: (a) => ({ n: count(), sum: sum(a.balance) }),
      });
      return { updated, gone, left, rows: [...tx.select(Account, { limit: 3 })].length };
    });
    expect(result).toEqual({
      updated: { matched: 30, changed: 30, place: "host" },
      gone: { matched: 2, place: "host" },
      left: [{ branch: 4, n: 58, sum: 58 * 100 - 29 * 10 }],
      rows: 3,
    });
    expect((await db.verify()).problems).toEqual([]);
  });

  it("a phantom is a conflict, whatever the path", async () => {
    const db = await filled();
    for (const where of [
      (a: never) => (a as { branch: { eq(n: number): never } }).branch.eq(7),
      (a: never) => (a as { level: { eq(n: number): never } }).level.eq(7),
    ]) {
      const tx = await db.begin();
      const seen = await tx.aggregate(Account, {
        where: where as never,
        values: () => ({ n: count() }),
      });
      const id = 10_000 + seen.n;
      db.insert(Account, { id, branch: 7, balance: 1, level: 7, name: null });
      await tx.update(Account, 1, { balance: seen.n });
      await failure("SITU_CONFLICT", () => tx.commit());
      db.delete(Account, id);
    }
  });

  it("with snapshot isolation, the first to change a row wins", async () => {
    const db = await filled();
    const tx = await db.begin({ isolation: "snapshot" });
    db.update(Account, 5, { balance: 1 });
    const { sum: before } = await tx.aggregate(Account, {
      values: (a) => ({ sum: sum(a.balance) }),
    });
    expect(before).toBe(ROWS * 100);
    const elsewhere = await tx.updateWhere(Account, {
      // Rows that lie close to each other conflict.
      where: (a) => a.id.eq(590),
      set: { balance: 7 },
    });
    expect(elsewhere.changed).toBe(1);
    await failure("SITU_CONFLICT", async () => {
      await tx.updateWhere(Account, { set: (a) => ({ balance: a.balance.plus(1) }) });
      await tx.commit();
    });
    expect(await total(db)).toBe(ROWS * 100 - 99);
    await db.transact(
      (again) => again.updateWhere(Account, { set: (a) => ({ balance: a.balance.plus(1) }) }),
      { isolation: "snapshot" },
    );
    expect(await total(db)).toBe(ROWS * 101 - 99);
  });

  it("snapshots see an update whole, or not at all", async () => {
    const db = await filled();
    using before = db.snapshot();
    const updating = db.updateWhere(Account, { set: { balance: 1 } });
    const during = await db.aggregate(Account, { values: (a) => ({ sum: sum(a.balance) }) });
    expect([ROWS, ROWS * 100]).toContain(during.sum);
    await updating;
    const values = (a: { balance: never }) => ({ sum: sum(a.balance) });
    expect(await before.aggregate(Account, { values: values as never })).toEqual({
      sum: ROWS * 100,
    });
    expect(before.select(Account, { where: (a) => a.balance.eq(1) }).toArray()).toEqual([]);
    expect((await before.explain(Account, { where: (a) => a.id.lt(5) })).access).toBe("key");
    expect(await total(db)).toBe(ROWS);
  });
});

describe("what fails has changed nothing", () => {
  it.each([
    [
      "overflow of a field",
      "SITU_ARITHMETIC",
      { set: (a: never) => ({ level: plus(a, "level", 1) }) },
    ],
    [
      "division by zero",
      "SITU_ARITHMETIC",
      { set: (a: never) => ({ balance: divided(a, "balance", "level") }) },
    ],
    [
      "null in a field that has none",
      "SITU_TYPE",
      { set: (a: never) => ({ balance: lengthOf(a, "name") }) },
    ],
    [
      "a unique index",
      "SITU_UNIQUE",
      { where: (a: never) => lt(a, "id", 50), set: { name: "same" } },
    ],
    ["a string that is too long", "SITU_TOO_LARGE", { set: { name: "x".repeat(11) } }],
  ] as const)("%s", async (_, code, options) => {
    const db = await filled();
    const before = db.scan(Account).toArray();
    await failure(code, () => db.updateWhere(Account, options as never));
    failureSync(code, () => db.transactSync((tx) => tx.updateWhere(Account, options as never)));
    // One who catches the error cannot commit the part that was done before it.
    const outcome = await db
      .transact(async (tx) => {
        await tx.updateWhere(Account, options as never).catch(() => {});
        await tx.update(Account, 599, { balance: 8 });
      })
      .then(
        () => "nothing was done before it",
        (error: { code: string }) => error.code,
      );
    expect([code, "nothing was done before it"]).toContain(outcome);
    expect(db.scan(Account, { lt: 599 }).toArray()).toEqual(before.slice(0, 599));
    expect((await db.verify()).problems).toEqual([]);
  });

  it("sums beyond 2^53", async () => {
    const Big = table("big", { id: u32(), n: i32() }, { key: "id" });
    const db: Database = await stores.open({ tables: [Big] });
    db.insert(Big, { id: 1, n: 2 ** 31 - 1 });
    await failure("SITU_ARITHMETIC", () =>
      db.aggregate(Big, { values: (b) => ({ s: sum(b.n.times(2 ** 30)) }) }),
    );
  });
});

type Fields = Record<string, Record<string, (other?: unknown) => unknown>>;
const plus = (a: unknown, field: string, n: number): unknown => (a as Fields)[field].plus(n);
const divided = (a: unknown, field: string, by: string): unknown =>
  (a as Fields)[field].dividedBy((a as Fields)[by]);
const lengthOf = (a: unknown, field: string): unknown => (a as Fields)[field].length();
const lt = (a: unknown, field: string, n: number): unknown => (a as Fields)[field].lt(n);

describe("rows that expire", () => {
  it("are not there", async () => {
    const db: Database = await stores.open({ tables: [Session] });
    const soon = new Date(Date.now() + 3_600_000);
    const past = new Date(Date.now() - 1_000);
    db.transactSync((tx) => {
      for (let id = 0; id < 30; id++) {
        const until = [soon, past, null][id % 3];
        tx.insert(Session, { id, state: "new", until });
      }
    });
    const { n } = await db.aggregate(Session, { values: () => ({ n: count() }) });
    expect(n).toBe(20);
    const updated = await db.updateWhere(Session, {
      where: (s) => s.until.isNull().not(),
      set: (s) => ({ state: "used", until: s.until.plus(1_000) }),
    });
    expect(updated).toEqual({ matched: 10, changed: 10, place: "host" });
    expect(db.get(Session, 0)).toEqual({
      id: 0,
      state: "used",
      until: new Date(soon.getTime() + 1_000),
    });
    // One that is made to end is gone at once.
    await db.updateWhere(Session, { where: (s) => s.id.eq(0), set: { until: past } });
    expect(
      db.select(Session, { where: (s) => s.id.in([0, 1, 2]), columns: ["id"] }).toArray(),
    ).toEqual([{ id: 2 }]);
  });
});
