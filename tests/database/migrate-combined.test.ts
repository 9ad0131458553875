/** Migrations of tables that have more to keep: a feed of changes, rows that expire, numbered keys, newer types. */

import { describe, expect, it } from "vitest";
import type { Watch } from "../../src/database/watch.ts";
import {
  autoIncrement,
  enumOf,
  nullable,
  str,
  timestamp,
  u8,
  u16,
  u32,
  u53,
  u64,
} from "../../src/tables/fields.ts";
import { addField, dropField, keepRows, renameField } from "../../src/tables/migrations/steps.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

describe("a table that is watched", () => {
  it("tells every change, before, during and after, by the schema it was made with", async () => {
    const Before = table("account", { id: u32(), balance: u32() }, { key: "id" });
    const After = table(
      "account",
      { id: u32(), cents: u53(), note: nullable(str(20)) },
      { key: "id" },
    );
    const path = stores.folder();
    const old = await stores.open({ path, tables: [Before], durability: "lazy" });
    const feed = old.watch(Before);
    await feed.ready();
    for (let id = 0; id < 300; id++) old.insert(Before, { id, balance: id });
    const migrating = stores.open({
      path,
      tables: [After],
      migrate: [renameField("account", "balance", "cents")],
    });
    // While it is copied: by the old declaration, which knows the field by its former name.
    let updates = 0;
    while (updates < 200) {
      old.update(Before, updates, { balance: 1_000 + updates });
      if (++updates % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const db = await migrating;
    db.insert(After, { id: 300, cents: 2 ** 40, note: "late" });
    db.delete(After, 7);
    const told = [];
    for await (const change of feed) {
      told.push(change);
      if (change.type === "delete") break;
    }
    expect(told.slice(0, 300).map(({ type, key }) => [type, key])).toEqual(
      Array.from({ length: 300 }, (_, id) => ["insert", id]),
    );
    expect(told.slice(300, 500).map(({ type, key }) => [type, key])).toEqual(
      Array.from({ length: 200 }, (_, id) => ["update", id]),
    );
    // By the names of the one who reads, whoever has made the change, and when.
    expect(told.slice(300, 500).map(({ row }) => row)).toEqual(
      Array.from({ length: 200 }, (_, id) => ({ id, balance: 1_000 + id })),
    );
    expect(told.slice(500).map(({ type, key, row }) => [type, key, row])).toEqual([
      ["insert", 300, { id: 300, balance: 2 ** 40 }],
      ["delete", 7, { id: 7, balance: 1_007 }],
    ]);
    expect((await db.verify()).problems).toEqual([]);
  });
});

describe("changes of before and after a migration", () => {
  const First = table("item", { id: u32(), size: u32(), note: str(20) }, { key: "id" });
  /** With another name for the key and a field, another type, and one field less. */
  const Second = table("item", { number: u32(), weight: u64() }, { key: "number" });
  /** With a field that has the name of the one that was dropped, and one with the name that another one had. */
  const Third = table(
    "item",
    { number: u32(), weight: u64(), note: u8(), size: u8() },
    { key: "number" },
  );
  const TO_SECOND = [
    renameField("item", "id", "number"),
    renameField("item", "size", "weight"),
    dropField("item", "note"),
  ];
  const toThird = [
    addField(Third, "note", { default: 5 }),
    addField(Third, "size", { default: 6 }),
  ];

  async function told<C extends { readonly row: unknown }>(
    feed: Watch<C>,
    count: number,
  ): Promise<C[]> {
    const found: C[] = [];
    for await (const change of feed) {
      found.push(change);
      if (found.length === count) break;
    }
    return found;
  }

  it("are told as the reader has declared the table", async () => {
    const path = stores.folder();
    const first = await stores.open({ path, tables: [First], durability: "lazy" });
    const old = first.watch(First);
    const { position: from } = old;
    first.insert(First, { id: 1, size: 10, note: "a" });
    const second = await stores.open({ path, tables: [Second], migrate: TO_SECOND });
    second.insert(Second, { number: 2, weight: 20n });
    expect(await told(second.watch(Second, { from }), 2)).toMatchObject([
      { key: 1, row: { number: 1, weight: 10n } },
      { key: 2, row: { number: 2, weight: 20n } },
    ]);
    // A change of before is told as it was made; one of after cannot be.
    const before = await old.next();
    expect(before.value).toMatchObject({ key: 1, row: { id: 1, size: 10, note: "a" } });
    expect((await failure("SITU_SCHEMA", () => old.next())).message).toContain("field note");
    const third = await stores.open({ path, tables: [Third], migrate: toThird });
    third.insert(Third, { number: 3, weight: 30n, note: 7, size: 8 });
    const heavy = third.watch(Third, { from, where: ({ weight }) => weight !== 20n });
    expect(await told(heavy, 2)).toMatchObject([
      { key: 1, row: { number: 1, weight: 10n, note: 5, size: 6 } },
      { key: 3, row: { number: 3, weight: 30n, note: 7, size: 8 } },
    ]);
    // With the declaration of before the last migration, in a process that starts now.
    const late = await stores.open({ path, tables: [Second] });
    expect(await told(late.watch(Second, { from: "start" }), 3)).toMatchObject([
      { key: 1, row: { number: 1, weight: 10n } },
      { key: 2, row: { number: 2, weight: 20n } },
      { key: 3, row: { number: 3, weight: 30n } },
    ]);
    const all = await told(late.watch(Second, { from }), 3);
    expect(all.map(({ row }) => Object.keys(row).sort().join())).toEqual(
      Array.from({ length: 3 }, () => "number,weight"),
    );
  });
});

describe("rows that expire", () => {
  const fields = { id: u32(), until: timestamp() };
  const Session = table("session", fields, { key: "id", expires: "until" });
  const past = new Date(Date.now() - 1_000);
  const future = new Date(Date.now() + 3_600_000);

  it("can be introduced by a migration", async () => {
    const path = stores.folder();
    const Plain = table("session", fields, { key: "id" });
    const db = await stores.open({ path, tables: [Plain] });
    db.insert(Plain, { id: 1, until: past });
    db.insert(Plain, { id: 2, until: future });
    const migrated = await stores.open({ path, tables: [Session], migrate: true });
    expect(migrated.get(Session, 1)).toBeUndefined();
    expect(migrated.get(Session, 2)).toEqual({ id: 2, until: future });
    expect(migrated.count(Session)).toBe(1);
    expect((await migrated.verify()).problems).toEqual([]);
  });

  it("end to do so, and those that have ended stay away", async () => {
    const path = stores.folder();
    const Plain = table("session", fields, { key: "id" });
    const db = await stores.open({ path, tables: [Session] });
    db.insert(Session, { id: 1, until: past });
    db.insert(Session, { id: 2, until: future });
    const refused = await failure("SITU_SCHEMA", () =>
      stores.open({ path, tables: [Plain], migrate: true }),
    );
    expect(refused.message).toContain('keepRows("session")');
    await failure("SITU_SCHEMA", () => db.migrate([keepRows("session")], { tables: [Session] }));
    const step = [keepRows("session")];
    const plain = await stores.open({ path, tables: [Plain], migrate: step });
    expect(plain.scan(Plain).toArray()).toEqual([{ id: 2, until: future }]);
    plain.insert(Plain, { id: 1, until: past });
    expect(plain.count(Plain)).toBe(2);
    expect(plain.get(Plain, 1)).toEqual({ id: 1, until: past });
    expect(plain.stats().tables[0]).toMatchObject({ indexes: [] });
    expect(plain.stats().tables[0].expires).toBeUndefined();
    failureSync("SITU_SCHEMA", () => db.get(Session, 2));
    expect((await plain.migrate(step)).actions).toEqual([]);
    // And the field with it, once more with a table that was migrated before.
    const again = await stores.open({ path, tables: [Session], migrate: true });
    const dropped = failure("SITU_SCHEMA", () => again.migrate([dropField("session", "until")]));
    expect((await dropped).message).toContain('keepRows("session")');
    await again.migrate([keepRows("session"), dropField("session", "until")]);
    expect(again.stats().tables[0].fields).toEqual({ id: "u32" });
    expect((await again.verify()).problems).toEqual([]);
  });

  it("stay what they are when the table gets another field", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Session] });
    db.insert(Session, { id: 1, until: past });
    db.insert(Session, { id: 2, until: future });
    const Wider = table(
      "session",
      { ...fields, visits: u16(), user: nullable(str(20)) },
      { key: "id", expires: "until", indexes: { byUser: { on: ["user"] } } },
    );
    const migrated = await stores.open({
      path,
      tables: [Wider],
      migrate: [addField(Wider, "visits", { default: 3 })],
    });
    const row = { id: 2, until: future, visits: 3, user: null };
    expect(migrated.scan(Wider).toArray()).toEqual([row]);
    expect(migrated.scan(Wider, { index: "byUser" }).toArray()).toEqual([row]);
    // The old declaration goes on, and its rows expire, too.
    db.insert(Session, { id: 3, until: past });
    expect(db.get(Session, 3)).toBeUndefined();
    expect(migrated.count(Wider)).toBe(1);
    migrated.insert(Wider, { id: 1, until: future, visits: 0 });
    expect(db.get(Session, 1)).toEqual({ id: 1, until: future });
    expect((await migrated.verify()).problems).toEqual([]);
  });
});

