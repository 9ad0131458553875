/**
 * Dense numbers for everything in a history, so that the later steps work on typed arrays:
 * transactions by their index, keys and appends by a number in order of appearance.
 *
 * A history that breaks the rules of recording (see history.ts) is refused here with a TypeError:
 * it says something about the test, nothing about the store.
 */

import type { FinalReads, History, Key, Transaction, Value } from "./history.ts";

export interface HistoryIndex {
  readonly transactions: History;
  readonly keys: readonly Key[];
  readonly keyNumbers: ReadonlyMap<Key, number>;
  /** For each key: value to append. */
  readonly appendsByValue: readonly ReadonlyMap<Value, number>[];
  readonly appendCount: number;
  readonly appendTransaction: Int32Array;
  readonly appendKey: Int32Array;
  readonly appendValue: Float64Array;
  /** The neighbouring append of the same transaction to the same key, or -1. */
  readonly previousAppend: Int32Array;
  readonly nextAppend: Int32Array;
}

export function indexHistory(history: History, finalReads: FinalReads | undefined): HistoryIndex {
  const appendCount = countAppends(history);
  const appendTransaction = new Int32Array(appendCount);
  const appendKey = new Int32Array(appendCount);
  const appendValue = new Float64Array(appendCount);
  const previousAppend = new Int32Array(appendCount).fill(-1);
  const nextAppend = new Int32Array(appendCount).fill(-1);

  const keys: Key[] = [];
  const keyNumbers = new Map<Key, number>();
  const appendsByValue: Map<Value, number>[] = [];
  const latestAppend: number[] = [];
  const numberOf = (key: Key): number => {
    let number = keyNumbers.get(key);
    if (number === undefined) {
      number = keys.length;
      keys.push(key);
      keyNumbers.set(key, number);
      appendsByValue.push(new Map());
      latestAppend.push(-1);
    }
    return number;
  };

  let append = 0;
  for (let index = 0; index < history.length; index++) {
    refuseImpossibleTimes(history[index], index);
    for (const operation of history[index].operations) {
      const key = numberOf(operation.key);
      if (operation.kind === "read") continue;

      const appends = appendsByValue[key];
      const earlier = appends.get(operation.value);
      if (earlier !== undefined) {
        throw new TypeError(
          `value ${operation.value} is appended to key ${JSON.stringify(operation.key)} twice, ` +
            `by T${appendTransaction[earlier]} and by T${index}; values must be unique`,
        );
      }
      appends.set(operation.value, append);
      appendTransaction[append] = index;
      appendKey[append] = key;
      appendValue[append] = operation.value;

      const latest = latestAppend[key];
      if (latest >= 0 && appendTransaction[latest] === index) {
        previousAppend[append] = latest;
        nextAppend[latest] = append;
      }
      latestAppend[key] = append;
      append++;
    }
  }
  for (const key of finalReads?.keys() ?? []) numberOf(key);

  return {
    transactions: history,
    keys,
    keyNumbers,
    appendsByValue,
    appendCount,
    appendTransaction,
    appendKey,
    appendValue,
    previousAppend,
    nextAppend,
  };
}

function countAppends(history: History): number {
  let count = 0;
  for (const { operations } of history) {
    for (const operation of operations) if (operation.kind === "append") count++;
  }
  return count;
}

function refuseImpossibleTimes({ start, end, outcome }: Transaction, index: number): void {
  // Written so that NaN is refused too.
  const possible = Number.isFinite(start) && (outcome === "unknown" || end >= start);
  if (!possible) throw new TypeError(`T${index} starts at ${start} and ends at ${end}`);
}
