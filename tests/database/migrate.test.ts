/** Changing the schemas of tables: what each kind of change does to rows, indexes and declarations. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { localDatabase } from "../../src/database/local/local-database.ts";
import { readSchemas } from "../../src/tables/catalogue.ts";
import {
  bytes,
  type f64,
  type i64,
  json,
  str,
  u8,
  u16,
  u32,
  u64,
} from "../../src/tables/fields.ts";
import {
  addField,
  changeKey,
  dropField,
  dropIndex,
  dropTable,
  narrowField,
  renameField,
  renameTable,
} from "../../src/tables/migrations/steps.ts";
import { table } from "../../src/tables/table.ts";
import { compareIndexes } from "../helpers/indexes.ts";
import { eventually, failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const ROWS = 700;
const indexes = { byOwner: { on: ["owner"] }, byMail: { on: ["mail"], unique: true } } as const;
const fields = { id: u32(), owner: str(10), mail: str(), score: u16() };

const LAYOUTS = {
  hopscotch: {},
  buckets: { layout: "buckets" },
  btree: { ordered: true },
} as const;
const kinds = Object.keys(LAYOUTS) as (keyof typeof LAYOUTS)[];

const person = (id: number) => ({
  id,
  owner: `o${id % 17}`,
  mail: `${id}@example.com`,
  score: id % 1000,
});

async function filled(kind: keyof typeof LAYOUTS = "hopscotch", rows = ROWS) {
  const Person = table("person", fields, { key: "id", indexes, ...LAYOUTS[kind] });
  const db = await stores.open({ tables: [Person], memoryBytes: 64 * MIB });
  for (let from = 0; from < rows; from += 100) {
    db.transactSync((tx) => {
      for (let id = from; id < Math.min(rows, from + 100); id++) tx.insert(Person, person(id));
    });
  }
  return { db, Person };
}

/** What migrations have left is freed in the background; and then all is as it should be. */
async function settled(db: Database): Promise<void> {
  const { executor } = localDatabase(db);
  await eventually(() => readSchemas(executor).every(({ schema }) => schema.remains === undefined));
  expect((await db.verify()).problems).toEqual([]);
}

