/**
 * What TPC-C's tables hold at the beginning (clause 4.3.3): always the same for the same scale. Random
 * strings are pieces of one long random text, which is twenty times as quick as drawing each
 * letter.
 */

import { Stream } from "../random/stream.ts";
import type { InitialRow } from "../workload.ts";
import { lastName, nurand } from "./nurand.ts";
import {
  A_LAST_NAME,
  BAD_CREDIT,
  C_LAST_NAME_LOAD,
  CARRIERS,
  CREDIT_LIMIT_CENTS,
  DISTRICTS,
  FIRST_DATE,
  FIRST_PAYMENT_CENTS,
  GOOD_CREDIT,
  LEAST_LINES,
  MOST_DISCOUNT,
  MOST_LINES,
  MOST_TAX,
  ORIGINAL,
  TENTH_PERCENT,
  type TpccScale,
} from "./parameters.ts";
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
} from "./tables.ts";

const SEED = 0x79cc;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS = "0123456789";
const TEXT_LENGTH = 2 ** 16;

export function initialRows(scale: TpccScale): Iterable<InitialRow> {
  return new Population(scale).rows();
}

class Population {
  readonly #scale: TpccScale;
  readonly #stream = new Stream(SEED, 0);
  readonly #letters: string;
  readonly #digits: string;
  #history = 0;

  constructor(scale: TpccScale) {
    this.#scale = scale;
    this.#letters = this.#text(LETTERS);
    this.#digits = this.#text(DIGITS);
  }

  *rows(): Iterable<InitialRow> {
    yield* this.#items();
    for (let warehouse = 1; warehouse <= this.#scale.warehouses; warehouse++) {
      yield this.#warehouse(warehouse);
      yield* this.#stocks(warehouse);
      for (let district = 1; district <= DISTRICTS; district++) {
        yield this.#district(warehouse, district);
        yield* this.#customers(warehouse, district);
        yield* this.#orders(warehouse, district);
      }
    }
  }

