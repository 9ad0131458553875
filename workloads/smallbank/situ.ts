/**
 * SmallBank on a Situ store of this machine: each transaction runs to its end in one call. Its body
 * is made once and finds its parameters in variables, so a call makes no function and no list; one
 * object carries all new balances, for `update` has read it when it returns.
 */

import type { Database, Transaction } from "situ";
import { Checking, PENALTY_CENTS, Savings, type SmallBankStore } from "./store.ts";

export function situSmallBank(db: Database): SmallBankStore {
  const change = { bal: 0 };
  let customer = 0;
  let other = 0;
  let cents = 0;

  const setSavings = (tx: Transaction, of: number, bal: number): void => {
    change.bal = bal;
    tx.update(Savings, of, change);
  };
  const setChecking = (tx: Transaction, of: number, bal: number): void => {
    change.bal = bal;
    tx.update(Checking, of, change);
  };

  const balance = (tx: Transaction): number => savingsOf(tx, customer) + checkingOf(tx, customer);

  const depositChecking = (tx: Transaction): number => {
    setChecking(tx, customer, checkingOf(tx, customer) + cents);
    return cents;
  };

  const transactSavings = (tx: Transaction): number => {
    const left = savingsOf(tx, customer) + cents;
    if (left < 0) return Number.NaN;
    setSavings(tx, customer, left);
    return cents;
  };

  const amalgamate = (tx: Transaction): number => {
    const all = savingsOf(tx, customer) + checkingOf(tx, customer);
    const theirs = checkingOf(tx, other);
    setSavings(tx, customer, 0);
    setChecking(tx, customer, 0);
    setChecking(tx, other, theirs + all);
    return 0;
  };

  const writeCheck = (tx: Transaction): number => {
    const savings = savingsOf(tx, customer);
    const checking = checkingOf(tx, customer);
    const taken = savings + checking < cents ? cents + PENALTY_CENTS : cents;
    setChecking(tx, customer, checking - taken);
    return -taken;
  };

  const sendPayment = (tx: Transaction): number => {
    const checking = checkingOf(tx, customer);
    if (checking < cents) return Number.NaN;
    const theirs = checkingOf(tx, other);
    setChecking(tx, customer, checking - cents);
    setChecking(tx, other, theirs + cents);
    return 0;
  };

  return {
    balance(of) {
      customer = of;
      return db.transactSync(balance);
    },
    depositChecking(of, amount) {
      customer = of;
      cents = amount;
      return db.transactSync(depositChecking);
    },
    transactSavings(of, amount) {
      customer = of;
      cents = amount;
      return db.transactSync(transactSavings);
    },
    amalgamate(from, to) {
      customer = from;
      other = to;
      return db.transactSync(amalgamate);
    },
    writeCheck(of, amount) {
      customer = of;
      cents = amount;
      return db.transactSync(writeCheck);
    },
    sendPayment(from, to, amount) {
      customer = from;
      other = to;
      cents = amount;
      return db.transactSync(sendPayment);
    },
  };
}

function savingsOf(tx: Transaction, customer: number): number {
  const row = tx.get(Savings, customer);
  if (row === undefined) throw new Error(`customer ${customer} has no savings account`);
  return row.bal;
}

function checkingOf(tx: Transaction, customer: number): number {
  const row = tx.get(Checking, customer);
  if (row === undefined) throw new Error(`customer ${customer} has no checking account`);
  return row.bal;
}
