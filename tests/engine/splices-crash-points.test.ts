/**
 * A transaction that inserts into two leaves in place (src/engine/splices.ts) dies before and after each atomic step.
 * What it was moving is then left torn in the worst way: each word that was to change is garbage. Whoever recovers it
 * dies before each of its own steps, too, and a third one finishes. Both rows are there, or none, and the leaves are
 * word for word what they would have been.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { COMMITTED, phaseOf, STATUS } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { wordOf } from "../../src/memory/address.ts";
import { HEADER_WORDS, LOCK, lockOwner } from "../../src/memory/object.ts";
import { Geometry } from "../../src/stores/btree/geometry.ts";
import { POINTER_WORDS } from "../../src/stores/btree/layout.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { createTree, type EngineTree, openTree, shapeOfTree } from "../helpers/btree.ts";
import { dieAt, type When } from "../helpers/engine-atomics.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";
import { run } from "../helpers/store-engine.ts";

const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 200;
const GARBAGE = 0x5a5a5a5a;
const ROWS = 40;

interface Row {
  readonly id: number | string;
  readonly value: number;
}
type Rows = Table<Row, number | string>;
type Tree = EngineTree<Row, number | string>;

const numbered = table("n", { id: u32(), value: u32() }, { key: "id", ordered: true });
const named = table("s", { id: str(60), value: u32() }, { key: "id", ordered: true });
const TABLES = [numbered, named] as unknown as readonly Rows[];

function keyOf(tree: Tree, n: number): number | string {
  const padded = String(n).padStart(4, "0");
  return tree.codec.orderedWords > 0 ? n : `${padded}-${"x".repeat(n % 30)}`;
}

/** Two trees of one leaf each, with every other number in it. */
class Stage {
  readonly store: EngineStore;
  readonly victim: Executor;
  readonly trees: readonly Tree[];

  constructor(isLogged: boolean) {
    this.store = new EngineStore(SMALL, "threads", isLogged);
    this.victim = this.store.open();
    this.trees = TABLES.map((rows) => createTree(this.victim, rows));
    for (const tree of this.trees) {
      run(this.victim, tree.tx, () => {
        for (let n = 0; n < ROWS; n++) this.#insert(tree, tree.tx, 2 * n);
      });
    }
  }

  #insert(tree: Tree, tx: Transaction, n: number): void {
    expect(tree.store.insert(tx, { id: keyOf(tree, n), value: n })).toBe(true);
  }

  /** In the middle of both leaves. Says whether it died. */
  commitAndDie(k: number, when: When): boolean {
    const tx = new Transaction(this.victim);
    this.victim.enter();
    for (const tree of this.trees) this.#insert(tree, tx, ROWS - 1);
    const died = dieAt(k, when, () => {
      expect(this.victim.committer.commit(tx)).toBe(true);
    });
    this.store.kill(this.victim);
    return died;
  }

  get isCommitted(): boolean {
    const { control } = this.store.memory;
    const at = control.slotAt(this.victim.slot) + STATUS;
    return phaseOf(Atomics.load(control.i32, at)) === COMMITTED;
  }

  /** The words of a tree's leaf, with its header. */
  leafOf(tree: Tree): Int32Array {
    const { inner, leaf } = new Geometry(tree.codec);
    const { i32 } = this.store.memory.regionOf(tree.root);
    const pointer = wordOf(tree.root) + HEADER_WORDS + inner.payloadAt(0);
    expect(POINTER_WORDS).toBe(3);
    const word = i32[pointer + 1];
    const region = this.store.memory.region(i32[pointer] - 1);
    return region.i32.subarray(word, word + HEADER_WORDS + leaf.words);
  }

  data(): Int32Array[] {
    return this.trees.map((tree) => this.leafOf(tree).slice(HEADER_WORDS));
  }

  /** As if the death had hit in the middle of moving words. */
  tear(before: readonly Int32Array[], after: readonly Int32Array[]): void {
    if (!this.isCommitted) return;
    this.trees.forEach((tree, i) => {
      const leaf = this.leafOf(tree);
      const lock = Atomics.load(leaf, LOCK);
      if (lock === 0 || lockOwner(lock) !== this.victim.slot) return;
      for (let word = 0; word < before[i].length; word++) {
        if (before[i][word] !== after[i][word]) leaf[HEADER_WORDS + word] = GARBAGE;
      }
    });
  }

  check(survivor: Executor, before: Int32Array[], after: Int32Array[], point: string): string {
    const found = this.data();
    const isDone = found[0].every((word, i) => word === after[0][i]);
    expect(found, point).toEqual(isDone ? after : before);
    TABLES.forEach((rows, i) => {
      const tree = openTree(survivor, rows, this.trees[i].root);
      expect(shapeOfTree(tree).broken, point).toEqual([]);
      const row = tree.store.get(keyOf(tree, ROWS - 1));
      expect(row?.value, point).toBe(isDone ? ROWS - 1 : undefined);
      run(survivor, tree.tx, () => this.#insert(tree, tree.tx, ROWS + 1));
      expect(tree.store.get(keyOf(tree, ROWS + 1))?.value, point).toBe(ROWS + 1);
    });
    return isDone ? "done" : "not done";
  }
}

function withStage<T>(isLogged: boolean, work: (stage: Stage) => T): T {
  const stage = new Stage(isLogged);
  try {
    return work(stage);
  } finally {
    stage.store.dispose();
  }
}

/** The leaves before and after a commit that nothing happens to. */
function bothStates(isLogged: boolean): [Int32Array[], Int32Array[]] {
  return withStage(isLogged, (stage) => {
    const before = stage.data();
    stage.commitAndDie(MOST_STEPS, "before");
    return [before, stage.data()];
  });
}

describe.each([
  ["without a log", false],
  ["with a log", true],
])("an insertion in place, %s", (_, isLogged) => {
  const [before, after] = bothStates(isLogged);

  test("that dies at any step, its leaves torn, is there whole or not at all", () => {
    const outcomes = new Set<string>();
    for (const when of WHENS) {
      for (let k = 1, died = true; died; k++) {
        died = withStage(isLogged, (stage) => {
          const isDead = stage.commitAndDie(k, when);
          stage.tear(before, after);
          const survivor = stage.store.open();
          survivor.sweep();
          outcomes.add(stage.check(survivor, before, after, `died ${when} step ${k}`));
          return isDead;
        });
        expect(k).toBeLessThan(MOST_STEPS);
      }
    }
    expect(outcomes).toEqual(new Set(["done", "not done"]));
  });

  test("whose recovery dies at any step, its leaves torn again, is finished by a third", () => {
    let points = 0;
    for (let k = 1, died = true; died; k++) {
      let isCommitted = false;
      for (let j = 1, again = true; again; j++) {
        again = withStage(isLogged, (stage) => {
          died = stage.commitAndDie(k, "before");
          isCommitted = stage.isCommitted;
          if (!isCommitted) return false;
          stage.tear(before, after);
          const second = stage.store.open();
          const isDead = dieAt(j, "before", () => second.sweep());
          stage.store.kill(second);
          stage.tear(before, after);
          const third = stage.store.open();
          third.sweep();
          expect(stage.check(third, before, after, `${k}, recovery ${j}`)).toBe("done");
          points++;
          return isDead;
        });
      }
    }
    expect(points).toBeGreaterThan(20);
  });
});
