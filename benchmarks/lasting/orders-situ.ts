// Orders in Situ.
import { join } from "node:path";
import * as situ from "situ";
import {
  CUSTOMERS,
  Customers,
  type Order,
  type OrderEngine,
  type OrderPlace,
  Orders,
} from "./orders.ts";

export async function openSitu({
  folder,
  memoryFolder,
  durability,
}: OrderPlace): Promise<OrderEngine> {
  const db = await situ.open({
    path: join(folder, "situ"),
    memoryDir: memoryFolder,
    durability,
    memoryBytes: 2 ** 30,
    tables: [Customers, Orders],
  });
  let order: Order | undefined;
  const body = (tx: situ.Transaction): void => {
    const { customer, total } = order!;
    const row = tx.get(Customers, customer);
    if (row === undefined) throw new Error("situ lost a customer");
    tx.insert(Orders, order!);
    tx.update(Customers, customer, { orders: row.orders + 1, spent: row.spent + total });
  };
  return {
    addCustomers() {
      db.transactSync((tx) => {
        for (let id = 0; id < CUSTOMERS; id++) tx.insert(Customers, { id, orders: 0, spent: 0 });
      });
    },
    place(next) {
      order = next;
      db.transactSync(body);
    },
    count() {
      let orders = 0;
      for (const _ of db.scan(Orders, { index: "byTotal" })) orders++;
      let counted = 0;
      for (const row of db.scan(Customers)) counted += row.orders;
      return { orders, counted };
    },
    close: () => db.close(),
  };
}
