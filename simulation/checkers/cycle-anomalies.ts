/**
 * From components to anomalies. Kinds of edges are added one by one, and a cycle is named after the
 * kind without which it would not exist:
 *
 *     ww                    dirty write                  G0
 *     ww wr                 circular information flow    G1c
 *     ww wr rw              not serializable             G-single, G2
 *     ww wr rw real time    not strictly serializable
 *
 * A component that contains one of an earlier step is not reported again: it is the same fault,
 * seen through more edges. Correct histories are the common case, and take only the last step.
 */

import type { AnomalyKind, AnomalyReport } from "./anomalies.ts";
import { findComponents } from "./components.ts";
import { explainCycle } from "./explain-cycle.ts";
import {
  buildGraph,
  buildMixedGraph,
  buildSnapshotGraph,
  type EdgeList,
  type Graph,
  REALTIME,
  RW,
  WR,
  WW,
} from "./graph.ts";
import type { HistoryIndex } from "./history-index.ts";
import { findShortCycle } from "./shortest-cycle.ts";

/** In a mixed history each transaction says which isolation it has. */
export type Isolation = "strict-serializable" | "serializable" | "snapshot" | "mixed";

interface Step {
  readonly kind: AnomalyKind;
  readonly build: (edges: EdgeList, index: HistoryIndex) => Graph;
}

const COMMON_STEPS: readonly Step[] = [
  { kind: "dirty-write", build: (edges) => buildGraph(edges, WW) },
  { kind: "circular-information-flow", build: (edges) => buildGraph(edges, WR) },
];
const NOT_SERIALIZABLE: Step = {
  kind: "not-serializable",
  build: (edges) => buildGraph(edges, RW),
};
const NOT_STRICTLY_SERIALIZABLE: Step = {
  kind: "not-strictly-serializable",
  build: (edges) => buildGraph(edges, REALTIME),
};
const NOT_SNAPSHOT_ISOLATED: Step = {
  kind: "not-snapshot-isolated",
  build: buildSnapshotGraph,
};

const NOT_ISOLATED: Step = {
  kind: "not-isolated",
  build: (edges, { transactions }) =>
    buildMixedGraph(edges, (transaction) => transactions[transaction].isolation !== "snapshot"),
};

/**
 * The last step of each has all edges of the others, so it alone tells whether there is a cycle.
 */
const STEPS: Readonly<Record<Isolation, readonly Step[]>> = {
  snapshot: [...COMMON_STEPS, NOT_SNAPSHOT_ISOLATED],
  mixed: [...COMMON_STEPS, NOT_ISOLATED],
  serializable: [...COMMON_STEPS, NOT_SERIALIZABLE],
  "strict-serializable": [...COMMON_STEPS, NOT_SERIALIZABLE, NOT_STRICTLY_SERIALIZABLE],
};

export function checkCycles(
  index: HistoryIndex,
  edges: EdgeList,
  isolation: Isolation,
  report: AnomalyReport,
): void {
  const steps = STEPS[isolation];
  const last = steps[steps.length - 1];
  if (findComponents(last.build(edges, index)).cyclic.length === 0) return;

  const isExplained = new Uint8Array(edges.transactionCount);
  for (const { kind, build } of steps) {
    const graph = build(edges, index);
    const components = findComponents(graph);
    for (const members of components.cyclic) {
      const transactions = members
        .map((node) => graph.transaction[node])
        .filter((transaction) => transaction >= 0);
      const isRepeated = transactions.some((transaction) => isExplained[transaction] === 1);
      for (const transaction of transactions) isExplained[transaction] = 1;
      if (isRepeated) continue;
      report.add(kind, () =>
        explainCycle(index, edges, findShortCycle(graph, components.of, members)),
      );
    }
  }
}
