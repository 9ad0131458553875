/**
 * A hash table against a Map: random transactions of random size, some of them thrown away, on few
 * keys that collide as badly as keys can. One suite for all stores that hash.
 */

import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import type { RowCodec, Store } from "../../src/stores/store.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "./property.ts";
import type { TemporaryStores } from "./store.ts";
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
} from "./store-engine.ts";

export const Inline = table("inline", { id: u32(), value: u32() }, { key: "id" });
export const Wide = table("wide", { id: u32(), a: str(200), value: u32() }, { key: "id" });
export const Variable = table("variable", { id: u32(), text: str() }, { key: "id" });

/** A store of some kind, as one executor has it open. */
export interface ModelTable<Row> {
  readonly executor: Executor;
  readonly tx: Transaction;
  readonly store: Store<Row, number>;
}

/** A kind of store, and a look at its memory that no transaction takes part in. */
export interface ModelKind {
  create<Row>(
    executor: Executor,
    codec: RowCodec<Row, number>,
    splitOccupancy?: number,
  ): ModelTable<Row>;
  /** The same table, by another executor. */
  reopen<Row>(
    under: ModelTable<Row>,
    executor: Executor,
    codec: RowCodec<Row, number>,
    splitOccupancy?: number,
  ): ModelTable<Row>;
  /** The rules of the layout that are broken, and how many pairs and overflow blocks there are. */
  shape(under: ModelTable<never>): { broken: string[]; pairs: number; blocks: number };
}

export const HOPSCOTCH_KIND: ModelKind = {
  create: (executor, codec, splitOccupancy) => createTable(executor, codec, splitOccupancy),
  reopen(under, executor, codec, splitOccupancy) {
    const { root } = under as unknown as EngineTable<never, never>;
    const store = new Hopscotch(executor, codec, root, splitOccupancy);
    return { ...under, executor, tx: new Transaction(executor), codec, store };
  },
  shape(under) {
    const shards = shapeOf(under as unknown as EngineTable<never, never>);
    return { broken: brokenRules(shards), pairs: pairsIn(shards), blocks: blocksIn(shards) };
  },
};

/** How hashes are bent; the real ones first. */
export const COLLISIONS: Record<string, Rehash> = {
  "the real hash": (hash) => hash,
  "one home bucket for all": (hash) => hash & 0x03ffffff,
  "two neighbouring homes": (hash) => (hash & 0x03ffffff) | ((hash & 1) << 26),
  "the last home bucket for all": (hash) => hash | 0xfc000000,
  "one 32-bit hash for all": () => 0x12345678,
  "three 32-bit hashes for all": (hash) => [7, 0x04000007, 0x80000001][(hash >>> 0) % 3],
  "one shard for all, however deep it is": (hash) => hash & 0xfc000000,
};

const KEYS = 48;

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
  key: fc.nat(KEYS - 1),
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

const INLINE: Shape<{ id: number; value: number }> = {
  row: (id, value) => ({ id, value }),
  changes: (value) => ({ value }),
};
const WIDE: Shape<{ id: number; a: string; value: number }> = {
  row: (id, value) => ({ id, a: "a".repeat(value % 201), value }),
  changes: (value) => ({ a: "a".repeat(value % 201), value }),
};
const VARIABLE: Shape<{ id: number; text: string }> = {
  row: (id, value) => ({ id, text: "é".repeat(value) }),
  changes: (value) => ({ text: "é".repeat(value) }),
};

/** One transaction on the table and on the model; each answer is compared on the way. */
function play<Row>(
  under: ModelTable<Row>,
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

/** The rows that a cursor walks over, by a transaction of its own. */
function walked<Row>({ executor, tx, store }: ModelTable<Row>): Row[] {
  return run(executor, tx, () => {
    const cursor = store.cursor({ from: undefined, to: undefined }, false);
    const all: Row[] = [];
    for (const some: Row[] = []; cursor.next(tx, some, 7); ) all.push(...some);
    return all;
  });
}

/** Outside of transactions: `get` says what the model says, and the layout's rules hold. */
function compare<Row>(
  kind: ModelKind,
  under: ModelTable<Row>,
  model: ReadonlyMap<number, number>,
  shape: Shape<Row>,
): void {
  for (let key = 0; key < KEYS; key++) {
    const value = model.get(key);
    const wanted = value === undefined ? undefined : shape.row(key, value);
    assert.deepEqual(under.store.get(key), wanted);
    run(under.executor, under.tx, () => {
      assert.deepEqual(under.store.read(under.tx, key), wanted);
    });
  }
  const rows = walked(under).map((row) => JSON.stringify(row));
  const wanted = [...model].map(([key, value]) => JSON.stringify(shape.row(key, value)));
  assert.deepEqual(rows.sort(), wanted.sort());
  const { broken, pairs } = kind.shape(under as never);
  assert.deepEqual(broken, []);
  assert.equal(pairs, model.size);
}

function emptyOut<Row>(kind: ModelKind, under: ModelTable<Row>): void {
  for (let key = 0; key < KEYS; key++) {
    run(under.executor, under.tx, () => under.store.remove(under.tx, key));
  }
  assert.deepEqual(kind.shape(under as never), { broken: [], pairs: 0, blocks: 0 });
}

/** The suite. */
export function behavesAsAMap(stores: TemporaryStores, kind: ModelKind): void {
  describe.each(Object.keys(COLLISIONS))("as a Map, with %s", (name) => {
    const rehash = COLLISIONS[name];

    async function replay<Row>(
      codec: () => RowCodec<Row, number>,
      shape: Shape<Row>,
      runs: number,
    ): Promise<void> {
      const executor = await openExecutor(stores, stores.folder());
      check(
        fc.property(steps, (transactions) => {
          const under = kind.create(executor, codec());
          const model = new Map<number, number>();
          for (const step of transactions) play(under, model, step, shape);
          compare(kind, under, model, shape);
          emptyOut(kind, under);
        }),
        runs,
      );
    }

    it("rows inside their buckets", () => replay(() => rehashed(Inline, rehash), INLINE, 25));

    it("rows as objects of one size", () => replay(() => rehashed(Wide, rehash), WIDE, 8));

    it("rows as objects that grow and shrink across size classes", () =>
      replay(() => rehashed(Variable, rehash), VARIABLE, 10));

    it("seen by a second executor whose directory is old", async () => {
      const path = stores.folder();
      const executor = await openExecutor(stores, path);
      const other = await openExecutor(stores, path);
      check(
        fc.property(steps, fc.boolean(), (transactions, turn) => {
          const first = kind.create(executor, rehashed(Inline, rehash));
          const second = kind.reopen(first, other, rehashed(Inline, rehash));
          const model = new Map<number, number>();
          compare(kind, second, model, INLINE);
          for (const [index, step] of transactions.entries()) {
            play((index % 2 === 0) === turn ? first : second, model, step, INLINE);
          }
          compare(kind, first, model, INLINE);
          compare(kind, second, model, INLINE);
        }),
        8,
      );
    });
  });
}
