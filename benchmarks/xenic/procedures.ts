// Transactions that write and read what they are told, one for each place where Xenic runs them.
import { type AsyncTransaction, i32, procedure, type Table, table, u32 } from "situ";

export const Cell = table("cells", { id: u32(), value: i32() }, { key: "id" });

async function touch(
  tx: AsyncTransaction,
  reads: readonly number[],
  writes: readonly number[],
): Promise<number> {
  const rows = await tx.getMany(Cell, [...reads, ...writes]);
  const sum = rows.reduce((all, row) => all + (row?.value ?? 0), 0);
  for (const id of writes) void tx.put(Cell, { id, value: (sum + 1) | 0 });
  return sum;
}

/** At the NIC, with all rows known. */
export const atNic = procedure("atNic", touch, {
  tables: [Cell],
  runs: "nic",
  rows: (reads, writes) => [
    ...reads.map((id) => [Cell as Table, id, "read"] as const),
    ...writes.map((id) => [Cell as Table, id] as const),
  ],
});

/** At the NIC, and which rows it writes is known when it has read the others. */
export const inShots = procedure(
  "inShots",
  async (tx, reads: readonly number[], writes: readonly number[]) => {
    const rows = await tx.getMany(Cell, reads);
    for (const id of writes) void tx.put(Cell, { id, value: rows.length });
    return rows.length;
  },
  { tables: [Cell], runs: "nic" },
);

export const atHost = procedure("atHost", touch, { tables: [Cell] });
