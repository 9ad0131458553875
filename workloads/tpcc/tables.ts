/**
 * TPC-C's nine tables (clause 1.3), with the specification's names of columns.
 *
 * What is only ever found by its whole key is hashed: warehouses, districts, customers, items,
 * stocks, orders, history. What is found by ranges is ordered: the oldest new order of a district,
 * the lines of one order and of the last twenty. Two indexes lead to customers by last name and to the
 * orders of a customer. A payment has no key in the specification; here it has a number.
 *
 * Money is in cents (`i53` and `u32`), rates are in ten-thousandths, dates in milliseconds.
 */

import { bool, type InferRow, i32, i53, nullable, str, table, u8, u16, u32, u53 } from "situ";

export const Warehouse = table(
  "warehouse",
  {
    w_id: u16(),
    w_name: str(10),
    w_street_1: str(20),
    w_street_2: str(20),
    w_city: str(20),
    w_state: str(2),
    w_zip: str(9),
    w_tax: u16(),
    w_ytd: i53(),
  },
  { key: "w_id" },
);

export const District = table(
  "district",
  {
    d_w_id: u16(),
    d_id: u8(),
    d_name: str(10),
    d_street_1: str(20),
    d_street_2: str(20),
    d_city: str(20),
    d_state: str(2),
    d_zip: str(9),
    d_tax: u16(),
    d_ytd: i53(),
    d_next_o_id: u32(),
  },
  { key: ["d_w_id", "d_id"] },
);

export const Customer = table(
  "customer",
  {
    c_w_id: u16(),
    c_d_id: u8(),
    c_id: u16(),
    c_first: str(16),
    c_middle: str(2),
    c_last: str(16),
    c_street_1: str(20),
    c_street_2: str(20),
    c_city: str(20),
    c_state: str(2),
    c_zip: str(9),
    c_phone: str(16),
    c_since: u53(),
    c_credit: str(2),
    c_credit_lim: i53(),
    c_discount: u16(),
    c_balance: i53(),
    c_ytd_payment: i53(),
    c_payment_cnt: u32(),
    c_delivery_cnt: u32(),
    c_data: str(500),
  },
  {
    key: ["c_w_id", "c_d_id", "c_id"],
    indexes: { byName: { on: ["c_w_id", "c_d_id", "c_last", "c_first"] } },
  },
);

export const History = table(
  "history",
  {
    h_id: u53(),
    h_c_id: u16(),
    h_c_d_id: u8(),
    h_c_w_id: u16(),
    h_d_id: u8(),
    h_w_id: u16(),
    h_date: u53(),
    h_amount: u32(),
    h_data: str(24),
  },
  { key: "h_id" },
);

export const NewOrder = table(
  "new_order",
  { no_w_id: u16(), no_d_id: u8(), no_o_id: u32() },
  { key: ["no_w_id", "no_d_id", "no_o_id"], ordered: true },
);

/** "order" is a word of SQL. */
export const Order = table(
  "orders",
  {
    o_w_id: u16(),
    o_d_id: u8(),
    o_id: u32(),
    o_c_id: u16(),
    o_entry_d: u53(),
    o_carrier_id: nullable(u8()),
    o_ol_cnt: u8(),
    o_all_local: bool(),
  },
  {
    key: ["o_w_id", "o_d_id", "o_id"],
    indexes: { byCustomer: { on: ["o_w_id", "o_d_id", "o_c_id", "o_id"] } },
  },
);

export const OrderLine = table(
  "order_line",
  {
    ol_w_id: u16(),
    ol_d_id: u8(),
    ol_o_id: u32(),
    ol_number: u8(),
    ol_i_id: u32(),
    ol_supply_w_id: u16(),
    ol_delivery_d: nullable(u53()),
    ol_quantity: u8(),
    ol_amount: u32(),
    ol_dist_info: str(24),
  },
  { key: ["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"], ordered: true },
);

export const Item = table(
  "item",
  { i_id: u32(), i_im_id: u32(), i_name: str(24), i_price: u32(), i_data: str(50) },
  { key: "i_id" },
);

export const Stock = table(
  "stock",
  {
    s_w_id: u16(),
    s_i_id: u32(),
    s_quantity: i32(),
    s_dist_01: str(24),
    s_dist_02: str(24),
    s_dist_03: str(24),
    s_dist_04: str(24),
    s_dist_05: str(24),
    s_dist_06: str(24),
    s_dist_07: str(24),
    s_dist_08: str(24),
    s_dist_09: str(24),
    s_dist_10: str(24),
    s_ytd: u32(),
    s_order_cnt: u32(),
    s_remote_cnt: u32(),
    s_data: str(50),
  },
  { key: ["s_w_id", "s_i_id"] },
);

export const tpccTables = [
  Warehouse,
  District,
  Customer,
  History,
  NewOrder,
  Order,
  OrderLine,
  Item,
  Stock,
] as const;

export type CustomerRow = InferRow<typeof Customer>;
export type DistrictRow = InferRow<typeof District>;
export type OrderRow = InferRow<typeof Order>;
export type OrderLineRow = InferRow<typeof OrderLine>;
export type StockRow = InferRow<typeof Stock>;
export type WarehouseRow = InferRow<typeof Warehouse>;

/** The column of a stock that goes to the lines of a district. */
export function distInfo(row: StockRow, district: number): string {
  switch (district) {
    case 1:
      return row.s_dist_01;
    case 2:
      return row.s_dist_02;
    case 3:
      return row.s_dist_03;
    case 4:
      return row.s_dist_04;
    case 5:
      return row.s_dist_05;
    case 6:
      return row.s_dist_06;
    case 7:
      return row.s_dist_07;
    case 8:
      return row.s_dist_08;
    case 9:
      return row.s_dist_09;
    case 10:
      return row.s_dist_10;
    default:
      throw new RangeError(`a warehouse has no district ${district}`);
  }
}
