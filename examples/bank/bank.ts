/**
 * What the head office (main.ts) and the tellers (teller.ts) share: the tables, and one transfer.
 *
 * Accounts come in families of ten, and money moves within a family. So at every moment the
 * accounts of a family add up to the same sum, and an auditor can check one family in one small
 * read-only transaction while the tellers work.
 *
 * A transfer leaves three marks in one transaction: on both accounts, and in its teller's tally.
 * If ever a transfer were only half there, the marks on the accounts would not be twice the
 * transfers of the tellers.
 */

import { bool, type Database, i64, str, table, u8, u32 } from "situ";

export const FAMILY = 10;
export const OPENING_BALANCE = 1_000n;

export const Account = table("account", { id: u32(), balance: i64(), marks: u32() }, { key: "id" });

/** `name` has no fixed length, so each row is an object of its own: tallies share no bucket. */
export const Teller = table(
  "teller",
  { id: u8(), name: str(), pid: u32(), transfers: u32() },
  { key: "id" },
);

/** One row, number 0. The tellers work while the office is open, and go home after. */
export const Office = table(
  "office",
  { id: u8(), isOpen: bool(), isClosed: bool() },
  { key: "id" },
);

export const tables = [Account, Teller, Office];

/** Moves up to `amount` between two accounts; an account is never overdrawn. */
export function transfer(
  db: Database,
  teller: number,
  from: number,
  to: number,
  amount: bigint,
): void {
  db.transactSync((tx) => {
    const source = tx.get(Account, from)!;
    const target = tx.get(Account, to)!;
    const moved = source.balance < amount ? source.balance : amount;
    tx.update(Account, from, { balance: source.balance - moved, marks: source.marks + 1 });
    tx.update(Account, to, { balance: target.balance + moved, marks: target.marks + 1 });
    tx.update(Teller, teller, { transfers: tx.get(Teller, teller)!.transfers + 1 });
  });
}

/** The sum of one family, as of one moment: a read-only transaction, which locks nothing. */
export function familySum(db: Database, family: number): bigint {
  return db.transactSync((tx) => {
    let sum = 0n;
    for (let i = 0; i < FAMILY; i++) sum += tx.get(Account, family * FAMILY + i)!.balance;
    return sum;
  });
}
