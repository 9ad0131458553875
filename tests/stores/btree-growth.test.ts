/** Splits and merges: what orders of inserting and removing make of a tree, and of its memory. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { ALLOCATIONS, FREES, SPLITS } from "../../src/engine/slot.ts";
import { Random } from "../../src/runtime/random.ts";
import { f64, str, u32 } from "../../src/tables/fields.ts";
import { rangeOf } from "../../src/tables/range.ts";
import { table } from "../../src/tables/table.ts";
import { createTree, drain, type EngineTree, rowsOf, shapeOfTree } from "../helpers/btree.ts";
import { MIB, seed, temporaryStores } from "../helpers/store.ts";
import { openExecutor, run } from "../helpers/store-engine.ts";

const stores = temporaryStores();

const Point = table("point", { id: u32(), x: f64(), y: f64() }, { key: "id" });
const Name = table("name", { id: str(), value: u32() }, { key: "id" });
type PointRow = { id: number; x: number; y: number };

const ROWS = 50_000;

function shuffled(count: number, from: Random): number[] {
  const numbers = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = from.below(i + 1);
    [numbers[i], numbers[j]] = [numbers[j], numbers[i]];
  }
  return numbers;
}

/** Some rows in each transaction, with the work after it. */
function inBatches(
  { executor, tx, store }: EngineTree<never, never>,
  numbers: readonly number[],
  each: (number: number) => void,
): void {
  for (let from = 0; from < numbers.length; from += 100) {
    run(executor, tx, () => {
      for (const number of numbers.slice(from, from + 100)) each(number);
    });
    store.maintain();
  }
}

const pointOf = (id: number): PointRow => ({ id, x: id / 2, y: -id });

function load(tree: EngineTree<PointRow, number>, ids: readonly number[]): void {
  inBatches(tree as never, ids, (id) => assert.ok(tree.store.insert(tree.tx, pointOf(id))));
}

function unload(tree: EngineTree<PointRow, number>, ids: readonly number[]): void {
  inBatches(tree as never, ids, (id) => assert.ok(tree.store.remove(tree.tx, id)));
}

const EMPTY = { levels: 1, leaves: 1, inner: 1, rows: 0, broken: [] };

describe("orders of inserting", () => {
  it.each([
    ["ascending", (i: number) => i],
    ["descending", (i: number) => ROWS - 1 - i],
  ])("%s: the leaves are full", async (_, numberOf) => {
    const tree = createTree(await openExecutor(stores, stores.folder()), Point);
    load(
      tree,
      Array.from({ length: ROWS }, (_, i) => numberOf(i)),
    );
    const shape = shapeOfTree(tree);
    expect(shape.broken).toEqual([]);
    expect(shape.rows).toBe(ROWS);
    expect(shape.leaves).toBeLessThanOrEqual(Math.ceil(ROWS / shape.leafCapacity) + 2);
    const { executor } = tree;
    expect(executor.counters[executor.counterBase + SPLITS]).toBeGreaterThan(600);
    const ids = run(executor, tree.tx, () => rowsOf(tree)).map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: ROWS }, (_, i) => i));
  });

  it("several ascending sequences at once: the leaves are full, too", async () => {
    const tree = createTree(await openExecutor(stores, stores.folder()), Point);
    const runs = 10;
    // Batches of a hundred of each sequence in turn.
    const ids = Array.from({ length: ROWS }, (_, i) => {
      const batch = Math.floor(i / 100);
      return (batch % runs) * (ROWS / runs) + Math.floor(batch / runs) * 100 + (i % 100);
    });
    load(tree, ids);
    const shape = shapeOfTree(tree);
    expect(shape.broken).toEqual([]);
    expect(shape.leaves).toBeLessThan((1.5 * ROWS) / shape.leafCapacity);
  });

  it("random: the leaves are two thirds full, about", async () => {
    const tree = createTree(await openExecutor(stores, stores.folder()), Point);
    load(tree, shuffled(ROWS, new Random(seed)));
    const shape = shapeOfTree(tree);
    expect(shape.broken).toEqual([]);
    expect(shape.leaves).toBeLessThan(ROWS / shape.leafCapacity / 0.6);
    for (let id = 0; id < ROWS; id++) assert.equal(tree.store.get(id)?.y, -id);
    assert.equal(tree.store.get(ROWS), undefined);
  });
});

