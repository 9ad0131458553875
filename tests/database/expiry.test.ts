/** Tables whose rows expire: nobody sees a row whose time is over, and it is swept away in the background. */

import { beforeEach, describe, expect, it, vi } from "vitest";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { EXPIRED_ROWS_AT_ONCE } from "../../src/runtime/limits.ts";
import {
  f64,
  i53,
  i64,
  json,
  nullable,
  str,
  timestamp,
  u32,
  u64,
} from "../../src/tables/fields.ts";
import { TableStore } from "../../src/tables/indexes/table-store.ts";
import { table } from "../../src/tables/table.ts";
import { failureSync, temporaryStores } from "../helpers/store.ts";

/** The wall clock of these tests: nothing here waits. */
const clock = vi.hoisted(() => ({ ms: 0 }));

vi.mock("../../src/runtime/clock.ts", async (original) => ({
  ...(await original<object>()),
  wallClockMs: () => clock.ms,
}));
// Only where a test says so.
vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  SWEEP_MS: 3_600_000,
}));

const stores = temporaryStores();
const NOW = 1_800_000_000_000;

beforeEach(() => {
  clock.ms = NOW;
});

const SHAPES = {
  hashed: table(
    "session",
    { id: u32(), user: str(20), until: u64() },
    { key: "id", expires: "until", indexes: { byUser: { on: ["user"] } } },
  ),
  "hashed, rows of many sizes": table(
    "session",
    { id: u32(), user: str(20), until: i64(), data: json() },
    { key: "id", expires: "until", indexes: { byUser: { on: ["user"], kind: "hash" } } },
  ),
  buckets: table(
    "session",
    { id: u32(), user: str(20), until: u64() },
    { key: "id", expires: "until", layout: "buckets", indexes: { byUser: { on: ["user"] } } },
  ),
  ordered: table(
    "session",
    { id: u32(), user: str(20), until: u64() },
    { key: "id", expires: "until", ordered: true, indexes: { byUser: { on: ["user"] } } },
  ),
} as const;

const Session = SHAPES.hashed;
const Login = table(
  "login",
  { id: u32(), name: str(20), until: u64() },
  { key: "id", expires: "until", indexes: { byName: { on: ["name"], unique: true } } },
);

const opened = (): Promise<LocalDatabase> => stores.open({ tables: [Session, Login] });
const until = (ms: number): bigint => BigInt(NOW + ms);

