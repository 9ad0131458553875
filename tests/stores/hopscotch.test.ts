/**
 * The hash table against a Map: random transactions of random size, some of them thrown away, on
 * few keys that collide as badly as keys can.
 */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codecOf } from "../../src/database/codec/codec.ts";
import { str, u32, u64 } from "../../src/database/fields.ts";
import { table } from "../../src/database/table.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { check, failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import {
  blocksIn,
  brokenRules,
  createTable,
  type EngineTable,
  openExecutor,
  pairsIn,
  type Rehash,
  rehashed,
  run,
  shapeOf,
} from "../helpers/store-engine.ts";

const stores = temporaryStores();

const Inline = table("inline", { id: u32(), value: u32() }, { key: "id" });
const Wide = table("wide", { id: u32(), a: str(200), value: u32() }, { key: "id" });
const Variable = table("variable", { id: u32(), text: str() }, { key: "id" });

/** How hashes are bent; the real ones first. */
const COLLISIONS: Record<string, Rehash> = {
  "the real hash": (hash) => hash,
  "one home bucket for all": (hash) => hash & 0x03ffffff,
  "two neighbouring homes": (hash) => (hash & 0x03ffffff) | ((hash & 1) << 26),
  "the last home bucket for all": (hash) => hash | 0xfc000000,
  "one 32-bit hash for all": () => 0x12345678,
  "three 32-bit hashes for all": (hash) => [7, 0x04000007, 0x80000001][(hash >>> 0) % 3],
  "one shard for all, however deep it is": (hash) => hash & 0xfc000000,
};

interface Operation {
  readonly kind: "insert" | "put" | "update" | "delete" | "get" | "has";
  readonly key: number;
  readonly value: number;
}

interface Step {
  readonly operations: readonly Operation[];
  readonly thrownAway: boolean;
}

/** Many more inserts than deletes, so that chains come into being, and go again at the end. */
const operation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.constantFrom("insert", "insert", "put", "put", "update", "delete", "get", "has"),
  key: fc.nat(47),
  value: fc.nat(4_000),
});

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    operations: fc.array(operation, { minLength: 1, maxLength: 24 }),
    thrownAway: fc.boolean(),
  }),
  { minLength: 1, maxLength: 24 },
);

class Thrown extends Error {}

interface Shape<Row> {
  row(key: number, value: number): Row;
  changes(value: number): Partial<Row>;
}

/** One transaction on the table and on the model; each answer is compared on the way. */
function play<Row>(
  under: EngineTable<Row, number>,
  model: Map<number, number>,
  step: Step,
  shape: Shape<Row>,
): void {
  const { executor, tx, store } = under;
  const after = new Map(model);
  const expected = (key: number): Row | undefined =>
    after.has(key) ? shape.row(key, after.get(key)!) : undefined;
  const body = (): void => {
    for (const { kind, key, value } of step.operations) {
      const before = after.get(key);
      if (kind === "insert") {
        assert.equal(store.insert(tx, shape.row(key, value)), before === undefined);
        if (before === undefined) after.set(key, value);
      } else if (kind === "put") {
        store.put(tx, shape.row(key, value));
        after.set(key, value);
      } else if (kind === "update") {
        assert.equal(store.update(tx, key, shape.changes(value)), before !== undefined);
        if (before !== undefined) after.set(key, value);
      } else if (kind === "delete") {
        assert.equal(store.remove(tx, key), before !== undefined);
        after.delete(key);
      } else if (kind === "has") {
        assert.equal(store.has(tx, key), before !== undefined);
      }
      assert.deepEqual(store.read(tx, key), expected(key));
    }
    if (step.thrownAway) throw new Thrown();
  };
  try {
    run(executor, tx, body);
    model.clear();
    for (const [key, value] of after) model.set(key, value);
  } catch (error) {
    if (!(error instanceof Thrown)) throw error;
  }
  store.maintain();
}

/** Outside of transactions: `get` says what the model says, and the layout's rules hold. */
function compare<Row>(
  under: EngineTable<Row, number>,
  model: ReadonlyMap<number, number>,
  shape: Shape<Row>,
): void {
  for (let key = 0; key < 48; key++) {
    const value = model.get(key);
    const wanted = value === undefined ? undefined : shape.row(key, value);
    assert.deepEqual(under.store.get(key), wanted);
    run(under.executor, under.tx, () => {
      assert.deepEqual(under.store.read(under.tx, key), wanted);
    });
  }
  const shards = shapeOf(under as never);
  assert.deepEqual(brokenRules(shards), []);
  assert.equal(pairsIn(shards), model.size);
}

function emptyOut<Row>(under: EngineTable<Row, number>): void {
  for (let key = 0; key < 48; key++) {
    run(under.executor, under.tx, () => under.store.remove(under.tx, key));
  }
  const shards = shapeOf(under as never);
  assert.deepEqual(brokenRules(shards), []);
  assert.equal(pairsIn(shards), 0);
  assert.equal(blocksIn(shards), 0);
}

describe.each(Object.keys(COLLISIONS))("as a Map, with %s", (name) => {
  const rehash = COLLISIONS[name];

  it("rows inside their buckets", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const shape = {
      row: (id: number, value: number) => ({ id, value }),
      changes: (value: number) => ({ value }),
    };
    check(
      fc.property(steps, (transactions) => {
        const under = createTable(executor, rehashed(Inline, rehash));
        const model = new Map<number, number>();
        for (const step of transactions) play(under, model, step, shape);
        compare(under, model, shape);
        emptyOut(under);
      }),
      25,
    );
  });

  it("rows as objects of one size", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const shape = {
      row: (id: number, value: number) => ({ id, a: "a".repeat(value % 201), value }),
      changes: (value: number) => ({ a: "a".repeat(value % 201), value }),
    };
    check(
      fc.property(steps, (transactions) => {
        const under = createTable(executor, rehashed(Wide, rehash));
        const model = new Map<number, number>();
        for (const step of transactions) play(under, model, step, shape);
        compare(under, model, shape);
        emptyOut(under);
      }),
      8,
    );
  });

  it("rows as objects that grow and shrink across size classes", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const shape = {
      row: (id: number, value: number) => ({ id, text: "é".repeat(value) }),
      changes: (value: number) => ({ text: "é".repeat(value) }),
    };
    check(
      fc.property(steps, (transactions) => {
        const under = createTable(executor, rehashed(Variable, rehash));
        const model = new Map<number, number>();
        for (const step of transactions) play(under, model, step, shape);
        compare(under, model, shape);
        emptyOut(under);
      }),
      10,
    );
  });

  it("seen by a second executor whose directory is old", async () => {
    const path = stores.folder();
    const executor = await openExecutor(stores, path);
    const other = await openExecutor(stores, path);
    const shape = {
      row: (id: number, value: number) => ({ id, value }),
      changes: (value: number) => ({ value }),
    };
    check(
      fc.property(steps, fc.boolean(), (transactions, turn) => {
        const first = createTable(executor, rehashed(Inline, rehash));
        const codec = rehashed(Inline, rehash);
        const second: typeof first = {
          ...first,
          executor: other,
          tx: new Transaction(other),
          codec,
          store: new Hopscotch(other, codec, first.root),
        };
        const model = new Map<number, number>();
        compare(second, model, shape);
        for (const [index, step] of transactions.entries()) {
          play((index % 2 === 0) === turn ? first : second, model, step, shape);
        }
        compare(first, model, shape);
        compare(second, model, shape);
      }),
      8,
    );
  });
});

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
