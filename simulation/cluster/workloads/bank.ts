/**
 * Money moves between accounts of several nodes and layouts; whoever sums all accounts up, in one
 * transaction, must find what was there in the beginning. Each transfer also counts itself in a row
 * of its worker: in the end the row has all that were acknowledged, and none twice.
 */

import { i64, u32 } from "../../../src/tables/fields.ts";
import { type Table, table } from "../../../src/tables/table.ts";
import { type Program, pause, perform } from "../program.ts";
import type { RowKey, SimulatedTransaction } from "../transaction.ts";
import { type Attempt, attempt, type Body, backOff, read, type Worker } from "../worker.ts";
import type { Counts, FinalRows, Witness, Workload } from "../workload.ts";

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
/** A sum that others keep changing is given up: it is not what the run is about. */
const MOST_SUM_ATTEMPTS = 30;
const LOAD_TIMEOUT_MS = 60_000;

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

  *load(worker: Worker): Program<void> {
    const tx = worker.begin();
    for (const { table: each, id } of all()) {
      tx.put(worker.tableOf(each), { id, owner: id % 2, balance: FIRST_BALANCE });
    }
    const outcome = yield* perform(tx.commit(), LOAD_TIMEOUT_MS);
    if (outcome.kind !== "committed") throw new Error(`loading the bank: ${outcome.kind}`);
  }

  *work(worker: Worker, transactions: number): Program<void> {
    for (let done = 0; done < transactions; done++) {
      if (worker.random.below(8) === 0) yield* this.#sum(worker);
      else yield* this.#transfer(worker);
      if (worker.isGone) return;
      yield* pause(worker.random.below(1_000) / 1_000);
    }
  }

  *#sum(worker: Worker): Program<void> {
    for (let attempts = 1; attempts <= MOST_SUM_ATTEMPTS && !worker.isGone; attempts++) {
      const ended = yield* attempt(worker, function* (tx) {
        const rows = yield* read(
          tx,
          all().map((account) => keyIn(worker, account)),
        );
        if (rows === "locked") return "locked";
        return rows.reduce((sum, row) => sum + (row?.balance as bigint), 0n);
      });
      this.#count(worker, ended, "sum");
      if (ended.kind === "ok") {
        if (ended.result !== TOTAL) {
          this.#problems.push(
            `at ${this.#witness.nowUs} µs worker ${worker.number} found ${ended.result} instead of ${TOTAL}`,
          );
        }
        return;
      }
      yield* backOff(worker, attempts);
    }
  }

  *#transfer(worker: Worker): Program<void> {
    const accounts = all();
    const { random, number } = worker;
    const from = random.below(accounts.length);
    const to = (from + 1 + random.below(accounts.length - 1)) % accounts.length;
    const amount = BigInt(1 + random.below(5));
    const counted = this.#transfers.get(number) ?? { acknowledged: 0, unknown: 0 };
    this.#transfers.set(number, counted);
    for (let attempts = 1; !worker.isGone; attempts++) {
      const body = transferBody(worker, accounts[from], accounts[to], amount);
      const ended = yield* attempt(worker, body);
      this.#count(worker, ended, `${from} to ${to}`);
      if (ended.kind === "ok") counted.acknowledged++;
      if (ended.kind === "unknown") counted.unknown++;
      if (ended.kind !== "failed") return;
      yield* backOff(worker, attempts);
    }
  }

  #count({ number }: Worker, { kind }: Attempt<unknown>, what: string): void {
    this.counts[kind === "ok" ? "committed" : kind === "failed" ? "aborted" : "unknown"]++;
    this.#witness.note(`${number} ${what} ${kind}`);
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

function transferBody(worker: Worker, from: Account, to: Account, amount: bigint): Body<"done"> {
  return function* (tx: SimulatedTransaction) {
    const done = worker.tableOf(Done);
    const keys = [keyIn(worker, from), keyIn(worker, to)];
    const rows = yield* read(tx, [...keys, { table: done, key: worker.number }]);
    if (rows === "locked") return "locked";
    const [source, target, counter] = rows;
    if (source === undefined || target === undefined) throw new Error("an account is gone");
    tx.put(keys[0].table, { ...source, balance: (source.balance as bigint) - amount });
    tx.put(keys[1].table, { ...target, balance: (target.balance as bigint) + amount });
    tx.put(done, { worker: worker.number, count: ((counter?.count as number) ?? 0) + 1 });
    return "done";
  };
}

function keyIn(worker: Worker, { table: each, id }: Account): RowKey {
  return { table: worker.tableOf(each), key: id };
}

function all(): Account[] {
  return ACCOUNTS.flatMap((each) =>
    Array.from({ length: PER_TABLE }, (_, id) => ({ table: each, id })),
  );
}
