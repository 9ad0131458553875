/**
 * Is a list-append history strictly serializable (or serializable, or snapshot-isolated, or as
 * isolated as each of its transactions says)?
 *
 * The method is that of Elle (Kingsbury and Alvaro, VLDB 2020), in six steps:
 *
 *   1. direct errors      direct-errors.ts, reads.ts    wrong without comparing transactions
 *   2. version orders     version-order.ts              the longest read of each key; who committed
 *   3. dependencies       dependency-edges.ts           ww, wr, rw
 *   4. real time          real-time-edges.ts            barriers, linear size
 *   5. cycles             components.ts, shortest-cycle.ts, cycle-anomalies.ts
 *   6. lost writes        lost-writes.ts                against a final read of every key
 *
 * For (strict) serializability the answer is exact, not only sound. If there are no direct errors
 * and no cycle, any topological order of the graph is a serial execution that explains every read:
 * on each key the writers follow the version order, unseen ones come last, and every reader stands
 * between the last writer it saw and the first that it did not. Unknown transactions that nobody
 * saw are left out, as if they had not happened, which is always one of the possibilities. For
 * snapshot isolation it is exact when every committed append was read in the end, and otherwise
 * sound.
 *
 * Time and memory are linear in the size of the history, but for two sorts by time.
 */

import { type Anomaly, type AnomalyKind, AnomalyReport } from "./anomalies.ts";
import { checkCycles, type Isolation } from "./cycle-anomalies.ts";
import { addDependencyEdges } from "./dependency-edges.ts";
import { checkLongestReads, createListChecker } from "./direct-errors.ts";
import { EdgeList } from "./graph.ts";
import type { FinalReads, History } from "./history.ts";
import { indexHistory } from "./history-index.ts";
import { checkLostUpdates, checkLostWrites } from "./lost-writes.ts";
import { checkFinalReads, checkReads } from "./reads.ts";
import { addRealTimeEdges } from "./real-time-edges.ts";
import { findUnseenAppends, findVersionOrders } from "./version-order.ts";

const DEFAULT_EXPLAINED_PER_KIND = 10;

export interface ListAppendOptions {
  readonly isolation: Isolation;
  /** Read at rest, after the last transaction. Without them lost writes mostly go unnoticed. */
  readonly finalReads?: FinalReads;
  /** How many anomalies of each kind to keep and explain. */
  readonly explainedPerKind?: number;
}

export interface ListAppendResult {
  readonly ok: boolean;
  /** The first few of each kind. */
  readonly anomalies: readonly Anomaly[];
  /** How many of each kind there are in all. */
  readonly counts: ReadonlyMap<AnomalyKind, number>;
}

/** Throws a TypeError if the history itself is malformed. */
export function checkListAppend(history: History, options: ListAppendOptions): ListAppendResult {
  const { isolation, finalReads, explainedPerKind = DEFAULT_EXPLAINED_PER_KIND } = options;
  const report = new AnomalyReport(explainedPerKind);

  const index = indexHistory(history, finalReads);
  const orders = findVersionOrders(index, finalReads);
  const unseenAppends = findUnseenAppends(index, orders);

  const checkList = createListChecker(index, report);
  checkLongestReads(orders, checkList);
  const externalReads = checkReads(index, orders, checkList, report);
  if (finalReads !== undefined) checkFinalReads(index, orders, finalReads, checkList, report);
  checkLostWrites(index, orders, finalReads, report);
  checkLostUpdates(index, orders, externalReads, unseenAppends, report);

  const edges = new EdgeList(history.length);
  addDependencyEdges(index, orders, externalReads, unseenAppends, edges);
  if (isolation === "strict-serializable" || isolation === "mixed")
    addRealTimeEdges(index, orders, edges);
  checkCycles(index, edges, isolation, report);

  const { anomalies, counts } = report;
  return { ok: counts.size === 0, anomalies, counts };
}
