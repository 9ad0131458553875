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