describe.each(Object.keys(SHAPES) as (keyof typeof SHAPES)[])(
  "a row that has expired: %s",
  (name) => {
    // biome-ignore lint/suspicious/noExplicitAny: tables of different rows
    const Shape = SHAPES[name] as any;
    const row = (id: number, ms: number): object => ({
      id,
      user: `u${id % 2}`,
      until: until(ms),
      ...("data" in Shape.fields ? { data: [id] } : {}),
    });

    it("is not there for any reader", async () => {
      const db = await stores.open({ tables: [Shape] });
      db.transactSync((tx) => {
        for (let id = 0; id < 20; id++) tx.insert(Shape, row(id, id < 10 ? 100 : 1_000));
      });
      const early = db.snapshot();
      expect(db.count(Shape)).toBe(20);
      clock.ms = NOW + 99;
      expect(db.get(Shape, 3)).toEqual(row(3, 100));
      clock.ms = NOW + 100;
      expect(db.get(Shape, 3)).toBeUndefined();
      expect(db.get(Shape, 13)).toEqual(row(13, 1_000));
      const there = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
      const idsOf = (rows: readonly unknown[]): number[] =>
        (rows as { id: number }[]).map(({ id }) => id).sort((a, b) => a - b);
      const look = (what: {
        get: (table: never, key: never) => unknown;
        scan: (table: never, options?: never) => { toArray(): unknown[] };
        count: (table: never, options?: never) => number;
      }): unknown[] => [
        what.get(Shape as never, 3 as never),
        idsOf(what.scan(Shape as never).toArray()),
        what.count(Shape as never),
        idsOf(what.scan(Shape as never, { index: "byUser", eq: "u1" } as never).toArray()),
        what.count(Shape as never, { index: "byUser", eq: "u1" } as never),
        what.scan(Shape as never, { limit: 3 } as never).toArray().length,
      ];
      const expected = [undefined, there, 10, [11, 13, 15, 17, 19], 5, 3];
      expect(look(db)).toEqual(expected);
      db.transactSync((tx) => {
        expect(look(tx as never)).toEqual(expected);
        expect(tx.has(Shape, 3)).toBe(false);
        expect(tx.has(Shape, 13)).toBe(true);
        expect(tx.getMany(Shape, [3, 13])).toEqual([undefined, row(13, 1_000)]);
      });
      const late = db.snapshot();
      expect(look(late as never)).toEqual(expected);
      expect(late.has(Shape, 3)).toBe(false);
      // Those of before go on seeing their own moment, also when the rows are swept.
      for (const _ of [1, 2]) {
        expect(early.get(Shape, 3)).toEqual(row(3, 100));
        expect(early.has(Shape, 3)).toBe(true);
        expect(early.count(Shape)).toBe(20);
        expect(early.count(Shape, { index: "byUser", eq: "u1" } as never)).toBe(10);
        db.expiry.sweep(1_000);
      }
      expect(db.expiry.swept).toBe(10);
      expect(look(db)).toEqual(expected);
      expect((await db.inspect("session")).rows).toBe(10);
      expect((await db.verify()).problems).toEqual([]);
      early.close();
      late.close();
    });

    it("is not in the way of changes", async () => {
      const db = await stores.open({ tables: [Shape] });
      db.transactSync((tx) => {
        for (let id = 0; id < 6; id++) tx.insert(Shape, row(id, 100));
      });
      clock.ms = NOW + 200;
      db.transactSync((tx) => {
        tx.insert(Shape, row(0, 1_000));
        tx.put(Shape, row(1, 1_000));
        failureSync("SITU_MISSING", () => tx.update(Shape, 2, { user: "x" }));
        expect(tx.delete(Shape, 3)).toBe(false);
        tx.insert(Shape, row(3, 1_000));
        tx.update(Shape, 3, { until: until(5_000) });
        tx.update(Shape, 3, { user: "u9" });
      });
      expect(db.count(Shape)).toBe(3);
      clock.ms = NOW + 2_000;
      expect(db.scan(Shape).toArray()).toMatchObject([{ id: 3, user: "u9" }]);
      db.expiry.sweep(1_000);
      expect((await db.inspect("session")).rows).toBe(1);
      expect((await db.verify()).problems).toEqual([]);
    });
  },
);

