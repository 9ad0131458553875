/** Robin Hood tables in the database: many splits, splits inside one transaction, other handles, large values. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { bytes, f64, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import type { ShardFigures } from "../../src/tools/structures/shards.ts";
import { MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const layout = "robinhood" as const;
const Point = table("point", { id: u32(), x: f64(), y: f64() }, { key: "id", layout });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id", layout });

describe("many rows", () => {
  it("20,000 rows in as many transactions, seen by a handle that was opened before", async () => {
    const path = stores.folder();
    const rows = 20_000;
    const db = await stores.open({ path, tables: [Point], memoryBytes: 64 * MIB });
    const early = await stores.open({ path, tables: [Point] });
    expect(early.get(Point, 7)).toBeUndefined();
    for (let id = 0; id < rows; id++) {
      db.transactSync((tx) => tx.insert(Point, { id, x: id / 2, y: -id }));
    }
    expect(db.stats().counters.splits).toBeGreaterThan(30);
    let wrong = 0;
    for (let id = 0; id < rows; id++) {
      const theirs = early.get(Point, id);
      if (db.get(Point, id)?.x !== id / 2 || theirs?.x !== id / 2 || theirs.y !== -id) wrong++;
    }
    expect(wrong).toBe(0);
    // The handle with the old directory writes where the rows are now.
    for (let id = 0; id < rows; id += 101) early.transactSync((tx) => tx.delete(Point, id));
    expect(db.transactSync((tx) => tx.count(Point))).toBe(rows - Math.ceil(rows / 101));
    expect((await db.verify()).problems).toEqual([]);
  });

  it("thousands of rows in one transaction split the table within it; large values lie outside", async () => {
    const db = await stores.open({ tables: [Point, Blob], memoryBytes: 64 * MIB });
    const rows = 6_000;
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id++) tx.insert(Point, { id, x: id, y: 0 });
      for (let id = 0; id < rows; id++) assert.equal(tx.get(Point, id)?.x, id);
      for (let id = 0; id < rows; id += 2) tx.delete(Point, id);
      expect(tx.has(Point, 0)).toBe(false);
    });
    for (let id = 0; id < rows; id++) assert.equal(db.get(Point, id) === undefined, id % 2 === 0);
    expect(db.stats().counters.splits).toBeGreaterThan(3);
    const error = new Error("thrown away");
    expect(() =>
      db.transactSync((tx) => {
        for (let id = rows; id < 2 * rows; id++) tx.insert(Point, { id, x: id, y: 0 });
        throw error;
      }),
    ).toThrow(error);
    db.transactSync((tx) => {
      for (let id = 0; id < 2_000; id++) tx.insert(Blob, { id, data: new Uint8Array(id % 600) });
      tx.insert(Blob, { id: 9_999, data: new Uint8Array(200_000).fill(7) });
    });
    for (let id = 0; id < 2_000; id++) assert.equal(db.get(Blob, id)?.data.length, id % 600);
    expect(db.get(Blob, 9_999)?.data.length).toBe(200_000);
    db.transactSync((tx) => tx.put(Blob, { id: 9_999, data: new Uint8Array(3) }));
    expect(db.get(Blob, 9_999)?.data.length).toBe(3);
    expect(db.transactSync((tx) => tx.count(Point))).toBe(rows / 2);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("inspect tells how full it is", async () => {
    const db = await stores.open({ tables: [Point], memoryBytes: 64 * MIB });
    db.transactSync((tx) => {
      for (let id = 0; id < 3_000; id++) tx.insert(Point, { id, x: id, y: 0 });
    });
    const inspected = await db.inspect("point");
    const structure = inspected.structure as ShardFigures;
    expect(structure).toMatchObject({ kind: "robinhood", rows: 3_000, slots: 8 });
    expect(structure.occupancy).toBeGreaterThan(0.3);
    expect(structure.occupancy).toBeLessThan(1);
  });
});
