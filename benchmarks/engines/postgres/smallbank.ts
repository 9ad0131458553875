// SmallBank on PostgreSQL: each transaction is one statement. Those that change two accounts change
// them in the order of their ids, in which `custid IN` walks the index: no deadlocks.
import { PENALTY_CENTS, type SmallBankStore } from "../../../workloads/smallbank/store.ts";
import type { Statement } from "./connection.ts";
import type { Database } from "./database.ts";

const balance: Statement = {
  name: "balance",
  text: `SELECT s.bal + c.bal AS cents FROM savings s, checking c
    WHERE s.custid = $1 AND c.custid = $1`,
};

const depositChecking: Statement = {
  name: "deposit_checking",
  text: "UPDATE checking SET bal = bal + $2 WHERE custid = $1",
};

const transactSavings: Statement = {
  name: "transact_savings",
  text: "UPDATE savings SET bal = bal + $2 WHERE custid = $1 AND bal + $2 >= 0",
};

// All parts of a statement see what was there before it.
const amalgamate: Statement = {
  name: "amalgamate",
  text: `WITH taken AS (
      SELECT s.bal + c.bal AS cents FROM savings s, checking c
      WHERE s.custid = $1 AND c.custid = $1
    ), emptied AS (
      UPDATE savings SET bal = 0 WHERE custid = $1
    )
    UPDATE checking
    SET bal = CASE WHEN custid = $1 THEN 0 ELSE bal + (SELECT cents FROM taken) END
    WHERE custid IN ($1, $2)`,
};

// RETURNING sees the new balance. It is below zero, together with savings, if and only if there was
// a penalty: that is when both had less than the check.
const writeCheck: Statement = {
  name: "write_check",
  text: `UPDATE checking c
    SET bal = c.bal - $2 - CASE WHEN s.bal + c.bal < $2 THEN ${PENALTY_CENTS} ELSE 0 END
    FROM savings s WHERE c.custid = $1 AND s.custid = $1
    RETURNING s.bal + c.bal < 0 AS penalty`,
};

const sendPayment: Statement = {
  name: "send_payment",
  text: `UPDATE checking
    SET bal = bal + CASE WHEN custid = $1 THEN -$3::double precision ELSE $3 END
    WHERE custid IN ($1, $2) AND (SELECT bal FROM checking WHERE custid = $1) >= $3`,
};

export function postgresSmallBank(database: Database): SmallBankStore {
  return {
    async balance(customer) {
      return (await database.read(balance, [customer])).rows[0].cents as number;
    },

    async depositChecking(customer, cents) {
      await database.write(depositChecking, [customer, cents]);
      return cents;
    },

    async transactSavings(customer, cents) {
      const { rowCount } = await database.write(transactSavings, [customer, cents]);
      return rowCount === 1 ? cents : Number.NaN;
    },

    async amalgamate(from, to) {
      await database.write(amalgamate, [from, to]);
      return 0;
    },

    async writeCheck(customer, cents) {
      const { rows } = await database.write(writeCheck, [customer, cents]);
      return rows[0].penalty === true ? -cents - PENALTY_CENTS : -cents;
    },

    async sendPayment(from, to, cents) {
      const { rowCount } = await database.write(sendPayment, [from, to, cents]);
      return rowCount === 2 ? 0 : Number.NaN;
    },
  };
}
