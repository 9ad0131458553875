/** From the bounds of a scan to a range of keys in an ordered table or index. */

import type { KeyRange } from "../../stores/store.ts";
import { type KeyField, rangeOf } from "../range.ts";
import type { Table } from "../table.ts";
import type { IndexDefinition } from "./definition.ts";
import type { Bounds } from "./read-options.ts";

function named(table: Table, names: readonly string[]): KeyField[] {
  return names.map((name) => ({ name, field: table.fields[name] }));
}

export function keyRange(table: Table, bounds: Bounds<unknown>): KeyRange {
  return rangeOf(table.name, named(table, table.key), table.singleKey, bounds);
}

/** Entries may have longer keys, with the row's behind the values: bounds compare the values only. */
export function indexRange(
  table: Table,
  { name, on }: IndexDefinition,
  bounds: Bounds<unknown>,
): KeyRange {
  return rangeOf(`${table.name}.${name}`, named(table, on), on.length === 1, bounds);
}
