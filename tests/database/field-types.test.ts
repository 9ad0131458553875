/** Nulls, whole numbers of 53 bits, timestamps, UUIDs and enums in rows, keys and indexes. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import {
  enumOf,
  i53,
  json,
  nullable,
  pointer,
  str,
  timestamp,
  u8,
  u32,
  u53,
  uuid,
} from "../../src/tables/fields.ts";
import { type InferInsert, type InferRow, table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const LEVELS = ["low", "high", "above"] as const;
const fields = {
  id: uuid(),
  at: timestamp(),
  seen: nullable(timestamp()),
  size: nullable(u53()),
  delta: i53(),
  level: enumOf(...LEVELS),
  mood: nullable(enumOf("good", "bad")),
  small: nullable(u8()),
  note: nullable(str(12)),
  text: nullable(str()),
  owner: nullable(uuid()),
};
const indexes = {
  bySeen: { on: ["seen"] },
  bySize: { on: ["size", "level"] },
  byMood: { on: ["mood"], kind: "hash" },
  byNote: { on: ["note"], unique: true },
  byOwner: { on: ["owner", "mood"], unique: true, kind: "hash" },
  byText: { on: ["text"] },
} as const;

const KINDS = {
  hopscotch: table("hopscotch", fields, { key: "id", indexes }),
  buckets: table("buckets", fields, { key: "id", layout: "buckets", indexes }),
  btree: table("btree", fields, { key: "id", ordered: true, indexes }),
};
type AnyKind = (typeof KINDS)["btree"];
type Row = InferRow<AnyKind>;

const ID = fc.nat(8).map((n) => `0188d3c4-7a1e-7bb0-8f0c-00000000000${n}`);
const orNull = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.option(value, { nil: null, freq: 1 });
const time = fc.integer({ min: -5, max: 5 }).map((days) => new Date(days * 86_400_000 + 1));
const anyRow: fc.Arbitrary<Row> = fc.record(
  {
    id: ID,
    at: time,
    seen: orNull(time),
    size: orNull(fc.constantFrom(0, 1, 2 ** 32, 2 ** 53 - 1)),
    delta: fc.constantFrom(0, -1, 2 ** 40, -(2 ** 53 - 1)),
    level: fc.constantFrom(...LEVELS),
    mood: orNull(fc.constantFrom("good", "bad")),
    small: orNull(fc.nat(255)),
    note: orNull(fc.constantFrom("", "a", "ab", "é")),
    text: orNull(fc.constantFrom("", "x".repeat(300))),
    owner: orNull(ID),
  },
  { noNullPrototype: true },
);

const nulls = (a: unknown, b: unknown): number => Number(b === null) - Number(a === null);
const byTime = (a: Row, b: Row): number =>
  nulls(a.seen, b.seen) || Number(a.seen) - Number(b.seen) || (a.id < b.id ? -1 : 1);
const bySize = (a: Row, b: Row): number =>
  nulls(a.size, b.size) ||
  (a.size ?? 0) - (b.size ?? 0) ||
  LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level) ||
  (a.id < b.id ? -1 : 1);

/** The rows of the model by id, and what each index must find. */
function compare(db: LocalDatabase, kind: AnyKind, model: ReadonlyMap<string, Row>): void {
  const rows = [...model.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const row of rows) {
    assert.deepEqual(db.get(kind, row.id), row);
    assert.deepEqual(db.get(kind, row.id.toUpperCase()), row);
  }
  const seen = rows.toSorted(byTime);
  assert.deepEqual(db.scan(kind, { index: "bySeen" }).toArray(), seen);
  assert.deepEqual(
    db.scan(kind, { index: "bySeen", eq: null }).toArray(),
    seen.filter((row) => row.seen === null),
  );
  assert.deepEqual(
    db.scan(kind, { index: "bySeen", gt: null, lte: 1, reverse: true }).toArray(),
    seen.filter((row) => row.seen !== null && row.seen.getTime() <= 1).reverse(),
  );
  assert.deepEqual(db.scan(kind, { index: "bySize" }).toArray(), rows.toSorted(bySize));
  assert.equal(
    db.count(kind, { index: "bySize", eq: [null, "high"] }),
    rows.filter((row) => row.size === null && row.level === "high").length,
  );
  for (const mood of ["good", null] as const) {
    const found = db.scan(kind, { index: "byMood", eq: mood }).toArray();
    assert.deepEqual(
      found.map(({ id }) => id).sort(),
      rows.filter((row) => row.mood === mood).map(({ id }) => id),
    );
  }
  // A unique index has no entries for rows with a null in it.
  const noted = rows.filter(({ note }) => note !== null);
  assert.equal(db.count(kind, { index: "byNote" }), noted.length);
  for (const row of noted) assert.deepEqual(db.get(kind, row.note!, { index: "byNote" }), row);
  assert.equal(
    db.count(kind, { index: "byText", prefix: "x" }),
    rows.filter(({ text }) => text?.startsWith("x")).length,
  );
}

