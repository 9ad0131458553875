/**
 * TPC-C's five transactions (clause 2) with what goes in, and of what the specification has a terminal
 * show, what an engine must have computed to know it. Names of people and streets, which an engine
 * only copies from a row, are left out.
 */

import type { Result } from "../workload.ts";

export interface NewOrderInput {
  readonly warehouse: number;
  readonly district: number;
  readonly customer: number;
  readonly date: number;
  /**
   * A line for each, ascending and different. The last one may be an item that does not exist: then
   * everything is rolled back.
   */
  readonly items: readonly number[];
  /** The warehouse that each line is supplied from. */
  readonly supplies: readonly number[];
  readonly quantities: readonly number[];
}

export interface NewOrderResult {
  readonly order: number;
  /** Cents, with discount and taxes. */
  readonly total: number;
  readonly discount: number;
  readonly credit: string;
  /** Lines whose item and stock both have the word ORIGINAL in their data. */
  readonly originals: number;
}

/** A customer by number, or by last name, where the number is 0. */
export interface CustomerInput {
  readonly customerWarehouse: number;
  readonly customerDistrict: number;
  readonly customer: number;
  /** "" where there is a number. */
  readonly last: string;
}

export interface PaymentInput extends CustomerInput {
  readonly warehouse: number;
  readonly district: number;
  readonly amount: number;
  readonly date: number;
  /** The number of the row in the history. */
  readonly history: number;
}

export interface PaymentResult {
  readonly customer: number;
  readonly balance: number;
  readonly credit: string;
  /** The first 200 characters, for a customer with bad credit; otherwise "". */
  readonly data: string;
}

export interface StatusLine {
  readonly item: number;
  readonly supply: number;
  readonly quantity: number;
  readonly amount: number;
  readonly delivered: number | null;
}

export interface OrderStatusResult {
  readonly customer: number;
  readonly balance: number;
  readonly order: number;
  readonly date: number;
  readonly carrier: number | null;
  readonly lines: readonly StatusLine[];
}

export interface TpccStore {
  /** Undefined: an item does not exist, and nothing has changed (clause 2.4.2.3). */
  newOrder(input: NewOrderInput): Result<NewOrderResult | undefined>;
  payment(input: PaymentInput): Result<PaymentResult>;
  /** Of the customer's last order. */
  orderStatus(input: CustomerInput): Result<OrderStatusResult>;
  /** The order that was delivered in each district, in their order; 0 where there was none to deliver. */
  delivery(warehouse: number, carrier: number, date: number): Result<readonly number[]>;
  /** Items of the district's last 20 orders whose stock in its warehouse is below the threshold. */
  stockLevel(warehouse: number, district: number, threshold: number): Result<number>;
}

/** Clause 2.5.2.2: of the customers with a last name, by first name, the one in the middle. */
export function middleOf(customers: number): number {
  return (customers - 1) >> 1;
}

/** Clause 2.5.2.2: what a payment adds in front of the data of a customer with bad credit. */
export function paymentNote(customer: number, input: PaymentInput): string {
  const { customerDistrict, customerWarehouse, district, warehouse, amount } = input;
  return `${customer} ${customerDistrict} ${customerWarehouse} ${district} ${warehouse} ${amount}|`;
}
