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

/** Memory that is in no heap; so much that it would be seen, and no more. */
export const hoards = procedure(
  "hoards",
  () => {
    const all: Buffer[] = [];
    while (all.length < 200) all.push(Buffer.alloc(16 * 2 ** 20, 1));
    return all.length;
  },
  { runs: "nic" },
);

/** Ends, and leaves something behind that never does. */
export const litters = procedure(
  "litters",
  () => {
    setInterval(() => {
      for (;;);
    }, 1);
    return "done";
  },
  { runs: "nic" },
);

/** Names so many rows. */
export const names = procedure("names", async (tx) => (await tx.get(Account, 0))?.balance, {
  tables: [Account],
  runs: "nic",
  rows: (count: number) => Array.from({ length: count }, (_, id) => [Account, id, "read"] as const),
});

/** Finds out which rows it wants as it goes. */
export const wants = procedure(
  "wants",
  async (tx, count: number) => {
    const ids = Array.from({ length: count }, (_, id) => id);
    return (await tx.getMany(Account, ids)).length;
  },
  { tables: [Account], runs: "nic" },
);

export const returns = procedure("returns", (_tx, bytes: number) => "x".repeat(bytes), {
  runs: "nic",
});

/** Writes rows that it names; with a time, it first loops for so long while they are locked. */
export const fills = procedure(
  "fills",
  async (tx, ids: readonly number[], ms: number) => {
    const end = performance.now() + ms;
    while (performance.now() < end);
    for (const id of ids) await tx.put(Account, { id, balance: 1 });
    return ids.length;
  },
  { tables: [Account], runs: "nic", rows: (ids) => ids.map((id) => [Account, id] as const) },
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
