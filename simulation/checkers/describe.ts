/** How transactions, keys and lists are named in explanations. */

import type { Key, Operation, Transaction, Value } from "./history.ts";
import { FINAL_READ } from "./version-order.ts";

/** Long lists differ at their ends, so the ends are what is shown. */
const SHOWN_ELEMENTS = 8;
const SHOWN_OPERATIONS = 12;

export function nameTransaction(transaction: number): string {
  return transaction === FINAL_READ ? "the final read" : `T${transaction}`;
}

export function describeKey(key: Key): string {
  return JSON.stringify(key);
}

export function describeList(list: readonly Value[]): string {
  if (list.length <= SHOWN_ELEMENTS) return `[${list.join(", ")}]`;
  const hidden = list.length - SHOWN_ELEMENTS;
  return `[(${hidden} more), ${list.slice(hidden).join(", ")}]`;
}

export function describeTransaction(index: number, transaction: Transaction): string {
  const { process, start, end, outcome, operations } = transaction;
  const shown = operations.slice(0, SHOWN_OPERATIONS).map(describeOperation);
  if (operations.length > shown.length) shown.push(`(${operations.length - shown.length} more)`);
  const until = outcome === "unknown" ? "?" : end;
  return `T${index} (process ${process}, ${start} to ${until}, ${outcome}): ${shown.join("; ")}`;
}

function describeOperation(operation: Operation): string {
  const key = describeKey(operation.key);
  if (operation.kind === "append") return `append ${operation.value} to ${key}`;
  return `read ${key} = ${describeList(operation.list)}`;
}
