/**
 * Writes a store as some version of Situ writes it, for upgrade.test.ts:
 *
 *   node tests/upgrade/write-store.mjs <the dist/situ.js of that version> <folder> <memory> <durability> <close|kill>
 *
 * Each kind of table, each form of index, rows in buckets and rows of their own; half of the rows before a
 * checkpoint, half after it. Keep this file as it is: it describes what the stored files hold.
 */

import { pathToFileURL } from "node:url";

const [situ, path, memoryDir, durability, end] = process.argv.slice(2);
const { open, table, u8, u32, i64, str, bytes, json } = await import(pathToFileURL(situ).href);

const Account = table("account", { id: u32(), owner: str(24), balance: i64() }, { key: "id" });
const Seat = table(
  "seat",
  { flight: u32(), row: u8(), who: str(40) },
  { key: ["flight", "row"], layout: "buckets" },
);
const Order = table(
  "order",
  { id: u32(), customer: u32(), day: u32(), code: str(12), total: i64() },
  {
    key: "id",
    ordered: true,
    indexes: {
      byCustomer: { on: ["customer", "day"] },
      byCode: { on: ["code"], unique: true, kind: "hash" },
      byDay: { on: ["day"], kind: "hash" },
    },
  },
);
const Page = table(
  "page",
  { url: str(), body: bytes(), meta: json(), visits: u32() },
  { key: "url", ordered: true, indexes: { byVisits: { on: ["visits"] } } },
);

const db = await open({
  path,
  memoryDir,
  durability,
  memoryBytes: 16 * 2 ** 20,
  tables: [Account, Seat, Order, Page],
});

function fill(from, to) {
  for (let i = from; i < to; i++) {
    db.transactSync((tx) => {
      tx.put(Account, { id: i, owner: `owner ${i}`, balance: BigInt(i) * 1_000_000_007n });
      tx.put(Seat, { flight: i % 7, row: i % 250, who: `passenger ${i}` });
      tx.put(Order, {
        id: i,
        customer: i % 10,
        day: 20260101 + (i % 28),
        code: `C${i}`,
        total: BigInt(-i),
      });
      tx.put(Page, {
        url: `https://example.org/${"x".repeat(i % 60)}/${i}`,
        body: new Uint8Array(i % 600).fill(i),
        meta: { number: i, tags: ["a", `b${i}`] },
        visits: (i * 7919) % 1000,
      });
      if (i % 5 === 4) tx.delete(Order, i - 2);
      if (i % 3 === 2) tx.update(Account, i - 1, { balance: 5n });
    });
  }
}

fill(0, 150);
if (durability !== "none") await db.checkpoint();
fill(150, 300);
if (durability !== "none") await db.durable?.();
if (end === "kill") process.kill(process.pid, "SIGKILL");
await db.close();
