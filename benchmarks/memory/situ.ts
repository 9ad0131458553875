// Situ's side: a store in a temporary folder, its memory where lmdb's lies as well.
import { f64, i64, open, type Transaction, table, u32 } from "situ";
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { checkRow, checkTotal, makeRow } from "./rows.ts";

export const Account = table(
  "account",
  { id: u32(), balance: i64(), a: f64(), b: f64(), c: f64(), d: f64(), e: f64() },
  { key: "id" },
);

export interface StorePlace {
  readonly path: string;
  readonly memoryDir: string;
}

export function openBank({ path, memoryDir }: StorePlace) {
  return open({ path, memoryDir, tables: [Account], memoryBytes: 512 * 2 ** 20 });
}

export type Bank = Awaited<ReturnType<typeof openBank>>;

const rowsPerTransaction = 64;

export function loadBank(db: Bank, rows: number): void {
  for (let first = 0; first < rows; first += rowsPerTransaction) {
    db.transactSync((tx) => {
      const end = Math.min(first + rowsPerTransaction, rows);
      for (let id = first; id < end; id++) tx.put(Account, makeRow(id));
    });
  }
  for (const id of [0, 1, rows >> 1, rows - 1]) checkRow("situ", db.get(Account, id), id);
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

export function situGet(db: Bank, keys: Int32Array): SyncContestant {
  const accounts = Account;
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

/**
 * `first` is added to every key: that is how two processes stay apart. The body is made once, as
 * those of the peers are.
 */
export function situTransfer(db: Bank, keys: Int32Array, first = 0): SyncContestant {
  const accounts = Account;
  const mask = keyMask;
  let kept = 0;
  let from = 0;
  let to = 0;
  const body = (tx: Transaction): number => {
    const rows = tx.getMany(accounts, [from, to]);
    const payer = rows[0];
    const payee = rows[1];
    if (payer === undefined || payee === undefined) throw new Error("situ lost a row");
    tx.update(accounts, from, { balance: payer.balance - 1n });
    tx.update(accounts, to, { balance: payee.balance + 1n });
    return payer.a;
  };
  return {
    name: "situ transfer",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        from = first + keys[cursor];
        to = first + keys[cursor + 1];
        cursor = (cursor + 2) & mask;
        sum += db.transactSync(body);
      }
      kept = cursor;
      return sum;
    },
  };
}
