// The row of this bench: a u32 key and 32 bytes, which peers that keep bytes hold as they are.
import type * as situ from "situ";

export type SituModule = typeof situ;

export interface AccountRow {
  id: number;
  balance: bigint;
  a: number;
  b: number;
  c: number;
}

export const valueBytes = 32;
const firstBalance = 1_000n;

export const accountTable = ({ table, u32, i64, f64 }: SituModule) =>
  table("account", { id: u32(), balance: i64(), a: f64(), b: f64(), c: f64() }, { key: "id" });

export function makeRow(id: number): AccountRow {
  return { id, balance: firstBalance, a: id + 0.5, b: id + 0.25, c: -id - 0.5 };
}

/** Aligned, whatever the value comes in. */
const bytes = Buffer.alloc(valueBytes);
const integers = new BigInt64Array(bytes.buffer, bytes.byteOffset, valueBytes / 8);
const doubles = new Float64Array(bytes.buffer, bytes.byteOffset, valueBytes / 8);

export function encodeValue(row: AccountRow): Buffer {
  integers[0] = row.balance;
  doubles[1] = row.a;
  doubles[2] = row.b;
  doubles[3] = row.c;
  return Buffer.from(bytes);
}

export function decodeValue(value: Buffer | null | undefined, id: number): AccountRow {
  if (value?.length !== valueBytes) throw new Error(`row ${id} is not there, or not whole`);
  value.copy(bytes);
  return { id, balance: integers[0], a: doubles[1], b: doubles[2], c: doubles[3] };
}

/** A contestant that is fast and wrong must not reach the report. */
export function checkRow(contestant: string, row: AccountRow | undefined, id: number): void {
  const wanted = makeRow(id);
  for (const field of ["id", "a", "b", "c"] as const) {
    if (row?.[field] !== wanted[field]) {
      throw new Error(`${contestant} returned ${field} = ${row?.[field]} for row ${id}`);
    }
  }
}

/** Transfers move money, and neither make nor lose any. */
export function checkTotal(contestant: string, balances: Iterable<bigint>, rows: number): void {
  let total = 0n;
  let count = 0;
  for (const balance of balances) {
    total += balance;
    count++;
  }
  const wanted = firstBalance * BigInt(rows);
  if (count !== rows || total !== wanted) {
    throw new Error(`${contestant}: ${count} balances add up to ${total}, not ${wanted}`);
  }
}
