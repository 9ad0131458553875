/** A table's schema is kept in the store: opening it with another one shows the difference. */

import { describe, expect, it } from "vitest";
import { bytes, f64, i64, json, str, u8, u32, u64 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { failure, MIB, temporaryStores } from "../helpers/store.ts";
import { startChild, startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Base = table("t", { id: u32(), name: str(10), other: u32() }, { key: "id" });

const OTHERS: Record<string, [Table, RegExp]> = {
  "another type": [
    table("t", { id: u32(), name: str(10), other: f64() }, { key: "id" }),
    /~ other: u32 in the store, f64 here/,
  ],
  "another length": [
    table("t", { id: u32(), name: str(11), other: u32() }, { key: "id" }),
    /~ name: str\(10\) in the store, str\(11\) here/,
  ],
  "no length": [
    table("t", { id: u32(), name: str(), other: u32() }, { key: "id" }),
    /~ name: str\(10\) in the store, str here/,
  ],
  "a field less": [
    table("t", { id: u32(), name: str(10) }, { key: "id" }),
    /- other: u32 \(only in the store\)/,
  ],
  "a field more": [
    table("t", { id: u32(), name: str(10), other: u32(), more: json() }, { key: "id" }),
    /\+ more: json \(only here\)/,
  ],
  "a field more, with a name that every object has": [
    table("t", { id: u32(), name: str(10), other: u32(), constructor: u32() }, { key: "id" }),
    /\+ constructor: u32 \(only here\)/,
  ],
  "another key": [
    table("t", { id: u32(), name: str(10), other: u32() }, { key: "other" }),
    /~ key: id in the store, other here/,
  ],
  "a longer key": [
    table("t", { id: u32(), name: str(10), other: u32() }, { key: ["id", "other"] }),
    /~ key: id in the store, id, other here/,
  ],
};

describe("opening with another schema", () => {
  it.each(Object.keys(OTHERS))("%s is shown", async (name) => {
    const [wanted, message] = OTHERS[name];
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Base] });
    db.transactSync((tx) => tx.put(Base, { id: 1, name: "ada", other: 2 }));
    const error = await failure("SITU_SCHEMA", () => stores.open({ path, tables: [wanted] }));
    expect(error.message).toMatch(/table t is in the store with another schema/);
    expect(error.message).toMatch(message);
    expect(error.message.split("\n").length).toBe(2);
    await db.close();
    await failure("SITU_SCHEMA", () => stores.open({ path, tables: [wanted] }));
    const again = await stores.open({ path, tables: [Base] });
    expect(again.get(Base, 1)).toEqual({ id: 1, name: "ada", other: 2 });
    expect(again.stats().executors.length).toBe(1);
  });

  it("all differences at once", async () => {
    const path = stores.folder();
    await stores.open({ path, tables: [Base] });
    const wanted = table("t", { id: u64(), name: bytes(10), extra: u8() }, { key: ["id", "name"] });
    const error = await failure("SITU_SCHEMA", () => stores.open({ path, tables: [wanted] }));
    expect(
      error.message
        .split("\n")
        .slice(1)
        .map((line) => line.trim()),
    ).toEqual([
      "~ id: u32 in the store, u64 here",
      "~ name: str(10) in the store, bytes(10) here",
      "- other: u32 (only in the store)",
      "+ extra: u8 (only here)",
      "~ key: id in the store, id, name here",
    ]);
  });

  it("the key's fields are compared one by one, whatever their names", async () => {
    const path = stores.folder();
    const fields = { a: u32(), b: u32(), "a,b": u32() };
    await stores.open({ path, tables: [table("k", fields, { key: ["a", "b"] })] });
    await failure("SITU_SCHEMA", () =>
      stores.open({ path, tables: [table("k", fields, { key: "a,b" })] }),
    );
  });

  it("the order of the fields does not matter, nor does a list of one key", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Base] });
    db.transactSync((tx) => tx.put(Base, { id: 1, name: "ada", other: 2 }));
    const Shuffled = table("t", { other: u32(), name: str(10), id: u32() }, { key: ["id"] });
    const other = await stores.open({ path, tables: [Shuffled] });
    expect(other.get(Shuffled, [1])).toEqual({ id: 1, name: "ada", other: 2 });
    other.transactSync((tx) => tx.put(Shuffled, { other: 3, name: "grace", id: 2 }));
    expect(db.get(Base, 2)).toEqual({ id: 2, name: "grace", other: 3 });
  });

  it("a table that is added later, and one that nobody opened this time", async () => {
    const path = stores.folder();
    const Extra = table("extra", { id: u32(), value: i64() }, { key: "id" });
    const db = await stores.open({ path, tables: [Base] });
    db.transactSync((tx) => tx.put(Base, { id: 1, name: "ada", other: 2 }));
    const second = await stores.open({ path, tables: [Extra] });
    second.transactSync((tx) => tx.put(Extra, { id: 1, value: 5n }));
    const both = await stores.open({ path, tables: [Extra, Base] });
    expect([both.get(Base, 1)?.name, both.get(Extra, 1)?.value]).toEqual(["ada", 5n]);
    expect(both.stats().tables.map(({ name }) => name)).toEqual(["t", "extra"]);
  });
});

/** Waits for a moment on the clock, so that all open as much at once as can be. */
const OPENER = `
  const { open, table, u32, f64 } = situ;
  const kinds = [u32, f64];
  const T = table("t", { id: u32(), value: kinds[data.kind]() }, { key: "id" });
  while (Date.now() < data.startMs) {}
  try {
    const db = await open({ path: data.path, tables: [T], memoryBytes: 16 << 20 });
    db.transactSync((tx) => tx.put(T, { id: data.number, value: 7 }));
    const value = db.get(T, data.number).value;
    await db.close();
    return { value, kind: data.kind };
  } catch (error) {
    return { code: error.code, message: error.message, kind: data.kind };
  }`;

interface Opened {
  readonly kind: number;
  readonly value?: number;
  readonly code?: string;
  readonly message?: string;
}

function oneSchemaWon(outcomes: readonly Opened[]): void {
  const winners = outcomes.filter(({ value }) => value === 7);
  const losers = outcomes.filter(({ value }) => value !== 7);
  expect(winners.length, JSON.stringify(outcomes)).toBe(outcomes.length / 2);
  expect(new Set(winners.map(({ kind }) => kind)).size).toBe(1);
  for (const { code, message } of losers) {
    expect(code).toBe("SITU_SCHEMA");
    expect(message).toMatch(/~ value: (u32|f64) in the store, (u32|f64) here/);
  }
}

describe("two schemas at once: exactly one wins, the other gets SITU_SCHEMA", () => {
  it("processes", async () => {
    const path = stores.folder();
    const startMs = Date.now() + 600;
    const children = [0, 1, 0, 1].map((kind, number) =>
      startChild(stores, OPENER, { path, kind, number, startMs }),
    );
    const outcomes = await Promise.all(children.map(({ outcome }) => outcome));
    oneSchemaWon(outcomes.map(({ result }) => result as Opened));
  });

  it("threads, for a table in a store that is there", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, memoryBytes: 16 * MIB });
    const startMs = Date.now() + 300;
    const workers = [0, 1, 0, 1].map((kind, number) =>
      startWorker(stores, OPENER, { path, kind, number, startMs }),
    );
    oneSchemaWon((await Promise.all(workers.map(({ result }) => result))) as Opened[]);
    expect(db.stats().tables.length).toBe(1);
    expect(db.stats().executors.length).toBe(1);
  });
});
