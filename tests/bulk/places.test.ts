/**
 * Where operations on device tables run when the caller leaves that open: few rows, and those that an index finds, are
 * for the host; large parts of a table are for the device, unless it cannot do them (§4.1.1 of the paper).
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { updateProgram } from "../../src/tables/bulk/requests.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { choosePlace, type PlaceFacts } from "../../src/tables/device/place-cost.ts";
import { count, sum } from "../../src/tables/expressions/aggregates.ts";
import { i32, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
type Both = Database & LocalDatabase;

const Item = table(
  "item",
  { id: u32(), branch: u32(), balance: i32(), text: str() },
  { key: "id", storage: "device", indexes: { byBranch: { on: ["branch"] } } },
);
const ROWS = 30_000;

async function filled(rows = ROWS): Promise<Both> {
  const db = (await stores.open({ tables: [Item], memoryBytes: 64 * 2 ** 20 })) as Both;
  for (let from = 0; from < rows; from += 1_000) {
    db.transactSync((tx) => {
      for (let id = from; id < Math.min(rows, from + 1_000); id++) {
        tx.insert(Item, { id, branch: id % 5_000, balance: id % 100, text: "x".repeat(40) });
      }
    });
  }
  for (const { mover } of workOf(knownDevice(db.executor)!)) {
    while (mover.move(Number.POSITIVE_INFINITY));
  }
  return db;
}

const total = (db: Both, place?: "host" | "device") =>
  db.aggregate(Item, { place, values: (i) => ({ n: count(), sum: sum(i.balance) }) });

describe("the place of an operation", () => {
  it("is the device for a large part of a table, and the result is the same", async () => {
    const db = await filled();
    const host = await total(db, "host");
    // The threads are there from now on.
    expect(await total(db, "device")).toEqual(host);
    const plan = await db.explain(Item, { set: { balance: 7 } });
    expect(plan.place).toBe("device");
    expect(plan.places!.device).toBeLessThan(plan.places!.host);
    expect(plan.why).toContain("on the device");
    expect(await total(db)).toEqual(host);
    const { matched, place } = await db.updateWhere(Item, { set: { balance: 7 } });
    expect({ matched, place }).toEqual({ matched: ROWS, place: "device" });
    const told = await db.updateWhere(Item, { place: "host", set: { balance: 8 } });
    expect(told.place).toBe("host");
  });

  it("is the host for rows that an index finds, for short tables, and for rows that are read synchronously", async () => {
    const db = await filled();
    await db.aggregate(Item, { place: "device", values: () => ({ n: count() }) });
    const few = await db.explain(Item, {
      where: (i) => i.branch.eq(3),
      set: { balance: 1 },
    });
    expect(few).toMatchObject({ place: "host", access: "index" });
    expect(few.places!.device).toBeGreaterThan(few.places!.host);
    const changed = await db.updateWhere(Item, {
      where: (i) => i.branch.eq(3),
      set: { balance: 1 },
    });
    expect(changed).toEqual({ matched: 6, changed: 6, place: "host" });
    // A plan is that of rows that are awaited: these may come from another thread.
    const whole = await db.explain(Item);
    expect(whole.places!.device).toBeLessThan(whole.places!.host);
    expect(whole.place).toBe("device");
    expect((await db.explain(Item, { place: "host" })).place).toBe("host");
    const awaited: number[] = [];
    for await (const { id } of db.select(Item)) awaited.push(id);
    const atOnce = db.select(Item).toArray();
    expect(atOnce).toHaveLength(ROWS);
    expect(awaited.sort((a, b) => a - b)).toEqual(atOnce.map(({ id }) => id).sort((a, b) => a - b));
    const short = await filled(200);
    expect((await short.explain(Item, { set: { balance: 1 } })).place).toBe("host");
  });

  it("is the host where rows have to be changed one by one, and the plan says why", async () => {
    const db = await filled(2_000);
    const plan = await db.explain(Item, { set: { branch: 1 } });
    expect(plan.place).toBe("host");
    expect(plan.why).toContain("index byBranch is on a field that it changes");
  });

  it("moves to the device as tables grow, and as the buffer holds less of them", async () => {
    const db = await filled(10);
    const store = db.tableOf(Item);
    const program = updateProgram(Item, { set: { balance: 1 } }, true);
    const facts: PlaceFacts = {
      looked: 10,
      rows: 10,
      pages: 2,
      bufferPages: 1_000,
      threads: 1,
      isStarted: false,
    };
    const places = [10, 100, 1_000, 10_000, 100_000, 1_000_000].map((rows) => {
      const { place, costs } = choosePlace(store, program, {
        ...facts,
        rows,
        looked: rows,
        pages: rows / 7,
      });
      expect(costs.device! < costs.host).toBe(place === "device");
      return place;
    });
    expect(places[0]).toBe("host");
    expect(places.at(-1)).toBe("device");
    expect(places.slice(places.indexOf("device"))).not.toContain("host");
    const cold = choosePlace(store, program, {
      ...facts,
      rows: 9_000,
      looked: 9_000,
      pages: 1_300,
    });
    const hot = choosePlace(store, program, { ...facts, rows: 9_000, looked: 9_000, pages: 900 });
    expect(cold.costs.host).toBeGreaterThan(hot.costs.host);
  });
});
