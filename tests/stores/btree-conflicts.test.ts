/**
 * Two executors in one tree, their transactions interleaved step by step in one thread. What a
 * transaction has read must be true at the moment of its commit, rows and gaps alike, or it must
 * not commit.
 */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { isSignal } from "../../src/engine/signals.ts";
import type { Transaction } from "../../src/engine/transaction.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { rangeOf } from "../../src/tables/range.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { createTree, drain, type EngineTree, openTree, shapeOfTree } from "../helpers/btree.ts";
import { check, fc } from "../helpers/property.ts";
import { MIB, temporaryStores } from "../helpers/store.ts";
import { openExecutor, run } from "../helpers/store-engine.ts";

const stores = temporaryStores();

interface Row {
  id: number;
  text: string;
}
type Tree = EngineTree<Row, number>;

const TABLES: Record<string, Table<Row, number>> = {
  "rows in the leaf": table("inline", { id: u32(), text: str(100) }, { key: "id" }),
  "row objects": table("objects", { id: u32(), text: str() }, { key: "id" }),
};
const FIELDS = [{ name: "id", field: u32() }];

const range = (gte: number, lt: number) => rangeOf("t", FIELDS, true, { gte, lt });
const row = (id: number, text = `${id}`): Row => ({ id, text });

async function twoTrees(of: Table<Row, number>): Promise<[Tree, Tree]> {
  const path = stores.folder();
  const one = await openExecutor(stores, path, 64 * MIB);
  const two = await openExecutor(stores, path, 64 * MIB);
  const mine = createTree(one, of);
  return [mine, openTree(two, of, mine.root)];
}

/** A transaction that somebody steps through by hand. */
class Attempt {
  readonly tree: Tree;
  isDoomed = false;

  constructor(tree: Tree) {
    this.tree = tree;
    tree.tx.clear();
    tree.executor.enter();
  }

  get tx(): Transaction {
    return this.tree.tx;
  }

  /** One step; a conflict ends the transaction. */
  step<T>(work: (tree: Tree) => T): T | undefined {
    if (this.isDoomed) return undefined;
    try {
      return work(this.tree);
    } catch (error) {
      if (!isSignal(error)) throw error;
      this.isDoomed = true;
      return undefined;
    }
  }

  commit(): boolean {
    const { executor, tx } = this.tree;
    const done = !this.isDoomed && executor.commit(tx);
    this.abandon();
    return done;
  }

  abandon(): void {
    this.tree.tx.clear();
    this.tree.executor.leave();
  }
}

const put = (tree: Tree, ...ids: number[]): void =>
  run(tree.executor, tree.tx, () => {
    for (const id of ids) tree.store.put(tree.tx, row(id));
  });

const drainAll = ({ executor, store, tx }: Tree): Row[] =>
  run(executor, tx, () => drain(tx, store.cursor({ from: undefined, to: undefined }, false), 100));

