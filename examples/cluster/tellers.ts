/**
 * Tellers move money between accounts, many at once, for as long as they are told to. Each transfer that was
 * acknowledged is noted, and when the last one touched an account: so it can be said afterwards how long an account
 * had to wait, and whether every transfer was done exactly once.
 */

import type { RemoteDatabase } from "situ";
import { Account } from "./procedures.ts";

const AT_ONCE = 16;

export type Transfer = (
  db: RemoteDatabase,
  from: number,
  to: number,
  amount: bigint,
) => Promise<void>;

/** As a transaction of this process: it reads here, decides here, and commits there. */
export const transferHere: Transfer = (db, from, to, amount) =>
  db.transact(async (tx) => {
    const [source, target] = await tx.getMany(Account, [from, to]);
    await tx.put(Account, { id: from, balance: source!.balance - amount });
    await tx.put(Account, { id: to, balance: target!.balance + amount });
  });

/** As a procedure: one message to the node that has the first account, one back. */
export const transferThere: Transfer = async (db, from, to, amount) => {
  await db.call("transfer", [from, to, amount]);
};

export class Tellers {
  readonly #db: RemoteDatabase;
  readonly #transfer: Transfer;
  /** What the acknowledged transfers have added to each account; all tellers share it. */
  readonly #added: Map<number, bigint>;
  readonly #commits: { readonly ms: number; readonly from: number; readonly to: number }[] = [];
  #isOver = false;
  readonly #working: Promise<unknown>;

  /** Each teller has accounts of one of these groups: whoever waits for some holds up nobody else. */
  constructor(
    db: RemoteDatabase,
    transfer: Transfer,
    groups: readonly (readonly number[])[],
    added: Map<number, bigint>,
  ) {
    this.#db = db;
    this.#transfer = transfer;
    this.#added = added;
    const groupOf = (teller: number): readonly number[] => groups[teller % groups.length];
    this.#working = Promise.all(
      Array.from({ length: AT_ONCE }, (_, teller) => this.#work(groupOf(teller))),
    );
  }

  /** Transfers that were acknowledged. */
  get count(): number {
    return this.#commits.length;
  }

  /** Throws what a teller has met: they wait for nodes that died, and meet no errors. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }

  /** The longest time without a commit on one of these accounts, in a time that began then. */
  longestPauseMs(accounts: readonly number[], sinceMs: number): number {
    const wanted = new Set(accounts);
    let lastMs = sinceMs;
    let longestMs = 0;
    for (const { ms, from, to } of this.#commits) {
      if (ms < sinceMs || !(wanted.has(from) || wanted.has(to))) continue;
      longestMs = Math.max(longestMs, ms - lastMs);
      lastMs = ms;
    }
    return Math.max(longestMs, performance.now() - lastMs);
  }

  /** Whether somebody has written one of these accounts in a time that began then. */
  hasWritten(accounts: readonly number[], sinceMs: number): boolean {
    return this.#commits.some(({ ms, from }) => ms > sinceMs && accounts.includes(from));
  }

  async #work(accounts: readonly number[]): Promise<void> {
    while (!this.#isOver) {
      const first = Math.floor(Math.random() * accounts.length);
      const other = 1 + Math.floor(Math.random() * (accounts.length - 1));
      const from = accounts[first];
      const to = accounts[(first + other) % accounts.length];
      const amount = BigInt(1 + Math.floor(Math.random() * 10));
      await this.#transfer(this.#db, from, to, amount);
      this.#add(from, -amount);
      this.#add(to, amount);
      this.#commits.push({ ms: performance.now(), from, to });
    }
  }

  #add(id: number, amount: bigint): void {
    this.#added.set(id, (this.#added.get(id) ?? 0n) + amount);
  }
}
