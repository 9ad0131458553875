/**
 * TPC-C on Situ with many transactions in flight: on a store of this machine, or on a cluster. Reads
 * that do not wait for each other are issued together, which is one message to each node.
 */

import type { AsyncTransaction, Database, RemoteDatabase } from "situ";
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
} from "./parameters.ts";
import {
  type CustomerInput,
  middleOf,
  type NewOrderInput,
  type NewOrderResult,
  type OrderStatusResult,
  type PaymentInput,
  type PaymentResult,
  paymentNote,
  type TpccStore,
} from "./store.ts";
import {
  Customer,
  type CustomerRow,
  District,
  distInfo,
  History,
  Item,
  NewOrder,
  Order,
  OrderLine,
  Stock,
  Warehouse,
} from "./tables.ts";

/** An item that is not there: thrown, so that nothing is committed. */
const rolledBack = new Error("the order names an item that does not exist");

/** Everybody changes the rows of a few warehouses and districts: who loses often needs some patience. */
const PATIENT = { timeoutMs: 60_000 };

export function situTpccAsync(db: Database): TpccStore {
  return {
    newOrder: (input) =>
      db
        .transact((tx) => newOrder(tx, input), PATIENT)
        .catch((error: unknown) => {
          if (error === rolledBack) return undefined;
          throw error;
        }),
    payment: (input) => db.transact((tx) => payment(tx, input), PATIENT),
    orderStatus: (input) => db.transact((tx) => orderStatus(tx, input), PATIENT),
    delivery: (warehouse, carrier, date) =>
      db.transact(
        (tx) =>
          Promise.all(
            Array.from({ length: DISTRICTS }, (_, index) =>
              deliver(tx, [warehouse, index + 1], carrier, date),
            ),
          ),
        PATIENT,
      ),
    stockLevel: (warehouse, district, threshold) =>
      db.transact((tx) => stockLevel(tx, [warehouse, district], threshold), PATIENT),
  };
}

export function clusterTpcc(db: RemoteDatabase): TpccStore {
  // The two kinds of database have no common type; what is used of them here is the same.
  return situTpccAsync(db as unknown as Database);
}

async function newOrder(tx: AsyncTransaction, input: NewOrderInput): Promise<NewOrderResult> {
  const { warehouse: w, district: d, customer: c, items, supplies, quantities } = input;
  const stockKeys = items.map((item, line): [number, number] => [supplies[line], item]);
  const [ofWarehouse, ofDistrict, customer, itemRows, stocks] = await Promise.all([
    tx.get(Warehouse, w),
    tx.get(District, [w, d]),
    tx.get(Customer, [w, d, c]),
    tx.getMany(Item, items),
    tx.getMany(Stock, stockKeys),
  ]);
  const { d_tax, d_next_o_id } = must(ofDistrict);
  const { c_discount, c_credit } = must(customer);
  let sum = 0;
  let originals = 0;
  for (let line = 0; line < items.length; line++) {
    const item = itemRows[line];
    if (item === undefined) throw rolledBack;
    const stock = must(stocks[line]);
    const supply = supplies[line];
    const quantity = quantities[line];
    const left = stock.s_quantity - quantity;
    void tx.update(Stock, stockKeys[line], {
      s_quantity: left >= LEAST_STOCK ? left : left + RESTOCK,
      s_ytd: stock.s_ytd + quantity,
      s_order_cnt: stock.s_order_cnt + 1,
      s_remote_cnt: stock.s_remote_cnt + (supply === w ? 0 : 1),
    });
    const amount = quantity * item.i_price;
    sum += amount;
    if (item.i_data.includes(ORIGINAL) && stock.s_data.includes(ORIGINAL)) originals++;
    void tx.insert(OrderLine, {
      ol_w_id: w,
      ol_d_id: d,
      ol_o_id: d_next_o_id,
      ol_number: line + 1,
      ol_i_id: items[line],
      ol_supply_w_id: supply,
      ol_delivery_d: null,
      ol_quantity: quantity,
      ol_amount: amount,
      ol_dist_info: distInfo(stock, d),
    });
  }
  void tx.update(District, [w, d], { d_next_o_id: d_next_o_id + 1 });
  void tx.insert(Order, {
    o_w_id: w,
    o_d_id: d,
    o_id: d_next_o_id,
    o_c_id: c,
    o_entry_d: input.date,
    o_carrier_id: null,
    o_ol_cnt: items.length,
    o_all_local: supplies.every((supply) => supply === w),
  });
  void tx.insert(NewOrder, { no_w_id: w, no_d_id: d, no_o_id: d_next_o_id });
  const total = totalOf(sum, c_discount, must(ofWarehouse).w_tax + d_tax);
  return { order: d_next_o_id, total, discount: c_discount, credit: c_credit, originals };
}

