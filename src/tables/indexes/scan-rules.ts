/** What a scan may ask of a table or an index: the same rules for local and remote ones. */

import { SituError } from "../../runtime/errors.ts";
import { show } from "../../runtime/show.ts";
import type { KeyRange } from "../../stores/store.ts";
import type { Table } from "../table.ts";
import type { IndexDefinition } from "./definition.ts";
import { keyRange } from "./ranges.ts";
import type { CheckedScan } from "./read-options.ts";

const EVERYTHING: KeyRange = { from: undefined, to: undefined };

/** The range of keys that a scan of the rows themselves goes over. */
export function rowRange(table: Table, { given, bounds, reverse }: CheckedScan): KeyRange {
  if (!table.ordered && (given.length > 0 || reverse)) {
    throw new SituError(
      "SITU_TYPE",
      `table ${table.name} is hashed and has no order for ${given[0] ?? "reverse"}: declare it ` +
        `with ordered: true, or use an ordered index`,
    );
  }
  return given.length > 0 ? keyRange(table, bounds) : EVERYTHING;
}

/** Hash indexes have exact values only. */
export function checkIndexScan(
  table: Table,
  { name, kind }: IndexDefinition,
  { given, reverse }: CheckedScan,
): void {
  if (kind !== "hash") return;
  const what = `index ${name} of table ${table.name} is a hash index`;
  if (reverse || given.some((bound) => bound !== "eq")) {
    const not = reverse ? "reverse" : given.find((bound) => bound !== "eq");
    throw new SituError(
      "SITU_TYPE",
      `${what} and has no order for ${not}: declare it with kind: "ordered"`,
    );
  }
  if (given.length === 0) {
    throw new SituError(
      "SITU_TYPE",
      `${what} and needs eq, with all of its values; scan the table for all rows`,
    );
  }
}

export function unknownIndex(table: Table, name: unknown, names: readonly string[]): SituError {
  return new SituError(
    "SITU_UNKNOWN_INDEX",
    `table ${table.name} has no index ${show(name)} here; ` +
      (names.length === 0 ? "it has none" : `it has ${names.join(", ")}`),
  );
}
