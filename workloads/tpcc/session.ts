/** A stream of TPC-C's transactions, and what they have done, for the checks at the end. */

import { Stream } from "../random/stream.ts";
import {
  DONE,
  type Outcome,
  REFUSED,
  type Result,
  type Session,
  type Share,
  type Tally,
} from "../workload.ts";
import { type DrawOptions, TpccInputs } from "./inputs.ts";
import {
  CARRIERS,
  DELIVERY,
  LEAST_THRESHOLD,
  MOST_THRESHOLD,
  NEW_ORDER,
  ORDER_STATUS,
  PAYMENT,
  STOCK_LEVEL,
} from "./parameters.ts";
import type { NewOrderResult, TpccStore } from "./store.ts";

export interface TpccSessionOptions extends DrawOptions {
  readonly mix: readonly Share[];
  readonly seed: number;
}

/** REFUSED: a New-Order that was rolled back, as one in a hundred is meant to be. */
export class TpccSession implements Session {
  drawn = NEW_ORDER;
  readonly #store: TpccStore;
  readonly #stream: Stream;
  readonly #inputs: TpccInputs;
  /** For each percent, the kind of transaction that it belongs to. */
  readonly #kinds: Uint8Array;
  #orders = 0;
  #paidCents = 0;
  #payments = 0;
  #delivered = 0;
  /** Bound once: a function for each transaction would be measured with it. */
  readonly #ordered = (result: NewOrderResult | undefined): Outcome => this.#endOrder(result);
  readonly #delivers = (orders: readonly number[]): Outcome => this.#endDelivery(orders);
  readonly #done = (): Outcome => DONE;

  constructor(store: TpccStore, options: TpccSessionOptions) {
    this.#store = store;
    this.#stream = new Stream(options.seed, options.lane);
    this.#inputs = new TpccInputs(this.#stream, options);
    this.#kinds = Uint8Array.from(
      options.mix.flatMap(({ percent }, kind) => Array(percent).fill(kind)),
    );
  }

  next(): Result<Outcome> {
    const kind = this.#kinds[this.#stream.below(100)];
    this.drawn = kind;
    const inputs = this.#inputs;
    const store = this.#store;
    switch (kind) {
      case NEW_ORDER: {
        const result = store.newOrder(inputs.newOrder());
        return result instanceof Promise ? result.then(this.#ordered) : this.#endOrder(result);
      }
      case PAYMENT:
        return this.#pay();
      case ORDER_STATUS: {
        const result = store.orderStatus(inputs.orderStatus());
        return result instanceof Promise ? result.then(this.#done) : DONE;
      }
      case DELIVERY: {
        const carrier = inputs.from(1, CARRIERS);
        const result = store.delivery(inputs.warehouse(), carrier, inputs.date());
        return result instanceof Promise ? result.then(this.#delivers) : this.#endDelivery(result);
      }
      case STOCK_LEVEL: {
        const threshold = inputs.from(LEAST_THRESHOLD, MOST_THRESHOLD);
        const result = store.stockLevel(inputs.warehouse(), inputs.district(), threshold);
        return result instanceof Promise ? result.then(this.#done) : DONE;
      }
      default:
        throw new RangeError(`TPC-C has no transaction ${kind}`);
    }
  }

  tally(): Tally {
    return {
      orders: this.#orders,
      payments: this.#payments,
      paidCents: this.#paidCents,
      delivered: this.#delivered,
    };
  }

  #pay(): Result<Outcome> {
    const input = this.#inputs.payment();
    const result = this.#store.payment(input);
    if (!(result instanceof Promise)) return this.#endPayment(input.amount);
    return result.then(() => this.#endPayment(input.amount));
  }

  #endOrder(result: NewOrderResult | undefined): Outcome {
    if (result === undefined) return REFUSED;
    this.#orders++;
    return DONE;
  }

  #endPayment(amount: number): Outcome {
    this.#payments++;
    this.#paidCents += amount;
    return DONE;
  }

  #endDelivery(orders: readonly number[]): Outcome {
    for (const order of orders) if (order !== 0) this.#delivered++;
    return DONE;
  }
}
