/** COPY of hashes and sets: members in the table are the copy's own. */

import type { Found, Keyspace } from "../keyspace.ts";
import { addAll } from "./collection.ts";
import { InTable } from "./in-table.ts";
import { largeIn } from "./large.ts";

/** The value of the key's row for a copy of a hash or set, whose members this makes. */
export function copyCollection(keys: Keyspace, { value }: Found): Uint8Array {
  const large = largeIn(value);
  if (large === undefined) return value;
  const copy = InTable.empty(keys);
  addAll(new InTable(keys, large), copy);
  return copy.row();
}
