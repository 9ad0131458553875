/**
 * The store of a table whose rows expire: rows that have ended are not there. It wraps the table's rows and
 * indexes. A row that has ended and is in the way of a change, because it has the same key or the same
 * values in a unique index, is removed first, with its index entries, in the same transaction; for those
 * who watch the table that is a delete.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import type { Cursor, KeyRange, RowCodec, Store } from "../../stores/store.ts";
import { ownKey } from "../copied-key.ts";
import { type Index, keyIn } from "../indexes/entries.ts";
import type { RowValues, Structure } from "../indexes/structure.ts";
import type { Table } from "../table.ts";
import { isLive, LiveCursor, momentOf } from "./expiry.ts";

export class ExpiringStore implements Store<RowValues, unknown> {
  readonly #table: Table;
  readonly #field: string;
  readonly #codec: RowCodec<RowValues, unknown>;
  readonly #inner: Store<RowValues, unknown>;
  readonly #unique: readonly Index[];
  /** The rows, of which only the key, the time and what unique indexes are on is read. */
  readonly #parts: Store<RowValues, unknown>;

  constructor(
    executor: Executor,
    structure: Structure<RowValues, unknown>,
    root: Address,
    inner: Store<RowValues, unknown>,
    indexes: readonly Index[],
  ) {
    this.#table = structure.table;
    this.#field = structure.table.expires!;
    this.#codec = structure.codec;
    this.#inner = inner;
    this.#unique = indexes.filter(({ definition }) => definition.unique);
    const fields = this.#unique.flatMap(({ definition }) => definition.on);
    const names = [...new Set([...this.#table.key, this.#field, ...fields])];
    this.#parts = structure.openPart(executor, root, names);
  }

  get(key: unknown): RowValues | undefined {
    const row = this.#inner.get(key);
    return row !== undefined && isLive(row, this.#field, wallClockMs()) ? row : undefined;
  }

  read(tx: Transaction, key: unknown): RowValues | undefined {
    const row = this.#inner.read(tx, key);
    return row !== undefined && isLive(row, this.#field, momentOf(tx)) ? row : undefined;
  }

  touch(tx: Transaction, key: unknown): void {
    this.#inner.touch(tx, key);
  }

  has(tx: Transaction, key: unknown): boolean {
    const row = this.#parts.read(tx, key);
    return row !== undefined && isLive(row, this.#field, momentOf(tx));
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<RowValues> {
    return new LiveCursor(this.#inner.cursor(range, reverse), this.#field);
  }

  insert(tx: Transaction, given: RowValues): boolean {
    return this.#inner.insert(tx, this.#makeRoom(tx, given));
  }

  put(tx: Transaction, given: RowValues): void {
    this.#inner.put(tx, this.#makeRoom(tx, given));
  }

  update(tx: Transaction, givenKey: unknown, given: Partial<RowValues>): boolean {
    const changes = this.#codec.takeChanges(given);
    const key = ownKey(givenKey);
    const before = this.#parts.read(tx, key);
    if (before === undefined || !isLive(before, this.#field, momentOf(tx))) return false;
    this.#evictHolders(tx, { ...before, ...changes });
    return this.#inner.update(tx, key, changes);
  }

  remove(tx: Transaction, givenKey: unknown): boolean {
    const key = ownKey(givenKey);
    return !this.evict(tx, key) && this.#inner.remove(tx, key);
  }

  /** Removes a row if it has ended; whether it did. */
  evict(tx: Transaction, key: unknown): boolean {
    const row = this.#parts.read(tx, key);
    if (row === undefined || isLive(row, this.#field, momentOf(tx))) return false;
    return this.#inner.remove(tx, key);
  }

  maintain(): void {
    this.#inner.maintain();
  }

  /** The caller's row as an object of our own, after all that has ended is out of its way. */
  #makeRoom(tx: Transaction, given: RowValues): RowValues {
    const words = this.#codec.encode(given);
    const row = this.#codec.decode(this.#codec.scratch, 0, words);
    this.evict(tx, keyIn(row, this.#table.key, this.#table.singleKey));
    this.#evictHolders(tx, row);
    return row;
  }

  #evictHolders(tx: Transaction, row: RowValues): void {
    for (const index of this.#unique) {
      if (index.state === "announced") continue;
      const holder = index.holderOf(tx, row);
      if (holder !== undefined) this.evict(tx, holder);
    }
  }
}