describe("expiry", () => {
  it("a transaction sees one moment", async () => {
    const db = await opened();
    db.transactSync((tx) => tx.insert(Session, { id: 1, user: "a", until: until(100) }));
    db.transactSync((tx) => {
      expect(tx.has(Session, 1)).toBe(true);
      clock.ms = NOW + 500;
      expect(tx.has(Session, 1)).toBe(true);
      expect(tx.count(Session)).toBe(1);
      tx.update(Session, 1, { user: "b" });
    });
    expect(db.transactSync((tx) => tx.has(Session, 1))).toBe(false);
    await db.transact(
      async (tx) => {
        expect(await tx.has(Session, 1)).toBe(false);
        clock.ms = NOW;
        expect(await tx.has(Session, 1)).toBe(false);
      },
      { isolation: "snapshot" },
    );
  });

  it("unique values of a row that has expired are free", async () => {
    const db = await opened();
    const add = (id: number, name: string, ms: number): void =>
      db.transactSync((tx) => tx.insert(Login, { id, name, until: until(ms) }));
    add(1, "ada", 100);
    add(2, "grace", 1_000);
    failureSync("SITU_UNIQUE", () => add(3, "ada", 1_000));
    clock.ms = NOW + 100;
    expect(db.get(Login, "ada", { index: "byName" })).toBeUndefined();
    add(3, "ada", 1_000);
    expect(db.get(Login, "ada", { index: "byName" })?.id).toBe(3);
    add(4, "alan", 200);
    clock.ms = NOW + 300;
    db.transactSync((tx) => tx.update(Login, 2, { name: "alan" }));
    failureSync("SITU_UNIQUE", () => db.transactSync((tx) => tx.update(Login, 2, { name: "ada" })));
    expect(db.count(Login)).toBe(2);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("an index that is built later has no row that has expired", async () => {
    const { fields } = Login;
    const Bare = table("login", fields as never, { key: "id", expires: "until" } as never);
    const db = await stores.open({ tables: [Bare] });
    db.transactSync((tx) => {
      for (let id = 0; id < 5; id++)
        tx.insert(Bare, { id, name: "same", until: until(100 + id) } as never);
    });
    clock.ms = NOW + 103;
    const second = await stores.open({ path: db.path, tables: [Login] });
    expect(second.get(Login, "same", { index: "byName" })?.id).toBe(4);
    expect((await second.inspect("login")).rows).toBe(1);
    expect((await second.verify()).problems).toEqual([]);
  });

  it("is swept a few rows at a time, by one at a time", async () => {
    const db = await opened();
    const other = await stores.open({ path: db.path, tables: [Session, Login] });
    const count = 3 * EXPIRED_ROWS_AT_ONCE + 5;
    db.transactSync((tx) => {
      for (let id = 0; id < count; id++) tx.insert(Session, { id, user: "a", until: until(id) });
      tx.insert(Session, { id: count, user: "b", until: until(1e9) });
    });
    clock.ms = NOW + count;
    // Without time, it does one transaction for each table.
    expect(db.expiry.sweep(0)).toBe(true);
    expect(db.expiry.swept).toBe(EXPIRED_ROWS_AT_ONCE);
    while (other.expiry.sweep(0));
    expect(other.expiry.swept).toBe(count - EXPIRED_ROWS_AT_ONCE);
    expect((await db.inspect("session")).rows).toBe(1);
    expect(db.expiry.sweep(100)).toBe(false);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("declarations that cannot be are refused", () => {
    const fields = { id: u32(), at: u64(), f: f64(), s: str() };
    const declare = (options: object) => () => table("t", fields, { key: "id", ...options });
    for (const expires of ["f", "s", "nothing", 7, "id"]) {
      failureSync("SITU_SCHEMA", declare({ expires }));
    }
    failureSync("SITU_SCHEMA", declare({ indexes: { "(expires)": { on: ["at"] } } }));
    // @ts-expect-error there is no such field
    failureSync("SITU_SCHEMA", () => table("t", fields, { key: "id", expires: "not" }));
    expect(declare({ expires: "at" })().expires).toBe("at");
  });

  it("a table in the store that says otherwise is told", async () => {
    const db = await opened();
    const Plain = table("session", { id: u32(), user: str(20), until: u64() }, { key: "id" });
    await expect(stores.open({ path: db.path, tables: [Plain] })).rejects.toThrow(
      "expires: until in the store, nothing here",
    );
  });
});

describe("a sweep", () => {
  it.each([
    ["i64", nullable(i64()), (ms: number) => BigInt(ms)],
    ["i53", nullable(i53()), (ms: number) => ms],
    ["timestamp", nullable(timestamp()), (ms: number) => new Date(ms)],
  ] as const)("removes rows that ended before 1970: %s", async (_, until, timeOf) => {
    // biome-ignore lint/suspicious/noExplicitAny: tables of different rows
    const Past = table("past", { id: u32(), until }, { key: "id", expires: "until" }) as any;
    const db = await stores.open({ tables: [Past] });
    const times = [-1, -86_400_000, -8.64e15, 0, 1, NOW + 1];
    db.transactSync((tx) => {
      for (const [id, ms] of times.entries()) tx.insert(Past, { id, until: timeOf(ms) });
      tx.insert(Past, { id: times.length, until: null });
    });
    expect(db.count(Past)).toBe(2);
    db.expiry.sweep(60_000);
    expect((await db.inspect("past")).rows).toBe(2);
    expect(db.count(Past)).toBe(2);
  });

  it("goes on with the other tables when one cannot be swept now", async () => {
    const db = await opened();
    db.insert(Session, { id: 1, user: "a", until: until(-1) });
    db.insert(Login, { id: 1, name: "a", until: until(-1) });
    const evict = TableStore.prototype.evict;
    const planted = vi.spyOn(TableStore.prototype, "evict");
    planted.mockImplementation(function (this: TableStore, tx, key) {
      if (this.table === Session) throw new SituError("SITU_FULL", "planted");
      return evict.call(this, tx, key);
    });
    expect(db.expiry.sweep(60_000)).toBe(true);
    planted.mockRestore();
    expect((await db.inspect("session")).rows).toBe(1);
    expect((await db.inspect("login")).rows).toBe(0);
    expect(db.expiry.sweep(60_000)).toBe(false);
    expect((await db.inspect("session")).rows).toBe(0);
  });
});
