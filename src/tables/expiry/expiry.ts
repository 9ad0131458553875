/**
 * Rows that expire. A table declared with `expires` names a field with the time at which a row ends, in
 * milliseconds since 1970. From that moment on the row is not there, for any reader; when its memory is given
 * back is another matter (database/local/expiry-sweeper.ts).
 *
 * A transaction sees one moment: the clock is read once, when it first asks whether a row is live. A
 * snapshot sees the moment at which it was taken, as it sees the rows of that moment.
 *
 * The rows of such a table lie in an ordered index by the field, which is declared with the table and kept like any
 * other. The sweeper finds in it what has ended, without looking at what has not.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import type { Cursor } from "../../stores/store.ts";
import type { IndexDefinition } from "../indexes/definition.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { Fields, Table } from "../table.ts";

/** No index that a caller declares is named so: see `table`. */
export const EXPIRY_INDEX = "(expires)";

/** Kinds of fields that can hold the time: whole numbers of 53 bits or more, which have an order. */
const KINDS: ReadonlySet<string> = new Set(["u64", "i64", "u53", "i53", "timestamp"]);

/** The least value of those kinds that have times before 1970. */
const LEAST: Readonly<Record<string, unknown>> = {
  i64: -(2n ** 63n),
  i53: Number.MIN_SAFE_INTEGER,
  timestamp: new Date(-8.64e15),
};

/** Checks what a table declares, and returns the index that goes with it. */
export function expiryIndexOf(
  fields: Fields,
  expires: unknown,
  refuse: (why: string) => never,
): readonly IndexDefinition[] {
  if (expires === undefined) return [];
  if (typeof expires !== "string" || !Object.hasOwn(fields, expires)) {
    return refuse('expires is the name of a field, as in { expires: "until" }');
  }
  const { kind } = fields[expires];
  if (!KINDS.has(kind)) {
    refuse(`expires needs a field for a time, such as timestamp(); ${expires} is of type ${kind}`);
  }
  return [
    Object.freeze({
      name: EXPIRY_INDEX,
      on: Object.freeze([expires]),
      unique: false,
      kind: "ordered",
    }),
  ];
}

/** The moment that a transaction sees. */
export function momentOf(tx: Transaction): number {
  if (tx.snapshot !== undefined) return tx.snapshot.takenAtMs;
  if (tx.momentMs === 0) tx.momentMs = wallClockMs();
  return tx.momentMs;
}

/** Whether a row of an expiring table is there at a moment. A row without a time has no end. */
export function isLive(row: RowValues, field: string, momentMs: number): boolean {
  const end = row[field];
  if (end === null || end === undefined) return true;
  return (end instanceof Date ? end.getTime() : Number(end)) > momentMs;
}

/** The bounds of rows that have ended, in the index. */
export function expiredBounds(
  { fields, expires }: Table,
  momentMs: number,
): { readonly gte: unknown; readonly lte: unknown } {
  const { kind } = fields[expires!] as { readonly kind: string };
  const timeOf = (ms: number): unknown => {
    if (kind === "u64" || kind === "i64") return BigInt(ms);
    return kind === "timestamp" ? new Date(ms) : ms;
  };
  // From the least time on: rows without one come before it.
  return { gte: LEAST[kind] ?? timeOf(0), lte: timeOf(Math.floor(momentMs)) };
}

/** The rows of another cursor that are there. */
export class LiveCursor implements Cursor<RowValues> {
  readonly #all: Cursor<RowValues>;
  readonly #field: string;
  readonly #counted: RowValues[] = [];

  constructor(all: Cursor<RowValues>, field: string) {
    this.#all = all;
    this.#field = field;
  }

  next(tx: Transaction, rows: RowValues[], most: number): boolean {
    const momentMs = momentOf(tx);
    // What was passed over had ended: a step that is repeated need not see it again.
    while (this.#all.next(tx, rows, most)) {
      let live = 0;
      for (let i = 0; i < rows.length; i++) {
        if (isLive(rows[i], this.#field, momentMs)) rows[live++] = rows[i];
      }
      rows.length = live;
      if (live > 0) return true;
    }
    return false;
  }

  skip(tx: Transaction): number {
    return this.next(tx, this.#counted, Number.POSITIVE_INFINITY) ? this.#counted.length : 0;
  }
}
