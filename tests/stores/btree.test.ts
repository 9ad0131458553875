/**
 * The B+-tree against a sorted list: random transactions of random size, some of them thrown away,
 * for every kind of key and row that gives nodes another shape.
 */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { Transaction } from "../../src/engine/transaction.ts";
import { bytes, i64, str, u32 } from "../../src/tables/fields.ts";
import { type Bounds, rangeOf } from "../../src/tables/range.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { createTree, drain, type EngineTree, openTree, shapeOfTree } from "../helpers/btree.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import { openExecutor, run } from "../helpers/store-engine.ts";

const stores = temporaryStores();

/** A table, and how the numbers of a test become its keys and rows. Keys rise with their number. */
interface Kind<Row, Key> {
  readonly table: Table<Row, Key>;
  key(number: number): Key;
  row(number: number, value: number): Row;
  changes(value: number): Partial<Row>;
  /** How many keys there are: enough for several leaves, few enough to meet again. */
  readonly keys: number;
}

const kind = <Row, Key>(made: Kind<Row, Key>): Kind<unknown, unknown> =>
  made as unknown as Kind<unknown, unknown>;

const digits = (number: number, length: number): string => String(number).padStart(length, "0");

/** Most of a long key is the same for all, so that separators are long as well. */
const longText = (number: number): string => "é".repeat(400) + digits(number, 6) + "\0".repeat(30);

const KINDS: Record<string, Kind<unknown, unknown>> = {
  "u32 keys, rows in the leaf": kind({
    keys: 100,
    table: table("t", { id: u32(), a: str(100), value: u32() }, { key: "id" }),
    key: (number) => number * 42_000_000,
    row: (number, value) => ({ id: number * 42_000_000, a: `${value}`, value }),
    changes: (value) => ({ a: `${value}`, value }),
  }),
  "two fields, rows in the leaf": kind({
    keys: 300,
    table: table("t", { a: u32(), b: str(10), value: u32() }, { key: ["a", "b"] }),
    key: (number) => [number >> 2, "b".repeat(number & 3)] as const,
    row: (number, value) => ({ a: number >> 2, b: "b".repeat(number & 3), value }),
    changes: (value) => ({ value }),
  }),
  "i64 keys, row objects": kind({
    keys: 500,
    table: table("t", { id: i64(), text: str() }, { key: "id" }),
    key: (number) => BigInt(number - 250) * 2n ** 54n,
    row: (number, value) => ({ id: BigInt(number - 250) * 2n ** 54n, text: "x".repeat(value) }),
    changes: (value) => ({ text: "x".repeat(value) }),
  }),
  "text keys of any length, row objects": kind({
    keys: 1500,
    table: table("t", { id: str(), value: u32() }, { key: "id" }),
    key: (number) => digits(number, 4) + "z".repeat(number % 7),
    row: (number, value) => ({ id: digits(number, 4) + "z".repeat(number % 7), value }),
    changes: (value) => ({ value }),
  }),
  "text keys of some length, rows in the leaf": kind({
    keys: 800,
    table: table("t", { id: str(60), value: u32() }, { key: "id" }),
    key: (number) => digits(number, 20),
    row: (number, value) => ({ id: digits(number, 20), value }),
    changes: (value) => ({ value }),
  }),
  "keys near the limit": kind({
    keys: 60,
    table: table("t", { id: str(), value: u32() }, { key: "id" }),
    key: longText,
    row: (number, value) => ({ id: longText(number), value }),
    changes: (value) => ({ value }),
  }),
  "rows in chunks": kind({
    keys: 20,
    table: table("t", { id: u32(), data: bytes(), more: bytes() }, { key: "id" }),
    key: (number) => number,
    row: (number, value) => {
      const data = new Uint8Array(value % 4 === 0 ? MIB - 1 : value).fill(value);
      return { id: number, data, more: data };
    },
    changes: (value) => ({ more: new Uint8Array(value % 4 === 1 ? MIB : value).fill(value) }),
  }),
};

interface Operation {
  readonly kind: "insert" | "put" | "update" | "remove" | "read" | "has" | "scan" | "count";
  readonly key: number;
  readonly to: number;
  /** So many keys from there on, for what adds and removes. */
  readonly more: number;
  readonly value: number;
  readonly reverse: boolean;
  readonly most: number;
  readonly bounds: string;
}

