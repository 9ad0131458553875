/**
 * Errors that a single list shows without looking at any other: elements that nobody appended, that
 * only a failed transaction appended, or that appear twice.
 *
 * Only the longest read of each key comes here, and the reads that are not a prefix of it. All
 * others would merely repeat what is reported already.
 */

import type { AnomalyReport } from "./anomalies.ts";
import { describeKey, describeList, nameTransaction } from "./describe.ts";
import type { Value } from "./history.ts";
import type { HistoryIndex } from "./history-index.ts";
import { FINAL_READ, type VersionOrders } from "./version-order.ts";

export type ListChecker = (reader: number, key: number, list: readonly Value[]) => void;

export function createListChecker(index: HistoryIndex, report: AnomalyReport): ListChecker {
  // Which list an append was last met in: a set that need not be emptied between lists.
  const metIn = new Int32Array(index.appendCount);
  let listNumber = 0;

  return (reader, key, list) => {
    listNumber++;
    const name = index.keys[key];
    const where = () =>
      `${nameTransaction(reader)} read key ${describeKey(name)} as ${describeList(list)}`;
    const readers = reader === FINAL_READ ? [] : [reader];

    for (const value of list) {
      const append = index.appendsByValue[key].get(value);
      if (append === undefined) {
        report.add("unwritten-read", () => ({
          transactions: readers,
          key: name,
          explanation: `${where()}, but nobody appended ${value}`,
        }));
        continue;
      }
      const writer = index.appendTransaction[append];
      if (metIn[append] === listNumber) {
        report.add("duplicate", () => ({
          transactions: [...readers, writer],
          key: name,
          explanation: `${where()}, where ${value} appears twice; T${writer} appended it once`,
        }));
      } else if (index.transactions[writer].outcome === "failed") {
        report.add("aborted-read", () => ({
          transactions: [...readers, writer],
          key: name,
          explanation: `${where()}, but ${value} was appended by T${writer}, which failed`,
        }));
      }
      metIn[append] = listNumber;
    }
  };
}

export function checkLongestReads(orders: VersionOrders, checkList: ListChecker): void {
  for (let key = 0; key < orders.longestRead.length; key++) {
    checkList(orders.longestReader[key], key, orders.longestRead[key]);
  }
}
