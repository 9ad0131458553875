/**
 * What the processes of the demo share: the tables, a transfer, and the sum. A transfer leaves
 * three marks in one transaction: on both accounts and in its teller's tally; were one ever half
 * there, the marks on the accounts would not be twice the transfers.
 */

import type { Database } from "../../database/database.ts";
import { bool, i64, str, u8, u32 } from "../../tables/fields.ts";
import { table } from "../../tables/table.ts";

export const OPENING_BALANCE = 1_000n;

export const Account = table("account", { id: u32(), balance: i64(), marks: u32() }, { key: "id" });
/** The name has no fixed length, so each row is an object of its own: tallies share no bucket. */
export const Teller = table(
  "teller",
  { id: u8(), name: str(), pid: u32(), transfers: u32() },
  { key: "id" },
);
/** One row, number 0: tellers begin when it is open and go home when it is closed. */
export const Office = table(
  "office",
  { id: u8(), isOpen: bool(), isClosed: bool() },
  { key: "id" },
);

export const TABLES = [Account, Teller, Office];

const NAMES = ["Ada", "Grace", "Barbara", "Frances", "Jean", "Karen", "Lynn", "Radia"];

export function tellerName(id: number): string {
  return NAMES[id - 1] ?? `teller ${id}`;
}

/** Moves up to `amount`; no account is overdrawn. */
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

export interface Counted {
  readonly sum: bigint;
  readonly marks: number;
  readonly transfers: number;
}

/** All money, marks and tallies as of one moment, whatever the tellers do meanwhile. */
export function count(db: Database): Counted {
  const snapshot = db.snapshot();
  try {
    let sum = 0n;
    let marks = 0;
    let transfers = 0;
    for (const account of snapshot.scan(Account)) {
      sum += account.balance;
      marks += account.marks;
    }
    for (const teller of snapshot.scan(Teller)) transfers += teller.transfers;
    return { sum, marks, transfers };
  } finally {
    snapshot.close();
  }
}
