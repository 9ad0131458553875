/** What SmallBank's tables hold at the beginning: always the same for the same number of accounts. */

import { Stream } from "../random/stream.ts";
import type { InitialRow } from "../workload.ts";
import { CENTS, MAX_BALANCE_DOLLARS, MIN_BALANCE_DOLLARS, NAME_LENGTH } from "./parameters.ts";
import { Accounts, Checking, Savings } from "./store.ts";

const SEED = 0x5ba11;
const CHOICES = MAX_BALANCE_DOLLARS - MIN_BALANCE_DOLLARS;

/** Two balances of each account, savings first, in cents. */
class Balances {
  readonly #stream = new Stream(SEED, 0);

  /**
   * Whole dollars, as H-Store's RandomDistribution.Gaussian draws them: a normal distribution of
   * which two standard deviations on each side fill the range; what lies outside is drawn again.
   */
  next(): number {
    for (;;) {
      const place = Math.round(((this.#normal() + 2) / 4) * CHOICES);
      if (place >= 0 && place < CHOICES) return (MIN_BALANCE_DOLLARS + place) * CENTS;
    }
  }

  /** Box and Muller's. */
  #normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.#stream.unit()));
    return radius * Math.cos(2 * Math.PI * this.#stream.unit());
  }
}

export function nameOf(customer: number): string {
  return String(customer).padStart(NAME_LENGTH, "0");
}

export function* initialRows(accounts: number): Iterable<InitialRow> {
  const balances = new Balances();
  for (let custid = 0; custid < accounts; custid++) {
    yield { table: Accounts, row: { custid, name: nameOf(custid) } };
    yield { table: Savings, row: { custid, bal: balances.next() } };
    yield { table: Checking, row: { custid, bal: balances.next() } };
  }
}

/** All the money of the bank at the beginning, in cents. */
export function initialTotal(accounts: number): number {
  const balances = new Balances();
  let total = 0;
  for (let drawn = 0; drawn < 2 * accounts; drawn++) total += balances.next();
  return total;
}
