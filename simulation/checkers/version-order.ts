/**
 * Which transactions committed, and in which order the appends to each key took effect.
 *
 * Both come from the same source. A read that counts shows appends that took effect; an unknown
 * transaction of which one append was seen has committed, and from then on its own reads count too,
 * which may reveal further ones. So this runs until nothing new is found.
 *
 * The version order of a key is its longest read. Every other read should be a prefix of it; those
 * that are not are reported by reads.ts. An append that no read shows either comes after the
 * version order (its transaction committed) or is not considered at all (unknown: maybe it never
 * happened).
 */

import type { FinalReads, Value } from "./history.ts";
import type { HistoryIndex } from "./history-index.ts";

/** Stands for the final reads wherever the index of a reading transaction is expected. */
export const FINAL_READ = -1;

export interface VersionOrders {
  /** For each transaction: 1 if it is known to have committed. */
  readonly committed: Uint8Array;
  /** For each key: its longest read, and who made it. */
  readonly longestRead: readonly (readonly Value[])[];
  readonly longestReader: Int32Array;
  /**
   * For each key: the append behind each element of the longest read. -1 where the element was
   * repeated, was never appended or belongs to a failed transaction: nothing follows from those.
   */
  readonly order: readonly Int32Array[];
  /** For each append: its position in the version order, or -1. */
  readonly position: Int32Array;
  /** For each append: 1 if any read shows it, even one that disagrees with the version order. */
  readonly seen: Uint8Array;
}

const NOTHING: readonly Value[] = [];

export function findVersionOrders(
  index: HistoryIndex,
  finalReads: FinalReads | undefined,
): VersionOrders {
  const { transactions, keys, keyNumbers, appendsByValue, appendTransaction } = index;
  const committed = new Uint8Array(transactions.length);
  const seen = new Uint8Array(index.appendCount);
  const longestRead: (readonly Value[])[] = keys.map(() => NOTHING);
  const longestReader = new Int32Array(keys.length).fill(FINAL_READ);
  const toVisit: number[] = [];

  const observe = (reader: number, key: number, list: readonly Value[]): void => {
    const longest = longestRead[key];
    const common = commonPrefixLength(list, longest);
    // Most reads are prefixes of one already seen, and end here.
    for (let position = common; position < list.length; position++) {
      const append = appendsByValue[key].get(list[position]);
      if (append === undefined) continue;
      seen[append] = 1;
      const writer = appendTransaction[append];
      if (transactions[writer].outcome === "unknown" && committed[writer] === 0) {
        committed[writer] = 1;
        toVisit.push(writer);
      }
    }
    if (list.length > longest.length) {
      longestRead[key] = list;
      longestReader[key] = reader;
    }
  };

  for (const [key, list] of finalReads ?? []) observe(FINAL_READ, keyNumbers.get(key)!, list);
  for (let transaction = transactions.length - 1; transaction >= 0; transaction--) {
    if (transactions[transaction].outcome !== "ok") continue;
    committed[transaction] = 1;
    toVisit.push(transaction);
  }
  while (toVisit.length > 0) {
    const reader = toVisit.pop()!;
    for (const operation of transactions[reader].operations) {
      if (operation.kind === "append") continue;
      observe(reader, keyNumbers.get(operation.key)!, operation.list);
    }
  }

  const position = new Int32Array(index.appendCount).fill(-1);
  const order = longestRead.map((list, key) => {
    const appends = new Int32Array(list.length).fill(-1);
    for (let at = 0; at < list.length; at++) {
      const append = appendsByValue[key].get(list[at]);
      if (append === undefined || position[append] >= 0) continue;
      if (committed[appendTransaction[append]] === 0) continue;
      position[append] = at;
      appends[at] = append;
    }
    return appends;
  });
  return { committed, longestRead, longestReader, order, position, seen };
}

/**
 * For each key the committed appends that no read shows, one per transaction. They come after the
 * version order, in an order among themselves that nobody knows. Appends that only a disagreeing
 * read shows are left out: where those belong is anybody's guess.
 */
export function findUnseenAppends(
  index: HistoryIndex,
  { committed, seen }: VersionOrders,
): readonly (readonly number[])[] {
  const unseen: number[][] = index.keys.map(() => []);
  for (let append = 0; append < index.appendCount; append++) {
    if (seen[append] === 1 || committed[index.appendTransaction[append]] === 0) continue;
    const previous = index.previousAppend[append];
    if (previous >= 0 && seen[previous] === 0) continue;
    unseen[index.appendKey[append]].push(append);
  }
  return unseen;
}

export function commonPrefixLength(left: readonly Value[], right: readonly Value[]): number {
  const limit = Math.min(left.length, right.length);
  let length = 0;
  while (length < limit && left[length] === right[length]) length++;
  return length;
}
