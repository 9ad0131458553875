/**
 * SmallBank on Situ with many transactions in flight: on a store of this machine, or on a cluster.
 * Reads that do not wait for each other are issued together, which is one message to each node; writes
 * are sent with the commit and need not be waited for.
 */

import type { AsyncTransaction, Database, RemoteDatabase } from "situ";
import { type BalanceRow, Checking, PENALTY_CENTS, Savings, type SmallBankStore } from "./store.ts";

/** The callbacks of its transactions. Those that refuse return NaN and have written nothing. */
export const smallBankBodies = {
  async balance(tx: AsyncTransaction, customer: number): Promise<number> {
    const [savings, checking] = await both(tx, customer);
    return savings.bal + checking.bal;
  },

  async depositChecking(tx: AsyncTransaction, customer: number, cents: number): Promise<number> {
    const { bal } = found(await tx.get(Checking, customer), customer);
    void tx.update(Checking, customer, { bal: bal + cents });
    return cents;
  },

  async transactSavings(tx: AsyncTransaction, customer: number, cents: number): Promise<number> {
    const { bal } = found(await tx.get(Savings, customer), customer);
    if (bal + cents < 0) return Number.NaN;
    void tx.update(Savings, customer, { bal: bal + cents });
    return cents;
  },

  async amalgamate(tx: AsyncTransaction, from: number, to: number): Promise<number> {
    const [savings, rows] = await Promise.all([
      tx.get(Savings, from),
      tx.getMany(Checking, [from, to]),
    ]);
    const moved = found(savings, from).bal + found(rows[0], from).bal;
    void tx.update(Savings, from, { bal: 0 });
    void tx.update(Checking, from, { bal: 0 });
    void tx.update(Checking, to, { bal: found(rows[1], to).bal + moved });
    return 0;
  },

  async writeCheck(tx: AsyncTransaction, customer: number, cents: number): Promise<number> {
    const [savings, checking] = await both(tx, customer);
    const taken = savings.bal + checking.bal < cents ? cents + PENALTY_CENTS : cents;
    void tx.update(Checking, customer, { bal: checking.bal - taken });
    return -taken;
  },

  async sendPayment(
    tx: AsyncTransaction,
    from: number,
    to: number,
    cents: number,
  ): Promise<number> {
    const rows = await tx.getMany(Checking, [from, to]);
    const has = found(rows[0], from).bal;
    if (has < cents) return Number.NaN;
    void tx.update(Checking, from, { bal: has - cents });
    void tx.update(Checking, to, { bal: found(rows[1], to).bal + cents });
    return 0;
  },
};

export function situSmallBankAsync(remoteOrLocal: Database | RemoteDatabase): SmallBankStore {
  // The two have no common type; what is used of them here is the same.
  const db = remoteOrLocal as Database;
  const bodies = smallBankBodies;
  return {
    balance: (customer) => db.transact((tx) => bodies.balance(tx, customer)),
    depositChecking: (customer, cents) =>
      db.transact((tx) => bodies.depositChecking(tx, customer, cents)),
    transactSavings: (customer, cents) =>
      db.transact((tx) => bodies.transactSavings(tx, customer, cents)),
    amalgamate: (from, to) => db.transact((tx) => bodies.amalgamate(tx, from, to)),
    writeCheck: (customer, cents) => db.transact((tx) => bodies.writeCheck(tx, customer, cents)),
    sendPayment: (from, to, cents) => db.transact((tx) => bodies.sendPayment(tx, from, to, cents)),
  };
}

async function both(tx: AsyncTransaction, customer: number): Promise<[BalanceRow, BalanceRow]> {
  const [savings, checking] = await Promise.all([
    tx.get(Savings, customer),
    tx.get(Checking, customer),
  ]);
  return [found(savings, customer), found(checking, customer)];
}

function found(row: BalanceRow | undefined, customer: number): BalanceRow {
  if (row === undefined) throw new Error(`customer ${customer} has lost an account`);
  return row;
}