/** Most operations are on keys that are near each other, so that leaves fill up and empty. */
const operation = (keys: number, most: number): fc.Arbitrary<Operation> =>
  fc.record({
    kind: fc.constantFrom(
      ...(["insert", "insert", "insert", "put", "put", "update"] as const),
      ...(["remove", "remove", "read", "has", "scan", "count"] as const),
    ),
    key: fc.nat(keys - 1),
    to: fc.nat(keys - 1),
    more: fc.nat(keys < 30 ? 0 : Math.ceil(keys / 6)),
    value: fc.nat(most),
    reverse: fc.boolean(),
    most: fc.constantFrom(1, 2, 7, 1_000),
    bounds: fc.constantFrom("", "gte", "gt", "lte", "lt", "gte lt", "gt lte", "eq"),
  });

interface Step {
  readonly operations: readonly Operation[];
  readonly thrownAway: boolean;
}

const steps = (keys: number, most: number, length: number): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.record({
      operations: fc.array(operation(keys, most), { minLength: 1, maxLength: length }),
      thrownAway: fc.boolean(),
    }),
    { minLength: 1, maxLength: 20 },
  );

class Thrown extends Error {}

type Model = Map<number, unknown>;

function boundsOf(of: Kind<unknown, unknown>, { bounds, key, to }: Operation): Bounds {
  const given: Record<string, unknown> = {};
  for (const name of bounds.split(" ").filter((each) => each !== "")) {
    given[name] = of.key(name.startsWith("l") && bounds.includes(" ") ? to : key);
  }
  return given;
}

function isWithin(number: number, { bounds, key, to }: Operation): boolean {
  const upper = bounds.includes(" ") ? to : key;
  return bounds.split(" ").every((name) => {
    if (name === "gte") return number >= key;
    if (name === "gt") return number > key;
    if (name === "lte") return number <= upper;
    if (name === "lt") return number < upper;
    return name !== "eq" || number === key;
  });
}

/** One operation on the tree and on the model; the answers are compared. */
function perform(
  { store, tx }: EngineTree<unknown, unknown>,
  of: Kind<unknown, unknown>,
  model: Model,
  each: Operation,
): void {
  const { key, value } = each;
  const isThere = model.has(key);
  const isSingle = of.table.singleKey;
  const fields = of.table.key.map((name) => ({ name, field: of.table.fields[name] }));
  const within = (): unknown[] =>
    [...model.keys()]
      .filter((number) => isWithin(number, each))
      .sort((a, b) => (each.reverse ? b - a : a - b))
      .map((number) => model.get(number));
  switch (each.kind) {
    case "insert":
      for (let next = key; next <= key + each.more && next < of.keys; next++) {
        const row = of.row(next, value);
        assert.equal(store.insert(tx, row), !model.has(next));
        if (!model.has(next)) model.set(next, row);
      }
      break;
    case "put":
      store.put(tx, of.row(key, value));
      model.set(key, of.row(key, value));
      break;
    case "update":
      assert.equal(store.update(tx, of.key(key), of.changes(value)), isThere);
      if (isThere)
        model.set(key, { ...(model.get(key) as object), ...(of.changes(value) as object) });
      break;
    case "remove":
      for (let next = key; next <= key + each.more && next < of.keys; next++) {
        assert.equal(store.remove(tx, of.key(next)), model.delete(next));
      }
      break;
    case "has":
      assert.equal(store.has(tx, of.key(key)), isThere);
      break;
    case "scan": {
      const range = rangeOf("t", fields, isSingle, boundsOf(of, each));
      assert.deepEqual(drain(tx, store.cursor(range, each.reverse), each.most), within());
      break;
    }
    case "count": {
      const cursor = store.cursor(rangeOf("t", fields, isSingle, boundsOf(of, each)), each.reverse);
      let count = 0;
      for (let some = cursor.skip(tx); some > 0; some = cursor.skip(tx)) count += some;
      assert.equal(count, within().length);
      break;
    }
    default:
  }
  assert.deepEqual(store.read(tx, of.key(key)), model.get(key));
}

/** One transaction; a thrown one leaves the model as it was. */
function play(
  tree: EngineTree<unknown, unknown>,
  of: Kind<unknown, unknown>,
  model: Model,
  step: Step,
): void {
  const after = new Map(model);
  try {
    run(tree.executor, tree.tx, () => {
      for (const each of step.operations) perform(tree, of, after, each);
      if (step.thrownAway) throw new Thrown();
    });
    model.clear();
    for (const [key, row] of after) model.set(key, row);
  } catch (error) {
    if (!(error instanceof Thrown)) throw error;
  }
  tree.store.maintain();
}