describe.each(kinds)("a %s table", (kind) => {
  it("gets a field, a wider one, another name and an index, at once", async () => {
    const { db, Person } = await filled(kind);
    const Next = table(
      "person",
      { id: u32(), owner: str(40), mail: str(), points: u32(), level: u8(), note: json() },
      { key: "id", indexes: { ...indexes, byPoints: { on: ["points"] } }, ...LAYOUTS[kind] },
    );
    const other = await stores.open({
      path: db.path,
      tables: [Next],
      migrate: [
        renameField("person", "score", "points"),
        addField(Next, "level", { default: 3 }),
        addField(Next, "note", { default: { seen: [1, "x"] } }),
      ],
    });
    expect(other.get(Next, 7)).toEqual({
      id: 7,
      owner: "o7",
      mail: "7@example.com",
      points: 7,
      level: 3,
      note: { seen: [1, "x"] },
    });
    expect(compareIndexes(other, Next)).toBe(ROWS);
    other.transactSync((tx) => tx.update(Next, 7, { points: 70_000, owner: "x".repeat(30) }));
    // The one with the old declaration goes on: by the old names, and with defaults for new fields.
    expect(db.get(Person, 7)).toEqual({ ...person(7), owner: "x".repeat(30), score: 70_000 });
    db.transactSync((tx) => {
      tx.insert(Person, person(5_000));
      tx.update(Person, 8, { score: 9 });
      tx.put(Person, { ...person(9), owner: "put" });
      tx.delete(Person, 10);
      expect(tx.get(Person, "11@example.com", { index: "byMail" })).toEqual(person(11));
    });
    expect(other.get(Next, 5_000)).toMatchObject({ points: 0, level: 3, note: { seen: [1, "x"] } });
    expect(other.get(Next, 8)?.points).toBe(9);
    expect(other.get(Next, 9)).toMatchObject({ owner: "put", level: 3 });
    expect(other.get(Next, 10)).toBeUndefined();
    expect(db.scan(Person, { index: "byOwner", eq: "put" }).toArray()).toEqual([
      { ...person(9), owner: "put" },
    ]);
    expect(compareIndexes(other, Next)).toBe(ROWS);
    await settled(other);
    // A program of before opens the store again, as it did.
    const older = await stores.open({ path: db.path, tables: [Person] });
    expect(older.get(Person, 12)).toEqual(person(12));
    expect(older.count(Person)).toBe(ROWS);
  });

  it("loses a field: who declares it is refused, others are not", async () => {
    const { db, Person } = await filled(kind);
    const Partly = table(
      "person",
      { id: u32(), owner: str(10), mail: str() },
      { key: "id", ...LAYOUTS[kind] },
    );
    await db.migrate([dropField("person", "score")]);
    const error = failureSync("SITU_SCHEMA", () => db.get(Person, 1));
    expect(error.message).toContain("+ score: u16 (only here)");
    failureSync("SITU_SCHEMA", () => db.transactSync((tx) => tx.put(Person, person(1))));
    failureSync("SITU_SCHEMA", () => db.count(Person));
    const other = await stores.open({ path: db.path, tables: [Partly] });
    const { score: _, ...left } = person(3);
    expect(other.get(Partly, 3)).toEqual(left);
    await settled(db);
    expect(db.stats().tables[0].fields).toEqual({ id: "u32", mail: "str", owner: "str(10)" });
  });

  it("is given back its memory when it is dropped", async () => {
    const Large = table("large", { id: u32(), text: str() }, { key: "id", ...LAYOUTS[kind] });
    const db = await stores.open({ tables: [Large], memoryBytes: 64 * MIB });
    const usedBytes = (): number => {
      const { reservedBytes, freeBytes } = db.stats().memory;
      return reservedBytes - freeBytes;
    };
    const cellsInUse = async (): Promise<number> => (await db.verify()).memory.cells;
    const before = await cellsInUse();
    const used: number[] = [];
    let full = 0;
    for (let round = 0; round < 4; round++) {
      const holder = await stores.open({ path: db.path, tables: [Large] });
      for (let id = 0; id < 300; id += 20) {
        holder.transactSync((tx) => {
          for (let n = id; n < id + 20; n++) tx.insert(Large, { id: n, text: "x".repeat(n * 150) });
        });
      }
      if (round === 0) full = usedBytes();
      await holder.migrate([dropTable("large")]);
      failureSync("SITU_SCHEMA", () => holder.get(Large, 1));
      await settled(holder);
      await holder.close();
      used.push(usedBytes());
      // No row's cell stays in use, and none of the table's structure; the catalogue keeps one for each that was there.
      await eventually(async () => (await cellsInUse()) <= before + round);
    }
    expect(db.stats().tables).toEqual([]);
    // Blocks without a cell in use are given back later, or used again by the next table, by whoever looks for
    // them first: how many there are depends on how the two executors take turns. They are never those of
    // several tables.
    expect(Math.max(...used)).toBeLessThan(1.5 * full);
  });
});

describe("keys and layouts", () => {
  it("another key, another layout", async () => {
    const { db } = await filled();
    const Next = table("person", fields, { key: ["owner", "id"], indexes, ordered: true });
    await failure("SITU_SCHEMA", () =>
      stores.open({ path: db.path, tables: [Next], migrate: true }),
    );
    const other = await stores.open({ path: db.path, tables: [Next], migrate: [changeKey(Next)] });
    expect(other.get(Next, ["o3", 20])).toEqual(person(20));
    expect(
      other
        .scan(Next, { prefix: ["o3"] })
        .toArray()
        .map(({ id }) => id),
    ).toEqual(Array.from({ length: ROWS }, (_, id) => id).filter((id) => id % 17 === 3));
    expect(compareIndexes(other, Next)).toBe(ROWS);
    await settled(other);
  });

  it("two rows that would share a key: nothing is changed", async () => {
    const { db, Person } = await filled();
    const Next = table("person", fields, { key: "owner", indexes });
    const error = await failure("SITU_UNIQUE", () => db.migrate([changeKey(Next)]));
    expect(error.message).toMatch(/as it was before.*row \d+ would have the key "o\d+"/);
    await settled(db);
    expect(compareIndexes(db, Person)).toBe(ROWS);
    db.transactSync((tx) => tx.insert(Person, person(9_999)));
    expect(db.stats().tables[0].migration).toBeUndefined();
  });
});

