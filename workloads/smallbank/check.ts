/**
 * SmallBank's invariant: no cent is lost or made. The bank's total is what it was at the beginning
 * plus what the transactions say they changed; and every customer still has all three rows.
 */

import type { Table } from "situ";
import type { ReadRows, Tally } from "../workload.ts";
import { initialTotal, nameOf } from "./rows.ts";
import { Accounts, Checking, Savings } from "./store.ts";

/** Enough to see what is wrong. */
const MOST_PROBLEMS = 20;

export async function checkSmallBank(
  accounts: number,
  read: ReadRows,
  tally: Tally,
): Promise<string[]> {
  const problems: string[] = [];
  let total = 0;
  await eachCustomer(Accounts, accounts, read, problems, (custid, { name }) =>
    name === nameOf(custid) ? undefined : `is called ${String(name)}`,
  );
  await eachCustomer(Savings, accounts, read, problems, (_custid, { bal }) => {
    total += bal as number;
    return isMoney(bal) && bal >= 0 ? undefined : `has ${String(bal)} cents`;
  });
  await eachCustomer(Checking, accounts, read, problems, (_custid, { bal }) => {
    total += bal as number;
    return isMoney(bal) ? undefined : `has ${String(bal)} cents`;
  });
  const expected = initialTotal(accounts) + (tally.changedCents ?? 0);
  if (total !== expected) {
    problems.push(`the bank has ${total} cents and should have ${expected}: ${total - expected}`);
  }
  return problems;
}

function isMoney(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** Every customer has one row; `fault` says what is wrong with it. */
async function eachCustomer(
  table: Table,
  accounts: number,
  read: ReadRows,
  problems: string[],
  fault: (custid: number, row: Readonly<Record<string, unknown>>) => string | undefined,
): Promise<void> {
  const tell = (problem: string): void => {
    if (problems.length < MOST_PROBLEMS) problems.push(`${table.name}: ${problem}`);
  };
  const seen = new Uint8Array(accounts);
  let rows = 0;
  for await (const row of read(table)) {
    rows++;
    const custid = row.custid as number;
    if (seen[custid] === undefined) tell(`nobody is customer ${custid}`);
    else if (seen[custid] === 1) tell(`customer ${custid} has two rows`);
    else seen[custid] = 1;
    const what = fault(custid, row);
    if (what !== undefined) tell(`customer ${custid} ${what}`);
  }
  if (rows === accounts) return;
  tell(`${rows} rows and not ${accounts}`);
  const lost = seen.indexOf(0);
  if (lost >= 0) tell(`customer ${lost} is lost`);
}
