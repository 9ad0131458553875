/**
 * Committed appends that are gone, came out of order, or overlooked each other.
 *
 * With final reads, every committed append must be in them. That includes the other appends of an
 * unknown transaction of which one was seen: a transaction is applied whole or not at all. Without
 * final reads, a missing append is proven only by a later append of its own transaction.
 */

import type { AnomalyReport } from "./anomalies.ts";
import { describeKey, describeList } from "./describe.ts";
import type { FinalReads } from "./history.ts";
import type { HistoryIndex } from "./history-index.ts";
import type { ExternalRead } from "./reads.ts";
import type { VersionOrders } from "./version-order.ts";

export function checkLostWrites(
  index: HistoryIndex,
  orders: VersionOrders,
  finalReads: FinalReads | undefined,
  report: AnomalyReport,
): void {
  const isInFinalReads = new Uint8Array(index.appendCount);
  for (const [key, list] of finalReads ?? []) {
    const appends = index.appendsByValue[index.keyNumbers.get(key)!];
    for (const value of list) {
      const append = appends.get(value);
      if (append !== undefined) isInFinalReads[append] = 1;
    }
  }

  for (let append = 0; append < index.appendCount; append++) {
    if (orders.committed[index.appendTransaction[append]] === 0) continue;
    if (finalReads !== undefined && isInFinalReads[append] === 0) {
      reportLost(append, "the final read does not have it");
    }
    const next = index.nextAppend[append];
    if (next < 0 || orders.position[next] < 0) continue;
    if (orders.position[append] < 0) {
      // The final reads are at least as complete, so they have reported it above.
      if (finalReads === undefined) {
        reportLost(append, `only its later append of ${index.appendValue[next]} was ever read`);
      }
    } else if (orders.position[append] > orders.position[next]) {
      reportSwapped(append, next);
    }
  }

  function reportLost(append: number, why: string): void {
    const writer = index.appendTransaction[append];
    const key = index.keys[index.appendKey[append]];
    const committed =
      index.transactions[writer].outcome === "ok"
        ? "was acknowledged"
        : "has committed, since others read its appends,";
    report.add("lost-write", () => ({
      transactions: [writer],
      key,
      explanation:
        `T${writer} ${committed} and appended ${index.appendValue[append]} ` +
        `to key ${describeKey(key)}, but ${why}`,
    }));
  }

  function reportSwapped(append: number, next: number): void {
    const writer = index.appendTransaction[append];
    const key = index.appendKey[append];
    report.add("incompatible-order", () => ({
      transactions: [writer],
      key: index.keys[key],
      explanation:
        `T${writer} appended ${index.appendValue[append]} and then ${index.appendValue[next]} to ` +
        `key ${describeKey(index.keys[key])}, which reads ${describeList(orders.longestRead[key])}`,
    }));
  }
}

/**
 * Two transactions that read a key and appended to it, both unseen: whichever came second should
 * have read the first. For serializability the edges show it (rw there, rw back), but to snapshot
 * isolation that looks like a permitted write skew, because the ww edge between the two has no
 * known direction.
 */
export function checkLostUpdates(
  index: HistoryIndex,
  orders: VersionOrders,
  externalReads: readonly (readonly ExternalRead[])[],
  unseenAppends: readonly (readonly number[])[],
  report: AnomalyReport,
): void {
  for (let key = 0; key < index.keys.length; key++) {
    if (unseenAppends[key].length < 2) continue;
    const writers = new Set(unseenAppends[key].map((append) => index.appendTransaction[append]));
    const readers = externalReads[key].filter(({ transaction }) => writers.has(transaction));
    if (readers.length < 2) continue;
    const transactions = readers.map(({ transaction }) => transaction);
    report.add("lost-update", () => ({
      transactions,
      key: index.keys[key],
      explanation:
        `T${transactions.join(", T")} each read key ${describeKey(index.keys[key])} and appended ` +
        `to it, none saw another's append, and the longest read is ` +
        `${describeList(orders.longestRead[key])}`,
    }));
  }
}
