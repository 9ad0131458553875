/**
 * What clients do while nodes die: list-append transactions, transfers of money, and calls of a procedure. Each
 * remembers what it was told; in the end what was told "committed" must be there once, what was told "failed" not at all.
 */

import type { Operation, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { type RemoteDatabase, SituError, type Table } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { Account, List } from "../cluster/procedures.ts";

export const WORK_TABLES = [Account, List] as unknown as readonly Table[];

/** Accounts for transfers; the others are for deposits by calls. */
const ACCOUNTS = 32;
const DEPOSITS = 32;
const FIRST_DEPOSIT = 1_000;
const BALANCE = 100n;
/** Lists that are in use at a time, and appends after which they are left for others: they stay short. */
const LISTS = 12;
const APPENDS = 600;

/** Errors that say for sure that nothing was done. */
const NOTHING_DONE = [
  "SITU_CONFLICT",
  "SITU_TIMEOUT",
  "SITU_OVERLOADED",
  "SITU_UNREACHABLE",
  "SITU_LOST",
];

export async function openAccounts(db: RemoteDatabase): Promise<void> {
  for (let id = 0; id < ACCOUNTS; id++) await db.put(Account, { id, balance: BALANCE });
}

export class NodeWork {
  readonly history: Transaction[] = [];
  /** Of errors, how often each came. */
  readonly codes: Record<string, number> = {};
  /** And what the last ones said. */
  readonly said: Record<string, string> = {};
  readonly problems: string[] = [];
  /** What all workers have done; and for each when it last did something. */
  done = 0;
  readonly #workers: { done: number }[] = [];
  readonly #deposits = new Map<number, { acknowledged: bigint; unknown: bigint }>();
  readonly #running: Promise<void>[] = [];
  #values = 0;
  #appends = 0;
  #isOver = false;

  /** One more worker, at a database of its own or of others. */
  employ(db: RemoteDatabase, seed: number): void {
    const worker = { done: 0 };
    const process = this.#workers.push(worker);
    const random = new Random(seed);
    const work = async (): Promise<void> => {
      while (!this.#isOver) {
        if (await this.#one(db, random, process)) worker.done++;
      }
    };
    this.#running.push(work().catch((error: unknown) => this.#wrong(error)));
  }

  /** What each worker has done so far. */
  marks(): number[] {
    return this.#workers.map(({ done }) => done);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  /** True if it was committed. */
  async #one(db: RemoteDatabase, random: Random, process: number): Promise<boolean> {
    const kind = random.below(4);
    if (kind === 0) return (await this.#told(() => transfer(db, random))) === "ok";
    if (kind === 1) return this.#deposit(db, random);
    return this.#append(db, random, process);
  }

  async #append(db: RemoteDatabase, random: Random, process: number): Promise<boolean> {
    const first = LISTS * Math.floor(this.#appends / APPENDS);
    const wanted = Array.from({ length: 3 }, () => ({
      key: first + random.below(LISTS),
      isAppend: random.below(2) === 0,
    }));
    let operations: Operation[] = [];
    const start = nowNs();
    const outcome = await this.#told(() =>
      db.transact(async (tx) => {
        operations = [];
        for (const { key, isAppend } of wanted) {
          const list = (await tx.get(List, key))?.values ?? [];
          if (isAppend) {
            const value = ++this.#values;
            operations.push({ kind: "append", key, value });
            await tx.put(List, { id: key, values: [...list, value] });
          } else operations.push({ kind: "read", key, list });
        }
      }),
    );
    this.#appends++;
    this.history.push({ process, start, end: nowNs(), operations, outcome });
    return outcome === "ok";
  }

  async #deposit(db: RemoteDatabase, random: Random): Promise<boolean> {
    const id = FIRST_DEPOSIT + random.below(DEPOSITS);
    const near = random.below(2) === 0 ? {} : { near: [Account, id] as const };
    const sums = this.#deposits.get(id) ?? { acknowledged: 0n, unknown: 0n };
    this.#deposits.set(id, sums);
    let isTold = false;
    const outcome = await this.#told(async () => {
      try {
        await db.call("deposit", [id, 1n], near);
      } catch (error) {
        // Its result is lost with the node that ran it.
        isTold = error instanceof SituError && error.message.includes("was committed");
        if (!isTold) throw error;
      }
    });
    if (outcome === "ok") sums.acknowledged++;
    else if (outcome === "unknown") sums.unknown++;
    return outcome === "ok";
  }

  async #told(work: () => Promise<unknown>): Promise<Transaction["outcome"]> {
    try {
      await work();
      this.done++;
      return "ok";
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      const { code } = error;
      this.codes[code] = (this.codes[code] ?? 0) + 1;
      this.said[code] = error.message;
      if (NOTHING_DONE.includes(code)) return "failed";
      if (code !== "SITU_UNKNOWN_OUTCOME") this.problems.push(`a client was told ${error.stack}`);
      return "unknown";
    }
  }

  #wrong(error: unknown): void {
    this.problems.push(`a worker failed: ${(error as Error).stack}`);
  }

  /** What is wrong with the rows and with the history, after all have stopped. */
  async check(db: RemoteDatabase): Promise<string[]> {
    const problems = [...this.problems];
    const finalReads = new Map<number, readonly number[]>();
    for await (const { id, values } of db.scan(List)) finalReads.set(id, values);
    const balances = new Map<number, bigint>();
    for await (const { id, balance } of db.scan(Account)) balances.set(id, balance);
    let sum = 0n;
    for (let id = 0; id < ACCOUNTS; id++) sum += balances.get(id) ?? 0n;
    if (sum !== BALANCE * BigInt(ACCOUNTS)) problems.push(`the sum of all accounts is ${sum}`);
    for (const [id, { acknowledged, unknown }] of this.#deposits) {
      const found = balances.get(id) ?? 0n;
      const most = acknowledged + unknown;
      if (found < acknowledged) problems.push(`account ${id}: ${acknowledged - found} were lost`);
      if (found > most) problems.push(`account ${id}: ${found - most} were done twice`);
    }
    const isolation = "strict-serializable";
    const { anomalies } = checkListAppend(this.history, { isolation, finalReads });
    problems.push(...anomalies.slice(0, 5).map((each) => JSON.stringify(each)));
    return problems;
  }
}

async function transfer(db: RemoteDatabase, random: Random): Promise<void> {
  const from = random.below(ACCOUNTS);
  const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
  await db.transact(async (tx) => {
    const [a, b] = await tx.getMany(Account, [from, to]);
    await tx.put(Account, { id: from, balance: a!.balance - 1n });
    await tx.put(Account, { id: to, balance: b!.balance + 1n });
  });
}

/** The clock that all processes of the machine share. */
function nowNs(): number {
  return Number(process.hrtime.bigint());
}
