/**
 * The successor of a table, as those who write to the table see it: every change goes to both, in the
 * same transaction. The invariant from `building` on: every row of the successor is what the table's row
 * becomes, so a row that is there needs not be copied, and one that is not there is copied later.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import type { PlacedStore, RowStore } from "../../stores/store.ts";
import { isLive, momentOf } from "../expiry/expiry.ts";
import { keyIn, shownValue } from "../indexes/entries.ts";
import { StoredTable } from "../indexes/stored-table.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { ANNOUNCED, FOLLOWED, IGNORED, type RowMode } from "./row-mode.ts";
import type { CopyRange, StoredSuccessor, SuccessorState } from "./stored.ts";
import { Transform } from "./transform.ts";

/** The same store as one whose rows have places, if they do. */
export function placedStore(store: RowStore<RowValues, unknown>): PlacedStore<unknown> | undefined {
  return "placeOf" in store ? (store as unknown as PlacedStore<unknown>) : undefined;
}

export class Successor {
  readonly state: SuccessorState;
  readonly next: StoredTable;
  readonly #old: Table;
  readonly #transform: Transform;
  readonly #range: CopyRange;
  /** Where rows have places in the walk that copies them. */
  readonly #places: PlacedStore<unknown> | undefined;

  constructor(
    executor: Executor,
    old: Table,
    oldRows: RowStore<RowValues, unknown>,
    stored: StoredSuccessor,
    before?: Successor,
  ) {
    this.state = stored.state;
    this.#range = stored.range;
    this.#places = stored.range.end === 1 ? undefined : placedStore(oldRows);
    this.#old = old;
    const isSame = before?.next.root === stored.root;
    const table = isSame ? before.next.table : tableFromSchema(stored.schema);
    this.next = isSame
      ? before.next
      : new StoredTable(executor, table, stored.root, stored.schema.indexes);
    const known = isSame && before.#old === old ? before : undefined;
    this.#transform =
      known === undefined ? new Transform(old, table, stored.sources) : known.#transform;
  }

  /** What a change of the row with this key means here. */
  modeOf(key: unknown): RowMode {
    const { upTo, announcedTo } = this.#range;
    const place = this.#places === undefined ? 0 : this.#places.placeOf(key);
    if (place < upTo) return FOLLOWED;
    return place < announcedTo ? ANNOUNCED : IGNORED;
  }

  /** Whether changes of a row can only be followed by one who knows the row. */
  needsRow(changes: Partial<RowValues>): boolean {
    const { isKeyed, keySources } = this.#transform;
    if (!isKeyed) return true;
    for (const name in changes) if (keySources.has(name)) return true;
    return false;
  }

  /** Fails if the successor cannot take a row because of its key. */
  check(tx: Transaction, before: RowValues | undefined, after: RowValues): void {
    if (this.#transform.isOneToOne || this.#modeOf(after) !== FOLLOWED) return;
    const key = this.#transform.keyOf(after);
    if (before !== undefined && sameKey(this.#transform.keyOf(before), key)) return;
    if (this.next.rows.has(tx, key)) throw this.#taken(after, key);
  }

  /** Brings the successor from one row to the other. */
  follow(tx: Transaction, before: RowValues | undefined, after: RowValues | undefined): void {
    const mode = this.#modeOf((after ?? before)!);
    if (mode === IGNORED) return;
    const { store } = this.next;
    const transform = this.#transform;
    const from = before && transform.keyOf(before);
    const to = after && transform.keyOf(after);
    const isAdded = after !== undefined && mode === FOLLOWED;
    if (from !== undefined && !(isAdded && sameKey(from, to))) store.remove(tx, from);
    if (isAdded) store.put(tx, transform.rowOf(after));
  }

  /** The same for changes that do not need the row, of one that is not ignored. */
  patch(tx: Transaction, key: unknown, changes: Partial<RowValues>, mode: RowMode): void {
    const { store } = this.next;
    const to = this.#transform.keyFrom(key);
    if (mode === ANNOUNCED) {
      store.remove(tx, to);
      return;
    }
    const made = this.#transform.changesOf(changes);
    // A row that is not there yet is copied as it will be then.
    if (made !== undefined) store.update(tx, to, made);
  }

  /** Copies a row as it is now, unless it is there already. */
  copy(tx: Transaction, row: RowValues): void {
    // Where rows expire no longer, those that have ended must not come back.
    const ends = this.next.table.expires === undefined ? this.#old.expires : undefined;
    if (ends !== undefined && !isLive(row, ends, momentOf(tx))) return;
    const transform = this.#transform;
    const key = transform.keyOf(row);
    if (transform.isOneToOne) {
      if (this.next.rows.has(tx, key)) return;
    } else {
      const found = this.next.rows.read(tx, key);
      if (found !== undefined && transform.isOf(found, row)) return;
      if (found !== undefined) throw this.#taken(row, key);
    }
    if (!this.next.store.insert(tx, transform.rowOf(row))) tx.conflict(-1);
  }

  maintain(): void {
    this.next.store.maintain();
  }

  #modeOf(row: RowValues): RowMode {
    return this.modeOf(keyIn(row, this.#old.key, this.#old.singleKey));
  }

  #taken(row: RowValues, key: unknown): SituError {
    const { key: names, singleKey, name } = this.#old;
    const own = shownValue(keyIn(row, names, singleKey));
    const fields = this.next.table.key.join(", ");
    return new SituError(
      "SITU_UNIQUE",
      `table ${name} gets the key ${fields}: row ${own} would have the key ${shownValue(key)}, ` +
        `which another row has`,
    );
  }
}

function sameKey(a: unknown, b: unknown): boolean {
  return a === b || shownValue(a) === shownValue(b);
}