describe("newer types", () => {
  it("numbers go on where they were", async () => {
    const path = stores.folder();
    const fields = { id: autoIncrement(), text: str(20) };
    const Ticket = table("ticket", fields, { key: "id" });
    const db = await stores.open({ path, tables: [Ticket] });
    const first = [1, 2, 3].map((n) => db.insert(Ticket, { text: `${n}` }));
    const Wider = table(
      "ticket",
      { ...fields, text: str(200), state: enumOf("open", "done") },
      { key: "id" },
    );
    const migrated = await stores.open({
      path,
      tables: [Wider],
      migrate: [addField(Wider, "state", { default: "open" })],
    });
    const more = [4, 5].map((n) => migrated.insert(Wider, { text: `${n}`, state: "done" }));
    expect(new Set([...first, ...more]).size).toBe(5);
    expect(Math.min(...more)).toBeGreaterThan(Math.max(...first));
    expect(migrated.get(Wider, first[0])).toEqual({ id: first[0], text: "1", state: "open" });
  });

  it("widen: an enum gets a value, a number more bits, a field may be null", async () => {
    const path = stores.folder();
    const Before = table(
      "order",
      { id: u32(), state: enumOf("open", "done"), size: u32(), at: timestamp() },
      { key: "id", indexes: { byState: { on: ["state"] } } },
    );
    const After = table(
      "order",
      {
        id: u53(),
        state: enumOf("open", "done", "lost"),
        size: nullable(u53()),
        at: nullable(timestamp()),
      },
      { key: "id", indexes: { byState: { on: ["state"] } } },
    );
    const at = new Date(1_700_000_000_000);
    const db = await stores.open({ path, tables: [Before] });
    for (let id = 0; id < 100; id++) {
      db.insert(Before, { id, state: id % 2 === 0 ? "open" : "done", size: id, at });
    }
    const migrated = await stores.open({ path, tables: [After], migrate: true });
    migrated.insert(After, { id: 2 ** 40, state: "lost" });
    expect(migrated.get(After, 7)).toEqual({ id: 7, state: "done", size: 7, at });
    expect(migrated.get(After, 2 ** 40)).toEqual({
      id: 2 ** 40,
      state: "lost",
      size: null,
      at: null,
    });
    expect(migrated.count(After, { index: "byState", eq: "done" })).toBe(50);
    expect(migrated.count(After, { index: "byState", eq: "lost" })).toBe(1);
    expect((await migrated.verify()).problems).toEqual([]);
  });
});
