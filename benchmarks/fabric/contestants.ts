// Situ's operations as contestants: single rows, and transfers between two primaries.
import type { InFlightContestant } from "../harness/in-flight.ts";
import { keyMask } from "../harness/random.ts";
import { sink } from "../harness/sink.ts";
import { Account, type Bank } from "./cluster.ts";

export function situGet(name: string, db: Bank, keys: Int32Array): InFlightContestant {
  let cursor = 0;
  return {
    name,
    async one() {
      cursor = (cursor + 1) & keyMask;
      sink.value = await db.get(Account, keys[cursor]);
    },
  };
}

/** The same read, as a transaction: what the general way costs where the short one would do. */
export function situGetInTransaction(name: string, db: Bank, keys: Int32Array): InFlightContestant {
  let cursor = 0;
  return {
    name,
    async one() {
      cursor = (cursor + 1) & keyMask;
      const key = keys[cursor];
      sink.value = await db.transact((tx) => tx.get(Account, key));
    },
  };
}

export function situTransfer(name: string, db: Bank, pairs: Int32Array): InFlightContestant {
  let cursor = 0;
  return {
    name,
    one() {
      cursor = (cursor + 2) & keyMask;
      const from = pairs[cursor];
      const to = pairs[cursor + 1];
      return db.transact(async (tx) => {
        const [giver, taker] = await Promise.all([tx.get(Account, from), tx.get(Account, to)]);
        if (giver === undefined || taker === undefined) throw new Error("situ lost a row");
        void tx.put(Account, { ...giver, balance: giver.balance - 1n });
        void tx.put(Account, { ...taker, balance: taker.balance + 1n });
      });
    },
  };
}

/** The body runs at the primary of the first row: procedures.ts. */
export function situCall(name: string, db: Bank, pairs: Int32Array): InFlightContestant {
  let cursor = 0;
  return {
    name,
    one() {
      cursor = (cursor + 2) & keyMask;
      const from = pairs[cursor];
      return db.call("transfer", [from, pairs[cursor + 1]], { near: [Account, from] });
    },
  };
}
