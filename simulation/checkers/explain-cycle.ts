/** Puts a cycle into words: each transaction in full, then why each must precede the next. */

import type { AnomalyDetails, CycleStep, DependencyKind } from "./anomalies.ts";
import { describeKey, describeTransaction } from "./describe.ts";
import { type EdgeList, NO_APPEND } from "./graph.ts";
import type { HistoryIndex } from "./history-index.ts";

const DEPENDENCY_KINDS: readonly DependencyKind[] = ["ww", "wr", "rw", "realtime"];

export function explainCycle(
  index: HistoryIndex,
  edges: EdgeList,
  cycleEdges: readonly number[],
): AnomalyDetails {
  const cycle = toSteps(index, edges, cycleEdges);
  const transactions = [...new Set(cycle.map((step) => step.from))];
  const antidependencies = cycle.filter((step) => step.dependency === "rw").length;
  const path = cycle.map((step) => `T${step.from} -${step.dependency}-> `).join("");
  const lines = [
    `${path}T${cycle[0].from} (${cycle.length} edges, ${antidependencies} of them rw)`,
    ...transactions.map(
      (transaction) => `  ${describeTransaction(transaction, index.transactions[transaction])}`,
    ),
    ...cycle.map((step) => `  T${step.from} before T${step.to}: ${step.reason}`),
  ];
  return { transactions, cycle, explanation: lines.join("\n") };
}

/** Edges through helpers become one step from transaction to transaction. */
function toSteps(
  index: HistoryIndex,
  edges: EdgeList,
  cycleEdges: readonly number[],
): readonly CycleStep[] {
  const steps: CycleStep[] = [];
  let from = -1;
  for (const edge of cycleEdges) {
    if (!edges.isHelper(edges.from[edge])) from = edges.from[edge];
    const to = edges.to[edge];
    if (edges.isHelper(to)) continue;
    const dependency = DEPENDENCY_KINDS[edges.kind[edge]];
    const reason = explainStep(index, from, to, dependency, edges.append[edge]);
    steps.push({ from, to, dependency, reason });
  }
  return steps;
}

function explainStep(
  index: HistoryIndex,
  from: number,
  to: number,
  dependency: DependencyKind,
  append: number,
): string {
  if (append === NO_APPEND) {
    const { end } = index.transactions[from];
    return `T${from} ended at ${end}, T${to} started later, at ${index.transactions[to].start}`;
  }
  const value = index.appendValue[append];
  const key = `key ${describeKey(index.keys[index.appendKey[append]])}`;
  switch (dependency) {
    case "ww":
      return `T${to} appended ${value} to ${key}, where the last before it was T${from}`;
    case "wr":
      return `T${to} read ${key} up to ${value}, which T${from} appended`;
    default:
      return `T${from} read ${key} without ${value}, which T${to} appended`;
  }
}
