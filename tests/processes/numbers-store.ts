/** The store that several processes insert numbered rows into, with the log on disk. */

import { autoIncrement, type Database, open, table, u32 } from "../../src/index.ts";

export const Item = table(
  "item",
  { id: autoIncrement(), by: u32(), position: u32() },
  { key: "id", indexes: { byMaker: { on: ["by", "position"], unique: true } } },
);

export function openItems(path: string): Promise<Database> {
  return open({ path, tables: [Item], memoryBytes: 16 * 2 ** 20, timeoutMs: 60_000 });
}
