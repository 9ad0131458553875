/** SmallBank in two maps, as plainly as it can be said: what every engine's store must agree with. */

import type { Table } from "situ";
import {
  Checking,
  PENALTY_CENTS,
  Savings,
  type SmallBankStore,
} from "../../workloads/smallbank/store.ts";
import { ModelTables } from "./model-tables.ts";

export class SmallBankModel extends ModelTables implements SmallBankStore {
  balance(customer: number): number {
    return this.#get(Savings, customer) + this.#get(Checking, customer);
  }

  depositChecking(customer: number, cents: number): number {
    this.#add(Checking, customer, cents);
    return cents;
  }

  transactSavings(customer: number, cents: number): number {
    if (this.#get(Savings, customer) + cents < 0) return Number.NaN;
    this.#add(Savings, customer, cents);
    return cents;
  }

  amalgamate(from: number, to: number): number {
    const all = this.balance(from);
    this.#add(Savings, from, -this.#get(Savings, from));
    this.#add(Checking, from, -this.#get(Checking, from));
    this.#add(Checking, to, all);
    return 0;
  }

  writeCheck(customer: number, cents: number): number {
    const taken = this.balance(customer) < cents ? cents + PENALTY_CENTS : cents;
    this.#add(Checking, customer, -taken);
    return -taken;
  }

  sendPayment(from: number, to: number, cents: number): number {
    if (this.#get(Checking, from) < cents) return Number.NaN;
    this.#add(Checking, from, -cents);
    this.#add(Checking, to, cents);
    return 0;
  }

  #get(table: Table, customer: number): number {
    return this.get(table, customer)?.bal as number;
  }

  #add(table: Table, custid: number, cents: number): void {
    this.put(table, { custid, bal: this.#get(table, custid) + cents });
  }
}
