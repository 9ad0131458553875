/** The hash table as a Map, with chains, with keys of one hash, with large rows. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { str, u32, u64 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import {
  blocksIn,
  brokenRules,
  createTable,
  openExecutor,
  pairsIn,
  type Rehash,
  rehashed,
  run,
  shapeOf,
} from "../helpers/store-engine.ts";
import { behavesAsAMap, HOPSCOTCH_KIND, Inline, Variable } from "../helpers/store-model.ts";

const stores = temporaryStores();

behavesAsAMap(stores, HOPSCOTCH_KIND);

describe("chains", () => {
  const oneHome: Rehash = (hash) => hash & 0x03ffffff;

  it("grow and collapse pair by pair, in whatever order the keys are removed", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const order = fc.shuffledSubarray(
      Array.from({ length: 60 }, (_, key) => key),
      { minLength: 60, maxLength: 60 },
    );
    check(
      fc.property(order, order, (adding, removing) => {
        const under = createTable(executor, rehashed(Inline, oneHome));
        const { tx, store } = under;
        for (const id of adding) run(executor, tx, () => store.put(tx, { id, value: id }));
        expect(blocksIn(shapeOf(under as never))).toBeGreaterThan(20);
        for (const [removed, id] of removing.entries()) {
          expect(run(executor, tx, () => store.remove(tx, id))).toBe(true);
          const shards = shapeOf(under as never);
          expect(brokenRules(shards)).toEqual([]);
          expect(pairsIn(shards)).toBe(59 - removed);
          // Eight pairs fit the two buckets; no chain is longer than the rest needs.
          expect(blocksIn(shards)).toBeLessThanOrEqual(Math.ceil((59 - removed) / 2));
          for (const left of removing.slice(removed + 1)) {
            assert.deepEqual(store.get(left), { id: left, value: left });
          }
        }
        expect(blocksIn(shapeOf(under as never))).toBe(0);
      }),
      4,
    );
  });

  it("hundreds of keys with one 32-bit hash: slow, but right", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createTable(
      executor,
      rehashed(Inline, () => 99),
    );
    const { tx, store } = under;
    for (let id = 0; id < 400; id++) {
      run(executor, tx, () => store.insert(tx, { id, value: id }));
      store.maintain();
    }
    for (let id = 0; id < 400; id++) assert.deepEqual(store.get(id), { id, value: id });
    expect(store.get(400)).toBeUndefined();
    expect(brokenRules(shapeOf(under as never))).toEqual([]);
    for (let id = 0; id < 400; id += 2) run(executor, tx, () => store.remove(tx, id));
    for (let id = 0; id < 400; id++) {
      expect(store.get(id)).toEqual(id % 2 === 0 ? undefined : { id, value: id });
    }
  });

  it("a shard that no split can separate stops splitting", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createTable(
      executor,
      rehashed(Inline, (hash) => hash & 0xfc000000),
    );
    const { tx, store } = under;
    for (let id = 0; id < 1_000; id++) {
      run(executor, tx, () => store.insert(tx, { id, value: id }));
      store.maintain();
    }
    const shards = shapeOf(under as never);
    expect(brokenRules(shards)).toEqual([]);
    expect(shards.length).toBeLessThanOrEqual(27);
    for (let id = 0; id < 1_000; id++) assert.deepEqual(store.get(id), { id, value: id });
  });
});

describe("keys that really have the same hash", () => {
  const Long = table("long", { id: u64(), value: u32() }, { key: "id" });

  /** Pairs of different keys with one 32-bit hash, found by their birthdays. */
  function twins(): [bigint, bigint][] {
    const codec = codecOf(Long);
    const seen = new Map<number, bigint>();
    const found: [bigint, bigint][] = [];
    for (let n = 1n; found.length < 4 && n < 2_000_000n; n++) {
      const id = BigInt.asUintN(64, n * 0x9e3779b97f4a7c15n);
      const hash = codec.stageKey(id);
      const other = seen.get(hash);
      if (other === undefined) seen.set(hash, id);
      else found.push([other, id]);
    }
    return found;
  }

  it("are told apart in the database, in all operations", async () => {
    const db = await stores.open({ tables: [Long] });
    const pairs = twins();
    expect(pairs.length).toBe(4);
    for (const [a, b] of pairs) {
      db.transactSync((tx) => tx.insert(Long, { id: a, value: 1 }));
      expect(db.get(Long, b)).toBeUndefined();
      db.transactSync((tx) => {
        expect(tx.has(Long, b)).toBe(false);
        tx.insert(Long, { id: b, value: 2 });
        expect(tx.get(Long, a)?.value).toBe(1);
        expect(tx.get(Long, b)?.value).toBe(2);
      });
      expect(db.get(Long, a)?.value).toBe(1);
      expect(db.get(Long, b)?.value).toBe(2);
      db.transactSync((tx) => tx.delete(Long, a));
      expect(db.get(Long, a)).toBeUndefined();
      expect(db.get(Long, b)?.value).toBe(2);
    }
  });
});

