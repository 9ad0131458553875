/** The types of bulk operations are inferred from the table; tsc checks this file. */

import { describe, expect, expectTypeOf, it } from "vitest";
import type { Database, RemoteDatabase } from "../../src/database/database.ts";
import { avg, count, max, min, sum } from "../../src/tables/expressions/aggregates.ts";
import {
  bool,
  bytes,
  enumOf,
  f64,
  i64,
  json,
  nullable,
  pointer,
  str,
  timestamp,
  u32,
  uuid,
} from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Order = table(
  "order",
  {
    id: u32(),
    status: enumOf("open", "late"),
    total: i64(),
    weight: nullable(f64()),
    name: str(),
    token: uuid(),
    at: timestamp(),
    until: nullable(timestamp({ as: "number" })),
    isPaid: bool(),
    digest: bytes(),
    tags: json<string[]>(),
    next: pointer(),
  },
  { key: "id" },
);

/** Only compiled, never called. */
const compiled = (_: (db: Database, remote: RemoteDatabase) => unknown): void => {};

describe("inferred types", () => {
  it("results", () => {
    compiled(async (db) => {
      const one = await db.aggregate(Order, {
        values: (o) => ({
          n: count(),
          total: sum(o.total),
          weight: sum(o.weight),
          first: min(o.at),
          last: max(o.status),
          mean: avg(o.total),
        }),
      });
      expectTypeOf(one).toEqualTypeOf<{
        n: number;
        total: bigint;
        weight: number;
        first: Date | null;
        last: "open" | "late" | null;
        mean: number | null;
      }>();
      const groups = await db.aggregate(Order, {
        groupBy: ["status", "weight"],
        values: () => ({ n: count() }),
      });
      expectTypeOf(groups).toEqualTypeOf<
        { status: "open" | "late"; weight: number | null; n: number }[]
      >();
      const rows = db.select(Order, { columns: ["id", "at"], where: (o) => o.isPaid }).toArray();
      expectTypeOf(rows).toEqualTypeOf<{ id: number; at: Date }[]>();
      const all = db.select(Order).toArray();
      expectTypeOf(all[0].status).toEqualTypeOf<"open" | "late">();
      db.transactSync((tx) => {
        const n: number = tx.aggregate(Order, { values: () => ({ n: count() }) }).n;
        return n + tx.updateWhere(Order, { set: { status: "late" } }).changed;
      });
    });
  });

  it("what can be compared and computed", () => {
    compiled((db) => [
      db.select(Order, { where: (o) => o.status.eq("open").and(o.isPaid, o.at.lt(new Date())) }),
      db.select(Order, { where: (o) => o.weight.gt(2).or(o.weight.isNull()).not() }),
      db.select(Order, { where: (o) => o.name.startsWith("a").and(o.token.in(["x"])) }),
      db.select(Order, { where: (o) => o.digest.length().eq(o.name.lower().length()) }),
      db.select(Order, { where: (o) => o.status.eq(o.status) }),
      // @ts-expect-error There is no such field.
      db.select(Order, { where: (o) => o.state.eq("open") }),
      // @ts-expect-error Not a value of the enum.
      db.select(Order, { where: (o) => o.status.eq("opne") }),
      // @ts-expect-error A number is no bigint.
      db.select(Order, { where: (o) => o.total.eq(5) }),
      // @ts-expect-error Nor is a field of another type.
      db.select(Order, { where: (o) => o.total.eq(o.id) }),
      // @ts-expect-error Null is asked for by isNull().
      db.select(Order, { where: (o) => o.weight.eq(null) }),
      // @ts-expect-error A number is no condition.
      db.select(Order, { where: (o) => o.total }),
      // @ts-expect-error Strings are not added.
      db.select(Order, { where: (o) => o.name.plus("a").eq("b") }),
      // @ts-expect-error json is not compared.
      db.select(Order, { where: (o) => o.tags.eq(["a"]) }),
      // @ts-expect-error Nor are pointers.
      db.select(Order, { where: (o) => o.next.eq(null) }),
      // @ts-expect-error There is no such column.
      db.select(Order, { columns: ["id", "state"] }),
      // @ts-expect-error Nothing to sum.
      db.aggregate(Order, { values: (o) => ({ n: sum(o.name) }) }),
      // @ts-expect-error There is no such field.
      db.aggregate(Order, { groupBy: ["state"], values: () => ({ n: count() }) }),
      // @ts-expect-error Which rows?
      db.deleteWhere(Order, {}),
    ]);
  });

  it("what can be set", () => {
    compiled((db, remote) => [
      db.updateWhere(Order, {
        set: (o) => ({ total: o.total.times(2n), status: "late", weight: null, tags: ["a"] }),
      }),
      db.updateWhere(Order, { set: (o) => ({ weight: o.weight.plus(1), until: o.until.plus(5) }) }),
      db.updateWhere(Order, { set: (o) => ({ at: o.at.plus(1000), isPaid: o.total.gt(5n) }) }),
      db.updateWhere(Order, { set: { at: new Date(), until: 5 } }, { timeoutMs: 1_000 }),
      db.transact((tx) => tx.updateWhere(Order, { set: { name: "x" } })),
      remote.updateWhere(Order, { where: (o) => o.id.eq(1), set: { name: "x" } }),
      // @ts-expect-error The key stays.
      db.updateWhere(Order, { set: (o) => ({ id: o.id.plus(1) }) }),
      // @ts-expect-error There is no such field.
      db.updateWhere(Order, { set: () => ({ state: "late" }) }),
      // @ts-expect-error There is no such field.
      db.updateWhere(Order, { set: { state: "late" } }),
      // @ts-expect-error Not a value of the enum.
      db.updateWhere(Order, { set: () => ({ status: "opne" }) }),
      // @ts-expect-error It may be null.
      db.updateWhere(Order, { set: (o) => ({ isPaid: o.weight.gt(5) }) }),
      // @ts-expect-error A number is no bigint.
      db.updateWhere(Order, { set: (o) => ({ total: o.id }) }),
    ]);
  });

  it("the same without a compiler: SITU_TYPE, and nothing is changed", async () => {
    const db = await stores.open({ tables: [Order] });
    const wrong: unknown[] = [
      { where: (o: never) => (o as { state: { eq(v: unknown): unknown } }).state.eq("open") },
      { where: () => true },
      { where: 5 },
      { columns: ["state"] },
      { limit: -1 },
    ];
    for (const options of wrong) {
      await failure("SITU_TYPE", () => db.select(Order, options as never).toArray());
    }
    await failure("SITU_CONFIG", () => db.select(Order, { wehre: 1 } as never).toArray());
    await failure("SITU_TYPE", () => db.updateWhere(Order, { set: { id: 1 } } as never));
    await failure("SITU_TYPE", () => db.updateWhere(Order, { set: { state: 1 } } as never));
    await failure("SITU_TYPE", () => db.updateWhere(Order, {} as never));
    await failure("SITU_TYPE", () => db.deleteWhere(Order, {} as never));
    await failure("SITU_TYPE", () => db.aggregate(Order, { values: () => ({ n: 5 }) } as never));
    await failure("SITU_UNSUPPORTED", () =>
      db.aggregate(Order, { place: "device", values: () => ({}) }),
    );
    expect(await db.aggregate(Order, { values: () => ({ n: count() }) })).toEqual({ n: 0 });
  });
});
