// Orders in SQLite, through better-sqlite3: WAL, `NORMAL` on a disk, `OFF` in memory. One process alone locks
// the file once and for all, which is quicker; several cannot.
import { join } from "node:path";
import type { SqliteModule } from "../engines/sqlite/module.ts";
import { needPeer } from "../harness/peers.ts";
import { CUSTOMERS, type OrderEngine, type OrderPlace } from "./orders.ts";

const BUSY_TIMEOUT_MS = 60_000;

const schema = `
  CREATE TABLE customers (id INTEGER PRIMARY KEY, orders INTEGER NOT NULL, spent REAL NOT NULL) STRICT;
  CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, status INTEGER NOT NULL,
    placed INTEGER NOT NULL, total INTEGER NOT NULL, reference TEXT NOT NULL) STRICT;
  CREATE INDEX byCustomer ON orders (customer);
  CREATE INDEX byStatus ON orders (status, placed);
  CREATE INDEX byTotal ON orders (total);`;

export async function openSqlite(place: OrderPlace): Promise<OrderEngine> {
  const Sqlite = needPeer<SqliteModule>("better-sqlite3");
  const isLazy = place.durability === "lazy";
  const folder = isLazy ? place.folder : place.memoryFolder;
  const db = new Sqlite(join(folder, "orders.sqlite"), { timeout: BUSY_TIMEOUT_MS });
  if (!place.isShared) db.pragma("locking_mode = EXCLUSIVE");
  db.pragma("journal_mode = WAL");
  db.pragma(`synchronous = ${isLazy ? "NORMAL" : "OFF"}`);
  db.pragma("cache_size = -262144");
  db.pragma(`mmap_size = ${2 ** 30}`);
  if (place.isFirst) db.exec(schema);
  const insert = db.prepare("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)");
  const update = db.prepare(
    "UPDATE customers SET orders = orders + 1, spent = spent + ? WHERE id = ?",
  );
  const transaction = db.transaction(
    (id: number, customer: number, status: number, placed: number, total: number, text: string) => {
      insert.run(id, customer, status, placed, total, text);
      update.run(total, customer);
    },
  ).immediate;
  return {
    addCustomers() {
      const add = db.prepare("INSERT INTO customers VALUES (?, 0, 0)");
      db.transaction(() => {
        for (let id = 0; id < CUSTOMERS; id++) add.run(id);
      })();
    },
    place({ id, customer, status, placed, total, reference }) {
      transaction(id, customer, status, placed, total, reference);
    },
    count() {
      const orders = db.prepare("SELECT count(*) FROM orders INDEXED BY byTotal").pluck().get();
      const counted = db.prepare("SELECT sum(orders) FROM customers").pluck().get();
      return { orders: Number(orders), counted: Number(counted) };
    },
    close: async () => db.close(),
  };
}