// One type for all: the test does the same with each.
describe.each(Object.entries(KINDS))("rows with all of them, %s", (_, each) => {
  const kind = each as unknown as AnyKind;

  it("agree with a model, and indexes with rows", async () => {
    const db = await stores.open({ tables: [kind] });
    const model = new Map<string, Row>();
    const names = fc.subarray(["seen", "size", "mood", "small", "note", "text", "owner", "at"]);
    const isTaken = (row: Row): boolean =>
      [...model.values()].some(
        (other) =>
          other.id !== row.id &&
          ((row.note !== null && other.note === row.note) ||
            (row.owner !== null &&
              row.mood !== null &&
              other.owner === row.owner &&
              other.mood === row.mood)),
      );
    check(
      fc.property(
        fc.constantFrom("put", "update", "delete"),
        anyRow,
        names,
        (what, row, changed) => {
          const old = model.get(row.id);
          if (what === "delete") {
            assert.equal(db.delete(kind, row.id), old !== undefined);
            model.delete(row.id);
          } else if (what === "put" || old === undefined) {
            if (isTaken(row)) failureSync("SITU_UNIQUE", () => db.put(kind, row));
            else {
              db.put(kind, row);
              model.set(row.id, row);
            }
          } else {
            const changes = Object.fromEntries(
              changed.map((name) => [name, row[name as keyof Row]]),
            );
            const after = { ...old, ...changes };
            const update = () => db.update(kind, row.id, { ...changes, level: undefined });
            if (isTaken(after)) failureSync("SITU_UNIQUE", update);
            else {
              update();
              model.set(row.id, after);
            }
          }
          compare(db, kind, model);
        },
      ),
      60,
    );
    expect((await db.verify()).problems).toEqual([]);
    db.transactSync((tx) => {
      for (const id of model.keys()) tx.delete(kind, id);
    });
    expect(db.count(kind, { index: "bySize" })).toBe(0);
  });
});

const Task = table(
  "task",
  {
    id: u32(),
    title: str(20),
    due: nullable(timestamp({ as: "number" })),
    done: nullable(timestamp()),
    state: enumOf("open", "closed"),
    extra: json<{ tags: string[] }>(),
  },
  { key: "id" },
);

describe("what is left out, undefined and null", () => {
  const task: InferInsert<typeof Task> = { id: 1, title: "a", state: "open", extra: { tags: [] } };

  it("an insert fills nulls in, an update leaves what is undefined", async () => {
    const db = await stores.open({ tables: [Task] });
    db.insert(Task, task);
    const row = { ...task, due: null, done: null };
    expect(db.get(Task, 1)).toEqual(row);
    db.update(Task, 1, { due: 5, title: undefined, done: undefined, extra: undefined });
    expect(db.get(Task, 1)).toEqual({ ...row, due: 5 });
    db.update(Task, 1, { due: null, done: new Date(7), state: "closed" });
    expect(db.get(Task, 1)).toEqual({ ...row, done: new Date(7), state: "closed" });
    db.update(Task, 1, {});
    db.put(Task, { ...task, due: undefined, done: 9 });
    expect(db.get(Task, 1)).toEqual({ ...row, done: new Date(9) });
    failureSync("SITU_TYPE", () => db.update(Task, 1, { nothing: undefined } as never));
    failureSync("SITU_TYPE", () => db.update(Task, 1, { title: null } as never));
    failureSync("SITU_TYPE", () => db.insert(Task, { ...task, id: 2, title: undefined } as never));
  });

  it("rows go through JSON", async () => {
    const db = await stores.open({ tables: [Task] });
    db.insert(Task, { ...task, done: new Date(0) });
    expect(JSON.stringify(db.get(Task, 1))).toBe(
      '{"id":1,"title":"a","due":null,"done":"1970-01-01T00:00:00.000Z","state":"open","extra":{"tags":[]}}',
    );
  });

  it("a Date is the caller's own, before and after", async () => {
    const db = await stores.open({ tables: [Task] });
    const mine = new Date(5);
    await db.transact(async (tx) => {
      const inserted = tx.insert(Task, { ...task, done: mine });
      await inserted;
      (await tx.get(Task, 1))!.done!.setTime(99);
      const updated = tx.update(Task, 1, { done: mine });
      await updated;
    });
    mine.setTime(77);
    db.get(Task, 1)!.done!.setTime(55);
    expect(db.get(Task, 1)!.done).toEqual(new Date(5));
  });
});