describe("removing", () => {
  it.each([
    ["in random order", (random: Random) => shuffled(ROWS, random)],
    ["ascending", () => Array.from({ length: ROWS }, (_, i) => i)],
    ["descending", () => Array.from({ length: ROWS }, (_, i) => ROWS - 1 - i)],
  ])("all rows %s leaves one leaf, and the memory for others", async (_, orderOf) => {
    const random = new Random(seed);
    const executor = await openExecutor(stores, stores.folder(), 16 * MIB);
    const tree = createTree(executor, Point);
    const count = (counter: number): number => executor.counters[executor.counterBase + counter];
    const live = count(ALLOCATIONS) - count(FREES);
    // The third load would not fit if what was removed did not come back.
    for (let round = 0; round < 5; round++) {
      load(tree, round % 2 === 0 ? shuffled(ROWS, random) : orderOf(random));
      assert.equal(shapeOfTree(tree).rows, ROWS);
      unload(tree, orderOf(random));
      expect(shapeOfTree(tree)).toMatchObject(EMPTY);
      expect(count(ALLOCATIONS) - count(FREES)).toBe(live);
    }
  });

  it("all rows in one transaction", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const tree = createTree(executor, Point);
    load(
      tree,
      Array.from({ length: ROWS }, (_, i) => i),
    );
    run(executor, tree.tx, () => {
      for (let id = 0; id < ROWS; id++) assert.ok(tree.store.remove(tree.tx, id));
      assert.deepEqual(rowsOf(tree), []);
    });
    tree.store.maintain();
    expect(shapeOfTree(tree)).toMatchObject(EMPTY);
  });

  it("rows with long keys, where inner nodes are narrow", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const tree = createTree(executor, Name);
    const random = new Random(seed);
    const keyOf = (i: number): string => "k".repeat(700 + (i % 90)) + String(i).padStart(5, "0");
    const numbers = shuffled(1_500, random);
    for (let round = 0; round < 2; round++) {
      inBatches(tree as never, numbers, (i) =>
        assert.ok(tree.store.insert(tree.tx, { id: keyOf(i), value: i })),
      );
      const shape = shapeOfTree(tree);
      expect(shape.broken).toEqual([]);
      expect(shape.levels).toBeGreaterThan(2);
      for (const i of numbers) assert.equal(tree.store.get(keyOf(i))?.value, i);
      const half = numbers.slice(0, 750);
      inBatches(tree as never, half, (i) => assert.ok(tree.store.remove(tree.tx, keyOf(i))));
      expect(shapeOfTree(tree)).toMatchObject({ broken: [], rows: 750 });
      const rest = numbers.slice(750);
      inBatches(tree as never, rest, (i) => assert.ok(tree.store.remove(tree.tx, keyOf(i))));
      expect(shapeOfTree(tree)).toMatchObject(EMPTY);
    }
  });

  it("a queue, new rows on the right and old ones gone on the left, stays small", async () => {
    const executor = await openExecutor(stores, stores.folder(), 8 * MIB);
    const tree = createTree(executor, Point);
    const { store, tx } = tree;
    const length = 1_000;
    for (let id = 0; id < 60_000; id += 10) {
      run(executor, tx, () => {
        for (let i = id; i < id + 10; i++) {
          store.insert(tx, pointOf(i));
          if (i >= length) assert.ok(store.remove(tx, i - length));
        }
      });
      store.maintain();
    }
    const shape = shapeOfTree(tree);
    expect(shape).toMatchObject({ rows: length, broken: [] });
    expect(shape.leaves).toBeLessThan(4 + (1.5 * length) / shape.leafCapacity);
    expect(shape.levels).toBe(1);
  });
});

