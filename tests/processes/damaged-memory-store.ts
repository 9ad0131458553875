/** What the tests of damaged memory store, and tell their children: a table of each kind. */

import { str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";

export interface DamageOrder {
  readonly path: string;
}

export interface DamageRow {
  readonly id: number;
  readonly group: number;
  readonly text?: string;
}

export const ROWS = 400;
/** Of rows in several pieces. */
const LARGE_ROWS = 3;
const LARGE_TIMES = 8_000;
export const GROUPS = 7;

const short = { id: u32(), group: u32() };
const long = { ...short, text: str() };

export const Texts = table("texts", long, { key: "id" });
export const Ordered = table("ordered", long, { key: "id", ordered: true });
const Inline = table("inline", short, { key: "id" });
const Buckets = table("buckets", short, { key: "id", layout: "buckets" });
const BucketTexts = table("bucketTexts", long, { key: "id", layout: "buckets" });
const OrderedInline = table("orderedInline", short, { key: "id", ordered: true });
const Indexed = table("indexed", short, {
  key: "id",
  indexes: { ordered: { on: ["group"] }, hashed: { on: ["group"], kind: "hash" } },
});
const Large = table("large", long, { key: "id" });

export type DamageTable = Table<DamageRow, number, unknown>;
export const tables = [
  Texts,
  Ordered,
  Inline,
  Buckets,
  BucketTexts,
  OrderedInline,
  Indexed,
  Large,
] as unknown as readonly DamageTable[];

export function rowsOf(table: DamageTable): number {
  return table.name === Large.name ? LARGE_ROWS : ROWS;
}

export function rowOf({ name, fields }: DamageTable, id: number): DamageRow {
  const row = { id, group: id % GROUPS };
  if (!("text" in fields)) return row;
  const times = name === Large.name ? LARGE_TIMES * (id + 1) : 1 + (id % 40);
  return { ...row, text: `row ${id} `.repeat(times) };
}
