/**
 * One who adds, moves and removes edges dies before and after each atomic step of the commit, also where a list gets a
 * second element or a finder, and in the steps in which a large object is deleted. Afterwards an edge and its inverse are
 * both there, or neither, counts are those of the lists, and the structure is sound, whether the recoverer lives or dies
 * on the way as well.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { runReadOnly, runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { FINDER_EDGES } from "../../src/runtime/limits.ts";
import { FINDER, SPREAD } from "../../src/stores/graph/layout.ts";
import { GraphObject, type IndexRow, type ObjectIndex } from "../../src/stores/graph/objects.ts";
import { createCatalogue, openTable } from "../../src/tables/catalogue.ts";
import { pointer, str, u8, u53 } from "../../src/tables/fields.ts";
import {
  declaredGraph,
  definitionOf,
  mergedGraph,
  NO_GRAPH,
} from "../../src/tables/graph/definition.ts";
import { GraphOperations } from "../../src/tables/graph/operations.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { atEachStep, recovererDies, WHENS } from "../helpers/crash-steps.ts";
import { dieAt } from "../helpers/engine-atomics.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";
import { SOAK } from "../helpers/seed.ts";

const Index = table(
  "situ graph g",
  { id: u53(), kind: u8(), state: u8(), at: pointer() },
  { key: "id" },
) as unknown as Table<IndexRow, number>;

const declared = declaredGraph(
  "g",
  { user: { name: str() } },
  {
    follows: { from: "user", to: "user", inverse: "followedBy", data: { note: str(200) } },
    likes: { data: { note: str(200) } },
  },
);
const definition = definitionOf("g", mergedGraph("g", NO_GRAPH, declared), declared);
const [user] = definition.kinds;
const [follows, followedBy, likes] = definition.types;
const NOWHERE = { recall: () => false, regionId: 0, word: 0, incarnation: 0 };
const ALL = {
  position: 0,
  limit: 10_000,
  high: Number.POSITIVE_INFINITY,
  low: 0,
  targets: undefined,
};

/** A graph of an executor of its own. */
class Opened {
  readonly executor: Executor;
  readonly operations = new GraphOperations("g", definition, NOWHERE);
  readonly index: ObjectIndex;
  readonly tx: Transaction;

  constructor(executor: Executor) {
    this.executor = executor;
    this.index = openTable(executor, Index as Table).store as unknown as ObjectIndex;
    this.tx = new Transaction(executor);
  }

  run<T>(body: (tx: Transaction) => T): T {
    return runSync(this.executor, this.tx, 5_000, () => body(this.tx), undefined);
  }

  add(id1: number, id2: number, time: number, note: string): void {
    const words = follows.codec.encode({ note });
    this.operations.assocAdd(this.tx, this.index, follows, id1, id2, time, words);
  }

  like(id2: number, time: number, note: string): void {
    const words = likes.codec.encode({ note });
    this.operations.assocAdd(this.tx, this.index, likes, 1, id2, time, words);
  }

  /** What the head of the list of likes says. */
  shape(): { readonly isSpread: boolean; readonly hasFinder: boolean } {
    const read = (tx: Transaction) => {
      const object = new GraphObject();
      object.load(tx, this.index, 1, undefined);
      const slot = object.slotOf(likes.number);
      const regionId = (object.head[slot] & 0xffff) - 1;
      tx.open(this.executor.memory.region(regionId), object.head[slot + 1]);
      const { i32 } = tx.views;
      const isSpread = (i32[tx.at] & SPREAD) !== 0;
      return { isSpread, hasFinder: isSpread && i32[tx.at + FINDER] !== 0 };
    };
    return runReadOnly(this.executor, new Transaction(this.executor), read, undefined);
  }

  /** The edges without an inverse: in order, and each found by its target. */
  #likes(tx: Transaction): string[] {
    const found = this.operations.assocEdges(tx, this.index, likes, 1, ALL);
    expect(this.operations.assocCount(tx, this.index, likes, 1)).toBe(found.length);
    for (const [i, edge] of found.entries()) {
      if (i > 0) expect(edge.time).toBeLessThanOrEqual(found[i - 1].time);
      if (i % 40 !== 0) continue;
      expect(this.operations.assocGet(tx, this.index, likes, 1, [edge.id2])).toEqual([edge]);
    }
    return found.map(({ id2, time }) => `1 likes ${id2} at ${time}`);
  }

  edges(): string[] {
    const read = (tx: Transaction): string[] => [...this.#follows(tx), ...this.#likes(tx)];
    return runReadOnly(this.executor, new Transaction(this.executor), read, undefined);
  }

  #follows(tx: Transaction): string[] {
    return [1, 2, 3].flatMap((id) => {
      const out = this.operations.assocEdges(tx, this.index, follows, id, ALL);
      const back = this.operations.assocEdges(tx, this.index, followedBy, id, ALL);
      expect(this.operations.assocCount(tx, this.index, follows, id)).toBe(out.length);
      expect(this.operations.assocCount(tx, this.index, followedBy, id)).toBe(back.length);
      return [
        ...out.map(({ id2, time }) => `${id} → ${id2} at ${time}`),
        ...back.map(({ id2, time }) => `${id} ← ${id2} at ${time}`),
      ];
    });
  }
}

