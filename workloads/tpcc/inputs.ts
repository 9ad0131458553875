/**
 * Draws what TPC-C's terminals type in (clauses 2.4.1 to 2.8.1), without their keying and think times.
 *
 * The terminals of a warehouse are connected to one process: a session draws its home from the
 * warehouses of its lane, as long as there is one for each lane. What is remote may be any other
 * warehouse. By default a line of an order is remote in 1 % of cases, which is a tenth of the orders,
 * and a payment in 15 %. With a degree of distribution, that percentage of both is remote; of an
 * order it is one line, as it nearly always is by default.
 */

import type { Distribution } from "../random/distribution.ts";
import type { Stream } from "../random/stream.ts";
import { lastName, nurand } from "./nurand.ts";
import {
  A_CUSTOMER,
  A_ITEM,
  A_LAST_NAME,
  BY_NAME_PERCENT,
  C_CUSTOMER,
  C_ITEM,
  C_LAST_NAME_RUN,
  DISTRICTS,
  FIRST_DATE,
  LEAST_LINES,
  LEAST_PAYMENT_CENTS,
  MOST_LINES,
  MOST_PAYMENT_CENTS,
  MOST_QUANTITY,
  REMOTE_LINE_PERCENT,
  REMOTE_PAYMENT_PERCENT,
  ROLLBACK_PERCENT,
  type TpccScale,
} from "./parameters.ts";
import type { CustomerInput, NewOrderInput, PaymentInput } from "./store.ts";

/** Payments of a lane are numbered from a place of its own; those of the load are below all of them. */
const PAYMENTS_PER_LANE = 2 ** 40;

export interface DrawOptions {
  readonly scale: TpccScale;
  /** The percentage of orders and payments that use another warehouse, instead of the specification's. */
  readonly remotePercent?: number | undefined;
  /** From 0 to items - 1; instead of NURand. */
  readonly itemsBy?: Distribution | undefined;
  readonly lane: number;
  readonly lanes: number;
}

export class TpccInputs {
  readonly #stream: Stream;
  readonly #scale: TpccScale;
  readonly #remotePercent: number | undefined;
  readonly #itemsBy: Distribution | undefined;
  readonly #names: readonly string[];
  readonly #lane: number;
  readonly #homes: number;
  readonly #homeStep: number;
  #date = FIRST_DATE;
  #payments: number;

  constructor(stream: Stream, { scale, remotePercent, itemsBy, lane, lanes }: DrawOptions) {
    this.#stream = stream;
    this.#scale = scale;
    this.#remotePercent = remotePercent;
    this.#itemsBy = itemsBy;
    this.#names = Array.from({ length: scale.lastNames }, (_, number) => lastName(number));
    const { warehouses } = scale;
    const hasOwn = warehouses >= lanes;
    // One that takes the place of a session that died has a lane of its own, for its payments.
    this.#lane = hasOwn ? lane % lanes : 0;
    this.#homeStep = hasOwn ? lanes : 1;
    this.#homes = Math.floor((warehouses - 1 - this.#lane) / this.#homeStep) + 1;
    this.#payments = (lane + 1) * PAYMENTS_PER_LANE;
  }

  /** A home for the next transaction. */
  warehouse(): number {
    return 1 + this.#lane + this.#homeStep * this.#stream.below(this.#homes);
  }

  district(): number {
    return 1 + this.#stream.below(DISTRICTS);
  }

  /** A millisecond for each transaction: nobody reads a clock. */
  date(): number {
    return ++this.#date;
  }

  from(least: number, most: number): number {
    return least + this.#stream.below(most - least + 1);
  }

  newOrder(): NewOrderInput {
    const warehouse = this.warehouse();
    const district = this.district();
    const customer = this.#customer();
    const lines = this.from(LEAST_LINES, MOST_LINES);
    const items = this.#items(lines);
    const supplies: number[] = [];
    const quantities: number[] = [];
    const remoteLine = this.#remoteLine(lines);
    for (let line = 0; line < lines; line++) {
      supplies.push(this.#isRemote(line, remoteLine) ? this.#other(warehouse) : warehouse);
      quantities.push(this.from(1, MOST_QUANTITY));
    }
    return { warehouse, district, customer, date: this.date(), items, supplies, quantities };
  }

  payment(): PaymentInput {
    const warehouse = this.warehouse();
    const district = this.district();
    const percent = this.#remotePercent ?? REMOTE_PAYMENT_PERCENT;
    const isRemote = this.#scale.warehouses > 1 && this.#stream.below(100) < percent;
    const customerWarehouse = isRemote ? this.#other(warehouse) : warehouse;
    const customerDistrict = isRemote ? this.district() : district;
    const isByName = this.#isByName();
    return {
      customerWarehouse,
      customerDistrict,
      customer: isByName ? 0 : this.#customer(),
      last: isByName ? this.#lastName() : "",
      warehouse,
      district,
      amount: this.from(LEAST_PAYMENT_CENTS, MOST_PAYMENT_CENTS),
      date: this.date(),
      history: ++this.#payments,
    };
  }

  orderStatus(): CustomerInput {
    const isByName = this.#isByName();
    return {
      customerWarehouse: this.warehouse(),
      customerDistrict: this.district(),
      customer: isByName ? 0 : this.#customer(),
      last: isByName ? this.#lastName() : "",
    };
  }

  #isByName(): boolean {
    return this.#stream.below(100) < BY_NAME_PERCENT;
  }

  #customer(): number {
    return nurand(this.#stream, A_CUSTOMER, C_CUSTOMER, 1, this.#scale.customers);
  }

  #lastName(): string {
    const { lastNames } = this.#scale;
    return this.#names[nurand(this.#stream, A_LAST_NAME, C_LAST_NAME_RUN, 0, lastNames - 1)];
  }

  /** Ascending: whoever locks stocks in this order does not meet another one the other way. */
  #items(count: number): number[] {
    const items: number[] = [];
    while (items.length < count) {
      const item = this.#item();
      if (!items.includes(item)) items.push(item);
    }
    // An item that is not there is behind all others.
    if (this.#stream.below(100) < ROLLBACK_PERCENT) items[0] = this.#scale.items + 1;
    return items.sort((left, right) => left - right);
  }

  #item(): number {
    const { items } = this.#scale;
    if (this.#itemsBy !== undefined) return 1 + this.#itemsBy.draw(this.#stream);
    return nurand(this.#stream, A_ITEM, C_ITEM, 1, items);
  }

  /** With a degree of distribution: the one line that is remote, or -1. */
  #remoteLine(lines: number): number | undefined {
    if (this.#remotePercent === undefined) return undefined;
    return this.#stream.below(100) < this.#remotePercent ? this.#stream.below(lines) : -1;
  }

  #isRemote(line: number, remoteLine: number | undefined): boolean {
    if (this.#scale.warehouses === 1) return false;
    if (remoteLine !== undefined) return line === remoteLine;
    return this.#stream.below(100) < REMOTE_LINE_PERCENT;
  }

  #other(warehouse: number): number {
    const drawn = 1 + this.#stream.below(this.#scale.warehouses - 1);
    return drawn < warehouse ? drawn : drawn + 1;
  }
}
