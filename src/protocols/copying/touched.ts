/**
 * Which rows records have changed in partitions that are being filled, where the store does not show it. A row that
 * is there came by a record or was copied, and is not copied again; but of a row that a record has removed
 * nothing is left, and a copy of it that comes later must not bring it back. While old rows of a partition are still being
 * cleared away, those that records have put there since are remembered, too.
 */

import { PUT, type WriteRequest } from "../../tables/served/requests.ts";
import { keyText } from "../execute/remote-table.ts";

/** What is remembered of a row. */
const WAS_PUT = 1;
const WAS_REMOVED = 2;

export class Touched {
  readonly #partitions = new Map<number, Map<string, number>>();
  /** Rows that are remembered. */
  size = 0;

  note({ code, table, partition }: WriteRequest, key: unknown): void {
    let rows = this.#partitions.get(partition);
    if (rows === undefined) {
      rows = new Map();
      this.#partitions.set(partition, rows);
    }
    const text = textOf(table, key);
    const before = rows.get(text);
    if (before === undefined) this.size++;
    rows.set(text, (before ?? 0) | (code === PUT ? WAS_PUT : WAS_REMOVED));
  }

  /** Whether anything of a partition is remembered. */
  has(partition: number): boolean {
    return this.#partitions.has(partition);
  }

  wasWritten(partition: number, table: number, key: unknown): boolean {
    return this.#partitions.get(partition)?.has(textOf(table, key)) ?? false;
  }

  wasRemoved(partition: number, table: number, key: unknown): boolean {
    const found = this.#partitions.get(partition)?.get(textOf(table, key)) ?? 0;
    return (found & WAS_REMOVED) !== 0;
  }

  /** From now on the store shows which rows were put. */
  keepRemovals(partition: number): void {
    const rows = this.#partitions.get(partition);
    if (rows === undefined) return;
    this.forget(partition);
    const removed = new Map([...rows].filter(([, how]) => (how & WAS_REMOVED) !== 0));
    if (removed.size === 0) return;
    this.#partitions.set(partition, removed);
    this.size += removed.size;
  }

  forget(partition: number): void {
    this.size -= this.#partitions.get(partition)?.size ?? 0;
    this.#partitions.delete(partition);
  }

  /** The partition of which most is remembered. */
  largest(): number | undefined {
    let found: number | undefined;
    for (const [partition, { size }] of this.#partitions) {
      if (found === undefined || size > this.#partitions.get(found)!.size) found = partition;
    }
    return found;
  }
}

function textOf(table: number, key: unknown): string {
  return `${table} ${keyText(key)}`;
}