describe("keys", () => {
  const Event = table(
    "event",
    { at: timestamp(), device: uuid(), level: enumOf(...LEVELS), value: u32() },
    { key: ["at", "level", "device"], ordered: true },
  );
  const device = "0188d3c4-7a1e-7bb0-8f0c-0123456789ab";

  it("of timestamps are Dates or numbers, and compare as these do", async () => {
    const db = await stores.open({ tables: [Event] });
    for (const ms of [5, -3, 0, 2 ** 33]) {
      db.insert(Event, { at: ms, device, level: "high", value: 1 });
      db.insert(Event, { at: new Date(ms), device, level: "low", value: 2 });
    }
    expect(db.get(Event, [-3, "low", device])?.value).toBe(2);
    expect(db.get(Event, [new Date(-3), "high", device.toUpperCase()])?.value).toBe(1);
    expect(db.getMany(Event, [[new Date(0), "low", device]])[0]?.at).toEqual(new Date(0));
    const found = db.scan(Event, { gte: [new Date(-3)], lt: [5, "high"] }).toArray();
    expect(found.map(({ at, level }) => [at.getTime(), level])).toEqual([
      [-3, "low"],
      [-3, "high"],
      [0, "low"],
      [0, "high"],
      [5, "low"],
    ]);
    expect(db.scan(Event, { prefix: [5] }).toArray()).toHaveLength(2);
    expect(db.delete(Event, [new Date(5), "low", device])).toBe(true);
    failureSync("SITU_TYPE", () => db.get(Event, [5, "none" as never, device]));
    failureSync("SITU_TYPE", () => db.scan(Event, { gte: [new Date(Number.NaN)] }));
    failureSync("SITU_TYPE", () => db.scan(Event, { eq: [5, "none" as never] }));
  });

  it("and indexes hold no negative zero", async () => {
    const Zero = table("zero", { id: i53(), at: timestamp({ as: "number" }) }, { key: "id" });
    const db = await stores.open({ tables: [Zero] });
    db.insert(Zero, { id: -0, at: -0 });
    expect(Object.is(db.get(Zero, 0)?.id, 0)).toBe(true);
    expect(Object.is(db.get(Zero, -0)?.at, 0)).toBe(true);
    failureSync("SITU_EXISTS", () => db.insert(Zero, { id: 0, at: 0 }));
  });
});

describe("declarations", () => {
  it.each([
    [() => nullable(json() as never), /json\(\) may hold null already/],
    [() => nullable(pointer() as never), /pointer\(\) may hold null already/],
    [() => nullable(undefined as never), /nullable takes a field/],
    [() => enumOf(...([] as unknown as ["a"])), /enumOf needs its values/],
    [() => enumOf("a", "a"), /twice/],
    [() => enumOf("a", 1 as never), /the values are strings, not 1/],
    [() => enumOf(...(Array.from({ length: 257 }, (_, i) => `v${i}`) as ["a"])), /at most 256/],
    [() => timestamp({ as: "string" as never }), /as is "Date" or "number", not "string"/],
    [
      () => table("t", { id: nullable(u32()) }, { key: "id" as never }),
      /id is nullable, and a key cannot be null/,
    ],
  ])("%# is refused", (declare, message) => {
    expect(failureSync("SITU_SCHEMA", declare).message).toMatch(message);
  });

  it("of another enum, or without null, are another schema", async () => {
    const path = stores.folder();
    const declare = (state: ReturnType<typeof enumOf>, note = nullable(str(5))) =>
      table("t", { id: u32(), state, note, at: timestamp() }, { key: "id" });
    const first = await stores.open({ path, tables: [declare(enumOf("a", "b, c"))] });
    const again = table(
      "t",
      {
        id: u32(),
        state: enumOf("a", "b, c"),
        note: nullable(str(5)),
        at: timestamp({ as: "number" }),
      },
      { key: "id" },
    );
    // Dates or numbers: that is the program's own affair.
    const second = await stores.open({ path, tables: [again] });
    second.insert(again, { id: 1, state: "b, c", at: 5 });
    expect(second.get(again, 1)).toEqual({ id: 1, state: "b, c", note: null, at: 5 });
    const other = table(
      "t",
      { id: u32(), state: enumOf("b, c", "a"), note: str(5), at: timestamp() },
      { key: "id" },
    );
    const { message } = await failure("SITU_SCHEMA", () => stores.open({ path, tables: [other] }));
    expect(message).toContain('~ state: enumOf("a","b, c") in the store, enumOf("b, c","a") here');
    expect(message).toContain("~ note: nullable(str(5)) in the store, str(5) here");
    expect(first.stats().tables.find(({ name }) => name === "t")?.fields).toEqual({
      id: "u32",
      state: 'enumOf("a","b, c")',
      note: "nullable(str(5))",
      at: "timestamp",
    });
  });
});
