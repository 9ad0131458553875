/**
 * SmallBank's six transactions (Alomari et al., ICDE 2008; H-Store's implementation, which FaSST and
 * Xenic measured). Money is in whole cents, so that sums are exact.
 */

import { f64, type InferRow, str, table, u32 } from "situ";
import type { Result } from "../workload.ts";

/** The name of a customer; H-Store's has up to 64 characters. */
export const Accounts = table("accounts", { custid: u32(), name: str(64) }, { key: "custid" });
export const Savings = table("savings", { custid: u32(), bal: f64() }, { key: "custid" });
export const Checking = table("checking", { custid: u32(), bal: f64() }, { key: "custid" });
export type BalanceRow = InferRow<typeof Savings>;

/**
 * Customers are given by their id, as FaSST and Xenic do it. All accounts exist. Those that change
 * money return by how many cents the bank's total changed; NaN: refused, nothing changed.
 */
export interface SmallBankStore {
  /** Savings and checking together. */
  balance(customer: number): Result<number>;
  /** Adds to checking. */
  depositChecking(customer: number, cents: number): Result<number>;
  /** Adds to savings, which may be negative; refused if savings would be below zero. */
  transactSavings(customer: number, cents: number): Result<number>;
  /** Moves all that `from` has, savings and checking, to the checking of `to`. */
  amalgamate(from: number, to: number): Result<number>;
  /** Takes from checking; a penalty of 100 cents more if savings and checking are less than that. */
  writeCheck(customer: number, cents: number): Result<number>;
  /** From checking to checking; refused if `from` has less. */
  sendPayment(from: number, to: number, cents: number): Result<number>;
}

export const PENALTY_CENTS = 100;
