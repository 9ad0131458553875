/**
 * Edges between transactions that follow from the version orders. `T -> U` says: in any equivalent
 * serial order, T comes before U.
 *
 *     key x    e0    e1    e2  |  u  v  w
 *              version order   |  unseen: committed, after e2, order unknown
 *
 *     ww   writer of e0 -> writer of e1, and so on; writer of e2 -> writers of u, v, w
 *     wr   writer of the last element read -> reader
 *     rw   reader of length n -> writer of element n; if it read all -> writers of u, v, w
 *
 * Where every reader of the whole version order has to point to every unseen writer, they meet in a
 * helper node. A reader that is an unseen writer itself cannot go through it, for it would arrive
 * at itself. It points to the others directly; two of those already form a cycle, so the edges of
 * two suffice and the number of edges stays linear.
 */

import { type EdgeList, NO_APPEND, RW, WR, WW } from "./graph.ts";
import type { HistoryIndex } from "./history-index.ts";
import type { ExternalRead } from "./reads.ts";
import type { VersionOrders } from "./version-order.ts";

export function addDependencyEdges(
  index: HistoryIndex,
  orders: VersionOrders,
  externalReads: readonly (readonly ExternalRead[])[],
  unseenAppends: readonly (readonly number[])[],
  edges: EdgeList,
): void {
  for (let key = 0; key < index.keys.length; key++) {
    addWriteEdges(index, orders.order[key], unseenAppends[key], edges);
    addReadEdges(index, orders.order[key], externalReads[key], unseenAppends[key], edges);
  }
}

function addWriteEdges(
  { appendTransaction }: HistoryIndex,
  order: Int32Array,
  unseen: readonly number[],
  edges: EdgeList,
): void {
  let previous = -1;
  for (const append of order) {
    if (append < 0) continue;
    if (previous >= 0) {
      edges.add(appendTransaction[previous], appendTransaction[append], WW, append);
    }
    previous = append;
  }
  if (previous < 0) return;
  for (const append of unseen) {
    edges.add(appendTransaction[previous], appendTransaction[append], WW, append);
  }
}

function addReadEdges(
  { appendTransaction }: HistoryIndex,
  order: Int32Array,
  reads: readonly ExternalRead[],
  unseen: readonly number[],
  edges: EdgeList,
): void {
  const unseenWriters = new Set<number>();
  for (const append of unseen) unseenWriters.add(appendTransaction[append]);
  let everyUnseen = -1;
  let directReaders = 0;

  for (const { transaction, length } of reads) {
    if (length > 0 && order[length - 1] >= 0) {
      const append = order[length - 1];
      edges.add(appendTransaction[append], transaction, WR, append);
    }
    if (length < order.length) {
      // If the next element is the reader's own, its ww edges say the rest.
      const append = order[length];
      if (append >= 0) edges.add(transaction, appendTransaction[append], RW, append);
    } else if (unseenWriters.has(transaction)) {
      if (++directReaders > 2) continue;
      for (const append of unseen) {
        edges.add(transaction, appendTransaction[append], RW, append);
      }
    } else if (unseen.length > 0) {
      if (everyUnseen < 0) {
        everyUnseen = edges.addHelper();
        for (const append of unseen) {
          edges.add(everyUnseen, appendTransaction[append], RW, append);
        }
      }
      edges.add(transaction, everyUnseen, RW, NO_APPEND);
    }
  }
}
