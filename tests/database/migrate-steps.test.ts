/**
 * Steps of migrations that stay in the program: a list that grows from release to release is given to stores of
 * every age, new ones among them, and does in each what is left to be done.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { str, u8, u16, u32 } from "../../src/tables/fields.ts";
import {
  addField,
  dropField,
  dropIndex,
  dropTable,
  type MigrationStep,
  narrowField,
  renameField,
  renameTable,
} from "../../src/tables/migrations/steps.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { compareIndexes } from "../helpers/indexes.ts";
import { failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const First = table("a", { id: u32(), x: u32() }, { key: "id" });
const Second = table("a", { id: u32(), y: u32() }, { key: "id" });
const Third = table("a", { id: u32(), z: u32() }, { key: "id" });
const Bare = table("a", { id: u32() }, { key: "id" });

/** A store of the first release. */
async function first(): Promise<Database> {
  const db = await stores.open({ tables: [First], memoryBytes: 16 * MIB });
  db.insert(First, { id: 1, x: 7 });
  return db;
}

async function release(path: string, steps: readonly MigrationStep[], tables: Table[]) {
  return stores.open({ path, tables, migrate: steps });
}

describe("lists of steps that grow", () => {
  const toY = renameField("a", "x", "y");
  const toZ = renameField("a", "y", "z");

  it("a field that is renamed in two releases, and dropped in a third", async () => {
    const { path } = await first();
    await release(path, [toY], [Second]);
    const third = await release(path, [toY, toZ], [Third]);
    expect(third.get(Third, 1)).toEqual({ id: 1, z: 7 });
    const steps = [toY, toZ];
    expect((await third.migrate(steps, { tables: [Third] })).actions).toEqual([]);
    const last = await release(path, [...steps, dropField("a", "z")], [Bare]);
    const all = [...steps, dropField("a", "z")];
    expect((await last.migrate(all, { tables: [Bare] })).actions).toEqual([]);
    expect(last.get(Bare, 1)).toEqual({ id: 1 });
  });

  it("all releases at once", async () => {
    const { path } = await first();
    const Last = table("c", { id: u32(), z: u32() }, { key: "id" });
    const steps = [toY, renameTable("a", "b"), toZ, renameTable("b", "c")];
    const db = await release(path, steps, [Last]);
    expect(db.get(Last, 1)).toEqual({ id: 1, z: 7 });
    expect((await db.migrate(steps, { tables: [Last] })).actions).toEqual([]);
    const dropping = [...steps, dropTable("c")];
    await db.migrate(dropping);
    expect(db.stats().tables).toEqual([]);
    expect((await db.migrate(dropping)).actions).toEqual([]);
  });

  it("a new store", async () => {
    const Last = table("c", { id: u32(), z: u32() }, { key: "id" });
    const steps = [toY, toZ, renameTable("a", "b"), renameTable("b", "c")];
    const db = await stores.open({ tables: [Last], migrate: steps, memoryBytes: 16 * MIB });
    expect(db.count(Last)).toBe(0);
  });

  it("a field that was added, and then renamed or dropped", async () => {
    const db = await first();
    const With = table("a", { id: u32(), x: u32(), n: u16() }, { key: "id" });
    const added = addField(With, "n", { default: 5 });
    const renamed = [added, renameField("a", "n", "m")];
    await db.migrate([added]);
    await db.migrate(renamed);
    expect((await db.migrate(renamed)).actions).toEqual([]);
    expect(db.stats().tables[0].fields).toEqual({ id: "u32", x: "u32", m: "u16" });
    const dropped = [...renamed, dropField("a", "m")];
    await db.migrate(dropped);
    expect((await db.migrate(dropped)).actions).toEqual([]);
    const Narrow = table("a", { id: u32(), x: u8() }, { key: "id" });
    const narrowed = [narrowField(Narrow, "x"), renameField("a", "x", "w")];
    await db.migrate(narrowed);
    expect((await db.migrate(narrowed)).actions).toEqual([]);
    expect(db.stats().tables[0].fields).toEqual({ id: "u32", w: "u8" });
  });

  it("steps for a name that another table has by now are for that one", async () => {
    const { path } = await first();
    const Moved = table("b", { id: u32(), x: u32() }, { key: "id" });
    await release(path, [renameTable("a", "b")], [Moved]);
    const db = await stores.open({ path, tables: [Moved] });
    await db.migrate([renameField("a", "x", "y")]);
    expect(db.stats().tables[0].fields).toEqual({ id: "u32", y: "u32" });
  });

  it("steps that undo each other are refused instead of being repeated for ever", async () => {
    const db = await first();
    const plan = (...steps: MigrationStep[]) =>
      failure("SITU_SCHEMA", () => db.migrate(steps, { dryRun: true }));
    const more = addField(Second, "y", { default: 1 });
    expect((await plan(toY, renameField("a", "y", "x"))).message).toContain("over and over");
    expect(
      (await plan(dropField("a", "x"), addField(First, "x", { default: 1 }))).message,
    ).toContain("over and over");
    await db.migrate([more]);
    // The second time it would drop what was renamed.
    expect((await plan(dropField("a", "y"), toY)).message).toContain("over and over");
    expect(db.get(First, 1)).toEqual({ id: 1, x: 7 });
    await plan(renameTable("nothing", "something"));
  });
});

