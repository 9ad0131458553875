// SmallBank on SQLite: one statement where a transaction can be said in one, which then needs no
// BEGIN and COMMIT; only `amalgamate` changes two tables.
import { PENALTY_CENTS, type SmallBankStore } from "../../../workloads/smallbank/store.ts";
import type { Connection } from "./connection.ts";

export function sqliteSmallBank(connection: Connection): SmallBankStore {
  const { db } = connection;
  const balance = db
    .prepare(
      `SELECT savings.bal + checking.bal FROM savings JOIN checking USING (custid)
       WHERE custid = ?`,
    )
    .pluck();
  const deposit = db.prepare("UPDATE checking SET bal = bal + ? WHERE custid = ?");
  const save = db.prepare("UPDATE savings SET bal = bal + ? WHERE custid = ? AND bal + ? >= 0");
  // Not with a subquery for the sum: it could see the row of `from` when that is empty already.
  const collect = db.prepare(
    `UPDATE checking SET bal = CASE custid WHEN ? THEN 0 ELSE bal + ? END
     WHERE custid IN (?, ?)`,
  );
  const emptySavings = db.prepare("UPDATE savings SET bal = 0 WHERE custid = ?");
  // Savings and checking are below zero afterwards if, and only if, they were less than the check.
  const check = db
    .prepare(
      `UPDATE checking SET bal = bal - ? - CASE
         WHEN bal + (SELECT bal FROM savings WHERE savings.custid = checking.custid) < ?
         THEN ${PENALTY_CENTS} ELSE 0 END
       WHERE custid = ?
       RETURNING bal + (SELECT bal FROM savings WHERE savings.custid = checking.custid)`,
    )
    .pluck();
  const pay = db.prepare(
    `UPDATE checking SET bal = bal + CASE custid WHEN ? THEN -? ELSE ? END
     WHERE custid IN (?, ?) AND (SELECT bal FROM checking WHERE custid = ?) >= ?`,
  );

  return {
    balance: connection.retried((customer) => {
      const sum = balance.get(customer);
      if (sum === undefined) throw noAccount(customer);
      return sum as number;
    }),

    depositChecking: connection.retried((customer, cents) => {
      if (deposit.run(cents, customer).changes !== 1) throw noAccount(customer);
      return cents;
    }),

    transactSavings: connection.retried((customer, cents) =>
      save.run(cents, customer, cents).changes === 1 ? cents : Number.NaN,
    ),

    amalgamate: connection.writing((from: number, to: number) => {
      const sum = balance.get(from);
      if (sum === undefined) throw noAccount(from);
      if (collect.run(from, sum as number, from, to).changes !== 2) throw noAccount(to);
      emptySavings.run(from);
      return 0;
    }),

    writeCheck: connection.retried((customer, cents) => {
      const left = check.get(cents, cents, customer);
      if (left === undefined) throw noAccount(customer);
      return (left as number) < 0 ? -(cents + PENALTY_CENTS) : -cents;
    }),

    sendPayment: connection.retried((from, to, cents) =>
      pay.run(from, cents, cents, from, to, from, cents).changes === 2 ? 0 : Number.NaN,
    ),
  };
}

function noAccount(customer: number): Error {
  return new Error(`customer ${customer} has no such account`);
}