const LONG = "x".repeat(190);

/** So many edges with long data fill the head of a list. */
const IN_A_HEAD = 9;

interface Change {
  /** What was committed before. */
  readonly prepare?: (graph: Opened) => void;
  readonly commit: (graph: Opened) => void;
  /** Object 1 goes. */
  readonly isOfOne?: boolean;
  /** Preparing it takes long: not every step is tried by default. */
  readonly isLarge?: boolean;
  /** What the list of likes is after it. */
  readonly shape?: ReturnType<Opened["shape"]>;
}

/** What is committed when the victim dies, in a graph of three objects with an edge from 1 to 2. */
const CHANGES: Readonly<Record<string, Change>> = {
  "a first edge": { commit: (graph) => graph.add(2, 3, 5, "new") },
  "an edge more": { commit: (graph) => graph.add(1, 3, 5, "new") },
  "an edge that moves the head": { commit: (graph) => graph.add(1, 3, 5, LONG) },
  "a removal": {
    commit: ({ operations, tx, index }) => operations.assocDelete(tx, index, follows, 1, 2),
  },
  "a deletion": {
    commit: ({ operations, tx, index }) => operations.objDelete(tx, index, user, 2, "remove"),
  },
  "an edge that cuts the head in two": {
    prepare: (graph) => {
      for (let i = 1; i <= IN_A_HEAD; i++) graph.like(i, i, LONG);
    },
    commit: (graph) => graph.like(100, 5, LONG),
    shape: { isSpread: true, hasFinder: false },
  },
  "an edge with which a finder begins": {
    prepare: (graph) => {
      for (let i = 1; i <= FINDER_EDGES; i++) graph.like(i, i, "");
    },
    commit: (graph) => graph.like(FINDER_EDGES + 1, 5, ""),
    shape: { isSpread: true, hasFinder: true },
    isLarge: true,
  },
  "the first step of a deletion": {
    prepare: (graph) => graph.add(1, 3, 5, LONG),
    commit: ({ operations, tx, index }) => operations.beginDeletion(tx, index, user, 1),
    isOfOne: true,
  },
  "a further step of a deletion": {
    prepare: (graph) => {
      graph.add(1, 3, 5, LONG);
      graph.operations.beginDeletion(graph.tx, graph.index, user, 1);
    },
    commit: ({ operations, tx, index }) => operations.continueDeletion(tx, index, 1),
    isOfOne: true,
  },
};

class Stage {
  readonly store = new EngineStore({ ...SMALL, slots: 6, regionBytes: 4 * 2 ** 20 });
  readonly victim: Executor = this.store.open();
  readonly graph: Opened;

  constructor({ prepare }: Change) {
    createCatalogue(this.victim);
    this.graph = new Opened(this.victim);
    this.graph.run((tx) => {
      for (const id of [1, 2, 3]) {
        const words = user.codec.encode({ name: `user ${id}` });
        this.graph.operations.objAdd(tx, this.graph.index, user, id, words);
      }
      this.graph.add(1, 2, 7, "old");
    });
    if (prepare !== undefined) this.graph.run(() => prepare(this.graph));
  }

  die({ commit }: Change, k: number, when: (typeof WHENS)[number]): boolean {
    const { graph, victim } = this;
    graph.tx.clear();
    victim.enter();
    commit(graph);
    const died = dieAt(k, when, () => {
      expect(victim.committer.commit(graph.tx)).toBe(true);
    });
    this.store.kill(victim);
    return died;
  }
}

function afterwards(change: Change): { before: string[]; after: string[] } {
  const stage = new Stage(change);
  try {
    const before = stage.graph.edges();
    stage.graph.run(() => change.commit(stage.graph));
    if (change.shape !== undefined) expect(stage.graph.shape()).toEqual(change.shape);
    return { before, after: stage.graph.edges() };
  } finally {
    stage.store.dispose();
  }
}

describe.each(Object.entries(CHANGES))("%s", (_, change) => {
  const { before, after } = afterwards(change);

  test.each(WHENS)("is done or not, if its owner dies %s a step", (when) => {
    expect(after).not.toEqual(before);
    const outcomes = new Set<string>();
    atEachStep(
      () => new Stage(change),
      (stage, k) => {
        const died = stage.die(change, k, when);
        const survivor = stage.store.open();
        survivor.sweep();
        const graph = new Opened(survivor);
        const found = graph.edges();
        expect([before, after], `step ${k}`).toContainEqual(found);
        outcomes.add(String(found));
        graph.run(() => graph.add(change.isOfOne ? 2 : 1, 3, 9, "later"));
        return died;
      },
      change.isLarge && SOAK === 1 ? 11 : 1,
    );
    expect(outcomes.size).toBe(2);
  });

  test("is done or not, if the one who recovers it dies, too", () => {
    recovererDies(
      () => new Stage(change),
      (stage) => {
        stage.die(change, 9, "after");
      },
      (_stage, third, point) => {
        expect([before, after], point).toContainEqual(new Opened(third).edges());
      },
    );
  });
});
