/**
 * SmallBank as procedures at the nodes of a cluster: each names its rows, so that a node with the protocol "xenic" can run it at
 * the NIC, and others run it at the node that has the first customer.
 */

import { type AsyncTransaction, procedure, type RemoteDatabase, type Table } from "situ";
import { smallBankBodies as bodies } from "./situ-async.ts";
import { Checking, Savings, type SmallBankStore } from "./store.ts";

const tables = [Savings, Checking];
const atFirst = (customer: number): readonly [Table, unknown] => [Checking as Table, customer];

function declared<Values extends readonly [number, ...number[]]>(
  name: string,
  body: (tx: AsyncTransaction, ...values: Values) => Promise<number>,
  rows: (...values: Values) => readonly (readonly [Table, unknown, ("read" | "write")?])[],
) {
  const at = (...values: Values): readonly [Table, unknown] => atFirst(values[0]);
  return procedure(`smallbank.${name}`, body, { tables, at, runs: "nic", rows });
}

export const balance = declared("balance", bodies.balance, (customer: number) => [
  [Savings as Table, customer, "read"],
  [Checking as Table, customer, "read"],
]);

export const depositChecking = declared(
  "depositChecking",
  bodies.depositChecking,
  (customer: number, _cents: number) => [[Checking as Table, customer]],
);

export const transactSavings = declared(
  "transactSavings",
  bodies.transactSavings,
  (customer: number, _cents: number) => [[Savings as Table, customer]],
);

export const amalgamate = declared("amalgamate", bodies.amalgamate, (from: number, to: number) => [
  [Savings as Table, from],
  [Checking as Table, from],
  [Checking as Table, to],
]);

export const writeCheck = declared(
  "writeCheck",
  bodies.writeCheck,
  (customer: number, _cents: number) => [
    [Savings as Table, customer, "read"],
    [Checking as Table, customer],
  ],
);

export const sendPayment = declared(
  "sendPayment",
  bodies.sendPayment,
  (from: number, to: number, _cents: number) => [
    [Checking as Table, from],
    [Checking as Table, to],
  ],
);

/** Calls them, at the node of the first customer. */
export function calledSmallBank(db: RemoteDatabase): SmallBankStore {
  const call = (name: string, ...values: [number, ...number[]]): Promise<number> =>
    db.call(`smallbank.${name}`, values, { near: atFirst(values[0]) }) as Promise<number>;
  return {
    balance: (customer) => call("balance", customer),
    depositChecking: (customer, cents) => call("depositChecking", customer, cents),
    transactSavings: (customer, cents) => call("transactSavings", customer, cents),
    amalgamate: (from, to) => call("amalgamate", from, to),
    writeCheck: (customer, cents) => call("writeCheck", customer, cents),
    sendPayment: (from, to, cents) => call("sendPayment", from, to, cents),
  };
}
