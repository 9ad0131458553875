/**
 * Money moves between accounts of several nodes and layouts; whoever sums all accounts up, in one
 * transaction, must find what was there in the beginning. Each transfer also counts itself in a row
 * of its worker: in the end the row has all that were acknowledged, and none twice.
 */

import type { RemoteTransaction } from "../../../src/database/remote/remote-transaction.ts";
import { i64, u32 } from "../../../src/tables/fields.ts";
import type { RowValues } from "../../../src/tables/indexes/structure.ts";
import { type Table, table } from "../../../src/tables/table.ts";
import type { Ended, Worker } from "../worker.ts";
import { type Counts, count, type FinalRows, type Witness, type Workload } from "../workload.ts";

const FIELDS = { id: u32(), owner: u32(), balance: i64() };
const Done = table("done", { worker: u32(), count: u32() }, { key: "worker" }) as unknown as Table;
const ACCOUNTS: readonly Table[] = [
  table("accounts", FIELDS, { key: "id" }),
  table("accounts in buckets", FIELDS, { key: "id", layout: "buckets" }),
  table("accounts in order", FIELDS, {
    key: "id",
    ordered: true,
    indexes: {
      byOwner: { on: ["owner", "balance"] },
      byBalance: { on: ["balance"], kind: "hash" },
    },
  }),
] as unknown as readonly Table[];
const PER_TABLE = 6;
const FIRST_BALANCE = 100n;
const TOTAL = BigInt(ACCOUNTS.length * PER_TABLE) * FIRST_BALANCE;

interface Account {
  readonly table: Table;
  readonly id: number;
}

export class BankWorkload implements Workload {
  readonly name = "bank";
  readonly tables = [...ACCOUNTS, Done];
  readonly counts: Counts = { committed: 0, aborted: 0, unknown: 0 };
  readonly #witness: Witness;
  readonly #problems: string[] = [];
  readonly #transfers = new Map<number, { acknowledged: number; unknown: number }>();

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  async load(worker: Worker): Promise<void> {
    const ended = await worker.transact(async (tx) => {
      for (const { table: each, id } of all()) {
        await tx.put(each, { id, owner: id % 2, balance: FIRST_BALANCE });
      }
    });
    if (ended.kind !== "ok") throw new Error(`loading the bank: ${ended.kind}`);
  }

  async work(worker: Worker, transactions: number): Promise<void> {
    for (let done = 0; done < transactions && !worker.isGone; done++) {
      if (worker.random.below(8) === 0) await this.#sum(worker);
      else await this.#transfer(worker);
      await worker.pause(worker.random.below(1_000) / 1_000);
    }
  }

  /** A sum that others keep changing is given up: it is not what the run is about. */
  async #sum(worker: Worker): Promise<void> {
    const ended = await worker.transact(async (tx) => {
      const rows = await Promise.all(all().map((account) => rowOf(tx, account)));
      return rows.reduce((sum, row) => sum + (row?.balance as bigint), 0n);
    });
    this.#count(worker, ended, "sum");
    if (ended.kind !== "ok" || ended.result === TOTAL) return;
    this.#problems.push(
      `at ${this.#witness.nowUs} µs worker ${worker.number} found ${ended.result} instead of ${TOTAL}`,
    );
  }

  async #transfer(worker: Worker): Promise<void> {
    const accounts = all();
    const { random, number } = worker;
    const from = random.below(accounts.length);
    const to = (from + 1 + random.below(accounts.length - 1)) % accounts.length;
    const amount = BigInt(1 + random.below(5));
    const counted = this.#transfers.get(number) ?? { acknowledged: 0, unknown: 0 };
    this.#transfers.set(number, counted);
    for (let times = 1; !worker.isGone; times++) {
      const ended = await worker.transact((tx) =>
        transfer(tx, number, accounts[from], accounts[to], amount),
      );
      this.#count(worker, ended, `${from} to ${to}`);
      if (ended.kind === "ok") counted.acknowledged++;
      if (ended.kind === "unknown") counted.unknown++;
      if (ended.kind !== "failed") return;
      await worker.backOff(times);
    }
  }

  #count({ number }: Worker, ended: Ended<unknown>, what: string): void {
    count(this.counts, ended);
    this.#witness.note(`${number} ${what} ${ended.kind} ${ended.attempts}`);
  }

  check(rows: FinalRows): string[] {
    const problems = [...this.#problems];
    let sum = 0n;
    for (const each of ACCOUNTS) {
      for (const { balance } of rows(each).values()) sum += balance as bigint;
    }
    if (sum !== TOTAL) problems.push(`in the end there are ${sum} instead of ${TOTAL}`);
    const counts = new Map<number, number>();
    for (const row of rows(Done).values()) counts.set(row.worker as number, row.count as number);
    for (const [worker, { acknowledged, unknown }] of this.#transfers) {
      const count = counts.get(worker) ?? 0;
      if (count >= acknowledged && count <= acknowledged + unknown) continue;
      problems.push(
        `worker ${worker} counted ${count} transfers; ${acknowledged} were acknowledged, ${unknown} unknown`,
      );
    }
    return problems;
  }
}

async function transfer(
  tx: RemoteTransaction,
  worker: number,
  from: Account,
  to: Account,
  amount: bigint,
): Promise<void> {
  const counted = tx.getForUpdate(Done, worker) as Promise<RowValues | undefined>;
  const [source, target, counter] = await Promise.all([rowOf(tx, from), rowOf(tx, to), counted]);
  if (source === undefined || target === undefined) throw new Error("an account is gone");
  await tx.put(from.table, { ...source, balance: (source.balance as bigint) - amount });
  await tx.put(to.table, { ...target, balance: (target.balance as bigint) + amount });
  await tx.put(Done, { worker, count: ((counter?.count as number) ?? 0) + 1 });
}

/** Locked as it is read where that is possible; a sum locks all accounts then. */
function rowOf(
  tx: RemoteTransaction,
  { table: each, id }: Account,
): Promise<RowValues | undefined> {
  return tx.getForUpdate(each, id) as Promise<RowValues | undefined>;
}

function all(): Account[] {
  return ACCOUNTS.flatMap((each) =>
    Array.from({ length: PER_TABLE }, (_, id) => ({ table: each, id })),
  );
}
