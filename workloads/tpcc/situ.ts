/**
 * TPC-C on a Situ store of this machine: each transaction runs to its end in one call. Bodies are made
 * once and find their input in a variable; keys and changes are objects that are filled anew each
 * time.
 */

import type { Database, Transaction } from "situ";
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
  type StatusLine,
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

/** All of it is done when the call returns. */
type SyncTpccStore = {
  readonly [Name in keyof TpccStore]: (
    ...input: Parameters<TpccStore[Name]>
  ) => Awaited<ReturnType<TpccStore[Name]>>;
};

/**
 * The same with many in flight that wait for the disk, on a store that was opened with "lazy": each
 * transaction runs to its end at once, when no other of this process is in its way, and then waits
 * for the disk together with the others.
 */
export function situTpccDurable(db: Database): TpccStore {
  const store = situTpcc(db);
  const onDisk = async <T>(result: T): Promise<T> => {
    await db.durable();
    return result;
  };
  return {
    newOrder: (input) => onDisk(store.newOrder(input)),
    payment: (input) => onDisk(store.payment(input)),
    orderStatus: (input) => onDisk(store.orderStatus(input)),
    delivery: (warehouse, carrier, date) => onDisk(store.delivery(warehouse, carrier, date)),
    stockLevel: (warehouse, district, threshold) =>
      onDisk(store.stockLevel(warehouse, district, threshold)),
  };
}

/** An item that is not there: thrown, so that nothing is committed. */
const rolledBack = new Error("the order names an item that does not exist");

