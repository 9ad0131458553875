/**
 * TPC-C's numbers, from its specification: TPC Benchmark C, Standard Specification, revision 5.11, 2010
 * (tpc.org). Clauses are named where a number comes from.
 *
 * Money is in cents and rates are in ten-thousandths, all of them integers: sums of doubles would
 * not meet the consistency conditions to the cent.
 */

import type { Share } from "../workload.ts";

/** The places of the transactions in the mix. */
export const NEW_ORDER = 0;
export const PAYMENT = 1;
export const ORDER_STATUS = 2;
export const DELIVERY = 3;
export const STOCK_LEVEL = 4;

/** Clause 5.2.3: at least so much of each, and New-Order is the rest. */
export const fullMix: readonly Share[] = [
  { name: "new order", percent: 45 },
  { name: "payment", percent: 43 },
  { name: "order status", percent: 4 },
  { name: "delivery", percent: 4 },
  { name: "stock level", percent: 4 },
];
export const newOrderMix: readonly Share[] = [{ name: "new order", percent: 100 }];

/** How many rows there are; all but the items are for each warehouse (clause 1.2.1). */
export interface TpccScale {
  readonly warehouses: number;
  readonly items: number;
  /** Of each district, and as many orders. */
  readonly customers: number;
  /** Of the orders, those that are not delivered yet: the last ones. */
  readonly newOrders: number;
  /** Different last names: a customer shares his with two others on average. */
  readonly lastNames: number;
}

export const DISTRICTS = 10;
const FULL_CUSTOMERS = 3_000;

/** The specification's sizes. */
export function fullScale(warehouses: number): TpccScale {
  return {
    warehouses,
    items: 100_000,
    customers: FULL_CUSTOMERS,
    newOrders: 900,
    lastNames: 1_000,
  };
}

/** A hundredth of it, for tests: the same structure, with the same shares. */
export function reducedScale(warehouses: number): TpccScale {
  return { warehouses, items: 1_000, customers: 30, newOrders: 9, lastNames: 10 };
}

/**
 * The scale for so many customers: warehouses of 30,000, or for fewer than that reduced ones of
 * 300.
 */
export function scaleOf(customers: number): TpccScale {
  const make = customers < DISTRICTS * FULL_CUSTOMERS ? reducedScale : fullScale;
  const perWarehouse = DISTRICTS * make(1).customers;
  return make(Math.max(1, Math.round(customers / perWarehouse)));
}

/** Clause 2.1.6: the A of NURand, for last names, customers and items. */
export const A_LAST_NAME = 255;
export const A_CUSTOMER = 1_023;
export const A_ITEM = 8_191;
/**
 * Clause 2.1.6.1: the C of NURand is drawn once. For last names that of the run differs from that of
 * the load by 65 to 119, but not by 96 or 112: here by 66.
 */
export const C_LAST_NAME_LOAD = 157;
export const C_LAST_NAME_RUN = 223;
export const C_CUSTOMER = 259;
export const C_ITEM = 7_911;

/** Clause 2.4.1: lines of an order, pieces of a line, and percentages. */
export const LEAST_LINES = 5;
export const MOST_LINES = 15;
export const MOST_QUANTITY = 10;
export const ROLLBACK_PERCENT = 1;
export const REMOTE_LINE_PERCENT = 1;
/** Clause 2.4.2.2: a stock that would fall below 10 is filled up by 91. */
export const LEAST_STOCK = 10;
export const RESTOCK = 91;

/** Clause 2.5.1. */
export const BY_NAME_PERCENT = 60;
export const REMOTE_PAYMENT_PERCENT = 15;
export const LEAST_PAYMENT_CENTS = 100;
export const MOST_PAYMENT_CENTS = 500_000;
/** Clause 2.5.2.2: what was paid is noted in the data of customers with bad credit, up to this. */
export const MOST_CUSTOMER_DATA = 500;
/** Clause 2.5.3.4: of which so much is shown. */
export const SHOWN_CUSTOMER_DATA = 200;
export const BAD_CREDIT = "BC";
export const GOOD_CREDIT = "GC";

/** Clause 2.7.1.2. */
export const CARRIERS = 10;
/** Clause 2.8.1.2, and the last orders that are looked at (clause 2.8.2.2). */
export const LEAST_THRESHOLD = 10;
export const MOST_THRESHOLD = 20;
export const RECENT_ORDERS = 20;

/** Clause 4.3.3.1: what a district and its customers begin with. */
export const FIRST_PAYMENT_CENTS = 1_000;
export const CREDIT_LIMIT_CENTS = 5_000_000;
export const MOST_TAX = 2_000;
export const MOST_DISCOUNT = 5_000;
/** Rates are parts of this. */
export const RATE_UNIT = 10_000;
/** A tenth of items and stocks have this word in their data; a tenth of customers have bad credit. */
export const ORIGINAL = "ORIGINAL";
export const TENTH_PERCENT = 10;

/** The date at which everything begins; nobody reads a clock, so a session counts on from here. */
export const FIRST_DATE = Date.UTC(2026, 0, 1);

/** Clause 2.4.2.2: Σ amounts · (1 - discount) · (1 + both taxes), rounded to a cent. */
export function totalOf(cents: number, discount: number, taxes: number): number {
  const scaled = cents * (RATE_UNIT - discount) * (RATE_UNIT + taxes);
  const unit = RATE_UNIT * RATE_UNIT;
  return Math.floor((scaled + unit / 2) / unit);
}