describe("types", () => {
  it("numbers become BigInts and back; a value that does not fit stops it", async () => {
    const { db, Person } = await filled("hopscotch", 50);
    const Wide = table("person", { ...fields, score: u64() }, { key: "id", indexes });
    const wide = await stores.open({ path: db.path, tables: [Wide], migrate: true });
    expect(wide.get(Wide, 5)?.score).toBe(5n);
    expect(db.get(Person, 5)?.score).toBe(5);
    db.transactSync((tx) => tx.update(Person, 5, { score: 6 }));
    expect(wide.get(Wide, 5)?.score).toBe(6n);
    wide.transactSync((tx) => tx.update(Wide, 5, { score: 2n ** 60n + 1n }));
    expect(failureSync("SITU_SCHEMA", () => db.get(Person, 5)).message).toContain("was widened");
    await failure("SITU_TYPE", () => wide.migrate([narrowField(Person, "score")]));
    wide.transactSync((tx) => tx.update(Wide, 5, { score: 7n }));
    await wide.migrate([narrowField(Person, "score")]);
    expect(db.get(Person, 5)?.score).toBe(7);
    await settled(db);
  });

  it("other types are refused, with the step to write", async () => {
    const { db } = await filled("hopscotch", 5);
    const path = db.path;
    const open = (score: ReturnType<typeof u8 | typeof f64 | typeof i64 | typeof bytes>) =>
      stores.open({
        path,
        tables: [table("person", { ...fields, score }, { key: "id" })],
        migrate: true,
      });
    expect((await failure("SITU_SCHEMA", () => open(bytes()))).message).toContain("narrowField");
    const More = table("person", { ...fields, more: u8() }, { key: "id" });
    const more = () => stores.open({ path, tables: [More], migrate: true });
    expect((await failure("SITU_SCHEMA", more)).message).toContain('addField(Table, "more"');
    await failure("SITU_SCHEMA", () => db.migrate([renameField("person", "nothing", "x")]));
    await failure("SITU_SCHEMA", () => db.migrate([dropField("person", "mail")]));
    await failure("SITU_SCHEMA", () => db.migrate([dropField("person", "id")]));
    await failure("SITU_CONFIG", () => db.migrate(["drop" as never]));
  });
});

describe("steps", () => {
  it("a dry run tells what would be done, and a second time there is nothing to do", async () => {
    const { db } = await filled("btree", 20);
    const steps = [
      dropIndex("person", "byMail"),
      renameField("person", "mail", "email"),
      dropField("person", "score"),
    ];
    const plan = await db.migrate(steps, { dryRun: true });
    expect(String(plan)).toBe(
      "person: rename field mail to email\nperson: drop field score\nperson: drop index byMail\n" +
        "  (copies all rows)",
    );
    expect(db.stats().tables[0].fields.mail).toBe("str");
    await db.migrate(steps);
    expect(db.stats().tables[0]).toMatchObject({
      fields: { email: "str", id: "u32", owner: "str(10)" },
      indexes: [{ name: "byOwner", state: "ready" }],
    });
    expect((await db.migrate(steps)).actions).toEqual([]);
    await settled(db);
  });

  it("indexes and tables: dropped, changed, renamed", async () => {
    const { db, Person } = await filled("hopscotch", 200);
    const snapshot = db.snapshot();
    await db.migrate([dropIndex("person", "byOwner")]);
    failureSync("SITU_SCHEMA", () => db.count(Person, { index: "byOwner", eq: "o1" }));
    expect(snapshot.count(Person, { index: "byOwner", eq: "o1" })).toBe(12);
    db.transactSync((tx) => tx.delete(Person, 1));
    snapshot.close();
    const Other = table("person", fields, {
      key: "id",
      indexes: { byMail: { on: ["mail"], kind: "hash" } },
    });
    await failure("SITU_SCHEMA", () => stores.open({ path: db.path, tables: [Other] }));
    const other = await stores.open({ path: db.path, tables: [Other], migrate: true });
    expect(compareIndexes(other, Other)).toBe(199);
    await other.migrate([renameTable("person", "people")]);
    expect(db.get(Person, 2)).toEqual(person(2));
    expect(other.stats().tables.map(({ name }) => name)).toEqual(["people"]);
    // By the old name it is still found: an older program must not begin with an empty table.
    const older = await stores.open({ path: db.path, tables: [Other] });
    expect(older.count(Other)).toBe(199);
    await settled(db);
  });
});

