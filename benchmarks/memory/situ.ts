// Situ's side: a store in a temporary folder, its memory where lmdb's lies as well.
import * as situ from "situ";
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { accountTable } from "./account-table.ts";
import { type AccountRow, checkRow, checkTotal, makeRow } from "./rows.ts";

export const Account = accountTable(situ);

export interface StorePlace {
  readonly path: string;
  readonly memoryDir: string;
}

export function openBank({ path, memoryDir }: StorePlace) {
  return situ.open({
    path,
    memoryDir,
    tables: [Account],
    memoryBytes: 512 * 2 ** 20,
    durability: "none",
  });
}

export type Bank = situ.Database;

const rowsPerTransaction = 64;

/** Tables of the same rows: keyed in one way or another. */
type AnyAccountTable = situ.Table<AccountRow, number>;

export function loadBank(db: Bank, rows: number, accounts: AnyAccountTable = Account): void {
  for (let first = 0; first < rows; first += rowsPerTransaction) {
    db.transactSync((tx) => {
      const end = Math.min(first + rowsPerTransaction, rows);
      for (let id = first; id < end; id++) tx.put(accounts, makeRow(id));
    });
  }
  for (const id of [0, 1, rows >> 1, rows - 1]) checkRow("situ", db.get(accounts, id), id);
}

export function checkBank(db: Bank, rows: number): void {
  let total = 0n;
  for (let id = 0; id < rows; id++) {
    const row = db.get(Account, id);
    if (row === undefined) throw new Error(`situ lost row ${id}`);
    total += row.balance;
  }
  checkTotal("situ", total, rows);
}

export function situGet(
  db: Bank,
  keys: Int32Array,
  accounts: AnyAccountTable = Account,
): SyncContestant {
  const seen = sink;
  const mask = keyMask;
  let kept = 0;
  return {
    name: "situ get",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        const row = db.get(accounts, keys[cursor]);
        cursor = (cursor + 1) & mask;
        if (row === undefined) throw new Error("situ lost a row");
        seen.value = row;
        sum += row.id;
      }
      kept = cursor;
      return sum;
    },
  };
}