describe("indexes", () => {
  const fields = { id: u32(), x: u32(), s: str(10) };
  const Plain = table("t", fields, { key: "id" });
  const Indexed = table("t", fields, { key: "id", indexes: { byX: { on: ["x"] } } });
  const Unique = table("t", fields, { key: "id", indexes: { byX: { on: ["x"], unique: true } } });

  async function filled(open: typeof Plain | typeof Indexed): Promise<Database> {
    const db: Database = await stores.open({ tables: [open], memoryBytes: 16 * MIB });
    db.transactSync((tx) => {
      for (let id = 0; id < 300; id++) tx.put(open, { id, x: id >> 1, s: `s${id}` });
    });
    return db;
  }

  it("a new one is part of the plan, and migrate builds it", async () => {
    const { path } = await filled(Plain);
    const db = await stores.open({ path });
    const plan = await db.migrate([], { tables: [Indexed], dryRun: true });
    expect(String(plan)).toBe("t: build index byX: ordered on x");
    await db.migrate([], { tables: [Indexed] });
    expect(db.stats().tables[0].indexes).toMatchObject([{ name: "byX", state: "ready" }]);
    const other = await stores.open({ path, tables: [Indexed] });
    expect(compareIndexes(other, Indexed)).toBe(300);
    expect((await db.migrate([], { tables: [Indexed] })).actions).toEqual([]);
  });

  it("the plan of a copied table has them, too", async () => {
    const db = await filled(Indexed);
    const Next = table(
      "t",
      { ...fields, more: u8() },
      { key: "id", indexes: { byX: { on: ["x", "s"] }, byS: { on: ["s"], unique: true } } },
    );
    const steps = [addField(Next, "more", { default: 1 })];
    const plan = await db.migrate(steps, { tables: [Next] });
    expect(String(plan).split("\n")).toEqual([
      "t: add field more: u8, 1 in all rows",
      "t: build index byX anew: ordered on x to ordered on x, s",
      "t: build index byS: unique ordered on s",
      "  (copies all rows)",
    ]);
    const dropped = await db
      .migrate([dropIndex("t", "byS"), dropField("t", "s")], { dryRun: true })
      .then(String, (error: Error) => error.message);
    expect(dropped).toContain("index byX is on field s");
    const fine = [dropIndex("t", "byX"), dropIndex("t", "byS"), dropField("t", "s")];
    expect(String(await db.migrate(fine, { dryRun: true })).split("\n")).toEqual([
      "t: drop field s",
      "t: drop index byX",
      "t: drop index byS",
      "  (copies all rows)",
    ]);
  });

  it("one that cannot be changed stays as it was", async () => {
    const db = await filled(Indexed);
    const refused = await failure("SITU_UNIQUE", () => db.migrate([], { tables: [Unique] }));
    expect(refused.message).toContain("byX");
    expect(db.stats().tables[0].indexes).toMatchObject([
      { name: "byX", unique: false, state: "ready" },
    ]);
    expect(compareIndexes(db, Indexed)).toBe(300);
    await failure("SITU_UNIQUE", () =>
      stores.open({ path: db.path, tables: [Unique], migrate: true }),
    );
    expect(db.count(Indexed, { index: "byX", eq: 4 })).toBe(2);
    db.transactSync((tx) => {
      for (let id = 0; id < 300; id++) tx.update(Indexed, id, { x: id });
    });
    await db.migrate([], { tables: [Unique] });
    expect(db.stats().tables[0].indexes).toMatchObject([
      { name: "byX", unique: true, state: "ready" },
    ]);
    failureSync("SITU_SCHEMA", () => db.count(Indexed, { index: "byX", eq: 4 }));
    const other = await stores.open({ path: db.path, tables: [Unique] });
    expect(compareIndexes(other, Unique)).toBe(300);
    expect((await other.verify()).problems).toEqual([]);
  });

  it("one that is declared is not dropped", async () => {
    const db = await filled(Indexed);
    const refused = failure("SITU_SCHEMA", () =>
      db.migrate([dropIndex("t", "byX")], { tables: [Indexed] }),
    );
    expect((await refused).message).toContain("declared here, and a step drops it");
  });
});
