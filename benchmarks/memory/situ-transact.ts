// Two reads and two writes, one after the other, in `transactSync` and in `transact`: the same work, so what
// the one takes longer than the other is promises.
import type { Database, LocalTransaction, Transaction } from "situ";
import { keyMask } from "../harness/random.ts";
import type { Contestant } from "../harness/rounds.ts";
import type { AccountTable } from "./account-table.ts";

/** Both go through the keys by themselves. The callbacks are made once, as those of the peers are. */
export function situCallbacks(
  db: Database,
  accounts: AccountTable,
  keys: Int32Array,
): { readonly sync: Contestant; readonly async: Contestant } {
  const mask = keyMask;
  const next = { sync: 0, async: 0 };
  let from = 0;
  let to = 0;

  const syncBody = (tx: Transaction): number => {
    const payer = tx.get(accounts, from)!;
    const payee = tx.get(accounts, to)!;
    tx.update(accounts, from, { balance: payer.balance - 1n });
    tx.update(accounts, to, { balance: payee.balance + 1n });
    return payer.a;
  };
  const asyncBody = async (tx: LocalTransaction): Promise<number> => {
    const payer = (await tx.get(accounts, from))!;
    const payee = (await tx.get(accounts, to))!;
    await tx.update(accounts, from, { balance: payer.balance - 1n });
    await tx.update(accounts, to, { balance: payee.balance + 1n });
    return payer.a;
  };

  return {
    sync: {
      name: "situ transactSync, cached",
      run(operations) {
        let sum = 0;
        for (let done = 0; done < operations; done++) {
          from = keys[next.sync];
          to = keys[next.sync + 1];
          next.sync = (next.sync + 2) & mask;
          sum += db.transactSync(syncBody);
        }
        return sum;
      },
    },
    async: {
      name: "situ transact, cached",
      async run(operations) {
        let sum = 0;
        for (let done = 0; done < operations; done++) {
          from = keys[next.async];
          to = keys[next.async + 1];
          next.async = (next.async + 2) & mask;
          sum += await db.transact(asyncBody);
        }
        return sum;
      },
    },
  };
}
