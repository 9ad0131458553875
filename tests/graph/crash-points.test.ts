/**
 * One who adds, moves and removes edges dies before and after each atomic step of the commit. Afterwards an edge and its
 * inverse are both there, or neither, counts are those of the lists, and the structure is sound, whether the recoverer
 * lives or dies on the way as well.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { runReadOnly, runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { IndexRow, ObjectIndex } from "../../src/stores/graph/objects.ts";
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

const Index = table(
  "situ graph g",
  { id: u53(), kind: u8(), state: u8(), at: pointer() },
  { key: "id" },
) as unknown as Table<IndexRow, number>;

const declared = declaredGraph(
  "g",
  { user: { name: str() } },
  { follows: { from: "user", to: "user", inverse: "followedBy", data: { note: str(200) } } },
);
const definition = definitionOf("g", mergedGraph("g", NO_GRAPH, declared), declared);
const [user] = definition.kinds;
const [follows, followedBy] = definition.types;
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

  edges(): string[] {
    const read = (tx: Transaction): string[] =>
      [1, 2, 3].flatMap((id) => {
        const out = this.operations.assocEdges(tx, this.index, follows, id, ALL);
        const back = this.operations.assocEdges(tx, this.index, followedBy, id, ALL);
        expect(this.operations.assocCount(tx, this.index, follows, id)).toBe(out.length);
        expect(this.operations.assocCount(tx, this.index, followedBy, id)).toBe(back.length);
        return [
          ...out.map(({ id2, time }) => `${id} → ${id2} at ${time}`),
          ...back.map(({ id2, time }) => `${id} ← ${id2} at ${time}`),
        ];
      });
    return runReadOnly(this.executor, new Transaction(this.executor), read, undefined);
  }
}

const LONG = "x".repeat(190);

/** What is committed when the victim dies, in a graph of three objects with an edge from 1 to 2. */
const CHANGES: Readonly<Record<string, (graph: Opened) => void>> = {
  "a first edge": (graph) => graph.add(2, 3, 5, "new"),
  "an edge more": (graph) => graph.add(1, 3, 5, "new"),
  "an edge that moves the head": (graph) => graph.add(1, 3, 5, LONG),
  "a removal": (graph) => {
    graph.operations.assocDelete(graph.tx, graph.index, follows, 1, 2);
  },
  "a deletion": (graph) => {
    graph.operations.objDelete(graph.tx, graph.index, user, 2, "remove");
  },
};

class Stage {
  readonly store = new EngineStore({ ...SMALL, slots: 6, regionBytes: 4 * 2 ** 20 });
  readonly victim: Executor = this.store.open();
  readonly graph: Opened;

  constructor() {
    createCatalogue(this.victim);
    this.graph = new Opened(this.victim);
    this.graph.run((tx) => {
      for (const id of [1, 2, 3]) {
        const words = user.codec.encode({ name: `user ${id}` });
        this.graph.operations.objAdd(tx, this.graph.index, user, id, words);
      }
      this.graph.add(1, 2, 7, "old");
    });
  }

  die(change: (graph: Opened) => void, k: number, when: (typeof WHENS)[number]): boolean {
    const { graph, victim } = this;
    graph.tx.clear();
    victim.enter();
    change(graph);
    const died = dieAt(k, when, () => {
      expect(victim.committer.commit(graph.tx)).toBe(true);
    });
    this.store.kill(victim);
    return died;
  }
}

function afterwards(change: (graph: Opened) => void): { before: string[]; after: string[] } {
  const stage = new Stage();
  try {
    const before = stage.graph.edges();
    stage.graph.run(() => change(stage.graph));
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
      () => new Stage(),
      (stage, k) => {
        const died = stage.die(change, k, when);
        const survivor = stage.store.open();
        survivor.sweep();
        const graph = new Opened(survivor);
        const found = graph.edges();
        expect([before, after], `step ${k}`).toContainEqual(found);
        outcomes.add(String(found));
        graph.run(() => graph.add(1, 3, 9, "later"));
        return died;
      },
    );
    expect(outcomes.size).toBe(2);
  });

  test("is done or not, if the one who recovers it dies, too", () => {
    recovererDies(
      () => new Stage(),
      (stage) => {
        stage.die(change, 9, "after");
      },
      (_stage, third, point) => {
        expect([before, after], point).toContainEqual(new Opened(third).edges());
      },
    );
  });
});
