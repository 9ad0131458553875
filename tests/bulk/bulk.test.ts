/** Bulk operations on tables in memory: what they find, change and return. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { avg, count, max, min, sum } from "../../src/tables/expressions/aggregates.ts";
import { enumOf, i64, nullable, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const fields = {
  id: u32(),
  customer: str(12),
  status: enumOf("open", "late", "paid"),
  day: u32(),
  total: i64(),
  note: nullable(str()),
};
const indexes = {
  byCustomer: { on: ["customer", "day"] },
  byDay: { on: ["day"] },
  byStatus: { on: ["status"], kind: "hash" },
} as const;
const Ordered = table("ordered", fields, { key: "id", ordered: true, indexes });
const Hashed = table("hashed", fields, { key: "id", indexes });
const Plain = table("plain", fields, { key: "id", layout: "buckets" });

const ROWS = 300;
const STATUS = ["open", "late", "paid"] as const;
const rowOf = (id: number) => ({
  id,
  customer: `c${id % 10}`,
  status: STATUS[id % 3],
  day: 20_260_000 + (id % 100),
  total: BigInt(id) - 100n,
  note: id % 4 === 0 ? null : `note ${id}`,
});
const rows = Array.from({ length: ROWS }, (_, id) => rowOf(id));

async function filled(): Promise<Database> {
  const db = await stores.open({ tables: [Ordered, Hashed, Plain], memoryBytes: 64 * 2 ** 20 });
  db.transactSync((tx) => {
    for (const row of rows) {
      tx.insert(Ordered, row);
      tx.insert(Hashed, row);
      tx.insert(Plain, row);
    }
  });
  return db;
}

const byId = (a: { id: number }, b: { id: number }): number => a.id - b.id;

type Order = typeof Hashed;
const layouts: [string, Order][] = [
  ["ordered", Ordered as unknown as Order],
  ["hashed", Hashed],
  ["buckets", Plain as unknown as Order],
];

describe.each(layouts)("%s", (_, Order) => {
  it("select", async () => {
    const db = await filled();
    const found = db.select(Order, { where: (o) => o.day.lt(20_260_003).and(o.status.eq("open")) });
    const wanted = rows.filter(({ day, status }) => day < 20_260_003 && status === "open");
    expect(found.toArray().sort(byId)).toEqual(wanted);
    const columns = [];
    for await (const row of db.select(Order, {
      where: (o) => o.id.lt(3),
      columns: ["total", "id"],
    }))
      columns.push(row);
    expect(columns.sort(byId)).toEqual([
      { total: -100n, id: 0 },
      { total: -99n, id: 1 },
      { total: -98n, id: 2 },
    ]);
    expect(db.select(Order, { limit: 7 }).toArray()).toHaveLength(7);
    expect(db.select(Order).toArray()).toHaveLength(ROWS);
  });

  it("aggregate", async () => {
    const db = await filled();
    const all = await db.aggregate(Order, {
      values: (o) => ({
        n: count(),
        notes: count(o.note),
        sum: sum(o.total),
        first: min(o.day),
        last: max(o.customer),
        avg: avg(o.total),
      }),
    });
    expect(all).toEqual({
      n: ROWS,
      notes: 225,
      sum: rows.reduce((total, row) => total + row.total, 0n),
      first: 20_260_000,
      last: "c9",
      avg: 49.5,
    });
    const groups = await db.aggregate(Order, {
      where: (o) => o.note.isNull().not(),
      groupBy: ["status", "customer"],
      values: (o) => ({ n: count(), sum: sum(o.id) }),
    });
    expect(groups).toHaveLength(30);
    for (const { status, customer, n, sum: total } of groups) {
      const those = rows.filter(
        (row) => row.status === status && row.customer === customer && row.note !== null,
      );
      expect([n, total]).toEqual([those.length, those.reduce((ids, { id }) => ids + id, 0)]);
    }
    expect(
      await db.aggregate(Order, {
        where: (o) => o.id.gt(5_000),
        values: (o) => ({ n: count(), s: sum(o.total), m: min(o.total), a: avg(o.id) }),
      }),
    ).toEqual({ n: 0, s: 0n, m: null, a: null });
  });

  it("updateWhere and deleteWhere", async () => {
    const db = await filled();
    const updated = await db.updateWhere(Order, {
      where: (o) => o.status.eq("open").and(o.day.lt(20_260_050)),
      set: (o) => ({ total: o.total.times(2n), status: "late", note: o.customer.concat("!") }),
    });
    const isMatch = (row: (typeof rows)[0]) => row.status === "open" && row.day < 20_260_050;
    const after = rows.map((row) =>
      isMatch(row)
        ? { ...row, total: row.total * 2n, status: "late", note: `${row.customer}!` }
        : row,
    );
    const matched = rows.filter(isMatch).length;
    expect(updated).toEqual({ matched, changed: matched, place: "host" });
    expect(db.scan(Order).toArray().sort(byId)).toEqual(after);
    const again = await db.updateWhere(Order, {
      where: (o) => o.status.eq("late"),
      set: { status: "late" },
    });
    expect(again.changed).toBe(0);
    const gone = await db.deleteWhere(Order, { where: (o) => o.status.in(["late", "paid"]) });
    const left = after.filter(({ status }) => status === "open");
    expect(gone).toEqual({ matched: ROWS - left.length, place: "host" });
    expect(db.scan(Order).toArray().sort(byId)).toEqual(left);
    expect((await db.verify()).problems).toEqual([]);
  });
});
