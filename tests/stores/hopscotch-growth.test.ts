/** Growing: many splits, splits inside one transaction, and lookups while keys move. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { Random } from "../../src/runtime/random.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { bytes, f64, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { MIB, seed, temporaryStores } from "../helpers/store.ts";
import {
  brokenRules,
  createTable,
  openExecutor,
  pairsIn,
  rehashed,
  run,
  shapeOf,
} from "../helpers/store-engine.ts";
import { startChild, startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Point = table("point", { id: u32(), x: f64(), y: f64() }, { key: "id" });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });

describe("many rows", () => {
  it("100,000 rows in 100,000 transactions, seen by a handle that was opened before", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Point], memoryBytes: 64 * MIB });
    const early = await stores.open({ path, tables: [Point] });
    early.transactSync((tx) => tx.put(Point, { id: 0, x: 0, y: 0 }));
    expect(early.get(Point, 0)).toEqual({ id: 0, x: 0, y: 0 });
    expect(early.get(Point, 77_777)).toBeUndefined();
    for (let id = 1; id < 100_000; id++) {
      db.transactSync((tx) => tx.insert(Point, { id, x: id / 2, y: -id }));
    }
    expect(db.stats().counters.splits).toBeGreaterThan(300);
    let wrong = 0;
    for (let id = 0; id < 100_000; id++) {
      const mine = db.get(Point, id);
      const theirs = early.get(Point, id);
      if (mine?.x !== id / 2 || theirs?.x !== id / 2 || theirs.y !== -id) wrong++;
    }
    expect(wrong).toBe(0);
    expect(early.get(Point, 100_000)).toBeUndefined();
    const late = await stores.open({ path, tables: [Point] });
    for (let id = 0; id < 100_000; id += 97) {
      expect(late.transactSync((tx) => tx.get(Point, id)?.x)).toBe(id / 2);
    }
    // The handle with the old directory writes where the rows are now.
    for (let id = 0; id < 100_000; id += 101) early.transactSync((tx) => tx.delete(Point, id));
    let left = 0;
    for (let id = 0; id < 100_000; id++) if (db.get(Point, id) !== undefined) left++;
    expect(left).toBe(100_000 - Math.ceil(100_000 / 101));
  });

  it("a split leaves pairs in their slots, here or in the new shard", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const points = createTable(executor, codecOf(Point));
    const shape = () => shapeOf(points as never);
    const insert = (id: number) =>
      run(executor, points.tx, () => points.store.insert(points.tx, { id, x: 1, y: 2 }));
    let before = shape();
    for (let id = 1; ; id++) {
      insert(id);
      before = shape();
      points.store.maintain();
      if (shape().length > 1) break;
      expect(id).toBeLessThan(1_000);
    }
    const after = shape();
    expect(after.length).toBe(2);
    expect(brokenRules(after)).toEqual([]);
    expect(pairsIn(after)).toBe(pairsIn(before));
    before[0].buckets.forEach(({ tags }, bucket) => {
      tags.forEach((tag, slot) => {
        const found = after.some(({ buckets }) => buckets[bucket].tags[slot] === tag);
        if (tag !== 0) expect(found, `bucket ${bucket}, slot ${slot}`).toBe(true);
      });
    });
  });

  it("thousands of rows in one transaction split the table within it", async () => {
    const db = await stores.open({ tables: [Point, Blob], memoryBytes: 64 * MIB });
    const rows = 8_000;
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id++) tx.insert(Point, { id, x: id, y: 0 });
      for (let id = 0; id < rows; id++) assert.equal(tx.get(Point, id)?.x, id);
      for (let id = 0; id < rows; id += 2) tx.delete(Point, id);
      expect(tx.has(Point, 0)).toBe(false);
    });
    for (let id = 0; id < rows; id++) assert.equal(db.get(Point, id) === undefined, id % 2 === 0);
    const splits = db.stats().counters.splits;
    expect(splits).toBeGreaterThan(5);
    const error = new Error("thrown away");
    expect(() =>
      db.transactSync((tx) => {
        for (let id = rows; id < 2 * rows; id++) tx.insert(Point, { id, x: id, y: 0 });
        throw error;
      }),
    ).toThrow(error);
    for (let id = 0; id < 2 * rows; id++) {
      assert.equal(db.get(Point, id)?.x, id < rows && id % 2 === 1 ? id : undefined);
    }
    db.transactSync((tx) => {
      for (let id = 0; id < 3_000; id++) tx.insert(Blob, { id, data: new Uint8Array(id % 300) });
    });
    for (let id = 0; id < 3_000; id++) assert.equal(db.get(Blob, id)?.data.length, id % 300);
  });

  it("the layout's rules hold through random inserts and deletes over many splits", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createTable(
      executor,
      rehashed(Point, (hash) => hash),
    );
    const { tx, store } = under;
    const random = new Random(seed);
    const model = new Set<number>();
    for (let round = 0; round < 20; round++) {
      for (let step = 0; step < 600; step++) {
        const id = random.below(8_000);
        run(executor, tx, () => {
          if (random.below(4) === 0) {
            assert.equal(store.remove(tx, id), model.delete(id));
          } else {
            store.put(tx, { id, x: id, y: round });
            model.add(id);
          }
        });
        store.maintain();
      }
      const shards = shapeOf(under as never);
      expect(brokenRules(shards)).toEqual([]);
      expect(pairsIn(shards)).toBe(model.size);
    }
    for (let id = 0; id < 8_000; id++) assert.equal(store.get(id) !== undefined, model.has(id));
    expect(shapeOf(under as never).length).toBeGreaterThan(10);
  });
});

/** Looks up keys that always exist until it is told to stop; says how many were missed. */
const READER = `
  const { open, table, u32, f64, bytes } = situ;
  const Point = table("point", { id: u32(), x: f64(), y: f64() }, { key: "id" });
  const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
  const db = await open({ path: data.path, tables: [Point, Blob] });
  const stop = new Int32Array(data.stop);
  let reads = 0, missed = 0, transactions = 0;
  port.postMessage("ready");
  while (Atomics.load(stop, 0) === 0) {
    for (let n = 0; n < data.keys; n++) {
      const id = n * data.step;
      const point = db.get(Point, id);
      const blob = db.get(Blob, id);
      if (point === undefined || point.x !== id || point.x !== -point.y) missed++;
      if (blob === undefined || blob.data.length !== blob.data[0] + 2) missed++;
      reads += 2;
      if (n % 16 === 0) {
        const both = db.transactSync((tx) => [tx.get(Point, id), tx.has(Blob, id)]);
        if (both[0]?.x !== id || both[1] !== true) missed++;
        transactions++;
      }
    }
  }
  await db.close();
  return { reads, missed, transactions };`;

