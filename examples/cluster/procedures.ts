/**
 * What the nodes know: the table, and the procedures that they run for clients. Each node is started
 * with the path of this module (see nodes.ts); clients call a procedure by its name.
 */

import { i64, procedure, table, u32 } from "situ";

export const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });

/** Moves money. The whole transaction runs at the node that has the first account. */
export const transfer = procedure(
  "transfer",
  async (tx, from: number, to: number, amount: bigint) => {
    // Both in one tick: they are fetched, and locked, with one message to each node.
    const [source, target] = await Promise.all([
      tx.getForUpdate(Account, from),
      tx.getForUpdate(Account, to),
    ]);
    if (source === undefined || target === undefined) throw new Error("no such account");
    await tx.put(Account, { id: from, balance: source.balance - amount });
    await tx.put(Account, { id: to, balance: target.balance + amount });
  },
  { tables: [Account], at: (from) => [Account, from] },
);

/** Which process it runs in: the node that is the primary of this account. */
export const whoHas = procedure("whoHas", (_tx, _id: number) => process.pid, {
  tables: [Account],
  at: (id) => [Account, id],
});