describe("large rows", () => {
  it("up to 3 MiB, in pieces, growing and shrinking", async () => {
    const Large = table("large", { id: u32(), a: str(), b: str(), c: str() }, { key: "id" });
    const db = await stores.open({ tables: [Large], memoryBytes: 64 * MIB });
    const sizes = [0, 1, 5_000, 300_000, MIB - 200, MIB - 64, MIB - 40, MIB - 8, MIB];
    const model = new Map<number, { id: number; a: string; b: string; c: string }>();
    const put = (id: number, a: number, b: number, c: number): void => {
      const row = { id, a: "a".repeat(a), b: "b".repeat(b), c: "c".repeat(c) };
      db.transactSync((tx) => {
        tx.put(Large, row);
        expect(tx.get(Large, id)).toEqual(row);
      });
      model.set(id, row);
      expect(db.get(Large, id)).toEqual(row);
    };
    for (const size of sizes) put(1, size, 0, 0);
    for (const size of sizes) put(1, MIB, size, 0);
    for (const size of sizes.toReversed()) put(1, MIB, size, 1);
    // The largest row there can be: 3 MiB with its fixed part.
    put(2, MIB, MIB, MIB - 40);
    put(1, 10, 10, 10);
    put(2, MIB, 7, MIB);
    db.transactSync((tx) => tx.update(Large, 2, { b: "new" }));
    expect(db.get(Large, 2)).toEqual({ ...model.get(2)!, b: "new" });
    expect(db.get(Large, 1)).toEqual(model.get(1));
    for (let round = 0; round < 30; round++) {
      db.transactSync((tx) => tx.delete(Large, 2));
      expect(db.get(Large, 2)).toBeUndefined();
      put(2, MIB, MIB, round);
    }
  });

  it("a transaction thrown away in the middle of large rows leaves the old ones", async () => {
    const db = await stores.open({ tables: [Variable], memoryBytes: 32 * MIB });
    const before = { id: 1, text: "x".repeat(900_000) };
    db.transactSync((tx) => tx.put(Variable, before));
    for (let round = 0; round < 50; round++) {
      const error = new Error("thrown away");
      expect(() =>
        db.transactSync((tx) => {
          tx.put(Variable, { id: 1, text: "y".repeat(round * 20_000) });
          tx.put(Variable, { id: 2, text: "y".repeat(MIB) });
          throw error;
        }),
      ).toThrow(error);
    }
    expect(db.get(Variable, 1)).toEqual(before);
    expect(db.get(Variable, 2)).toBeUndefined();
  });

  it("a value of more than 1 MiB is refused", async () => {
    const db = await stores.open({ tables: [Variable], memoryBytes: 32 * MIB });
    failureSync("SITU_TOO_LARGE", () =>
      db.transactSync((tx) => tx.put(Variable, { id: 1, text: "x".repeat(MIB + 1) })),
    );
    expect(db.get(Variable, 1)).toBeUndefined();
  });
});
