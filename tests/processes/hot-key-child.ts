/** Increments one row that everybody increments; or runs one long transaction over many rows. */

import { type Database, SituError } from "../../src/index.ts";
import { Account, openStore } from "./crash-store.ts";

export interface HotKeyOrder {
  readonly path: string;
  readonly role: "short" | "long";
  readonly times: number;
  readonly timeoutMs: number;
  /** Rows that a long transaction reads before it comes to the hot one. */
  readonly rows: number;
}

export interface HotKeyReport {
  readonly committed: number;
  /** Codes of the errors, in order. */
  readonly failures: readonly string[];
  readonly slowestMs: number;
}

export const HOT = 1;
export const FIRST_ROW = 5_000;

const { path, role, times, timeoutMs, rows } = JSON.parse(process.argv[2]) as HotKeyOrder;

function increment(db: Database): void {
  db.transactSync(
    (tx) => {
      const { balance } = tx.get(Account, HOT)!;
      if (role === "long") {
        for (let row = 0; row < rows; row++) tx.get(Account, FIRST_ROW + row);
      }
      tx.update(Account, HOT, { balance: balance + 1n });
    },
    { timeoutMs },
  );
}

const db = await openStore(path);
const failures: string[] = [];
let committed = 0;
let slowestMs = 0;
for (let i = 0; i < times; i++) {
  const begun = performance.now();
  try {
    increment(db);
    committed++;
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    failures.push(error.code);
  }
  slowestMs = Math.max(slowestMs, performance.now() - begun);
}
await db.close();
console.log(JSON.stringify({ committed, failures, slowestMs } satisfies HotKeyReport));
