/** The bucket store: many splits, splits inside one transaction, lookups by others while keys move. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Random } from "../../src/runtime/random.ts";
import { Directory } from "../../src/stores/shards/directory.ts";
import { bytes, f64, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { MIB, memoryOf, seed, temporaryStores } from "../helpers/store.ts";
import { bucketsShape, createBuckets } from "../helpers/store-buckets.ts";
import { openExecutor, rehashed, run } from "../helpers/store-engine.ts";
import { startChild, startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const layout = "buckets" as const;
const Point = table("point", { id: u32(), x: f64(), y: f64() }, { key: "id", layout });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id", layout });

describe("many rows", () => {
  it("30,000 rows in as many transactions, seen by a handle that was opened before", async () => {
    const path = stores.folder();
    const rows = 30_000;
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
    expect(db.stats().counters.splits).toBeGreaterThan(3);
    const error = new Error("thrown away");
    expect(() =>
      db.transactSync((tx) => {
        for (let id = rows; id < 2 * rows; id++) tx.insert(Point, { id, x: id, y: 0 });
        throw error;
      }),
    ).toThrow(error);
    db.transactSync((tx) => {
      for (let id = 0; id < 3_000; id++) tx.insert(Blob, { id, data: new Uint8Array(id % 300) });
    });
    for (let id = 0; id < 3_000; id++) assert.equal(db.get(Blob, id)?.data.length, id % 300);
    expect(db.transactSync((tx) => tx.count(Point))).toBe(rows / 2);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("the layout's rules hold through random inserts and deletes over many splits", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createBuckets(
      executor,
      rehashed(Point, (hash) => hash),
    );
    const { tx, store } = under;
    const random = new Random(seed);
    const model = new Set<number>();
    for (let round = 0; round < 20; round++) {
      for (let step = 0; step < 800; step++) {
        const id = random.below(10_000);
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
      expect(bucketsShape(under as never)).toMatchObject({ broken: [], pairs: model.size });
    }
    for (let id = 0; id < 10_000; id++) assert.equal(store.get(id) !== undefined, model.has(id));
    expect(bucketsShape(under as never).shards).toBeGreaterThan(5);
  });

  it("comes back from the log after a loss of all memory: neither knows of buckets", async () => {
    const path = stores.folder();
    const tables = [Point, Blob];
    const db = await stores.open({ path, tables, memoryBytes: 64 * MIB, durability: "sync" });
    db.transactSync((tx) => {
      for (let id = 0; id < 2_000; id++) tx.put(Blob, { id, data: new Uint8Array(id % 200) });
    });
    for (let id = 0; id < 2_000; id += 3) db.transactSync((tx) => tx.delete(Blob, id));
    await db.durable();
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    const again = await stores.open({ path, tables });
    for (let id = 0; id < 2_000; id++) {
      assert.equal(again.get(Blob, id)?.data.length, id % 3 === 0 ? undefined : id % 200);
    }
    expect((await again.verify()).problems).toEqual([]);
  });
});

describe("a scan", () => {
  const { locate } = Directory.prototype;
  afterEach(() => {
    Directory.prototype.locate = locate;
  });

  it("sees all rows, though another one splits the shard between its head and its buckets", async () => {
    const Small = table("small", { id: u32(), value: u32() }, { key: "id", layout });
    const db = await stores.open({ tables: [Small], memoryBytes: 64 * MIB });
    const other = await stores.open({ path: db.path, tables: [Small] });
    let rows = 0;
    const insert = (): void => {
      const id = rows++;
      other.transactSync((tx) => tx.insert(Small, { id, value: 1 }));
    };
    while (rows < 600) insert();
    Directory.prototype.locate = function (tx, hash) {
      locate.call(this, tx, hash);
      Directory.prototype.locate = locate;
      const { splits } = other.stats().counters;
      while (other.stats().counters.splits === splits) insert();
    };
    const found = db.transactSync((tx) => tx.scan(Small).toArray());
    expect(rows).toBeGreaterThan(600);
    expect(found).toHaveLength(rows);
    expect(new Set(found.map(({ id }) => id)).size).toBe(rows);
  });

  it("meets every row once, though it deletes them and inserts others meanwhile", async () => {
    const Small = table("small", { id: u32(), value: u32() }, { key: "id", layout });
    const db = await stores.open({ tables: [Small], memoryBytes: 64 * MIB });
    const rows = 3_000;
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id++) tx.insert(Small, { id, value: 1 });
    });
    db.transactSync((tx) => {
      const met = new Map<number, number>();
      let next = rows;
      for (const { id } of tx.scan(Small)) {
        met.set(id, (met.get(id) ?? 0) + 1);
        if (next < 2 * rows) tx.insert(Small, { id: next++, value: 2 });
        if (id % 2 === 0) tx.delete(Small, id);
      }
      expect([...met.values()].every((times) => times === 1)).toBe(true);
      for (let id = 0; id < rows; id++) expect(met.has(id)).toBe(true);
    });
  });
});

/** Looks up keys that always exist until it is told to stop; says how many were missed. */
const READER = `
  const { open, table, u32, f64, bytes } = situ;
  const layout = "buckets";
  const Point = table("point", { id: u32(), x: f64(), y: f64() }, { key: "id", layout });
  const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id", layout });
  const db = await open({ path: data.path, tables: [Point, Blob] });
  const stop = new Int32Array(data.stop);
  let reads = 0, missed = 0, transactions = 0, snapshots = 0;
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
        const both = db.transactSync((tx) => [tx.get(Point, id), tx.get(Blob, id)]);
        if (both[0]?.x !== id || both[1]?.data.length !== both[1].data[0] + 2) missed++;
        transactions++;
      }
    }
    const snap = db.snapshot();
    const first = snap.count(Point);
    for (let n = 0; n < data.keys; n += 7) {
      if (snap.get(Point, n * data.step)?.x !== n * data.step) missed++;
      const blob = snap.get(Blob, n * data.step);
      if (blob?.data.length !== blob?.data[0] + 2) missed++;
    }
    if (snap.count(Point) !== first) missed++;
    snap.close();
    snapshots++;
  }
  await db.close();
  return { reads, missed, transactions, snapshots };`;

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
          // A row that always exists changes its size: in its object, or with a new one.
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
    expect(db.stats().counters.splits).toBeGreaterThan(10);
    Atomics.store(new Int32Array(stop), 0, 1);
    const found = (await reader.result) as Record<string, number>;
    expect(found.missed).toBe(0);
    expect(found.reads).toBeGreaterThan(1_000);
    expect(found.transactions).toBeGreaterThan(50);
    expect(found.snapshots).toBeGreaterThan(1);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("two processes move money between rows of few buckets: none is made, none is lost", async () => {
    const path = stores.folder();
    const Account = table("account", { id: u32(), balance: u32() }, { key: "id", layout });
    const db = await stores.open({ path, tables: [Account], memoryBytes: 64 * MIB });
    const accounts = 40;
    db.transactSync((tx) => {
      for (let id = 0; id < accounts; id++) tx.put(Account, { id, balance: 1_000 });
    });
    const mover = `
      const { open, table, u32 } = situ;
      const Account = table("account", { id: u32(), balance: u32() }, { key: "id", layout: "buckets" });
      const db = await open({ path: data.path, tables: [Account] });
      let wrong = 0;
      for (let n = 0; n < 4_000; n++) {
        const from = (n * 7 + data.half * 3) % ${accounts};
        const to = (n * 11 + 5 + data.half) % ${accounts};
        if (from !== to) {
          db.transactSync((tx) => {
            const a = tx.get(Account, from), b = tx.get(Account, to);
            const amount = Math.min(a.balance, 1 + n % 50);
            tx.update(Account, from, { balance: a.balance - amount });
            tx.put(Account, { id: to, balance: b.balance + amount });
          });
        }
        // Rows come and go beside them, so that there are chains, and splits.
        db.transactSync((tx) => tx.put(Account, { id: 1000 + data.half + 2 * n, balance: 0 }));
        if (n % 2 === 1) db.transactSync((tx) => tx.delete(Account, 1000 + data.half + 2 * (n - 1)));
        if (n % 50 === 0) {
          const all = db.transactSync((tx) => {
            let sum = 0;
            for (let id = 0; id < ${accounts}; id++) sum += tx.get(Account, id).balance;
            return sum;
          });
          if (all !== ${accounts * 1_000}) wrong++;
        }
      }
      await db.close();
      return wrong;`;
    const children = [0, 1].map((half) => startChild(stores, mover, { path, half }));
    for (const { outcome } of children) {
      const { result, error, stderr } = await outcome;
      expect({ result, error, stderr }).toEqual({ result: 0, error: undefined, stderr: "" });
    }
    const sum = db.transactSync((tx) => {
      let all = 0;
      for (const { balance } of tx.scan(Account)) all += balance;
      return all;
    });
    expect(sum).toBe(accounts * 1_000);
    expect(db.transactSync((tx) => tx.count(Account))).toBe(accounts + 4_000);
    expect((await db.verify()).problems).toEqual([]);
  });
});
