/** A small store with all kinds of fields, keys and indexes, for the tests of the command line. */

import {
  bool,
  bytes,
  type Database,
  f64,
  i64,
  json,
  open,
  str,
  table,
  u8,
  u32,
  u64,
} from "../../src/index.ts";

export const Account = table(
  "account",
  { id: u32(), owner: str(24), balance: i64(), note: json() },
  { key: "id", ordered: true, indexes: { byOwner: { on: ["owner"] } } },
);
export const Seat = table(
  "seat",
  { flight: u32(), row: u8(), who: str(40) },
  { key: ["flight", "row"], indexes: { byWho: { on: ["who"], unique: true, kind: "hash" } } },
);
export const Blob = table(
  "blob",
  { key: bytes(64), value: bytes(), n: u64(), f: f64(), b: bool() },
  { key: "key" },
);
export const Word = table("word", { text: str(40), n: u32() }, { key: "text", ordered: true });
export const TABLES = [Account, Seat, Blob, Word];

export const ACCOUNTS = 150;
const MEMORY_BYTES = 32 * 2 ** 20;

export async function openBank(
  path: string,
  durability: "lazy" | "none" = "none",
): Promise<Database> {
  return open({ path, tables: TABLES, memoryBytes: MEMORY_BYTES, durability, timeoutMs: 5_000 });
}

/** Makes the store and leaves it. */
export async function makeBank(path: string, durability?: "lazy" | "none"): Promise<void> {
  await using db = await openBank(path, durability);
  db.transactSync((tx) => {
    for (let id = 0; id < ACCOUNTS; id++) {
      tx.insert(Account, { id, owner: `owner ${id % 5}`, balance: BigInt(id) * 10n, note: null });
    }
    tx.insert(Seat, { flight: 12, row: 3, who: "ada" });
    tx.insert(Seat, { flight: 12, row: 4, who: "grace" });
    tx.insert(Word, { text: "hello", n: 1 });
    tx.insert(Word, { text: "help me", n: 2 });
    tx.insert(Word, { text: "world", n: 3 });
    const value = new Uint8Array([0, 255, 27]);
    tx.insert(Blob, { key: Buffer.from("plain"), value, n: 2n ** 63n, f: 1.5, b: true });
  });
}
