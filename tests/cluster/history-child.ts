/** A client process of tests/cluster: list-append transactions, and transfers, until it is told to stop. */

import type { Operation, Transaction } from "../../simulation/checkers/history.ts";
import { open, SituError } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { isStopped, listenForStop, nowNs, orderOf, report } from "../helpers/process-child.ts";
import { Account, List } from "./procedures.ts";

export interface ClientOrder {
  readonly connect: readonly string[];
  readonly process: number;
  readonly seed: number;
  readonly keys: number;
  readonly accounts: number;
  readonly timeoutMs: number;
  /** Does at least so many of each before it stops, however slow the machine is. */
  readonly least: { readonly transactions: number; readonly transfers: number };
}

export interface ClientReport {
  readonly history: readonly Transaction[];
  readonly transfers: number;
  readonly codes: Readonly<Record<string, number>>;
}

/** Errors that say for sure that nothing was done. */
const NOTHING_DONE = ["SITU_CONFLICT", "SITU_TIMEOUT", "SITU_OVERLOADED"];
const AT_ONCE = 4;

const order = orderOf<ClientOrder>();
listenForStop();
const { connect, timeoutMs } = order;
const db = await open({ connect, tables: [Account, List], timeoutMs });
const history: Transaction[] = [];
const codes: Record<string, number> = {};
let transfers = 0;
let values = 0;

async function append(random: Random): Promise<void> {
  const keys = [random.below(order.keys), random.below(order.keys), random.below(order.keys)];
  const wanted = keys.map((key) => ({ key, isAppend: random.below(2) === 0 }));
  const start = nowNs();
  let operations: Operation[] = [];
  let outcome: Transaction["outcome"] = "ok";
  try {
    await db.transact(async (tx) => {
      operations = [];
      for (const { key, isAppend } of wanted) {
        const list = (await tx.get(List, key))?.values ?? [];
        if (isAppend) {
          const value = ++values * 100 + order.process;
          operations.push({ kind: "append", key, value });
          await tx.put(List, { id: key, values: [...list, value] });
        } else operations.push({ kind: "read", key, list });
      }
    });
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    codes[error.code] = (codes[error.code] ?? 0) + 1;
    outcome = NOTHING_DONE.includes(error.code) ? "failed" : "unknown";
  }
  history.push({ process: order.process, start, end: nowNs(), operations, outcome });
}

async function transfer(random: Random): Promise<void> {
  const from = random.below(order.accounts);
  const to = (from + 1 + random.below(order.accounts - 1)) % order.accounts;
  try {
    await db.transact(async (tx) => {
      const [a, b] = await tx.getMany(Account, [from, to]);
      await tx.put(Account, { id: from, balance: a!.balance - 1n });
      await tx.put(Account, { id: to, balance: b!.balance + 1n });
    });
    transfers++;
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    codes[error.code] = (codes[error.code] ?? 0) + 1;
  }
}

function hasDoneEnough(): boolean {
  const { least } = order;
  return history.length >= least.transactions && transfers >= least.transfers;
}

async function work(random: Random): Promise<void> {
  while (!isStopped() || !hasDoneEnough())
    await (random.below(3) === 0 ? transfer(random) : append(random));
}

process.stdout.write("ready\n");
await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => work(new Random(order.seed * 10 + i))));
await db.close();
report({ history, transfers, codes } satisfies ClientReport);
