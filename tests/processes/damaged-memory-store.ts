/** What the tests of damaged memory store, and tell their children. */

import { str, u32 } from "../../src/database/fields.ts";
import { table } from "../../src/database/table.ts";

export interface DamageOrder {
  readonly path: string;
}

export const ROWS = 400;
export const Texts = table("texts", { id: u32(), text: str() }, { key: "id" });
export const Ordered = table("ordered", { id: u32(), text: str() }, { key: "id", ordered: true });

export function rowOf(id: number): { id: number; text: string } {
  return { id, text: `row ${id} `.repeat(1 + (id % 40)) };
}