const KEYS = 300;
const STEP = 17;

describe("a key that is being moved is never missed", () => {
  it("by a thread that reads while this one inserts and deletes its neighbours", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Point, Blob], memoryBytes: 64 * MIB });
    for (let n = 0; n < KEYS; n++) {
      const id = n * STEP;
      db.transactSync((tx) => {
        tx.put(Point, { id, x: id, y: -id });
        tx.put(Blob, { id, data: new Uint8Array(2) });
      });
    }
    const stop = new SharedArrayBuffer(4);
    const reader = startWorker(stores, READER, { path, stop, keys: KEYS, step: STEP });
    await new Promise((resolve) => reader.worker.once("message", resolve));
    const random = new Random(seed);
    const added: number[] = [];
    for (let step = 0; step < 30_000; step++) {
      const id = random.below(1_000_000) * STEP + 1 + random.below(STEP - 1);
      db.transactSync((tx) => {
        tx.put(Point, { id, x: id, y: -id });
        if (step % 3 === 0) {
          const size = random.below(200);
          const data = new Uint8Array(size + 2);
          data[0] = size;
          tx.put(Blob, { id, data });
          // A row that always exists changes its size class: its object is replaced.
          const always = random.below(KEYS) * STEP;
          tx.put(Blob, { id: always, data });
        }
      });
      added.push(id);
      if (step % 2 === 1) {
        const [gone] = added.splice(random.below(added.length), 1);
        db.transactSync((tx) => {
          tx.delete(Point, gone);
          tx.delete(Blob, gone);
        });
      }
    }
    expect(db.stats().counters.splits).toBeGreaterThan(20);
    Atomics.store(new Int32Array(stop), 0, 1);
    const { reads, missed, transactions } = (await reader.result) as Record<string, number>;
    expect(missed).toBe(0);
    expect(reads).toBeGreaterThan(1_000);
    expect(transactions).toBeGreaterThan(50);
  });

  it("by this process while two others make the table split", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Point], memoryBytes: 64 * MIB });
    for (let n = 0; n < KEYS; n++) {
      db.transactSync((tx) => tx.put(Point, { id: n * STEP, x: n * STEP, y: -n * STEP }));
    }
    const writer = `
      const { open, table, u32, f64 } = situ;
      const Point = table("point", { id: u32(), x: f64(), y: f64() }, { key: "id" });
      const db = await open({ path: data.path, tables: [Point] });
      for (let n = 0; n < 12_000; n++) {
        const id = (n * 2 + data.half) * 17 + 1;
        db.transactSync((tx) => tx.insert(Point, { id, x: id, y: -id }));
        if (n % 3 === 2) db.transactSync((tx) => tx.delete(Point, id - 34));
      }
      await db.close();
      return "done";`;
    const children = [0, 1].map((half) => startChild(stores, writer, { path, half }));
    let running = true;
    const outcomes = Promise.all(children.map(({ outcome }) => outcome)).finally(() => {
      running = false;
    });
    let missed = 0;
    let rounds = 0;
    while (running) {
      for (let n = 0; n < KEYS; n++) if (db.get(Point, n * STEP)?.x !== n * STEP) missed++;
      rounds++;
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    for (const { result, error, stderr } of await outcomes) {
      expect({ result, error, stderr }).toEqual({ result: "done", error: undefined, stderr: "" });
    }
    expect(missed).toBe(0);
    expect(rounds).toBeGreaterThan(1);
    expect(db.stats().counters.splits).toBeGreaterThan(20);
    let rows = 0;
    for (let id = 0; id < 24_000 * 17 + 40; id++) if (db.get(Point, id) !== undefined) rows++;
    expect(rows).toBe(KEYS + 2 * 8_000);
  });
});
