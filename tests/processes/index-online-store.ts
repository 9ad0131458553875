/** A table that gets one index after the other, while others write to it. */

import {
  type Database,
  type IndexOptions,
  open,
  str,
  type Table,
  table,
  u32,
} from "../../src/index.ts";

export interface Item {
  id: number;
  code: string;
  shelf: number;
}
export type Items = Table<Item, number, Partial<Omit<Item, "id">>>;

type Kind = IndexOptions<"code" | "shelf">;
const KINDS: readonly Kind[] = [
  { on: ["shelf"] },
  { on: ["code"], unique: true, kind: "hash" },
  { on: ["shelf"], kind: "hash" },
  { on: ["code"], unique: true },
  { on: ["shelf", "code"] },
];

/** The hashed and the ordered table as they are declared with so many indexes. */
export function itemsWith(indexes: number): readonly Items[] {
  const names = Array.from({ length: indexes }, (_, n) => [`index ${n}`, KINDS[n % KINDS.length]]);
  const fields = { id: u32(), code: str(), shelf: u32() };
  const declared = Object.fromEntries(names) as Record<string, Kind>;
  return [
    table("hashed", fields, { key: "id", indexes: declared }),
    table("ordered", fields, { key: "id", ordered: true, indexes: declared }),
  ];
}

export const IDS = 250;
export const SHELVES = 12;

export function openItems(path: string, items: readonly Items[]): Promise<Database> {
  return open({ path, tables: items, memoryBytes: 64 * 2 ** 20, timeoutMs: 120_000 });
}
