/** A graph as plain maps, to compare a real one with, and random steps for both. */

import { expect } from "vitest";
import type { Random } from "../../src/runtime/random.ts";

export interface ModelEdge {
  readonly id2: number;
  readonly time: number;
  readonly data: { readonly note: string };
}

/** What the model and a graph have in common; edges of `follows` have an inverse, those of `likes` have none. */
export interface GraphLike {
  objAdd(kind: "user", data: { name: string }, options: { id: number }): number;
  objUpdate(kind: "user", id: number, changes: { name: string }): void;
  assocAdd(
    id1: number,
    type: "follows" | "likes" | "saves",
    id2: number,
    time: number,
    data: { note: string },
  ): boolean;
  assocDelete(id1: number, type: "follows" | "likes", id2: number): boolean;
  assocChangeType(id1: number, type: "likes", id2: number, newType: "saves"): boolean;
}

const INVERSES: Readonly<Record<string, string | undefined>> = {
  follows: "followedBy",
  followedBy: "follows",
};

export class GraphModel implements GraphLike {
  readonly objects = new Map<number, { name: string }>();
  readonly #edges = new Map<string, Map<number, ModelEdge>>();

  list(id1: number, type: string): ModelEdge[] {
    const edges = [...(this.#edges.get(`${id1} ${type}`)?.values() ?? [])];
    return edges.sort((one, other) => other.time - one.time || one.id2 - other.id2);
  }

  objAdd(_kind: "user", data: { name: string }, { id }: { id: number }): number {
    this.objects.set(id, data);
    return id;
  }

  objUpdate(_kind: "user", id: number, changes: { name: string }): void {
    this.objects.set(id, changes);
  }

  objDelete(id: number): number {
    this.objects.delete(id);
    let removed = 0;
    for (const type of ["follows", "followedBy", "likes", "saves"]) {
      for (const { id2 } of this.list(id, type)) {
        this.#remove(id, type, id2);
        removed++;
      }
    }
    return removed;
  }

  assocAdd(id1: number, type: string, id2: number, time: number, data: { note: string }): boolean {
    const isNew = this.#edges.get(`${id1} ${type}`)?.get(id2) === undefined;
    this.#add(id1, type, { id2, time, data });
    const inverse = INVERSES[type];
    if (inverse !== undefined) this.#add(id2, inverse, { id2: id1, time, data });
    return isNew;
  }

  assocDelete(id1: number, type: string, id2: number): boolean {
    if (this.#edges.get(`${id1} ${type}`)?.get(id2) === undefined) return false;
    this.#remove(id1, type, id2);
    return true;
  }

  assocChangeType(id1: number, type: string, id2: number, newType: string): boolean {
    const edge = this.#edges.get(`${id1} ${type}`)?.get(id2);
    if (edge === undefined) return false;
    this.#remove(id1, type, id2);
    this.assocAdd(id1, newType, id2, edge.time, edge.data);
    return true;
  }

  #add(id1: number, type: string, edge: ModelEdge): void {
    const key = `${id1} ${type}`;
    const edges = this.#edges.get(key) ?? new Map<number, ModelEdge>();
    this.#edges.set(key, edges);
    edges.set(edge.id2, edge);
  }

  #remove(id1: number, type: string, id2: number): void {
    this.#edges.get(`${id1} ${type}`)?.delete(id2);
    const inverse = INVERSES[type];
    if (inverse !== undefined) this.#edges.get(`${id2} ${inverse}`)?.delete(id1);
  }
}

/** A random step, for a graph and a model alike. */
export type Step = (graph: GraphLike) => unknown;

export function randomStep(random: Random, ids: number): Step {
  const id1 = 1 + random.below(ids);
  const id2 = 1 + random.below(ids);
  const time = random.below(3) === 0 ? random.below(50) : random.below(1_000_000);
  const note = "x".repeat(random.below(4) === 0 ? random.below(200) : random.below(12));
  const type = random.below(2) === 0 ? "follows" : "likes";
  const dice = random.below(20);
  if (dice < 11) return (graph) => graph.assocAdd(id1, type, id2, time, { note });
  if (dice < 16) return (graph) => graph.assocDelete(id1, type, id2);
  if (dice < 18) return (graph) => graph.assocChangeType(id1, "likes", id2, "saves");
  return (graph) => graph.objUpdate("user", id1, { name: note });
}

/** Everything that both say about an object. */
export function expectSame(
  graph: {
    objGet(kind: "user", id: number): unknown;
    assocCount(id1: number, type: "follows" | "followedBy" | "likes" | "saves"): number;
    assocRange(
      id1: number,
      type: "follows" | "followedBy" | "likes" | "saves",
      position: number,
      limit: number,
    ): readonly unknown[];
    assocGet(
      id1: number,
      type: "follows" | "followedBy" | "likes" | "saves",
      ids: readonly number[],
    ): readonly unknown[];
  },
  model: GraphModel,
  id: number,
): void {
  expect(graph.objGet("user", id)).toEqual(model.objects.get(id));
  for (const type of ["follows", "followedBy", "likes", "saves"] as const) {
    const edges = model.list(id, type);
    expect(graph.assocCount(id, type)).toBe(edges.length);
    expect(graph.assocRange(id, type, 0, 10_000)).toEqual(edges);
    // Some that are there, one that is not, one twice.
    const some = edges.filter((_, i) => i % 3 !== 1);
    const ids = [...some.map(({ id2 }) => id2), 1_000_000_007, some[0]?.id2 ?? 1];
    const found = edges.filter(({ id2 }) => ids.includes(id2));
    expect(graph.assocGet(id, type, ids)).toEqual(found);
    expect(graph.assocGet(id, type, ids.slice(-2))).toEqual(
      found.filter(({ id2 }) => ids.slice(-2).includes(id2)),
    );
  }
}
