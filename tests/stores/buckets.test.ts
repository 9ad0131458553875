/** FaSST's bucket store: as a Map, with chains, with keys of one hash, with large rows. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { MAX_BUCKET_SLOTS, MIN_BUCKET_SLOTS } from "../../src/runtime/limits.ts";
import { Geometry } from "../../src/stores/buckets/layout.ts";
import { openRemote } from "../../src/stores/remote/open.ts";
import { describeRemote } from "../../src/stores/remote/remote.ts";
import type { RowCodec } from "../../src/stores/store.ts";
import { str, u32, u64 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { readSet, serve, shown } from "../helpers/remote.ts";
import { failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import { BUCKETS_KIND, bucketsShape, createBuckets } from "../helpers/store-buckets.ts";
import { openExecutor, type Rehash, rehashed, run } from "../helpers/store-engine.ts";
import { behavesAsAMap, Inline, Variable } from "../helpers/store-model.ts";

const stores = temporaryStores();

behavesAsAMap(stores, BUCKETS_KIND);

const oneBucket: Rehash = (hash) => hash & 0x03ffffff;

describe("slots", () => {
  it("7 to 15 of them, fewer for larger rows, and every row at an even word", () => {
    let before = MAX_BUCKET_SLOTS;
    for (let words = 2; words <= 32; words += 2) {
      const { slots, rowsAt, stride, inline } = new Geometry(words);
      expect(inline).toBe(true);
      expect(slots).toBeLessThanOrEqual(before);
      expect(slots).toBeGreaterThanOrEqual(MIN_BUCKET_SLOTS);
      expect(rowsAt % 2).toBe(0);
      expect(stride % 2).toBe(0);
      // Small, unless seven rows make it large.
      if (slots > MIN_BUCKET_SLOTS) expect(stride * 4).toBeLessThanOrEqual(512);
      before = slots;
    }
    expect(before).toBe(MIN_BUCKET_SLOTS);
    expect(new Geometry(2).slots).toBe(MAX_BUCKET_SLOTS);
    expect(new Geometry(0)).toMatchObject({ inline: false, slots: MAX_BUCKET_SLOTS });
    expect(new Geometry(34).inline).toBe(false);
  });
});

describe("chains", () => {
  it("grow and shrink pair by pair, in whatever order the keys are removed", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const keys = 100;
    const order = fc.shuffledSubarray(
      Array.from({ length: keys }, (_, key) => key),
      { minLength: keys, maxLength: keys },
    );
    check(
      fc.property(order, order, (adding, removing) => {
        const under = createBuckets(executor, rehashed(Inline, oneBucket));
        const { tx, store } = under;
        for (const id of adding) run(executor, tx, () => store.put(tx, { id, value: id }));
        expect(bucketsShape(under as never).blocks).toBe(Math.ceil(keys / MAX_BUCKET_SLOTS) - 1);
        for (const [removed, id] of removing.entries()) {
          expect(run(executor, tx, () => store.remove(tx, id))).toBe(true);
          const left = keys - 1 - removed;
          const blocks = Math.max(0, Math.ceil(left / MAX_BUCKET_SLOTS) - 1);
          expect(bucketsShape(under as never)).toMatchObject({ broken: [], pairs: left, blocks });
          for (const other of removing.slice(removed + 1)) {
            assert.deepEqual(store.get(other), { id: other, value: other });
          }
        }
      }),
      4,
    );
  });

  it.each([
    ["rows in their buckets", Inline, (id: number, n: number) => ({ id, value: n })],
    ["rows as objects", Variable, (id: number, n: number) => ({ id, text: "x".repeat(n % 40) })],
  ])(
    "one header: whatever changes in a chain changes the version of the main bucket, %s",
    async (_, of, row) => {
      const executor = await openExecutor(stores, stores.folder());
      const codec = rehashed(of as never, () => 99) as RowCodec<{ id: number }, number>;
      const under = createBuckets(executor, codec);
      const { tx, store, root } = under;
      const { memory } = executor;
      const remote = openRemote(
        describeRemote("buckets", codec.fixedWords, root, memory),
        codec as never,
      );
      const keys = 60;
      for (let id = 0; id < keys; id++) run(executor, tx, () => store.put(tx, row(id, id)));
      const version = (): string =>
        shown(serve(memory, remote.lookup(-1 >>> 0)).dependencies).join();
      let last = version();
      const changes = (what: string, change: () => unknown): void => {
        run(executor, tx, change);
        const now = version();
        expect(now, what).not.toBe(last);
        last = now;
      };
      for (let id = 0; id < keys; id++) {
        const { id: _id, ...fields } = row(id, id + 7);
        changes(`put ${id}`, () => store.put(tx, row(id, id + 3)));
        changes(`grow ${id}`, () => store.put(tx, row(id, 39)));
        changes(`update ${id}`, () => store.update(tx, id, fields as never));
        changes(`remove ${id}`, () => store.remove(tx, id));
        changes(`insert ${id}`, () => store.insert(tx, row(id, id)));
        // However many blocks were read, the main bucket is all that a reader depends on.
        run(executor, tx, () => {
          expect(store.read(tx, id)).toEqual(row(id, id));
          expect(store.has(tx, 1_000 + id)).toBe(false);
          expect(readSet(tx)).toEqual([last]);
        });
        expect(version()).toBe(last);
      }
    },
  );

  it("hundreds of keys with one 32-bit hash: slow, but right", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createBuckets(
      executor,
      rehashed(Variable, () => 99),
    );
    const { tx, store } = under;
    for (let id = 0; id < 400; id++) {
      run(executor, tx, () => store.insert(tx, { id, text: "x".repeat(id) }));
      store.maintain();
    }
    for (let id = 0; id < 400; id++) assert.equal(store.get(id)?.text.length, id);
    expect(store.get(400)).toBeUndefined();
    expect(bucketsShape(under as never).broken).toEqual([]);
    for (let id = 0; id < 400; id += 2) run(executor, tx, () => store.remove(tx, id));
    for (let id = 0; id < 400; id++) {
      expect(store.get(id)?.text.length).toBe(id % 2 === 0 ? undefined : id);
    }
  });

  it("a shard that no split can separate stops splitting", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createBuckets(
      executor,
      rehashed(Inline, (hash) => hash & 0xfc000000),
    );
    const { tx, store } = under;
    for (let id = 0; id < 3_000; id++) {
      run(executor, tx, () => store.insert(tx, { id, value: id }));
      store.maintain();
    }
    const shape = bucketsShape(under as never);
    expect(shape.broken).toEqual([]);
    expect(shape.shards).toBeLessThanOrEqual(27);
    for (let id = 0; id < 3_000; id++) assert.deepEqual(store.get(id), { id, value: id });
  });
});

describe("in the database", () => {
  const layout = "buckets" as const;
  const Long = table("long", { id: u64(), value: u32() }, { key: "id", layout });
  const Large = table("large", { id: u32(), a: str(), b: str(), c: str() }, { key: "id", layout });

  it("rows up to 3 MiB, in pieces, growing and shrinking", async () => {
    const db = await stores.open({ tables: [Large], memoryBytes: 64 * MIB });
    const sizes = [0, 1, 5_000, 300_000, MIB - 200, MIB - 64, MIB - 40, MIB - 8, MIB];
    const put = (id: number, a: number, b: number, c: number): void => {
      const row = { id, a: "a".repeat(a), b: "b".repeat(b), c: "c".repeat(c) };
      db.transactSync((tx) => {
        tx.put(Large, row);
        expect(tx.get(Large, id)).toEqual(row);
      });
      expect(db.get(Large, id)).toEqual(row);
    };
    for (const size of sizes) put(1, size, 0, 0);
    for (const size of sizes) put(1, MIB, size, 0);
    put(2, MIB, MIB, MIB - 40);
    put(1, 10, 10, 10);
    db.transactSync((tx) => tx.update(Large, 2, { b: "new" }));
    expect(db.get(Large, 2)?.b).toBe("new");
    expect(db.get(Large, 2)?.c.length).toBe(MIB - 40);
    expect((await db.verify()).problems).toEqual([]);
    for (let round = 0; round < 10; round++) {
      db.transactSync((tx) => tx.delete(Large, 2));
      expect(db.get(Large, 2)).toBeUndefined();
      put(2, MIB, MIB, round);
    }
  });

  it("the layout is part of the schema, and hopscotch the one of tables that say nothing", async () => {
    const path = stores.folder();
    const Plain = table("plain", { id: u32() }, { key: "id" });
    const db = await stores.open({ path, tables: [Long, Plain] });
    const schemas = new Map(db.stats().tables.map((each) => [each.name, each]));
    expect(schemas.get("long")).toMatchObject({ layout: "buckets", ordered: false });
    expect(Object.keys(schemas.get("plain")!)).toEqual([
      "name",
      "fields",
      "key",
      "ordered",
      "indexes",
    ]);
    db.transactSync((tx) => tx.put(Long, { id: 1n, value: 2 }));
    const other = table("long", { id: u64(), value: u32() }, { key: "id" });
    await expect(stores.open({ path, tables: [other] })).rejects.toThrow(
      /~ layout: buckets in the store, hopscotch here/,
    );
    const again = await stores.open({ path, tables: [Long] });
    expect(again.get(Long, 1n)).toEqual({ id: 1n, value: 2 });
    const found = await db.inspect("long");
    expect(found.schema).toMatchObject({ layout: "buckets" });
    expect(found.structure).toMatchObject({ kind: "buckets", rows: 1, slots: 15, shards: 1 });
    expect(found.problems).toEqual([]);
  });

  it("an ordered table has no layout, and an unknown one is refused", () => {
    failureSync("SITU_SCHEMA", () =>
      table("t", { id: u32() }, { key: "id", ordered: true, layout: "buckets" }),
    );
    failureSync("SITU_SCHEMA", () =>
      table("t", { id: u32() }, { key: "id", layout: "cuckoo" as never }),
    );
  });

  it("with indexes, scans and snapshots", async () => {
    const Order = table(
      "order",
      { id: u32(), customer: u32(), text: str() },
      { key: "id", layout, indexes: { byCustomer: { on: ["customer"], kind: "hash" } } },
    );
    const db = await stores.open({ tables: [Order], memoryBytes: 64 * MIB });
    const rows = 3_000;
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id++) tx.insert(Order, { id, customer: id % 7, text: `t${id}` });
    });
    const snap = db.snapshot();
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id += 2) tx.delete(Order, id);
      for (let id = 1; id < rows; id += 2) tx.update(Order, id, { text: "x".repeat(id % 300) });
    });
    for (let id = rows; id < 3 * rows; id++) {
      db.transactSync((tx) => tx.put(Order, { id, customer: 1, text: "" }));
    }
    expect(snap.count(Order)).toBe(rows);
    expect(snap.count(Order, { index: "byCustomer", eq: 3 })).toBe(Math.ceil((rows - 3) / 7));
    for (let id = 0; id < rows; id++) assert.equal(snap.get(Order, id)?.text, `t${id}`);
    expect(new Set([...snap.scan(Order)].map(({ id }) => id)).size).toBe(rows);
    expect(db.transactSync((tx) => tx.count(Order))).toBe(2 * rows + rows / 2);
    snap.close();
    expect((await db.verify()).problems).toEqual([]);
  });
});
