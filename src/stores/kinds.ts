/**
 * The kinds of tables: every structure that rows can lie in, and what those above need to know of
 * it. A kind is a folder beside this file whose `kind.ts` exports a `StoreKind`, and one line below.
 * Nothing else in stores/ or tables/ asks which kind it has: the catalogue, indexes, served tables
 * and remote lookups go through the entry, and what only some kinds can do is a capability of it.
 * The one other list is that of the checks (tools/structures/kinds.ts), which lies above this
 * layer: the compiler refuses it while a kind has no check.
 */

import { btreeKind } from "./btree/kind.ts";
import { bucketsKind } from "./buckets/kind.ts";
import { hopscotchKind } from "./hopscotch/kind.ts";
import type { StoreKind } from "./kind.ts";
import { robinhoodKind } from "./robinhood/kind.ts";

export const TABLE_KINDS = {
  hopscotch: hopscotchKind,
  buckets: bucketsKind,
  robinhood: robinhoodKind,
  btree: btreeKind,
} satisfies Record<string, StoreKind>;

/** As a table declares it (`layout`), and as it stands in the catalogue. */
export type TableKind = keyof typeof TABLE_KINDS;

/** Also for names that come from elsewhere. */
export function isTableKind(name: unknown): name is TableKind {
  return typeof name === "string" && Object.hasOwn(TABLE_KINDS, name);
}

/** Of a table that does not say which. It is not written into the catalogue. */
export function defaultKind(ordered: boolean): TableKind {
  return ordered ? "btree" : "hopscotch";
}

/** All kinds with an order, or without one. */
export function kindsThatAre(ordered: boolean): TableKind[] {
  const names = Object.keys(TABLE_KINDS) as TableKind[];
  return names.filter((name) => TABLE_KINDS[name].ordered === ordered);
}
