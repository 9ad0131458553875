// SmallBank on lmdb: a row is read, changed and put back. `balance` only reads: its two gets follow
// each other within one turn, so they see one snapshot.
import {
  type BalanceRow,
  Checking,
  PENALTY_CENTS,
  Savings,
  type SmallBankStore,
} from "../../../workloads/smallbank/store.ts";
import type { LmdbDatabase } from "./module.ts";
import type { LmdbTables } from "./tables.ts";
import type { InTransaction } from "./transactions.ts";

export function lmdbSmallBank(tables: LmdbTables, inTransaction: InTransaction): SmallBankStore {
  const savings = tables.rows(Savings);
  const checking = tables.rows(Checking);
  return {
    balance: (customer) => rowOf(savings, customer).bal + rowOf(checking, customer).bal,

    depositChecking: inTransaction((customer, cents) => {
      const row = rowOf(checking, customer);
      row.bal += cents;
      checking.putSync(customer, row);
      return cents;
    }),

    transactSavings: inTransaction((customer, cents) => {
      const row = rowOf(savings, customer);
      row.bal += cents;
      if (row.bal < 0) return Number.NaN;
      savings.putSync(customer, row);
      return cents;
    }),

    amalgamate: inTransaction((from, to) => {
      const saved = rowOf(savings, from);
      const checked = rowOf(checking, from);
      const theirs = rowOf(checking, to);
      theirs.bal += saved.bal + checked.bal;
      saved.bal = 0;
      checked.bal = 0;
      savings.putSync(from, saved);
      checking.putSync(from, checked);
      checking.putSync(to, theirs);
      return 0;
    }),

    writeCheck: inTransaction((customer, cents) => {
      const row = rowOf(checking, customer);
      const total = rowOf(savings, customer).bal + row.bal;
      const taken = total < cents ? cents + PENALTY_CENTS : cents;
      row.bal -= taken;
      checking.putSync(customer, row);
      return -taken;
    }),

    sendPayment: inTransaction((from, to, cents) => {
      const row = rowOf(checking, from);
      if (row.bal < cents) return Number.NaN;
      const theirs = rowOf(checking, to);
      row.bal -= cents;
      theirs.bal += cents;
      checking.putSync(from, row);
      checking.putSync(to, theirs);
      return 0;
    }),
  };
}

function rowOf(accounts: LmdbDatabase<BalanceRow>, customer: number): BalanceRow {
  const row = accounts.get(customer);
  if (row === undefined) throw new Error(`customer ${customer} has no such account`);
  return row;
}
