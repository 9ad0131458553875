// The measured transfer. Imports nothing of Situ but types: it works with any build of it, and a
// bench that compares two builds imports this file once for each, so that neither is charged for
// the other's types.
import type { Database, Transaction } from "situ";
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import type { AccountTable } from "./account-table.ts";

/**
 * `first` is added to every key: that is how two processes stay apart. The body is made once, as
 * those of the peers are.
 */
export function situTransfer(
  db: Database,
  accounts: AccountTable,
  keys: Int32Array,
  first = 0,
): SyncContestant {
  const mask = keyMask;
  let kept = 0;
  let from = 0;
  let to = 0;
  const body = (tx: Transaction): number => {
    const rows = tx.getMany(accounts, [from, to]);
    const payer = rows[0];
    const payee = rows[1];
    if (payer === undefined || payee === undefined) throw new Error("situ lost a row");
    tx.update(accounts, from, { balance: payer.balance - 1n });
    tx.update(accounts, to, { balance: payee.balance + 1n });
    return payer.a;
  };
  return {
    name: "situ transfer",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        from = first + keys[cursor];
        to = first + keys[cursor + 1];
        cursor = (cursor + 2) & mask;
        sum += db.transactSync(body);
      }
      kept = cursor;
      return sum;
    },
  };
}
