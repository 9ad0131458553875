/** Which path a condition takes, that all paths find the same rows, and what `explain` says. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { count } from "../../src/tables/expressions/aggregates.ts";
import {
  bytes,
  enumOf,
  i64,
  nullable,
  str,
  timestamp,
  u8,
  u32,
  uuid,
} from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const fields = {
  a: u8(),
  b: str(6),
  c: nullable(i64()),
  d: enumOf("x", "y", "z"),
  e: timestamp(),
  f: uuid(),
  g: nullable(bytes(4)),
  h: nullable(u32()),
};
const Ways = table("ways", fields, {
  key: ["a", "b"],
  ordered: true,
  indexes: {
    byC: { on: ["c", "d"] },
    byD: { on: ["d"], kind: "hash" },
    byE: { on: ["e"] },
    byF: { on: ["f"], unique: true },
    byG: { on: ["g", "a"] },
    byH: { on: ["h", "d"], unique: true },
  },
});
/** The same rows, and no way to find them. */
const None = table("none", { id: u32(), ...fields }, { key: "id" });

const id = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;
const TEXTS = ["", "a", "ab", "abc", "b", "\uffff", "é"];
const rowOf = (n: number) => ({
  a: n % 16,
  b: `${TEXTS[n % 7]}${Math.floor(n / 112)}`,
  c: n % 5 === 0 ? null : BigInt(n % 9) - 4n,
  d: (["x", "y", "z"] as const)[n % 3],
  e: new Date(1_000 * (n % 11)),
  f: id(n),
  g: n % 6 === 0 ? null : Uint8Array.of(n % 3, n % 2),
  h: n % 4 === 0 ? null : n,
});
const ROWS = 224;

async function filled(): Promise<Database> {
  const db = await stores.open({ tables: [Ways, None] });
  db.transactSync((tx) => {
    for (let n = 0; n < ROWS; n++) {
      tx.insert(Ways, rowOf(n));
      tx.insert(None, { id: n, ...rowOf(n) });
    }
  });
  return db;
}

type Conditions = Record<
  string,
  Record<string, (value?: unknown) => { and(other: unknown): unknown }>
>;

const order = fc.constantFrom("eq", "lt", "lte", "gt", "gte");
const part = fc.oneof(
  fc.tuple(fc.constant("a"), order, fc.oneof(fc.nat(20), fc.constantFrom(-1, 256, 300, 2.5))),
  fc.tuple(
    fc.constant("b"),
    fc.constantFrom("eq", "startsWith", "lt", "gte"),
    fc.constantFrom(...TEXTS, "ab1", "much too long"),
  ),
  fc.tuple(fc.constant("c"), order, fc.bigInt({ min: -5n, max: 5n })),
  fc.tuple(fc.constant("c"), fc.constant("isNull"), fc.constant(undefined)),
  fc.tuple(fc.constant("d"), fc.constantFrom("eq", "lt", "gte"), fc.constantFrom("x", "y", "z")),
  fc.tuple(fc.constant("d"), fc.constant("in"), fc.constantFrom([], ["x"], ["z", "x", "z"])),
  fc.tuple(
    fc.constant("e"),
    order,
    fc.nat(12).map((n) => new Date(1_000 * n)),
  ),
  fc.tuple(fc.constant("f"), fc.constantFrom("eq", "gt"), fc.nat(230).map(id)),
  fc.tuple(fc.constant("f"), fc.constant("in"), fc.constantFrom([id(3), id(3), id(500)])),
  fc.tuple(
    fc.constant("g"),
    fc.constantFrom("eq", "startsWith", "lt"),
    fc.uint8Array({ maxLength: 2, max: 2 }),
  ),
  fc.tuple(fc.constant("g"), fc.constant("isNull"), fc.constant(undefined)),
  fc.tuple(fc.constant("h"), fc.constantFrom("eq", "lt", "gt"), fc.nat(ROWS)),
);

const textOf = (rows: readonly { f: string }[]): string[] => rows.map(({ f }) => f).sort();

describe("paths", () => {
  it("all find what a full scan finds", async () => {
    const db = await filled();
    const taken = new Set<string>();
    check(
      fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (parts) => {
        const where = (row: unknown): never => {
          const [first, ...others] = parts.map(([name, op, value]) =>
            (row as Conditions)[name as string][op as string](value),
          );
          return others.reduce(
            (all: unknown, each) => (all as typeof first).and(each),
            first,
          ) as never;
        };
        const found = db.select(Ways, { where }).toArray();
        expect(textOf(found)).toEqual(textOf(db.select(None, { where }).toArray()));
        const plan = db.transactSync((tx) => tx.explain(Ways, { where }));
        taken.add(plan.index ?? plan.access);
        expect(plan.candidates[0].cost).toBe(plan.cost);
        if (plan.isExact) expect(plan.rows).toBeGreaterThanOrEqual(found.length);
      }),
      150,
    );
    expect([...taken].sort()).toEqual(expect.arrayContaining(["byC", "byE", "byF", "byG", "key"]));
  });

  it("explain says which, and why", async () => {
    const db = await filled();
    const point = await db.explain(Ways, { where: (w) => w.a.eq(3).and(w.b.eq("a0")) });
    expect(point).toMatchObject({ access: "key", fields: ["a", "b"], rows: 1, place: "host" });
    expect(point.candidates.map(({ access }) => access)).toEqual(["key", "scan"]);
    const full = await db.explain(None, { where: (w) => w.a.eq(3) });
    expect(full).toMatchObject({ access: "scan", rows: ROWS, isExact: true, operation: "select" });
    expect(full.why).toContain("restricts neither");
    const unique = await db.explain(Ways, { where: (w) => w.f.eq(id(9)), set: { d: "x" } });
    expect(unique).toMatchObject({ access: "index", index: "byF", operation: "update" });
    expect(unique.gathersFirst).toBe(true);
    // A unique index has no entry for a row with a null in it.
    const { candidates } = await db.explain(Ways, { where: (w) => w.d.eq("x") });
    expect(candidates.some(({ index }) => index === "byH")).toBe(false);
    const nothing = await db.explain(Ways, {
      where: (w) => w.a.eq(300),
      values: () => ({ n: count() }),
    });
    expect(nothing).toMatchObject({ rows: 0, cost: 10, operation: "aggregate" });
  });

  it("an update that moves entries of its own index changes each row once", async () => {
    const db = await filled();
    const before = db.select(Ways, { where: (w) => w.e.gte(new Date(0)) }).toArray();
    const { changed } = await db.updateWhere(Ways, {
      where: (w) => w.e.gte(new Date(9_000)),
      set: (w) => ({ e: w.e.plus(500) }),
    });
    expect(changed).toBe(before.filter(({ e }) => e.getTime() >= 9_000).length);
    const after = new Map(
      db
        .scan(Ways)
        .toArray()
        .map((row) => [row.f, row.e.getTime()]),
    );
    for (const { f, e } of before) {
      expect(after.get(f)).toBe(e.getTime() >= 9_000 ? e.getTime() + 500 : e.getTime());
    }
    const { matched } = await db.deleteWhere(Ways, { where: (w) => w.d.eq("x") });
    expect(matched).toBe(before.filter(({ d }) => d === "x").length);
    expect((await db.verify()).problems).toEqual([]);
  });
});
