/** The store of the tests of expiry: rows that have expired already, and some that never will. */

import { type Database, open, str, table, u32, u64 } from "../../src/index.ts";

export const Session = table(
  "session",
  { id: u32(), user: str(40), until: u64() },
  { key: "id", expires: "until", indexes: { byUser: { on: ["user"] } } },
);
export const NEVER = 2n ** 52n;

export function openSessions(path: string): Promise<Database> {
  return open({
    path,
    tables: [Session],
    memoryBytes: 16 * 2 ** 20,
    durability: "lazy",
    // A sweeper that finds the log late leaves its work for another time.
    lagMs: 10_000,
    timeoutMs: 120_000,
  });
}

/** Three rows that have expired, and one that has not. */
export function addRound(db: Database, round: number): void {
  db.transactSync((tx) => {
    for (let i = 0; i < 3; i++) {
      tx.insert(Session, { id: 4 * round + i, user: `user ${i}`, until: BigInt(1_000 + i) });
    }
    tx.insert(Session, { id: 4 * round + 3, user: "user 0", until: NEVER });
  });
}
