// What the nodes of this bench are started with: a transfer that runs where the first account is.
import * as situ from "situ";
import { accountTable } from "./accounts.ts";

const Account = accountTable(situ);

export const transfer = situ.procedure(
  "transfer",
  async (tx, from: number, to: number) => {
    const [giver, taker] = await Promise.all([
      tx.getForUpdate(Account, from),
      tx.getForUpdate(Account, to),
    ]);
    if (giver === undefined || taker === undefined) throw new Error("there is no such account");
    void tx.put(Account, { ...giver, balance: giver.balance - 1n });
    void tx.put(Account, { ...taker, balance: taker.balance + 1n });
  },
  { tables: [Account], at: (from) => [Account, from] },
);

async function addOne(tx: situ.AsyncTransaction, id: number): Promise<bigint> {
  const found = await tx.getForUpdate(Account, id);
  if (found === undefined) throw new Error("there is no such account");
  const balance = found.balance + 1n;
  void tx.put(Account, { ...found, balance });
  return balance;
}

/** Calls of it at one row are combined. */
export const increment = situ.procedure("increment", addOne, {
  tables: [Account],
  at: (id) => [Account, id],
});

/** Does not say which row it is about: each call is a transaction of its own. */
export const incrementApart = situ.procedure("incrementApart", addOne, { tables: [Account] });
