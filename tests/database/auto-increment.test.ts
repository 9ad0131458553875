/** Keys that `insert` fills in. */

import { describe, expect, it } from "vitest";
import { autoIncrement, nullable, str, u8, u32, u53 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Order = table(
  "order",
  { id: autoIncrement(), who: str(8), note: nullable(str(8)) },
  { key: "id", indexes: { byWho: { on: ["who"] } } },
);
const Short = table("short", { id: autoIncrement(u32()), who: str(8) }, { key: "id" });

describe("autoIncrement", () => {
  it("fills the key in, and says which", async () => {
    const db = await stores.open({ tables: [Order, Short] });
    expect(db.insert(Order, { who: "a" })).toBe(1);
    expect(db.transactSync((tx) => tx.insert(Order, { who: "b", id: undefined }))).toBe(2);
    expect(await db.transact((tx) => tx.insert(Order, { who: "c", note: "x" }))).toBe(3);
    const inserted = db.transactSync((tx) => tx.insert(Order, { who: "d" }), {
      isolation: "snapshot",
    });
    expect(inserted).toBe(4);
    expect(db.insert(Short, { who: "a" })).toBe(1);
    expect(db.get(Order, 3)).toEqual({ id: 3, who: "c", note: "x" });
    expect(db.scan(Order, { index: "byWho" }).toArray()).toHaveLength(4);
    const interactive = await db.begin();
    const id = await interactive.insert(Order, { who: "e" });
    await interactive.commit();
    expect(db.get(Order, id)?.who).toBe("e");
  });

  it("gives no number twice, in several executors, and after the store was closed", async () => {
    const path = stores.folder();
    const seen = new Set<number>();
    let inserted = 0;
    for (let round = 0; round < 3; round++) {
      const open = await Promise.all(
        [0, 1, 2].map(() => stores.open({ path, tables: [Order], durability: "none" })),
      );
      for (let i = 0; i < 150; i++) {
        for (const db of open) seen.add(db.insert(Order, { who: "x" }));
        inserted += open.length;
      }
      for (const db of open.slice(1)) await db.close();
    }
    expect(seen.size).toBe(inserted);
  });

  it("leaves a gap where nothing was committed", async () => {
    const db = await stores.open({ tables: [Order] });
    expect(() =>
      db.transactSync((tx) => {
        tx.insert(Order, { who: "lost" });
        throw new Error("undone");
      }),
    ).toThrow("undone");
    expect(db.insert(Order, { who: "a" })).toBe(2);
    expect(db.count(Order)).toBe(1);
  });

  it("goes on behind keys that callers have chosen", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Order] });
    const other = await stores.open({ path, tables: [Order] });
    expect(other.insert(Order, { who: "first" })).toBe(1);
    expect(db.insert(Order, { id: 5_000, who: "chosen" })).toBe(5_000);
    expect(db.insert(Order, { who: "a" })).toBeGreaterThan(5_000);
    db.put(Order, { id: 90_000, who: "put" });
    expect(db.insert(Order, { id: 3, who: "low" })).toBe(3);
    // One who took his numbers before, and meets a row that has one of them.
    expect(other.insert(Order, { who: "second" })).toBe(2);
    const third = other.insert(Order, { who: "third" });
    expect(third).toBeGreaterThan(3);
    failureSync("SITU_EXISTS", () => db.insert(Order, { id: 3, who: "again" }));
    const late = await stores.open({ path, tables: [Order] });
    expect(late.insert(Order, { who: "late" })).toBeGreaterThan(90_000);
  });

  it("finds a free number in a table full of keys that nobody has counted", async () => {
    const path = stores.folder();
    const Plain = table("order", { id: u53(), who: str(8) }, { key: "id" });
    const first = await stores.open({ path, tables: [Plain] });
    first.transactSync((tx) => {
      for (let id = 0; id < 3_000; id++) tx.insert(Plain, { id, who: "x" });
    });
    // As after a change of the schema: the rows are there, the counter is new.
    const Counted = table("order", { id: autoIncrement(), who: str(8) }, { key: "id" });
    const { message } = await failure("SITU_SCHEMA", () =>
      stores.open({ path, tables: [Counted] }),
    );
    expect(message).toContain("~ id: u53 in the store, autoIncrement(u53) here");
    const db = await stores.open({ path: stores.folder(), tables: [Short] });
    db.transactSync((tx) => {
      // Behind the back of the counter: as a node of a cluster, or an older program, writes rows.
      const store = db.storeOf(Short);
      for (let id = 1; id < 3_000; id++) {
        store.insert((tx as unknown as { engine: never }).engine, { id, who: "x" });
      }
    });
    expect(db.insert(Short, { who: "a" })).toBeGreaterThanOrEqual(3_000);
  });

  it("says when there are no more numbers", async () => {
    const db = await stores.open({ tables: [Short] });
    db.insert(Short, { id: 0xffffffff, who: "last" });
    const { message } = failureSync("SITU_FULL", () => db.insert(Short, { who: "a" }));
    expect(message).toContain("table short has used up the numbers");
    failureSync("SITU_TYPE", () => db.insert(Short, { id: 2 ** 32, who: "a" }));
  });

  it("reads a row of the caller's once, accessors of its class included", async () => {
    const db = await stores.open({ tables: [Order] });
    let looks = 0;
    class Draft {
      get who(): string {
        looks++;
        return "getter";
      }
    }
    expect(db.insert(Order, new Draft())).toBe(1);
    expect([db.get(Order, 1)?.who, looks]).toEqual(["getter", 1]);
    failureSync("SITU_TYPE", () => db.insert(Order, { who: "a", other: 1 } as never));
    failureSync("SITU_TYPE", () => db.insert(Order, null as never));
    failureSync("SITU_TYPE", () => db.put(Order, { who: "a" } as never));
  });

  it("survives recovery from the log, and the counter with it", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Order], durability: "sync" });
    const ids = [1, 2, 3].map(() => db.insert(Order, { who: "a" }));
    await db.close();
    const again = await stores.open({ path, tables: [Order], durability: "sync" });
    expect(again.insert(Order, { who: "b" })).toBeGreaterThan(Math.max(...ids));
    expect((await again.verify()).problems).toEqual([]);
  });

  it.each([
    [() => autoIncrement(u8() as never), /autoIncrement takes u32\(\) or u53\(\)/],
    [() => autoIncrement(nullable(u32()) as never), /autoIncrement takes/],
    [() => nullable(autoIncrement()), /keys cannot be null/],
    [
      () => table("t", { id: autoIncrement(), at: u32() }, { key: ["at", "id"] }),
      /id is an autoIncrement\(\), which can only be the whole key/,
    ],
    [
      () => table("t", { id: autoIncrement(), at: u32() }, { key: "at" }),
      /can only be the whole key/,
    ],
  ])("%# is refused", (declare, message) => {
    expect(failureSync("SITU_SCHEMA", declare).message).toMatch(message);
  });
});
