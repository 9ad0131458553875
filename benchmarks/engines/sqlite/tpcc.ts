// TPC-C on SQLite: prepared statements in a transaction, as better-sqlite3's users write them. A call of
// a statement costs little more than its work, as nothing is sent anywhere.
import {
  BAD_CREDIT,
  DISTRICTS,
  LEAST_STOCK,
  MOST_CUSTOMER_DATA,
  ORIGINAL,
  RECENT_ORDERS,
  RESTOCK,
  SHOWN_CUSTOMER_DATA,
  totalOf,
} from "../../../workloads/tpcc/parameters.ts";
import {
  type CustomerInput,
  middleOf,
  type NewOrderInput,
  type NewOrderResult,
  type OrderStatusResult,
  type PaymentInput,
  type PaymentResult,
  paymentNote,
  type StatusLine,
  type TpccStore,
} from "../../../workloads/tpcc/store.ts";
import type { Connection } from "./connection.ts";
import type { Statement } from "./module.ts";

type Values = readonly (number & string)[];
type ItemAndStock = readonly [number, string, number, string, string];

const rolledBack = new Error("the order names an item that does not exist");

export function sqliteTpcc(connection: Connection): TpccStore {
  const customers = customersOf(connection);
  const newOrder = connection.writing(newOrderOf(connection));
  return {
    newOrder(input) {
      try {
        return newOrder(input);
      } catch (error) {
        if (error === rolledBack) return undefined;
        throw error;
      }
    },
    payment: connection.writing(paymentOf(connection, customers)),
    orderStatus: connection.reading(orderStatusOf(connection, customers)),
    delivery: connection.writing(deliveryOf(connection)),
    stockLevel: connection.retried(stockLevelOf(connection)),
  };
}