  *#items(): Iterable<InitialRow> {
    for (let i_id = 1; i_id <= this.#scale.items; i_id++) {
      const row = {
        i_id,
        i_im_id: this.#from(1, 10_000),
        i_name: this.#string(14, 24),
        i_price: this.#from(100, 10_000),
        i_data: this.#data(),
      };
      yield { table: Item, row };
    }
  }

  #warehouse(w_id: number): InitialRow {
    const row = {
      w_id,
      w_name: this.#string(6, 10),
      w_street_1: this.#string(10, 20),
      w_street_2: this.#string(10, 20),
      w_city: this.#string(10, 20),
      w_state: this.#string(2, 2),
      w_zip: this.#zip(),
      w_tax: this.#from(0, MOST_TAX),
      w_ytd: DISTRICTS * this.#scale.customers * FIRST_PAYMENT_CENTS,
    };
    return { table: Warehouse, row };
  }

  *#stocks(s_w_id: number): Iterable<InitialRow> {
    for (let s_i_id = 1; s_i_id <= this.#scale.items; s_i_id++) {
      const row = {
        s_w_id,
        s_i_id,
        s_quantity: this.#from(10, 100),
        s_dist_01: this.#string(24, 24),
        s_dist_02: this.#string(24, 24),
        s_dist_03: this.#string(24, 24),
        s_dist_04: this.#string(24, 24),
        s_dist_05: this.#string(24, 24),
        s_dist_06: this.#string(24, 24),
        s_dist_07: this.#string(24, 24),
        s_dist_08: this.#string(24, 24),
        s_dist_09: this.#string(24, 24),
        s_dist_10: this.#string(24, 24),
        s_ytd: 0,
        s_order_cnt: 0,
        s_remote_cnt: 0,
        s_data: this.#data(),
      };
      yield { table: Stock, row };
    }
  }

  #district(d_w_id: number, d_id: number): InitialRow {
    const { customers } = this.#scale;
    const row = {
      d_w_id,
      d_id,
      d_name: this.#string(6, 10),
      d_street_1: this.#string(10, 20),
      d_street_2: this.#string(10, 20),
      d_city: this.#string(10, 20),
      d_state: this.#string(2, 2),
      d_zip: this.#zip(),
      d_tax: this.#from(0, MOST_TAX),
      d_ytd: customers * FIRST_PAYMENT_CENTS,
      d_next_o_id: customers + 1,
    };
    return { table: District, row };
  }

  *#customers(c_w_id: number, c_d_id: number): Iterable<InitialRow> {
    const { customers } = this.#scale;
    for (let c_id = 1; c_id <= customers; c_id++) {
      const row = {
        c_w_id,
        c_d_id,
        c_id,
        c_first: this.#string(8, 16),
        c_middle: "OE",
        c_last: lastName(this.#nameOf(c_id)),
        c_street_1: this.#string(10, 20),
        c_street_2: this.#string(10, 20),
        c_city: this.#string(10, 20),
        c_state: this.#string(2, 2),
        c_zip: this.#zip(),
        c_phone: this.#piece(this.#digits, 16),
        c_since: FIRST_DATE,
        c_credit: this.#isTenth() ? BAD_CREDIT : GOOD_CREDIT,
        c_credit_lim: CREDIT_LIMIT_CENTS,
        c_discount: this.#from(0, MOST_DISCOUNT),
        c_balance: -FIRST_PAYMENT_CENTS,
        c_ytd_payment: FIRST_PAYMENT_CENTS,
        c_payment_cnt: 1,
        c_delivery_cnt: 0,
        c_data: this.#string(300, 500),
      };
      yield { table: Customer, row };
      const paid = {
        h_id: ++this.#history,
        h_c_id: c_id,
        h_c_d_id: c_d_id,
        h_c_w_id: c_w_id,
        h_d_id: c_d_id,
        h_w_id: c_w_id,
        h_date: FIRST_DATE,
        h_amount: FIRST_PAYMENT_CENTS,
        h_data: this.#string(12, 24),
      };
      yield { table: History, row: paid };
    }
  }

  *#orders(o_w_id: number, o_d_id: number): Iterable<InitialRow> {
    const { customers, newOrders } = this.#scale;
    const ofCustomers = this.#permutation(customers);
    for (let o_id = 1; o_id <= customers; o_id++) {
      const isDelivered = o_id <= customers - newOrders;
      const row = {
        o_w_id,
        o_d_id,
        o_id,
        o_c_id: ofCustomers[o_id - 1],
        o_entry_d: FIRST_DATE,
        o_carrier_id: isDelivered ? this.#from(1, CARRIERS) : null,
        o_ol_cnt: this.#from(LEAST_LINES, MOST_LINES),
        o_all_local: true,
      };
      yield { table: Order, row };
      for (let number = 1; number <= row.o_ol_cnt; number++) {
        const line = {
          ol_w_id: o_w_id,
          ol_d_id: o_d_id,
          ol_o_id: o_id,
          ol_number: number,
          ol_i_id: this.#from(1, this.#scale.items),
          ol_supply_w_id: o_w_id,
          ol_delivery_d: isDelivered ? FIRST_DATE : null,
          ol_quantity: 5,
          ol_amount: isDelivered ? 0 : this.#from(1, 999_999),
          ol_dist_info: this.#string(24, 24),
        };
        yield { table: OrderLine, row: line };
      }
      if (isDelivered) continue;
      yield { table: NewOrder, row: { no_w_id: o_w_id, no_d_id: o_d_id, no_o_id: o_id } };
    }
  }

  /** Every name once, then by NURand (clause 4.3.3.1). */
  #nameOf(customer: number): number {
    const { lastNames } = this.#scale;
    if (customer <= lastNames) return customer - 1;
    return nurand(this.#stream, A_LAST_NAME, C_LAST_NAME_LOAD, 0, lastNames - 1);
  }

  #data(): string {
    const text = this.#string(26, 50);
    if (!this.#isTenth()) return text;
    const at = this.#stream.below(text.length - ORIGINAL.length + 1);
    return [text.slice(0, at), ORIGINAL, text.slice(at + ORIGINAL.length)].join("");
  }

  #zip(): string {
    return [this.#piece(this.#digits, 4), "11111"].join("");
  }

  #isTenth(): boolean {
    return this.#stream.below(100) < TENTH_PERCENT;
  }

  #from(least: number, most: number): number {
    return least + this.#stream.below(most - least + 1);
  }

  #string(shortest: number, longest: number): string {
    return this.#piece(this.#letters, this.#from(shortest, longest));
  }

  #piece(text: string, length: number): string {
    const at = this.#stream.below(TEXT_LENGTH - length);
    return text.slice(at, at + length);
  }

  #text(letters: string): string {
    const parts: string[] = [];
    for (let at = 0; at < TEXT_LENGTH; at++)
      parts.push(letters[this.#stream.below(letters.length)]);
    return parts.join("");
  }

  /** 1 to `count`, in random order. */
  #permutation(count: number): number[] {
    const numbers = Array.from({ length: count }, (_, index) => index + 1);
    for (let index = count - 1; index > 0; index--) {
      const other = this.#stream.below(index + 1);
      [numbers[index], numbers[other]] = [numbers[other], numbers[index]];
    }
    return numbers;
  }
}
