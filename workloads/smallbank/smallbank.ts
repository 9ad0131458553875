/** SmallBank: six small transactions of a bank, most of them writing, most of them on few accounts. */

import type { Workload } from "../workload.ts";
import { checkSmallBank } from "./check.ts";
import { FEWEST_ACCOUNTS, NAME_LENGTH, smallBankMix } from "./parameters.ts";
import { initialRows } from "./rows.ts";
import { SmallBankSession } from "./session.ts";
import { Accounts, Checking, Savings, type SmallBankStore } from "./store.ts";

/** Three keys, a name and two balances. */
const BYTES_PER_ACCOUNT = 3 * 4 + NAME_LENGTH + 2 * 8;

export function smallbank(accounts: number): Workload<SmallBankStore> {
  if (!Number.isSafeInteger(accounts) || accounts < FEWEST_ACCOUNTS) {
    throw new RangeError(`SmallBank needs ${FEWEST_ACCOUNTS} accounts or more, not ${accounts}`);
  }
  return {
    name: "smallbank",
    source:
      "Alomari et al., ICDE 2008; H-Store's mix and amounts; hot spot of FaSST §6, Xenic §5.5",
    mix: smallBankMix,
    tables: [Accounts, Savings, Checking],
    scale: `${accounts.toLocaleString("en")} accounts, 90 % of transactions on 4 % of them`,
    bytes: accounts * BYTES_PER_ACCOUNT,
    rows: () => initialRows(accounts),
    session: (store, options) => new SmallBankSession(store, accounts, options),
    check: (read, tally) => checkSmallBank(accounts, read, tally),
  };
}
