/**
 * SmallBank's numbers, from H-Store's implementation (github.com/apavlo/h-store,
 * src/benchmarks/edu/brown/benchmark/smallbank), which OLTP-Bench, DrTM, FaSST and Xenic took over.
 * H-Store counts in dollars, we in cents.
 */

import type { Share } from "../workload.ts";

/** The places of the transactions in the mix. */
export const AMALGAMATE = 0;
export const BALANCE = 1;
export const DEPOSIT_CHECKING = 2;
export const SEND_PAYMENT = 3;
export const TRANSACT_SAVINGS = 4;
export const WRITE_CHECK = 5;

/** SmallBankConstants.java, FREQUENCY_*; 15 % only read, as FaSST §6 and Xenic §5.5 say. */
export const smallBankMix: readonly Share[] = [
  { name: "amalgamate", percent: 15 },
  { name: "balance", percent: 15 },
  { name: "deposit checking", percent: 15 },
  { name: "send payment", percent: 25 },
  { name: "transact savings", percent: 15 },
  { name: "write check", percent: 15 },
];

/** FaSST §6 and Xenic §5.5, after DrTM: 90 % of the transactions go to 4 % of the accounts. */
export const HOT_TRANSACTION_PERCENT = 90;
export const HOT_ACCOUNT_PERCENT = 4;

/** SmallBankConstants.java, MIN_BALANCE and MAX_BALANCE: "so that they never run out of money". */
export const MIN_BALANCE_DOLLARS = 10_000;
export const MAX_BALANCE_DOLLARS = 50_000;
export const CENTS = 100;

/** SmallBankClient.java, the amounts "from original code": 1.3, 5.00, 20.20 and 5.0 dollars. */
export const DEPOSIT_CENTS = 130;
export const PAYMENT_CENTS = 500;
export const SAVINGS_CENTS = 2020;
export const CHECK_CENTS = 500;

/** SmallBankLoader.java: the name is the number with leading zeros, as long as the column. */
export const NAME_LENGTH = 64;

/** Two customers of one transaction are different, and both are hot or both cold. */
export const FEWEST_ACCOUNTS = 4;

/** SmallBankClient.java: the hot accounts are those with the lowest numbers. */
export function hotAccounts(accounts: number): number {
  return Math.max(2, Math.floor((accounts * HOT_ACCOUNT_PERCENT) / 100));
}