function compare(
  tree: EngineTree<unknown, unknown>,
  of: Kind<unknown, unknown>,
  model: Model,
): void {
  const shape = shapeOfTree(tree);
  assert.deepEqual(shape.broken, []);
  assert.equal(shape.rows, model.size);
  for (let number = 0; number < of.keys; number++) {
    assert.deepEqual(tree.store.get(of.key(number)), model.get(number));
  }
  const all = [...model.keys()].sort((a, b) => a - b).map((number) => model.get(number));
  const { executor, tx, store } = tree;
  const scanned = run(executor, tx, () =>
    drain(tx, store.cursor({ from: undefined, to: undefined }, false), 1_000),
  );
  assert.deepEqual(scanned, all);
}

describe.each(Object.entries(KINDS))("%s", (name, of) => {
  const isHeavy = name === "rows in chunks";

  it("does what a sorted list does", async () => {
    const executor = await openExecutor(stores, stores.folder(), 256 * MIB);
    let mostLeaves = 0;
    check(
      fc.property(steps(of.keys, isHeavy ? 200 : 90, isHeavy ? 3 : 20), (all) => {
        const tree = createTree(executor, of.table);
        const model: Model = new Map();
        for (const step of all) {
          play(tree, of, model, step);
          mostLeaves = Math.max(mostLeaves, shapeOfTree(tree).leaves);
        }
        compare(tree, of, model);
        // Emptied for the next run, and to see that it can be.
        for (const key of [...model.keys()]) {
          run(executor, tree.tx, () => assert.equal(tree.store.remove(tree.tx, of.key(key)), true));
          tree.store.maintain();
        }
        const { levels, leaves, rows, broken } = shapeOfTree(tree);
        assert.deepEqual(
          { levels, leaves, rows, broken },
          { levels: 1, leaves: 1, rows: 0, broken: [] },
        );
      }),
      isHeavy ? 8 : 40,
    );
    expect(mostLeaves).toBeGreaterThan(isHeavy ? 0 : 3);
  });
});

it("refuses wrong keys and rows, and the transaction goes on", async () => {
  const executor = await openExecutor(stores, stores.folder());
  const Text = table("texts", { id: str(), value: u32() }, { key: "id" });
  const { store, tx } = createTree(executor, Text);
  run(executor, tx, () => {
    store.insert(tx, { id: "a", value: 1 });
    expect(failureSync("SITU_TYPE", () => store.read(tx, 1 as never)).message).toContain(
      "texts.id",
    );
    expect(failureSync("SITU_TYPE", () => store.put(tx, { id: "b" } as never)).message).toContain(
      "texts.value",
    );
    failureSync("SITU_TOO_LARGE", () => store.insert(tx, { id: "x".repeat(1_025), value: 1 }));
    const long = failureSync("SITU_TOO_LARGE", () =>
      store.insert(tx, { id: "\0".repeat(600), value: 1 }),
    );
    expect(long.message).toContain("at most 1024 are allowed");
    failureSync("SITU_TYPE", () => store.update(tx, "a", { id: "b" }));
    store.insert(tx, { id: "b", value: 2 });
  });
  expect(store.get("a")).toEqual({ id: "a", value: 1 });
  expect(store.get("b")).toEqual({ id: "b", value: 2 });
});

it("another executor sees the same tree", async () => {
  const path = stores.folder();
  const one = await openExecutor(stores, path);
  const two = await openExecutor(stores, path);
  const Point = table("point", { id: u32(), x: u32() }, { key: "id" });
  const mine = createTree(one, Point);
  const theirs = openTree(two, Point, mine.root);
  for (let id = 0; id < 5_000; id++) {
    const tree = id % 2 === 0 ? mine : theirs;
    run(tree.executor, tree.tx, () => tree.store.insert(tree.tx, { id, x: 2 * id }));
  }
  for (let id = 0; id < 5_000; id++) {
    assert.equal(mine.store.get(id)?.x, 2 * id);
    assert.equal(theirs.store.get(id)?.x, 2 * id);
  }
  const tx = new Transaction(two);
  const rows = run(two, tx, () =>
    drain(tx, theirs.store.cursor({ from: undefined, to: undefined }, true), 64),
  );
  expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: 5_000 }, (_, i) => 4_999 - i));
  expect(shapeOfTree(mine).broken).toEqual([]);
});
