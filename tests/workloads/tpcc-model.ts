/** TPC-C in maps, as plainly as it can be said: what every engine's store must agree with. */

import { DISTRICTS, totalOf } from "../../workloads/tpcc/parameters.ts";
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
} from "../../workloads/tpcc/store.ts";
import {
  Customer,
  District,
  History,
  Item,
  NewOrder,
  Order,
  OrderLine,
  Stock,
  Warehouse,
} from "../../workloads/tpcc/tables.ts";
import { ModelTables } from "./model-tables.ts";

// biome-ignore lint/suspicious/noExplicitAny: rows of nine tables, by the names of their columns.
type Row = any;

export class TpccModel extends ModelTables implements TpccStore {
  newOrder(input: NewOrderInput): NewOrderResult | undefined {
    const { warehouse: w, district: d, customer: c, items, supplies, quantities } = input;
    if (items.some((item) => this.get(Item, item) === undefined)) return undefined;
    const district: Row = this.get(District, w, d);
    const customer: Row = this.get(Customer, w, d, c);
    const order = district.d_next_o_id;
    this.put(District, { ...district, d_next_o_id: order + 1 });
    this.put(NewOrder, { no_w_id: w, no_d_id: d, no_o_id: order });
    this.put(Order, {
      o_w_id: w,
      o_d_id: d,
      o_id: order,
      o_c_id: c,
      o_entry_d: input.date,
      o_carrier_id: null,
      o_ol_cnt: items.length,
      o_all_local: supplies.every((supply) => supply === w),
    });
    let sum = 0;
    let originals = 0;
    items.forEach((i, index) => {
      const item: Row = this.get(Item, i);
      const stock: Row = this.get(Stock, supplies[index], i);
      const quantity = quantities[index];
      const isLow = stock.s_quantity < quantity + 10;
      this.put(Stock, {
        ...stock,
        s_quantity: stock.s_quantity - quantity + (isLow ? 91 : 0),
        s_ytd: stock.s_ytd + quantity,
        s_order_cnt: stock.s_order_cnt + 1,
        s_remote_cnt: stock.s_remote_cnt + (supplies[index] === w ? 0 : 1),
      });
      sum += quantity * item.i_price;
      if (/ORIGINAL/.test(item.i_data) && /ORIGINAL/.test(stock.s_data)) originals++;
      this.put(OrderLine, {
        ol_w_id: w,
        ol_d_id: d,
        ol_o_id: order,
        ol_number: index + 1,
        ol_i_id: i,
        ol_supply_w_id: supplies[index],
        ol_delivery_d: null,
        ol_quantity: quantity,
        ol_amount: quantity * item.i_price,
        ol_dist_info: stock[`s_dist_${String(d).padStart(2, "0")}`],
      });
    });
    const { c_discount: discount, c_credit: credit } = customer;
    const { w_tax }: Row = this.get(Warehouse, w);
    const total = totalOf(sum, discount, w_tax + district.d_tax);
    return { order, total, discount, credit, originals };
  }

  payment(input: PaymentInput): PaymentResult {
    const { warehouse: w, district: d, amount } = input;
    const warehouse: Row = this.get(Warehouse, w);
    this.put(Warehouse, { ...warehouse, w_ytd: warehouse.w_ytd + amount });
    const district: Row = this.get(District, w, d);
    this.put(District, { ...district, d_ytd: district.d_ytd + amount });
    const customer = this.#customer(input);
    const isBad = customer.c_credit === "BC";
    const data = (paymentNote(customer.c_id, input) + customer.c_data).slice(0, 500);
    const balance = customer.c_balance - amount;
    this.put(Customer, {
      ...customer,
      c_balance: balance,
      c_ytd_payment: customer.c_ytd_payment + amount,
      c_payment_cnt: customer.c_payment_cnt + 1,
      c_data: isBad ? data : customer.c_data,
    });
    this.put(History, {
      h_id: input.history,
      h_c_id: customer.c_id,
      h_c_d_id: input.customerDistrict,
      h_c_w_id: input.customerWarehouse,
      h_d_id: d,
      h_w_id: w,
      h_date: input.date,
      h_amount: amount,
      h_data: `${warehouse.w_name}    ${district.d_name}`,
    });
    const shown = isBad ? data.slice(0, 200) : "";
    return { customer: customer.c_id, balance, credit: customer.c_credit, data: shown };
  }

  orderStatus(input: CustomerInput): OrderStatusResult {
    const { customerWarehouse: w, customerDistrict: d } = input;
    const { c_id, c_balance } = this.#customer(input);
    const orders = this.#rows(Order).filter(
      (row) => row.o_w_id === w && row.o_d_id === d && row.o_c_id === c_id,
    );
    const last = orders.reduce((left, right) => (right.o_id > left.o_id ? right : left));
    return {
      customer: c_id,
      balance: c_balance,
      order: last.o_id,
      date: last.o_entry_d,
      carrier: last.o_carrier_id,
      lines: this.#lines(w, d, last.o_id).map((line) => ({
        item: line.ol_i_id,
        supply: line.ol_supply_w_id,
        quantity: line.ol_quantity,
        amount: line.ol_amount,
        delivered: line.ol_delivery_d,
      })),
    };
  }

  delivery(w: number, carrier: number, date: number): number[] {
    return Array.from({ length: DISTRICTS }, (_, index) => {
      const d = index + 1;
      const waiting = this.#rows(NewOrder).filter((row) => row.no_w_id === w && row.no_d_id === d);
      if (waiting.length === 0) return 0;
      const order = Math.min(...waiting.map((row) => row.no_o_id));
      this.delete(NewOrder, w, d, order);
      const row: Row = this.get(Order, w, d, order);
      this.put(Order, { ...row, o_carrier_id: carrier });
      let amount = 0;
      for (const line of this.#lines(w, d, order)) {
        amount += line.ol_amount;
        this.put(OrderLine, { ...line, ol_delivery_d: date });
      }
      const customer: Row = this.get(Customer, w, d, row.o_c_id);
      this.put(Customer, {
        ...customer,
        c_balance: customer.c_balance + amount,
        c_delivery_cnt: customer.c_delivery_cnt + 1,
      });
      return order;
    });
  }

  stockLevel(w: number, d: number, threshold: number): number {
    const { d_next_o_id }: Row = this.get(District, w, d);
    const items = new Set<number>();
    for (let order = d_next_o_id - 20; order < d_next_o_id; order++) {
      for (const line of this.#lines(w, d, order)) items.add(line.ol_i_id);
    }
    const isLow = (item: number): boolean =>
      (this.get(Stock, w, item) as Row).s_quantity < threshold;
    return [...items].filter(isLow).length;
  }

  #lines(w: number, d: number, order: number): Row[] {
    const lines: Row[] = [];
    for (let number = 1; ; number++) {
      const line: Row = this.get(OrderLine, w, d, order, number);
      if (line === undefined) return lines;
      lines.push(line);
    }
  }

  #customer({ customerWarehouse: w, customerDistrict: d, customer, last }: CustomerInput): Row {
    if (customer !== 0) return this.get(Customer, w, d, customer);
    const found = this.#rows(Customer)
      .filter((row) => row.c_w_id === w && row.c_d_id === d && row.c_last === last)
      .sort((left, right) => (left.c_first < right.c_first ? -1 : 1));
    return found[middleOf(found.length)];
  }

  #rows(table: Parameters<ModelTables["all"]>[0]): Row[] {
    return [...this.all(table).values()];
  }
}