export function situTpcc(db: Database): SyncTpccStore {
  let ordering: NewOrderInput;
  let paying: PaymentInput;
  let asking: CustomerInput;
  let warehouse = 0;
  let district = 0;
  let carrier = 0;
  let date = 0;
  let threshold = 0;
  const districtKey: [number, number] = [0, 0];
  const customerKey: [number, number, number] = [0, 0, 0];
  const orderKey: [number, number, number] = [0, 0, 0];
  const lineKey: [number, number, number, number] = [0, 0, 0, 0];

  const newOrder = (tx: Transaction): NewOrderResult => {
    const { warehouse: w, district: d, customer: c, items, supplies, quantities } = ordering;
    const lines = items.length;
    districtKey[0] = w;
    districtKey[1] = d;
    customerKey[0] = w;
    customerKey[1] = d;
    customerKey[2] = c;
    const { w_tax } = must(tx.get(Warehouse, w));
    const { d_tax, d_next_o_id } = must(tx.get(District, districtKey));
    tx.update(District, districtKey, { d_next_o_id: d_next_o_id + 1 });
    const { c_discount, c_credit } = must(tx.get(Customer, customerKey));
    let isLocal = true;
    for (let line = 0; line < lines; line++) if (supplies[line] !== w) isLocal = false;
    tx.insert(Order, {
      o_w_id: w,
      o_d_id: d,
      o_id: d_next_o_id,
      o_c_id: c,
      o_entry_d: ordering.date,
      o_carrier_id: null,
      o_ol_cnt: lines,
      o_all_local: isLocal,
    });
    tx.insert(NewOrder, { no_w_id: w, no_d_id: d, no_o_id: d_next_o_id });
    let sum = 0;
    let originals = 0;
    const itemRows = tx.getMany(Item, items);
    const stockKeys: [number, number][] = [];
    for (let line = 0; line < lines; line++) stockKeys.push([supplies[line], items[line]]);
    const stocks = tx.getMany(Stock, stockKeys);
    for (let line = 0; line < lines; line++) {
      const item = itemRows[line];
      if (item === undefined) throw rolledBack;
      const supply = supplies[line];
      const quantity = quantities[line];
      const stockKey = stockKeys[line];
      const stock = must(stocks[line]);
      const left = stock.s_quantity - quantity;
      tx.update(Stock, stockKey, {
        s_quantity: left >= LEAST_STOCK ? left : left + RESTOCK,
        s_ytd: stock.s_ytd + quantity,
        s_order_cnt: stock.s_order_cnt + 1,
        s_remote_cnt: stock.s_remote_cnt + (supply === w ? 0 : 1),
      });
      const amount = quantity * item.i_price;
      sum += amount;
      if (item.i_data.includes(ORIGINAL) && stock.s_data.includes(ORIGINAL)) originals++;
      tx.insert(OrderLine, {
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
    const total = totalOf(sum, c_discount, w_tax + d_tax);
    return { order: d_next_o_id, total, discount: c_discount, credit: c_credit, originals };
  };

  const payment = (tx: Transaction): PaymentResult => {
    const { warehouse: w, district: d, amount } = paying;
    districtKey[0] = w;
    districtKey[1] = d;
    const { w_name, w_ytd } = must(tx.get(Warehouse, w));
    tx.update(Warehouse, w, { w_ytd: w_ytd + amount });
    const { d_name, d_ytd } = must(tx.get(District, districtKey));
    tx.update(District, districtKey, { d_ytd: d_ytd + amount });
    const customer = customerOf(tx, paying);
    const { c_id, c_credit } = customer;
    const balance = customer.c_balance - amount;
    const isBad = c_credit === BAD_CREDIT;
    const data = isBad
      ? (paymentNote(c_id, paying) + customer.c_data).slice(0, MOST_CUSTOMER_DATA)
      : undefined;
    customerKey[0] = paying.customerWarehouse;
    customerKey[1] = paying.customerDistrict;
    customerKey[2] = c_id;
    tx.update(Customer, customerKey, {
      c_balance: balance,
      c_ytd_payment: customer.c_ytd_payment + amount,
      c_payment_cnt: customer.c_payment_cnt + 1,
      c_data: data,
    });
    tx.insert(History, {
      h_id: paying.history,
      h_c_id: c_id,
      h_c_d_id: paying.customerDistrict,
      h_c_w_id: paying.customerWarehouse,
      h_d_id: d,
      h_w_id: w,
      h_date: paying.date,
      h_amount: amount,
      h_data: `${w_name}    ${d_name}`,
    });
    const shown = data === undefined ? "" : data.slice(0, SHOWN_CUSTOMER_DATA);
    return { customer: c_id, balance, credit: c_credit, data: shown };
  };

  const customerOf = (tx: Transaction, of: CustomerInput): CustomerRow => {
    const { customerWarehouse: w, customerDistrict: d, customer, last } = of;
    if (customer !== 0) {
      customerKey[0] = w;
      customerKey[1] = d;
      customerKey[2] = customer;
      return must(tx.get(Customer, customerKey));
    }
    const found = tx.scan(Customer, { index: "byName", eq: [w, d, last] }).toArray();
    return must(found[middleOf(found.length)]);
  };

  const orderStatus = (tx: Transaction): OrderStatusResult => {
    const { customerWarehouse: w, customerDistrict: d } = asking;
    const { c_id, c_balance } = customerOf(tx, asking);
    const eq: [number, number, number] = [w, d, c_id];
    const [found] = tx.scan(Order, { index: "byCustomer", eq, reverse: true, limit: 1 }).toArray();
    const { o_id, o_entry_d, o_carrier_id } = must(found);
    const lines: StatusLine[] = [];
    for (const line of tx.scan(OrderLine, { eq: [w, d, o_id] })) {
      lines.push({
        item: line.ol_i_id,
        supply: line.ol_supply_w_id,
        quantity: line.ol_quantity,
        amount: line.ol_amount,
        delivered: line.ol_delivery_d,
      });
    }
    return {
      customer: c_id,
      balance: c_balance,
      order: o_id,
      date: o_entry_d,
      carrier: o_carrier_id,
      lines,
    };
  };

  const delivery = (tx: Transaction): number[] => {
    const delivered: number[] = [];
    for (let d = 1; d <= DISTRICTS; d++) delivered.push(deliver(tx, d));
    return delivered;
  };

  const deliver = (tx: Transaction, d: number): number => {
    const w = warehouse;
    const [oldest] = tx.scan(NewOrder, { eq: [w, d], limit: 1 }).toArray();
    if (oldest === undefined) return 0;
    const order = oldest.no_o_id;
    orderKey[0] = w;
    orderKey[1] = d;
    orderKey[2] = order;
    tx.delete(NewOrder, orderKey);
    const { o_c_id } = must(tx.get(Order, orderKey));
    tx.update(Order, orderKey, { o_carrier_id: carrier });
    let amount = 0;
    lineKey[0] = w;
    lineKey[1] = d;
    lineKey[2] = order;
    for (const line of tx.scan(OrderLine, { eq: [w, d, order] }).toArray()) {
      amount += line.ol_amount;
      lineKey[3] = line.ol_number;
      tx.update(OrderLine, lineKey, { ol_delivery_d: date });
    }
    customerKey[0] = w;
    customerKey[1] = d;
    customerKey[2] = o_c_id;
    const { c_balance, c_delivery_cnt } = must(tx.get(Customer, customerKey));
    tx.update(Customer, customerKey, {
      c_balance: c_balance + amount,
      c_delivery_cnt: c_delivery_cnt + 1,
    });
    return order;
  };

  const stockLevel = (tx: Transaction): number => {
    districtKey[0] = warehouse;
    districtKey[1] = district;
    const { d_next_o_id } = must(tx.get(District, districtKey));
    const items = new Set<number>();
    const gte: [number, number, number] = [warehouse, district, d_next_o_id - RECENT_ORDERS];
    const lt: [number, number, number] = [warehouse, district, d_next_o_id];
    for (const { ol_i_id } of tx.scan(OrderLine, { gte, lt })) items.add(ol_i_id);
    const keys: [number, number][] = [];
    for (const item of items) keys.push([warehouse, item]);
    let low = 0;
    for (const stock of tx.getMany(Stock, keys)) if (must(stock).s_quantity < threshold) low++;
    return low;
  };

  return {
    newOrder(input) {
      ordering = input;
      try {
        return db.transactSync(newOrder);
      } catch (error) {
        if (error === rolledBack) return undefined;
        throw error;
      }
    },
    payment(input) {
      paying = input;
      return db.transactSync(payment);
    },
    orderStatus(input) {
      asking = input;
      return db.transactSync(orderStatus);
    },
    delivery(of, by, at) {
      warehouse = of;
      carrier = by;
      date = at;
      return db.transactSync(delivery);
    },
    stockLevel(of, inDistrict, below) {
      warehouse = of;
      district = inDistrict;
      threshold = below;
      return db.transactSync(stockLevel);
    },
  };
}

/** Everything that an input names is there, but for the item of a New-Order that is rolled back. */
function must<T>(row: T | undefined): T {
  if (row === undefined) throw new Error("a row of TPC-C's is missing");
  return row;
}