describe.each(Object.entries(TABLES))("%s", (_, of) => {
  it("a row that comes into a range that was read makes the reader fail", async () => {
    const [mine, theirs] = await twoTrees(of);
    const spread = Array.from({ length: 300 }, (_, i) => 100 * i);
    put(mine, ...spread);
    const ranges: [number, number][] = [
      [5_050, 5_051],
      [5_000, 9_000],
      [5_001, 5_099],
      [0, 40_000],
    ];
    for (const [from, to] of ranges) {
      for (const reverse of [false, true]) {
        for (const way of ["next", "skip"] as const) {
          const attempt = new Attempt(mine);
          attempt.step(({ store, tx }) => {
            const cursor = store.cursor(range(from, to), reverse);
            if (way === "next") drain(tx, cursor, 10);
            else while (cursor.skip(tx) > 0);
            store.put(tx, row(1_000_000));
          });
          const id = from + 1 < to ? from + 1 : from;
          put(theirs, id);
          expect(attempt.commit(), `${from}–${to} ${way}`).toBe(false);
          run(theirs.executor, theirs.tx, () => {
            if (id % 100 !== 0) theirs.store.remove(theirs.tx, id);
          });
        }
      }
    }
  });

  it("a row far away does not", async () => {
    const [mine, theirs] = await twoTrees(of);
    put(mine, ...Array.from({ length: 300 }, (_, i) => 100 * i));
    const attempt = new Attempt(mine);
    attempt.step(({ store, tx }) => {
      assert.equal(drain(tx, store.cursor(range(0, 1_000), false), 3).length, 10);
      store.put(tx, row(1));
    });
    put(theirs, 29_999);
    expect(attempt.commit()).toBe(true);
  });

  it("a key that was absent and comes makes the reader fail", async () => {
    const [mine, theirs] = await twoTrees(of);
    put(mine, ...Array.from({ length: 300 }, (_, i) => 100 * i));
    const attempt = new Attempt(mine);
    attempt.step(({ store, tx }) => {
      assert.equal(store.read(tx, 5_050), undefined);
      store.put(tx, row(29_900, "far away"));
    });
    put(theirs, 5_050);
    expect(attempt.commit()).toBe(false);
  });

  it("a leaf that is split under a reader leads on to the right leaf", async () => {
    const [mine, theirs] = await twoTrees(of);
    put(mine, ...Array.from({ length: 10 }, (_, i) => 1_000 * i));
    const attempt = new Attempt(mine);
    // Only inner nodes are known before the split: the way to a leaf, not the leaf.
    attempt.step(({ store, tx }) => assert.equal(store.read(tx, 3_000)?.text, "3000"));
    for (let id = 4_001; id < 5_000; id += 2) put(theirs, id);
    const found = attempt.step(({ store, tx }) => store.read(tx, 4_501));
    // Rows in the leaf: the leaf that was read has changed. A row object is true as long as it is.
    if (found !== undefined) assert.equal(found.text, "4501");
    const done = attempt.commit();
    if (of.name === "objects") expect(done).toBe(true);
    expect(shapeOfTree(mine).broken).toEqual([]);
  });

  /** What somebody else may do to the leaf of key 500 while another is on the way to it. */
  const DISTURBANCES: Record<string, (tree: Tree) => void> = {
    "its leaf is split": (tree) => put(tree, ...Array.from({ length: 240 }, (_, i) => 2 * i + 1)),
    "its leaf is merged away": (tree) => clearAround(tree),
    "its leaf is merged away and becomes another": (tree) => {
      clearAround(tree);
      put(tree, ...Array.from({ length: 400 }, (_, i) => 100_000 + i));
    },
  };
  const clearAround = (tree: Tree): void => {
    const { store, tx, executor } = tree;
    run(executor, tx, () => {
      for (let id = 0; id < 1_000; id += 2) if (id % 100 !== 0) store.remove(tx, id);
    });
    store.maintain();
  };
  const OPERATIONS: Record<string, (tree: Tree) => unknown> = {
    "reads a row": ({ store, tx }) => store.read(tx, 500),
    "misses a row": ({ store, tx }) => store.read(tx, 501),
    "scans forward": ({ store, tx }) => drain(tx, store.cursor(range(490, 520), false), 4),
    "scans in reverse": ({ store, tx }) => drain(tx, store.cursor(range(490, 520), true), 4),
    "inserts a row": ({ store, tx }) => store.insert(tx, row(503)),
    "removes a row": ({ store, tx }) => store.remove(tx, 500),
  };

  describe.each(Object.entries(DISTURBANCES))("%s", (_, disturb) => {
    it.each(Object.entries(OPERATIONS))("while another %s", async (_, operation) => {
      const path = stores.folder();
      const one = await openExecutor(stores, path, 64 * MIB);
      const two = await openExecutor(stores, path, 64 * MIB);
      let commits = 0;
      for (let moment = 1; moment <= 12; moment++) {
        const mine = createTree(one, of);
        const theirs = openTree(two, of, mine.root);
        put(mine, ...Array.from({ length: 500 }, (_, i) => 2 * i));
        const attempt = new Attempt(mine);
        const { tx } = mine;
        // Before this transaction opens its n-th object, the other one does its work.
        let opened = 0;
        tx.open = (...place) => {
          if (++opened === moment) {
            // The row that is being inserted waits where this thread encodes all rows.
            const scratch = mine.codec.scratch.i32.slice(0, 64);
            disturb(theirs);
            mine.codec.scratch.i32.set(scratch);
          }
          return Object.getPrototypeOf(tx).open.apply(tx, place);
        };
        const seen = attempt.step(operation);
        Reflect.deleteProperty(tx, "open");
        if (opened < moment) disturb(theirs);
        if (!attempt.commit()) continue;
        commits++;
        const now = drainAll(theirs);
        if (operation === OPERATIONS["inserts a row"]) {
          assert.equal(seen, true);
          assert.ok(now.some(({ id }) => id === 503));
        } else if (operation === OPERATIONS["removes a row"]) {
          assert.equal(seen, true);
          assert.ok(!now.some(({ id }) => id === 500));
        } else assert.deepEqual(seen, operation(theirs));
        theirs.tx.clear();
        assert.deepEqual(shapeOfTree(theirs).broken, []);
        assert.deepEqual(theirs.store.get(600), row(600));
      }
      expect(commits).toBeGreaterThan(0);
    });
  });

  it("what is read is true when the transaction commits", async () => {
    const [mine, theirs] = await twoTrees(of);
    const keys = of.name === "inline" ? 160 : 800;
    interface Move {
      readonly who: 0 | 1;
      readonly what: "put" | "insert" | "remove" | "read" | "update" | "scan" | "commit" | "abort";
      readonly id: number;
      readonly more: number;
    }
    const move: fc.Arbitrary<Move> = fc.record({
      who: fc.constantFrom(0, 1),
      what: fc.constantFrom(
        ...(["put", "insert", "insert", "remove", "remove", "read"] as const),
        ...(["update", "scan", "commit", "commit", "commit", "abort"] as const),
      ),
      id: fc.nat(keys - 1),
      more: fc.nat(keys / 8),
    });
    let commits = 0;
    let conflicts = 0;
    let mostLeaves = 0;
    check(
      fc.property(fc.array(move, { minLength: 20, maxLength: 120 }), (moves) => {
        const committed = new Map<number, Row>();
        run(mine.executor, mine.tx, () => {
          const all = drain(mine.tx, mine.store.cursor(range(0, keys), false), 100);
          for (const { id } of all) mine.store.remove(mine.tx, id);
          for (let id = 0; id < keys; id += 3) {
            mine.store.insert(mine.tx, row(id));
            committed.set(id, row(id));
          }
        });
        mine.store.maintain();
        const trees = [mine, theirs];
        /** What a transaction did and saw: done again on the model when it commits. */
        type Replay = (model: Map<number, Row>) => void;
        const open: [Attempt | undefined, Attempt | undefined] = [undefined, undefined];
        const logs: [Replay[], Replay[]] = [[], []];
        for (const { who, what, id, more } of moves) {
          let attempt = open[who];
          if (attempt === undefined) {
            attempt = new Attempt(trees[who]);
            open[who] = attempt;
            logs[who] = [];
          }
          const log = logs[who];
          const text = `${id}-${more}`;
          if (what === "commit" || what === "abort") {
            open[who] = undefined;
            if (what === "abort") attempt.abandon();
            else if (attempt.commit()) {
              commits++;
              for (const replay of log) replay(committed);
              mostLeaves = Math.max(mostLeaves, shapeOfTree(mine).leaves);
            } else conflicts++;
            trees[who].store.maintain();
            continue;
          }
          attempt.step(({ store, tx }) => {
            if (what === "read") {
              const seen = store.read(tx, id);
              log.push((model) => assert.deepEqual(seen, model.get(id)));
            } else if (what === "scan") {
              const reverse = more % 2 === 0;
              const seen = drain(tx, store.cursor(range(id, id + 4 * more), reverse), 5);
              log.push((model) => {
                const expected = [...model.values()]
                  .filter((each) => each.id >= id && each.id < id + 4 * more)
                  .sort((a, b) => (reverse ? b.id - a.id : a.id - b.id));
                assert.deepEqual(seen, expected);
              });
            } else if (what === "update") {
              const seen = store.update(tx, id, { text });
              log.push((model) => {
                assert.equal(seen, model.has(id));
                if (seen) model.set(id, row(id, text));
              });
            } else {
              for (let each = id; each <= id + more && each < keys; each++) {
                if (what === "put") {
                  store.put(tx, row(each, text));
                  log.push((model) => model.set(each, row(each, text)));
                } else if (what === "insert") {
                  const seen = store.insert(tx, row(each, text));
                  log.push((model) => {
                    assert.equal(seen, !model.has(each));
                    if (seen) model.set(each, row(each, text));
                  });
                } else {
                  const seen = store.remove(tx, each);
                  log.push((model) => assert.equal(model.delete(each), seen));
                }
              }
            }
          });
        }
        for (const attempt of open) attempt?.abandon();
        const shape = shapeOfTree(mine);
        assert.deepEqual(shape.broken, []);
        assert.equal(shape.rows, committed.size);
        for (let id = 0; id < keys; id++) {
          assert.deepEqual(mine.store.get(id), committed.get(id));
          assert.deepEqual(theirs.store.get(id), committed.get(id));
        }
      }),
      60,
    );
    expect(commits).toBeGreaterThan(300);
    expect(conflicts).toBeGreaterThan(50);
    expect(mostLeaves).toBeGreaterThan(3);
  });
});
