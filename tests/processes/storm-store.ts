/** The store of the kill storm: money that must not get lost, and lists that tell their own past. */

import { bytes, type Database, i64, open, str, table, u32 } from "../../src/index.ts";

export const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
/** Money outside of accounts. Tokens come and go, so the table grows, splits and collapses. */
export const Token = table("token", { id: u32(), value: i64(), memo: str() }, { key: "id" });
export const List = table("list", { id: u32(), values: bytes() }, { key: "id" });
/** Row 0: the generation of lists that is being written now. */
export const Generation = table("generation", { id: u32(), current: u32() }, { key: "id" });

export const ACCOUNTS = 48;
export const TOKENS = 2_500;
export const LISTS_PER_GENERATION = 6;
/** Lists longer than this are left alone: reading them would be all that the storm does. */
export const LONG_LIST = 40;
export const FIRST_BALANCE = 1_000n;
export const TOTAL = BigInt(ACCOUNTS) * FIRST_BALANCE;

export function openStorm(path: string): Promise<Database> {
  return open({
    path,
    tables: [Account, Token, List, Generation],
    memoryBytes: 64 * 2 ** 20,
    timeoutMs: 10_000,
  });
}

export function fillStorm(db: Database): void {
  db.transactSync((tx) => {
    for (let id = 0; id < ACCOUNTS; id++) tx.insert(Account, { id, balance: FIRST_BALANCE });
    tx.insert(Generation, { id: 0, current: 0 });
  });
}

export function encodeList(values: readonly number[]): Uint8Array {
  return new Uint8Array(new Float64Array(values).buffer);
}

export function decodeList(data: Uint8Array | undefined): number[] {
  return data === undefined ? [] : [...new Float64Array(data.slice().buffer)];
}
