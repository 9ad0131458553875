/**
 * Each committed transaction's reads, taken apart.
 *
 *     read of x after appending 7 and 8:   [ 1, 4, 2,   7, 8 ]
 *                                            -------    ----
 *                                            external   its own appends so far
 *
 * A transaction sees its own appends at the end, and the same external part in every read of a key;
 * anything else is an internal error. The external part is what it learnt about others: it must not
 * end between two appends of one of them, and it must agree with the version order. Its length is
 * all that the dependency edges need.
 */

import type { AnomalyReport } from "./anomalies.ts";
import { describeKey, describeList, nameTransaction } from "./describe.ts";
import type { ListChecker } from "./direct-errors.ts";
import type { FinalReads, Key, Read, Value } from "./history.ts";
import type { HistoryIndex } from "./history-index.ts";
import { commonPrefixLength, FINAL_READ, type VersionOrders } from "./version-order.ts";

/** One per transaction and key, and only if it is a prefix of the version order. */
export interface ExternalRead {
  readonly transaction: number;
  readonly length: number;
}

/** What a transaction did to one key so far. */
interface KeyState {
  readonly ownAppends: Value[];
  /** The first read, and how much of it is external; -1 before it. */
  list: readonly Value[];
  externalLength: number;
  /** Whether that part is a prefix of the version order. */
  agrees: boolean;
}

/** Returns the external reads of each key. */
export function checkReads(
  index: HistoryIndex,
  orders: VersionOrders,
  checkList: ListChecker,
  report: AnomalyReport,
): readonly (readonly ExternalRead[])[] {
  const { transactions, keyNumbers } = index;
  const externalReads: ExternalRead[][] = index.keys.map(() => []);
  const states = new Map<number, KeyState>();

  for (let transaction = 0; transaction < transactions.length; transaction++) {
    if (orders.committed[transaction] === 0) continue;
    states.clear();
    for (const operation of transactions[transaction].operations) {
      const key = keyNumbers.get(operation.key)!;
      let state = states.get(key);
      if (state === undefined) {
        state = { ownAppends: [], list: [], externalLength: -1, agrees: false };
        states.set(key, state);
      }
      if (operation.kind === "append") {
        checkNotYetRead(transaction, key, operation.value, state);
        state.ownAppends.push(operation.value);
      } else {
        checkRead(transaction, key, operation, state);
      }
    }
  }
  return externalReads;

  function checkRead(reader: number, key: number, { list }: Read, state: KeyState): void {
    const agreed = commonPrefixLength(list, orders.longestRead[key]);
    if (agreed < list.length) {
      reportDisagreement(index, orders, reader, key, list, report);
      checkList(reader, key, list);
    }
    if (!endsWith(list, state.ownAppends)) {
      const own = `its own appends ${describeList(state.ownAppends)}`;
      reportInternal(reader, index.keys[key], list, `which does not end in ${own}`);
      return;
    }
    const length = list.length - state.ownAppends.length;
    if (state.externalLength < 0) {
      state.list = list;
      state.externalLength = length;
      state.agrees = agreed >= length;
      if (state.agrees) externalReads[key].push({ transaction: reader, length });
      checkLastElement(reader, key, list, length);
    } else if (state.externalLength !== length || commonPrefixLength(state.list, list) < length) {
      const before = describeList(state.list.slice(0, state.externalLength));
      reportInternal(reader, index.keys[key], list, `but had read ${before} from others before`);
    }
  }

  function checkNotYetRead(writer: number, key: number, value: Value, state: KeyState): void {
    if (!state.agrees) return;
    const position = orders.position[index.appendsByValue[key].get(value)!];
    if (position < 0 || position >= state.externalLength) return;
    reportInternal(writer, index.keys[key], state.list, `and only then appended ${value}`);
  }

  function checkLastElement(
    reader: number,
    key: number,
    list: readonly Value[],
    externalLength: number,
  ): void {
    if (externalLength === 0) return;
    const last = list[externalLength - 1];
    const append = index.appendsByValue[key].get(last);
    if (append === undefined || index.nextAppend[append] < 0) return;
    const writer = index.appendTransaction[append];
    if (writer === reader) return;
    report.add("intermediate-read", () => ({
      transactions: [reader, writer],
      key: index.keys[key],
      explanation:
        `T${reader} read key ${describeKey(index.keys[key])} as ` +
        `${describeList(list.slice(0, externalLength))}, but T${writer} appended ` +
        `${index.appendValue[index.nextAppend[append]]} after ${last}`,
    }));
  }

  function reportInternal(reader: number, key: Key, list: readonly Value[], why: string): void {
    report.add("internal", () => ({
      transactions: [reader],
      key,
      explanation: `T${reader} read key ${describeKey(key)} as ${describeList(list)}, ${why}`,
    }));
  }
}

/** The final reads have no transaction around them: they can only disagree with the order. */
export function checkFinalReads(
  index: HistoryIndex,
  orders: VersionOrders,
  finalReads: FinalReads,
  checkList: ListChecker,
  report: AnomalyReport,
): void {
  for (const [name, list] of finalReads) {
    const key = index.keyNumbers.get(name)!;
    if (commonPrefixLength(list, orders.longestRead[key]) === list.length) continue;
    reportDisagreement(index, orders, FINAL_READ, key, list, report);
    checkList(FINAL_READ, key, list);
  }
}

function reportDisagreement(
  index: HistoryIndex,
  orders: VersionOrders,
  reader: number,
  key: number,
  list: readonly Value[],
  report: AnomalyReport,
): void {
  const longest = orders.longestRead[key];
  const longestReader = orders.longestReader[key];
  report.add("incompatible-order", () => {
    const at = commonPrefixLength(list, longest);
    return {
      transactions: [reader, longestReader].filter((transaction) => transaction !== FINAL_READ),
      key: index.keys[key],
      explanation:
        `key ${describeKey(index.keys[key])}: ${nameTransaction(reader)} read ` +
        `${describeList(list)} and ${nameTransaction(longestReader)} read ` +
        `${describeList(longest)}; element ${at} is ${list[at]} in one ` +
        `and ${longest[at]} in the other`,
    };
  });
}

function endsWith(list: readonly Value[], ending: readonly Value[]): boolean {
  const offset = list.length - ending.length;
  if (offset < 0) return false;
  for (let at = 0; at < ending.length; at++) if (list[offset + at] !== ending[at]) return false;
  return true;
}