describe("snapshots", () => {
  it("see the table as it was, for as long as they are open", async () => {
    const { db, Person } = await filled();
    const snapshot = db.snapshot();
    await db.migrate([dropField("person", "score"), renameField("person", "mail", "email")]);
    failureSync("SITU_SCHEMA", () => db.get(Person, 3));
    for (const id of [0, 3, ROWS - 1]) expect(snapshot.get(Person, id)).toEqual(person(id));
    expect(snapshot.count(Person)).toBe(ROWS);
    expect(compareIndexes(db, Person, snapshot as never)).toBe(ROWS);
    snapshot.close();
    await settled(db);
  });
});

describe("transactions that began before", () => {
  it("are waited for; after too long the next one goes on with it", async () => {
    const { db, Person } = await filled("hopscotch", 300);
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    // Also if the test fails: the database is closed only when its transactions have ended.
    stores.later(() => go());
    const running = db.transact(
      async (tx) => {
        await tx.insert(Person, person(2_000));
        await tx.delete(Person, 50);
        await gate;
        await tx.update(Person, 51, { score: 9 });
      },
      { timeoutMs: 240_000 },
    );
    const hasty = await stores.open({ path: db.path, timeoutMs: 500 });
    const steps = [renameField("person", "score", "points")];
    const error = await failure("SITU_TIMEOUT", () => hasty.migrate(steps));
    expect(error.message).toContain(`process ${process.pid} `);
    expect(db.stats().tables[0].migration).toMatchObject({ state: "announced", rows: 0 });
    // It stays open, and has given the migration up: the next one need not wait for it.
    const patient = await stores.open({ path: db.path, timeoutMs: 240_000 });
    const migrating = patient.migrate(steps);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(db.stats().tables[0].migration?.state).toBe("announced");
    go();
    await running;
    await migrating;
    expect(db.stats().tables[0].fields.points).toBe("u16");
    expect(db.get(Person, 2_000)).toEqual(person(2_000));
    expect(db.get(Person, 50)).toBeUndefined();
    expect(db.get(Person, 51)?.score).toBe(9);
    await settled(db);
  });

  it("one who waits for the migration of another can be told to stop", async () => {
    const { db, Person } = await filled("hopscotch", 50);
    const running = await db.begin();
    await running.insert(Person, person(2_000));
    const other = await stores.open({ path: db.path });
    const steps = [renameField("person", "score", "points")];
    const migrating = other.migrate(steps);
    await eventually(() => db.stats().tables[0].migration !== undefined);
    const controller = new AbortController();
    const waiting = db.migrate(steps, {
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    await failure("SITU_ABORTED", () => waiting);
    await running.commit();
    await migrating;
    expect(db.stats().tables[0].fields.points).toBe("u16");
  });
});

describe("a migration that its signal ends", () => {
  it("is finished by the next one, also by one who only wants an index", async () => {
    const { db } = await filled();
    const steps = [renameField("person", "score", "points")];
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = await failure("SITU_ABORTED", () =>
      db.migrate(steps, { signal, onProgress: () => controller.abort("enough") }),
    );
    expect(aborted.cause).toBe("enough");
    expect(db.stats().tables[0].migration).toMatchObject({ state: "building" });
    await failure("SITU_ABORTED", () => db.migrate(steps, { signal }));
    const Indexed = table("person", fields, {
      key: "id",
      indexes: { ...indexes, byScore: { on: ["score"] } },
    });
    const other = await stores.open({ path: db.path, tables: [Indexed] });
    expect(db.stats().tables[0].fields.points).toBe("u16");
    expect(compareIndexes(other, Indexed)).toBe(ROWS);
    await settled(db);
  });

  it("has changed nothing if it had not begun", async () => {
    const { db } = await filled("hopscotch", 10);
    const steps = [renameField("person", "score", "points")];
    const signal = AbortSignal.abort();
    await failure("SITU_ABORTED", () => db.migrate(steps, { signal }));
    expect(db.stats().tables[0].migration).toBeUndefined();
    await failure("SITU_CONFIG", () => db.migrate(steps, { signal: 1 as never }));
  });
});
