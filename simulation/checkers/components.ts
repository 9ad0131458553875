/**
 * Strongly connected components: the largest sets of nodes in which each reaches each. Every cycle
 * lies within one, and a component of more than one node has a cycle.
 *
 * Tarjan's algorithm with its recursion unrolled, for a chain of 200,000 transactions would
 * overflow the call stack. A node is on `path` while its successors are visited; `nextEdge`
 * remembers where to go on. Finished nodes wait on `open` until the root of their component, the
 * one that reached nothing older than itself, takes them all.
 */

import type { Graph } from "./graph.ts";

export interface Components {
  /** For each node: the number of its component. */
  readonly of: Int32Array;
  /** The nodes of each component that has more than one. */
  readonly cyclic: readonly Int32Array[];
}

export function findComponents(graph: Graph): Components {
  const { nodeCount, offsets, targets } = graph;
  const component = new Int32Array(nodeCount).fill(-1);
  const cyclic: Int32Array[] = [];
  let componentCount = 0;

  /** 0: not visited. */
  const visitNumber = new Int32Array(nodeCount);
  const oldestReached = new Int32Array(nodeCount);
  const nextEdge = new Int32Array(nodeCount);
  const path = new Int32Array(nodeCount);
  const open = new Int32Array(nodeCount);
  let visited = 0;
  let pathLength = 0;
  let openCount = 0;

  const enter = (node: number): void => {
    visited++;
    visitNumber[node] = visited;
    oldestReached[node] = visited;
    nextEdge[node] = offsets[node];
    path[pathLength++] = node;
    open[openCount++] = node;
  };

  const close = (root: number): void => {
    let first = openCount;
    do {
      first--;
      component[open[first]] = componentCount;
    } while (open[first] !== root);
    if (openCount - first > 1) cyclic.push(open.slice(first, openCount));
    openCount = first;
    componentCount++;
  };

  for (let start = 0; start < nodeCount; start++) {
    if (visitNumber[start] !== 0) continue;
    enter(start);
    while (pathLength > 0) {
      const node = path[pathLength - 1];
      if (nextEdge[node] < offsets[node + 1]) {
        const target = targets[nextEdge[node]++];
        if (visitNumber[target] === 0) {
          enter(target);
        } else if (component[target] < 0 && visitNumber[target] < oldestReached[node]) {
          oldestReached[node] = visitNumber[target];
        }
        continue;
      }
      pathLength--;
      if (oldestReached[node] === visitNumber[node]) close(node);
      if (pathLength > 0) {
        const parent = path[pathLength - 1];
        if (oldestReached[node] < oldestReached[parent]) {
          oldestReached[parent] = oldestReached[node];
        }
      }
    }
  }
  return { of: component, cyclic };
}