describe("cursors", () => {
  const range = { from: undefined, to: undefined };

  it("go on by key, whatever happens between two calls", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const tree = createTree(executor, Point);
    const { store, tx } = tree;
    load(
      tree,
      Array.from({ length: 2_000 }, (_, i) => 2 * i),
    );
    for (const reverse of [false, true]) {
      const seen: number[] = [];
      const cursor = store.cursor(range, reverse);
      const rows: PointRow[] = [];
      // Each batch in a transaction of its own; odd rows come and go in the others.
      for (
        let most = 7;
        run(executor, tx, () => cursor.next(tx, rows, most));
        most = (most % 50) + 1
      ) {
        seen.push(...rows.map(({ id }) => id));
        const last = seen[seen.length - 1];
        run(executor, tx, () => {
          for (let id = 1; id < 4_000; id += 400) {
            if (!store.insert(tx, pointOf(id))) store.remove(tx, id);
          }
          // Rows around the place of the cursor: the next one goes, the last one comes again.
          if (last >= 2) store.remove(tx, last + (reverse ? -2 : 2));
          store.put(tx, pointOf(last));
        });
        store.maintain();
      }
      const sorted = [...new Set(seen)].sort((a, b) => (reverse ? b - a : a - b));
      expect(seen).toEqual(sorted);
      expect(seen.length).toBeGreaterThan(500);
    }
    expect(shapeOfTree(tree).broken).toEqual([]);
  });

  it("see what their transaction changes on the way", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const tree = createTree(executor, Point);
    const { store, tx } = tree;
    run(executor, tx, () => {
      for (let id = 0; id < 500; id++) store.insert(tx, pointOf(id));
      const cursor = store.cursor(range, false);
      const rows: PointRow[] = [];
      let last = -1;
      while (cursor.next(tx, rows, 3)) {
        for (const { id, x } of rows) {
          // Every seventh row was removed before it came, every tenth one changed or added.
          assert.notEqual(id % 7, 6);
          assert.ok(id > last && id <= last + 2);
          if (id % 10 === 9 && id > 50) assert.equal(x, -1);
          last = id;
        }
        for (let id = last + 1; id < last + 30; id++) {
          if (id % 7 === 6) store.remove(tx, id);
          else if (id % 10 === 9 || id >= 500) store.put(tx, { id, x: -1, y: 0 });
        }
        if (last > 700) return;
      }
      assert.fail("rows were added all the time");
    });
  });

  it("of a range without rows, in a tree without rows, and at its ends", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const tree = createTree(executor, Point);
    const { store, tx } = tree;
    const fields = [{ name: "id", field: u32() }];
    const ids = (bounds: object, reverse: boolean): number[] =>
      run(executor, tx, () =>
        drain(tx, store.cursor(rangeOf("point", fields, true, bounds), reverse), 10),
      ).map(({ id }) => id);
    for (const reverse of [false, true]) {
      expect(ids({}, reverse)).toEqual([]);
      expect(ids({ gte: 1, lt: 5 }, reverse)).toEqual([]);
    }
    run(executor, tx, () => {
      for (const id of [0, 1, 0x7fffffff, 0x80000000, 0xffffffff]) store.insert(tx, pointOf(id));
    });
    for (const reverse of [false, true]) {
      expect(ids({ gt: 1, lt: 0x7fffffff }, reverse)).toEqual([]);
      expect(ids({ gt: 0xffffffff }, reverse)).toEqual([]);
      expect(ids({ lt: 0 }, reverse)).toEqual([]);
      expect(ids({ gt: 5, lt: 4 }, reverse)).toEqual([]);
      expect(ids({ lte: 0 }, reverse)).toEqual([0]);
      expect(ids({ gte: 0xffffffff }, reverse)).toEqual([0xffffffff]);
      expect(ids({ eq: 0x80000000 }, reverse)).toEqual([0x80000000]);
    }
    expect(ids({ gt: 0 }, false)).toEqual([1, 0x7fffffff, 0x80000000, 0xffffffff]);
    expect(ids({ lte: 0x80000000 }, true)).toEqual([0x80000000, 0x7fffffff, 1, 0]);
  });
});