function newOrderOf({ db }: Connection): (input: NewOrderInput) => NewOrderResult {
  const tax = db.prepare("SELECT w_tax FROM warehouse WHERE w_id = ?").pluck();
  const number = db
    .prepare(
      `UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?
       RETURNING d_tax, d_next_o_id - 1`,
    )
    .raw();
  const customer = db
    .prepare(
      "SELECT c_discount, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    )
    .raw();
  const insertOrder = db.prepare("INSERT INTO orders VALUES (?, ?, ?, ?, ?, NULL, ?, ?)");
  const insertNew = db.prepare("INSERT INTO new_order VALUES (?, ?, ?)");
  // A statement for each district: its column of the stock.
  const itemAndStock = Array.from({ length: DISTRICTS }, (_, index) =>
    db
      .prepare(
        `SELECT i_price, i_data, s_quantity, s_data, s_dist_${String(index + 1).padStart(2, "0")}
         FROM item, stock WHERE i_id = ? AND s_w_id = ? AND s_i_id = ?`,
      )
      .raw(),
  );
  const take = db.prepare(
    `UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1,
     s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?`,
  );
  const insertLine = db.prepare("INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)");
  return ({ warehouse: w, district: d, customer: c, date, items, supplies, quantities }) => {
    const lines = items.length;
    const w_tax = tax.get(w) as number;
    const [d_tax, order] = number.get(w, d) as Values;
    const [discount, credit] = customer.get(w, d, c) as Values;
    const isLocal = supplies.every((supply) => supply === w);
    insertOrder.run(w, d, order, c, date, lines, isLocal ? 1 : 0);
    insertNew.run(w, d, order);
    const find = itemAndStock[d - 1];
    let sum = 0;
    let originals = 0;
    for (let line = 0; line < lines; line++) {
      const item = items[line];
      const supply = supplies[line];
      const quantity = quantities[line];
      const found = find.get(item, supply, item);
      if (found === undefined) throw rolledBack;
      const [price, itemData, inStock, stockData, info] = found as ItemAndStock;
      const left = inStock - quantity;
      const kept = left >= LEAST_STOCK ? left : left + RESTOCK;
      take.run(kept, quantity, supply === w ? 0 : 1, supply, item);
      const amount = quantity * price;
      sum += amount;
      if (itemData.includes(ORIGINAL) && stockData.includes(ORIGINAL)) originals++;
      insertLine.run(w, d, order, line + 1, item, supply, quantity, amount, info);
    }
    const total = totalOf(sum, discount, w_tax + d_tax);
    return { order, total, discount, credit, originals };
  };
}

/** The number of the customer that an input means. */
function customersOf({ db }: Connection): (input: CustomerInput) => number {
  const byName = db
    .prepare(
      `SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ?
       ORDER BY c_first`,
    )
    .pluck();
  return ({ customerWarehouse, customerDistrict, customer, last }) => {
    if (customer !== 0) return customer;
    const found = byName.all(customerWarehouse, customerDistrict, last) as number[];
    return found[middleOf(found.length)];
  };
}

function paymentOf(
  { db }: Connection,
  customerOf: (input: CustomerInput) => number,
): (input: PaymentInput) => PaymentResult {
  const toWarehouse = db
    .prepare("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ? RETURNING w_name")
    .pluck();
  const toDistrict = db
    .prepare("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ? RETURNING d_name")
    .pluck();
  const where = "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
  const pay = db
    .prepare(
      `UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,
       c_payment_cnt = c_payment_cnt + 1 ${where} RETURNING c_balance, c_credit`,
    )
    .raw();
  const note = db
    .prepare(
      `UPDATE customer SET c_data = substr(? || c_data, 1, ${MOST_CUSTOMER_DATA}) ${where}
       RETURNING substr(c_data, 1, ${SHOWN_CUSTOMER_DATA})`,
    )
    .pluck();
  const insert = db.prepare("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  return (input) => {
    const { warehouse: w, district: d, amount, date, history } = input;
    const { customerWarehouse: cw, customerDistrict: cd } = input;
    const warehouseName = toWarehouse.get(amount, w) as string;
    const districtName = toDistrict.get(amount, w, d) as string;
    const customer = customerOf(input);
    const [balance, credit] = pay.get(amount, amount, cw, cd, customer) as Values;
    const isBad = (credit as string) === BAD_CREDIT;
    const data = isBad ? (note.get(paymentNote(customer, input), cw, cd, customer) as string) : "";
    const about = `${warehouseName}    ${districtName}`;
    insert.run(history, customer, cd, cw, d, w, date, amount, about);
    return { customer, balance, credit, data };
  };
}

function orderStatusOf(
  { db }: Connection,
  customerOf: (input: CustomerInput) => number,
): (input: CustomerInput) => OrderStatusResult {
  const balanceOf = db
    .prepare("SELECT c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?")
    .pluck();
  const last = db
    .prepare(
      `SELECT o_id, o_entry_d, o_carrier_id FROM orders
       WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1`,
    )
    .raw();
  const linesOf = db.prepare(
    `SELECT ol_i_id AS item, ol_supply_w_id AS supply, ol_quantity AS quantity,
     ol_amount AS amount, ol_delivery_d AS delivered
     FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? ORDER BY ol_number`,
  );
  return (input) => {
    const { customerWarehouse: w, customerDistrict: d } = input;
    const customer = customerOf(input);
    const balance = balanceOf.get(w, d, customer) as number;
    const [order, date, carrier] = last.get(w, d, customer) as [number, number, number | null];
    const lines = linesOf.all(w, d, order) as StatusLine[];
    return { customer, balance, order, date, carrier, lines };
  };
}

function deliveryOf({
  db,
}: Connection): (warehouse: number, carrier: number, date: number) => number[] {
  const oldest = db
    .prepare(
      `SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ?
       ORDER BY no_o_id LIMIT 1`,
    )
    .pluck();
  const remove = db.prepare(
    "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
  );
  const carry = db
    .prepare(
      `UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?
       RETURNING o_c_id`,
    )
    .pluck();
  const lines = "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
  const deliver = db.prepare(`UPDATE order_line SET ol_delivery_d = ? ${lines}`);
  const amount = db.prepare(`SELECT sum(ol_amount) FROM order_line ${lines}`).pluck();
  const charge = db.prepare(
    `UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?`,
  );
  const deliverIn = (w: number, d: number, carrier: number, date: number): number => {
    const order = oldest.get(w, d) as number | undefined;
    if (order === undefined) return 0;
    remove.run(w, d, order);
    const customer = carry.get(carrier, w, d, order) as number;
    deliver.run(date, w, d, order);
    charge.run(amount.get(w, d, order) as number, w, d, customer);
    return order;
  };
  return (warehouse, carrier, date) => {
    const delivered: number[] = [];
    for (let d = 1; d <= DISTRICTS; d++) delivered.push(deliverIn(warehouse, d, carrier, date));
    return delivered;
  };
}

function stockLevelOf({
  db,
}: Connection): (warehouse: number, district: number, threshold: number) => number {
  // CROSS JOIN: from left to right (sqlite.org/optoverview.html).
  const low: Statement = db
    .prepare(
      `SELECT count(DISTINCT s_i_id) FROM district CROSS JOIN order_line CROSS JOIN stock
       WHERE d_w_id = ? AND d_id = ? AND ol_w_id = d_w_id AND ol_d_id = d_id
       AND ol_o_id >= d_next_o_id - ${RECENT_ORDERS} AND ol_o_id < d_next_o_id
       AND s_w_id = d_w_id AND s_i_id = ol_i_id AND s_quantity < ?`,
    )
    .pluck();
  return (warehouse, district, threshold) => low.get(warehouse, district, threshold) as number;
}
