/** What the nodes of the tests are started with; the tests use the tables, too. */

import { bytes, i64, json, procedure, str, table, u32 } from "../../src/index.ts";

export const Account = table("accounts", { id: u32(), balance: i64() }, { key: "id" });

export const List = table("lists", { id: u32(), values: json<number[]>() }, { key: "id" });

export const Note = table(
  "notes",
  { name: str(), size: u32(), data: bytes() },
  { key: "name", ordered: true, indexes: { bySize: { on: ["size"], kind: "ordered" } } },
);

export const transfer = procedure(
  "transfer",
  async (tx, from: number, to: number, amount: bigint) => {
    const [source, target] = await Promise.all([
      tx.getForUpdate(Account, from),
      tx.getForUpdate(Account, to),
    ]);
    if (source === undefined || target === undefined) throw new Error("no such account");
    if (source.balance < amount) throw new RangeError(`only ${source.balance} left`);
    await tx.put(Account, { id: from, balance: source.balance - amount });
    await tx.put(Account, { id: to, balance: target.balance + amount });
    return source.balance - amount;
  },
  { tables: [Account], at: (from) => [Account, from] },
);

/** Adds to a balance, and is not the same when it runs twice. */
export const deposit = procedure(
  "deposit",
  async (tx, id: number, amount: bigint) => {
    const found = await tx.get(Account, id);
    const balance = (found?.balance ?? 0n) + amount;
    await tx.put(Account, { id, balance });
    return { balance, pid: process.pid };
  },
  { tables: [Account], at: (id) => [Account, id] },
);

/** Appends to a list, and returns what was in it; only that if there is nothing to append. */
export const append = procedure(
  "append",
  async (tx, id: number, value: number | null) => {
    const list = (await tx.get(List, id))?.values ?? [];
    if (value !== null) await tx.put(List, { id, values: [...list, value] });
    return list;
  },
  { tables: [List], at: (id) => [List, id] },
);

export const echo = procedure("echo", (_tx, ...values: unknown[]) => values);

export const pid = procedure("pid", () => process.pid);

export const insertTwice = procedure(
  "insertTwice",
  async (tx, id: number) => {
    await tx.insert(Account, { id, balance: 0n });
    await tx.insert(Account, { id, balance: 0n });
  },
  { tables: [Account] },
);

export const throwNothing = procedure("throwNothing", () => {
  throw undefined;
});

export const returnFunction = procedure("returnFunction", () => () => 1);

/** Locks a row and does not come back for a while. */
export const dawdle = procedure(
  "dawdle",
  async (tx, id: number, ms: number) => {
    const found = await tx.getForUpdate(Account, id);
    await new Promise((resolve) => setTimeout(resolve, ms));
    await tx.put(Account, { id, balance: (found?.balance ?? 0n) + 1n });
  },
  { tables: [Account], at: (id) => [Account, id] },
);
