/**
 * A small cycle within a component, since one of three transactions can be understood and one of
 * three thousand cannot.
 *
 * Breadth-first from a transaction until it is reached again, for one transaction after the other,
 * never deeper than the best cycle so far. Only edges out of transactions have length; those out of
 * helpers are free (see graph.ts), so each level is finished before a cycle found on it is taken.
 *
 * In a component of n nodes that would be n searches. A budget of edges ends them early: the result
 * is then a small cycle, not always the smallest.
 */

import type { Graph } from "./graph.ts";

const EDGE_BUDGET = 2_000_000;

/** Returns the edges (of the EdgeList) along the cycle, from a transaction back to itself. */
export function findShortCycle(
  graph: Graph,
  componentOf: Int32Array,
  members: Int32Array,
): readonly number[] {
  const search = new CycleSearch(graph, componentOf);
  let best: readonly number[] = [];
  let bestLength = Number.POSITIVE_INFINITY;
  for (const member of members) {
    if (graph.transaction[member] < 0) continue;
    const length = search.run(member, bestLength);
    if (length < bestLength) {
      bestLength = length;
      best = search.cycle();
    }
    // Two is the least there is, as no transaction has an edge to itself.
    if (bestLength === 2 || (best.length > 0 && search.edgesSeen > EDGE_BUDGET)) break;
  }
  return best;
}

class CycleSearch {
  edgesSeen = 0;
  readonly #graph: Graph;
  readonly #componentOf: Int32Array;
  readonly #distance: Int32Array;
  /** The node from which, and the slot in `targets` through which, a node was reached. */
  readonly #parent: Int32Array;
  readonly #slot: Int32Array;
  /** Which run a node's distance belongs to, so that nothing need be cleared. */
  readonly #reachedInRun: Int32Array;
  #run = 0;
  #start = 0;
  #lastNode = -1;
  #lastSlot = -1;

  constructor(graph: Graph, componentOf: Int32Array) {
    this.#graph = graph;
    this.#componentOf = componentOf;
    this.#distance = new Int32Array(graph.nodeCount);
    this.#parent = new Int32Array(graph.nodeCount);
    this.#slot = new Int32Array(graph.nodeCount);
    this.#reachedInRun = new Int32Array(graph.nodeCount);
  }

  /** The length of the shortest cycle through `start`, or infinity if it is not below `limit`. */
  run(start: number, limit: number): number {
    const { offsets, targets, transaction } = this.#graph;
    this.#run++;
    this.#start = start;
    this.#reach(start, 0, -1, -1);
    let current = [start];

    for (let level = 0; current.length > 0 && level < limit; level++) {
      const next: number[] = [];
      let found = Number.POSITIVE_INFINITY;
      while (current.length > 0) {
        const node = current.pop()!;
        // A free edge may have brought it to an earlier level since it was put here.
        if (this.#distance[node] !== level) continue;
        const length = transaction[node] < 0 ? level : level + 1;
        this.edgesSeen += offsets[node + 1] - offsets[node];
        for (let slot = offsets[node]; slot < offsets[node + 1]; slot++) {
          const target = targets[slot];
          if (this.#componentOf[target] !== this.#componentOf[start]) continue;
          if (target === start) {
            if (length >= found || length >= limit) continue;
            found = length;
            this.#lastNode = node;
            this.#lastSlot = slot;
          } else if (this.#reach(target, length, node, slot)) {
            (length === level ? current : next).push(target);
          }
        }
      }
      if (found < limit) return found;
      current = next;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The cycle that the last run found. */
  cycle(): readonly number[] {
    const { edges } = this.#graph;
    const path = [edges[this.#lastSlot]];
    for (let node = this.#lastNode; node !== this.#start; node = this.#parent[node]) {
      path.push(edges[this.#slot[node]]);
    }
    return path.reverse();
  }

  #reach(node: number, distance: number, parent: number, slot: number): boolean {
    const isKnown = this.#reachedInRun[node] === this.#run;
    if (isKnown && this.#distance[node] <= distance) return false;
    this.#reachedInRun[node] = this.#run;
    this.#distance[node] = distance;
    this.#parent[node] = parent;
    this.#slot[node] = slot;
    return true;
  }
}
