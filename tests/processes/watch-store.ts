/** The store of the watch tests: rows that count their changes, so that a change that is missing shows. */

import {
  type Database,
  type OpenOptions,
  open,
  str,
  type Transaction,
  table,
  u32,
} from "../../src/index.ts";

export const Item = table(
  "item",
  { id: u32(), version: u32(), text: str(40) },
  { key: "id", ordered: true, indexes: { byVersion: { on: ["version"] } } },
);
/** Which version a row had when it was deleted: the next one goes on from there. */
export const Last = table("last", { id: u32(), version: u32() }, { key: "id" });

export const ITEMS = 12;

export function openItems(path: string, options: Partial<OpenOptions> = {}): Promise<Database> {
  const memoryBytes = 16 * 2 ** 20;
  return open({ path, tables: [Item, Last], memoryBytes, timeoutMs: 120_000, ...options });
}

/** Each change of an item gives it the next version; a delete leaves that to the next insert. */
export function touch(tx: Transaction, id: number, choice: number): void {
  const item = tx.get(Item, id);
  if (item === undefined) {
    const version = (tx.get(Last, id)?.version ?? 0) + 1;
    tx.insert(Item, { id, version, text: `inserted ${version}` });
  } else if (choice % 5 === 0) {
    tx.delete(Item, id);
    tx.put(Last, { id, version: item.version });
  } else if (choice % 5 === 1) {
    tx.put(Item, { id, version: item.version + 1, text: `put ${choice}` });
  } else {
    tx.update(Item, id, { version: item.version + 1 });
  }
}
