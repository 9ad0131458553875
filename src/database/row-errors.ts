/** Keys and rows that callers pass to a transaction, local or remote, and what is wrong with them. */

import { RowError, SituError } from "../runtime/errors.ts";
import { showKey } from "../runtime/show.ts";
import type { Table } from "../tables/table.ts";

/** The keys that `getMany` was given, now, and not when their turn comes. */
export function listOf<Key>(table: Table, keys: Iterable<Key>): readonly Key[] {
  if (typeof keys === "object" && typeof keys?.[Symbol.iterator] === "function") return [...keys];
  throw new SituError("SITU_TYPE", `getMany(${table.name}, …) takes a list of keys`);
}

export function exists(table: Table, row: unknown): RowError {
  const key = keyOf(table, row);
  return new RowError(
    "SITU_EXISTS",
    `table ${table.name} already has a row with key ${showKey(key)}; use put to replace it`,
    { table: table.name, key },
  );
}

export function missing(table: Table, key: unknown): RowError {
  return new RowError(
    "SITU_MISSING",
    `table ${table.name} has no row with key ${showKey(key)}; use insert or put to add one`,
    { table: table.name, key },
  );
}

/** The key inside a row, as a caller would write it. */
export function keyOf(table: Table, row: unknown): unknown {
  const values = row as Record<string, unknown>;
  const key = table.key.map((name) => values[name]);
  return table.singleKey ? key[0] : key;
}