async function payment(tx: AsyncTransaction, input: PaymentInput): Promise<PaymentResult> {
  const { warehouse: w, district: d, amount, customerWarehouse, customerDistrict } = input;
  const [ofWarehouse, ofDistrict, customer] = await Promise.all([
    tx.get(Warehouse, w),
    tx.get(District, [w, d]),
    customerOf(tx, input),
  ]);
  const { w_name, w_ytd } = must(ofWarehouse);
  const { d_name, d_ytd } = must(ofDistrict);
  const { c_id, c_credit } = customer;
  const balance = customer.c_balance - amount;
  const isBad = c_credit === BAD_CREDIT;
  const data = isBad
    ? (paymentNote(c_id, input) + customer.c_data).slice(0, MOST_CUSTOMER_DATA)
    : undefined;
  void tx.update(Warehouse, w, { w_ytd: w_ytd + amount });
  void tx.update(District, [w, d], { d_ytd: d_ytd + amount });
  void tx.update(Customer, [customerWarehouse, customerDistrict, c_id], {
    c_balance: balance,
    c_ytd_payment: customer.c_ytd_payment + amount,
    c_payment_cnt: customer.c_payment_cnt + 1,
    c_data: data,
  });
  void tx.insert(History, {
    h_id: input.history,
    h_c_id: c_id,
    h_c_d_id: customerDistrict,
    h_c_w_id: customerWarehouse,
    h_d_id: d,
    h_w_id: w,
    h_date: input.date,
    h_amount: amount,
    h_data: `${w_name}    ${d_name}`,
  });
  const shown = data === undefined ? "" : data.slice(0, SHOWN_CUSTOMER_DATA);
  return { customer: c_id, balance, credit: c_credit, data: shown };
}

async function customerOf(tx: AsyncTransaction, of: CustomerInput): Promise<CustomerRow> {
  const { customerWarehouse: w, customerDistrict: d, customer, last } = of;
  if (customer !== 0) return must(await tx.get(Customer, [w, d, customer]));
  const found = await tx.scan(Customer, { index: "byName", eq: [w, d, last] }).toArray();
  return must(found[middleOf(found.length)]);
}

async function orderStatus(tx: AsyncTransaction, of: CustomerInput): Promise<OrderStatusResult> {
  const { customerWarehouse: w, customerDistrict: d } = of;
  const { c_id, c_balance } = await customerOf(tx, of);
  const [found] = await tx
    .scan(Order, { index: "byCustomer", eq: [w, d, c_id], reverse: true, limit: 1 })
    .toArray();
  const { o_id, o_entry_d, o_carrier_id } = must(found);
  const rows = await tx.scan(OrderLine, { eq: [w, d, o_id] }).toArray();
  const lines = rows.map((line) => ({
    item: line.ol_i_id,
    supply: line.ol_supply_w_id,
    quantity: line.ol_quantity,
    amount: line.ol_amount,
    delivered: line.ol_delivery_d,
  }));
  return {
    customer: c_id,
    balance: c_balance,
    order: o_id,
    date: o_entry_d,
    carrier: o_carrier_id,
    lines,
  };
}

async function deliver(
  tx: AsyncTransaction,
  [w, d]: readonly [number, number],
  carrier: number,
  date: number,
): Promise<number> {
  const [oldest] = await tx.scan(NewOrder, { eq: [w, d], limit: 1 }).toArray();
  if (oldest === undefined) return 0;
  const order = oldest.no_o_id;
  const [row, lines] = await Promise.all([
    tx.get(Order, [w, d, order]),
    tx.scan(OrderLine, { eq: [w, d, order] }).toArray(),
  ]);
  const customerKey: [number, number, number] = [w, d, must(row).o_c_id];
  const { c_balance, c_delivery_cnt } = must(await tx.get(Customer, customerKey));
  void tx.delete(NewOrder, [w, d, order]);
  void tx.update(Order, [w, d, order], { o_carrier_id: carrier });
  let amount = 0;
  for (const line of lines) {
    amount += line.ol_amount;
    void tx.update(OrderLine, [w, d, order, line.ol_number], { ol_delivery_d: date });
  }
  void tx.update(Customer, customerKey, {
    c_balance: c_balance + amount,
    c_delivery_cnt: c_delivery_cnt + 1,
  });
  return order;
}

async function stockLevel(
  tx: AsyncTransaction,
  [w, d]: readonly [number, number],
  threshold: number,
): Promise<number> {
  const { d_next_o_id } = must(await tx.get(District, [w, d]));
  const lines = await tx
    .scan(OrderLine, { gte: [w, d, d_next_o_id - RECENT_ORDERS], lt: [w, d, d_next_o_id] })
    .toArray();
  const items = new Set(lines.map(({ ol_i_id }) => ol_i_id));
  const keys = Array.from(items, (item): [number, number] => [w, item]);
  const stocks = await tx.getMany(Stock, keys);
  return stocks.filter((stock) => must(stock).s_quantity < threshold).length;
}

/** Everything that an input names is there, but for the item of a New-Order that is rolled back. */
function must<T>(row: T | undefined): T {
  if (row === undefined) throw new Error("a row of TPC-C's is missing");
  return row;
}
