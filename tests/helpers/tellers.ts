/**
 * Transfers between accounts by several clients of a cluster that loses nodes meanwhile. Each teller counts its
 * own commits in a row of its own, in the same transaction: what was acknowledged must be there, once; what was
 * not must not, unless its outcome is not known.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { i64, type RemoteDatabase, SituError, table, u32 } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { SOAK } from "./seed.ts";

export const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
export const Teller = table("teller", { id: u32(), commits: u32() }, { key: "id" });
export const TABLES = [Account, Teller] as const;

const ACCOUNTS = 64;
const BALANCE = 1_000n;
/**
 * Between two transfers of a teller: a test waits for nodes most of the time, and tellers without a pause would keep all
 * cores busy meanwhile. With SITU_SOAK they do, as those of `npm run soak -- --storm nodes` always do.
 */
const PAUSE_MS = SOAK > 1 ? 0 : 4;

export async function openAccounts(db: RemoteDatabase, tellers: number): Promise<void> {
  for (let id = 0; id < ACCOUNTS; id++) await db.put(Account, { id, balance: BALANCE });
  for (let id = 0; id < tellers; id++) await db.put(Teller, { id, commits: 0 });
}

export class TellerAtWork {
  readonly id: number;
  acknowledged = 0;
  unknown = 0;
  /** What it was told beside conflicts and times that were over. */
  readonly failures: string[] = [];
  readonly #db: RemoteDatabase;
  readonly #random: Random;
  #isStopped = false;
  readonly #working: Promise<void>;

  constructor(id: number, db: RemoteDatabase, seed: number) {
    this.id = id;
    this.#db = db;
    this.#random = new Random(seed + id);
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#transfer();
        this.acknowledged++;
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        if (error.code === "SITU_UNKNOWN_OUTCOME") this.unknown++;
        else if (!error.retryable) this.failures.push(`${error.code}: ${error.message}`);
      }
      if (PAUSE_MS > 0) await sleep(PAUSE_MS);
    }
  }

  #transfer(): Promise<void> {
    const from = this.#random.below(ACCOUNTS);
    const to = (from + 1 + this.#random.below(ACCOUNTS - 1)) % ACCOUNTS;
    const amount = BigInt(this.#random.below(10));
    return this.#db.transact(async (tx) => {
      const [giver, taker, teller] = await Promise.all([
        tx.get(Account, from),
        tx.get(Account, to),
        tx.get(Teller, this.id),
      ]);
      await tx.put(Account, { id: from, balance: giver!.balance - amount });
      await tx.put(Account, { id: to, balance: taker!.balance + amount });
      await tx.put(Teller, { id: this.id, commits: teller!.commits + 1 });
    });
  }
}

/** What is wrong with the rows, after all tellers have stopped. */
export async function wrongs(
  db: RemoteDatabase,
  tellers: readonly TellerAtWork[],
): Promise<string[]> {
  const found: string[] = [];
  let sum = 0n;
  for await (const { balance } of db.scan(Account)) sum += balance;
  if (sum !== BALANCE * BigInt(ACCOUNTS)) found.push(`the sum is ${sum}`);
  for (const { id, acknowledged, unknown, failures } of tellers) {
    const commits = (await db.get(Teller, id))?.commits ?? -1;
    if (commits < acknowledged) found.push(`teller ${id}: ${acknowledged - commits} were lost`);
    if (commits > acknowledged + unknown) {
      found.push(`teller ${id}: ${commits - acknowledged - unknown} more than were asked for`);
    }
    found.push(...failures.map((each) => `teller ${id}: ${each}`));
  }
  return found;
}
