/**
 * Edges from every transaction to all that started after it had ended, in linear size.
 *
 *     T0 ──┐          T1 ──┐  T2 ──┐
 *          └─> B0 ─────────┴───────┴─> B1        a barrier after each group of completions
 *               └─> T3                  └─> T4   a transaction that starts hangs on the latest one
 *
 * T reaches U through barriers exactly if T ended before U started. Equal moments order nothing:
 * the clock was too coarse to tell, and a false edge would accuse a correct store.
 *
 * An unknown transaction has no end: it may take effect at any later time. It does have a start.
 */

import { type EdgeList, NO_APPEND, REALTIME } from "./graph.ts";
import type { HistoryIndex } from "./history-index.ts";
import type { VersionOrders } from "./version-order.ts";

export function addRealTimeEdges(
  { transactions }: HistoryIndex,
  { committed }: VersionOrders,
  edges: EdgeList,
): void {
  const byStart = indexesWhere(transactions.length, (index) => committed[index] === 1);
  const byEnd = byStart.filter((index) => transactions[index].outcome === "ok");
  byStart.sort((left, right) => transactions[left].start - transactions[right].start);
  byEnd.sort((left, right) => transactions[left].end - transactions[right].end);

  let completed = 0;
  let barrier = -1;
  for (const starting of byStart) {
    const { start } = transactions[starting];
    if (completed < byEnd.length && transactions[byEnd[completed]].end < start) {
      const previous = barrier;
      barrier = edges.addHelper();
      if (previous >= 0) edges.add(previous, barrier, REALTIME, NO_APPEND);
      while (completed < byEnd.length && transactions[byEnd[completed]].end < start) {
        edges.add(byEnd[completed++], barrier, REALTIME, NO_APPEND);
      }
    }
    if (barrier >= 0) edges.add(barrier, starting, REALTIME, NO_APPEND);
  }
}

function indexesWhere(count: number, accept: (index: number) => boolean): Int32Array {
  const indexes = new Int32Array(count);
  let accepted = 0;
  for (let index = 0; index < count; index++) if (accept(index)) indexes[accepted++] = index;
  return indexes.slice(0, accepted);
}
