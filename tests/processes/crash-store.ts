/** The store of the crash tests, and the one transaction in the middle of which processes die. */

import {
  type Database,
  i64,
  type OpenOptions,
  open,
  str,
  type Transaction,
  table,
  u32,
} from "../../src/index.ts";

export const Account = table(
  "account",
  { id: u32(), owner: str(24), balance: i64() },
  { key: "id" },
);
/** Its rows are too long for a bucket: objects of their own, allocated and freed. */
export const Note = table("note", { id: u32(), text: str() }, { key: "id" });

/** Rows 1 to 4 are always there; one more, `ROUND + n`, is made and removed in every round. */
export const FIXED = [1, 2, 3, 4] as const;
export const ROUND = 1000;
export const TOTAL = 4_010n;

export function openStore(
  path: string,
  timeoutMs = 120_000,
  options: Pick<OpenOptions, "durability"> = {},
): Promise<Database> {
  const memoryBytes = 16 * 2 ** 20;
  return open({ path, tables: [Account, Note], memoryBytes, timeoutMs, ...options });
}

export function fillStore(db: Database): void {
  db.transactSync((tx) => {
    for (const id of FIXED) tx.insert(Account, { id, owner: `owner ${id}`, balance: 1_000n });
    tx.insert(Account, { id: ROUND, owner: "round 0", balance: 10n });
    tx.insert(Note, { id: ROUND, text: noteOf(ROUND) });
  });
}

export function noteOf(id: number): string {
  return `note ${id} `.repeat(60);
}

function add(tx: Transaction, id: number, amount: bigint): void {
  const row = tx.get(Account, id);
  if (row === undefined) throw new Error(`account ${id} is gone`);
  tx.update(Account, id, { balance: row.balance + amount });
}

/** Moves money over four rows, adds a row and a note, removes the row and note of the last round. */
export function playRound(tx: Transaction, round: number): void {
  add(tx, 1, -30n);
  add(tx, 2, 10n);
  add(tx, 3, 10n);
  tx.insert(Account, { id: ROUND + round, owner: `round ${round}`, balance: 10n });
  tx.insert(Note, { id: ROUND + round, text: noteOf(ROUND + round) });
  tx.delete(Account, ROUND + round - 1);
  tx.delete(Note, ROUND + round - 1);
  add(tx, 4, 10n);
}

/** All that can be known of a store between two rounds, as a text that a failed test prints. */
export function describeStore(db: Database, round: number): string {
  return db.transactSync((tx) => {
    const here = (id: number): string => {
      const row = tx.get(Account, id);
      const note = tx.get(Note, id);
      const whole = note === undefined || note.text === noteOf(id);
      return `${row === undefined ? "-" : "row"}/${note === undefined ? "-" : whole ? "note" : "TORN"}`;
    };
    const balances = FIXED.map((id) => tx.get(Account, id)?.balance);
    return `${balances.join(" ")} | ${here(ROUND + round - 1)} ${here(ROUND + round)}`;
  });
}

/** What `describeStore` says after `done` rounds, asked about round `round`. */
export function expectedStore(done: number, round: number): string {
  const n = BigInt(done);
  const balances = [1_000n - 30n * n, 1_000n + 10n * n, 1_000n + 10n * n, 1_000n + 10n * n];
  const [last, next] = done === round ? ["-/-", "row/note"] : ["row/note", "-/-"];
  return `${balances.join(" ")} | ${last} ${next}`;
}
