/** Tables and procedures of nodes with the protocol "xenic", for tests. */

import { i32, json, procedure, str, table, u32 } from "../../src/index.ts";

export const Account = table("accounts", { id: u32(), balance: i32() }, { key: "id" });
export const Named = table("named", { name: str(), value: json() }, { key: "name" });
/** A list for each key, for histories. */
export const Lists = table("lists", { id: u32(), values: json() }, { key: "id" });

/** At the NIC, with all rows known. */
export const transfer = procedure(
  "transfer",
  async (tx, from: number, to: number, amount: number) => {
    const [a, b] = await tx.getMany(Account, [from, to]);
    if (a === undefined || b === undefined) throw new Error("no such account");
    if (a.balance < amount) throw new Error("not enough");
    await tx.put(Account, { id: from, balance: a.balance - amount });
    await tx.put(Account, { id: to, balance: b.balance + amount });
    return a.balance - amount;
  },
  {
    tables: [Account],
    runs: "nic",
    rows: (from, to) => [
      [Account, from],
      [Account, to],
    ],
  },
);

/** At the NIC, in several shots: a row leads to the next. */
export const follow = procedure(
  "follow",
  async (tx, first: string, steps: number) => {
    let name = first;
    for (let i = 0; i < steps; i++) {
      const row = await tx.get(Named, name);
      if (row === undefined) break;
      name = String(row.value);
    }
    await tx.put(Named, { name: "last", value: name });
    return name;
  },
  { tables: [Named], runs: "nic" },
);

/** At the host. */
export const deposit = procedure(
  "deposit",
  async (tx, id: number, amount: number) => {
    const row = await tx.get(Account, id);
    const balance = (row?.balance ?? 0) + amount;
    await tx.put(Account, { id, balance });
    return balance;
  },
  { tables: [Account], at: (id) => [Account, id] },
);

export const loops = procedure(
  "loops",
  () => {
    for (;;);
  },
  { runs: "nic" },
);

export const hangs = procedure("hangs", () => new Promise<never>(() => {}), { runs: "nic" });

export const allocates = procedure(
  "allocates",
  () => {
    const all: number[][] = [];
    for (;;) all.push(new Array(1_000_000).fill(all.length));
  },
  { runs: "nic" },
);

export const leaves = procedure("leaves", () => process.exit(3), { runs: "nic" });

export const strays = procedure(
  "strays",
  async (tx) => {
    await tx.put(Account, { id: 2, balance: 1 });
  },
  { tables: [Account], runs: "nic", rows: () => [[Account, 1]] },
);

/** List-append: reads some lists, and appends a value to some. */
export const append = procedure(
  "append",
  async (tx, keys: readonly number[], writes: readonly number[], value: number) => {
    const rows = await tx.getMany(Lists, keys);
    const read = rows.map((row) => (row?.values ?? []) as number[]);
    for (const [i, id] of keys.entries()) {
      if (writes.includes(id)) await tx.put(Lists, { id, values: [...read[i], value] });
    }
    return read;
  },
  {
    tables: [Lists],
    runs: "nic",
    rows: (keys, writes) =>
      keys.map((id) => [Lists, id, writes.includes(id) ? "write" : "read"] as const),
  },
);
