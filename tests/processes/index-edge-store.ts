/** Events in the order of their ids, with an index whose right edge is hot as well. */

import { type Database, open, str, table, u32 } from "../../src/index.ts";

export const Event = table(
  "event",
  { id: u32(), kind: u32(), text: str() },
  { key: "id", ordered: true, indexes: { byKind: { on: ["kind"] } } },
);
export const Counter = table("counter", { id: u32(), next: u32() }, { key: "id" });

export function openEvents(path: string): Promise<Database> {
  return open({ path, tables: [Event, Counter], memoryBytes: 128 * 2 ** 20, timeoutMs: 120_000 });
}
