/**
 * One process of the kill storm. It writes each list transaction to its log before it runs it, and
 * the outcome after; what has no outcome when the process is gone is unknown. It may be told to
 * kill itself at its n-th atomic step, wherever that is: opening, recovering another, committing.
 */

import { openSync, writeSync } from "node:fs";
import { SituError, type Snapshot, type Transaction } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";
import type { Life } from "../helpers/process-storm.ts";
import {
  ACCOUNTS,
  Account,
  decodeList,
  encodeList,
  Generation,
  LISTS_PER_GENERATION,
  List,
  LONG_LIST,
  openStorm,
  TOKENS,
  TOTAL,
  Token,
} from "./storm-store.ts";

/** The values that it appends begin with its `life`. */
export interface StormOrder extends Life {
  readonly path: string;
  readonly log: string;
}

/** A line of the log: what is about to be tried, then what became of it. */
export type LogLine =
  | { readonly at: number; readonly planned: readonly PlannedOperation[] }
  | { readonly at: number; readonly lists: readonly (readonly number[])[] }
  | { readonly at: number; readonly failed: string };

/** A key, and the value to append to it; 0 stands for a read. */
export type PlannedOperation = readonly [key: number, value: number];

const BATCH_MS = 4;
const order = JSON.parse(process.argv[2]) as StormOrder;
const random = new Random(order.seed);
const log = openSync(order.log, "a");
let appended = 0;
let stopped = false;

if (order.dieAtStep > 0) {
  let steps = 0;
  hookAtomics({
    before: () => {
      if (++steps === order.dieAtStep) process.kill(process.pid, "SIGKILL");
    },
  });
}
process.stdin.on("close", () => {
  stopped = true;
});
process.stdin.resume();

const db = await openStorm(order.path);

function nowNs(): number {
  return Number(process.hrtime.bigint());
}

function write(line: LogLine): void {
  writeSync(log, `${JSON.stringify(line)}\n`);
}

function add(tx: Transaction, id: number, amount: bigint): void {
  const row = tx.get(Account, id);
  if (row === undefined) throw new Error(`account ${id} is gone`);
  tx.update(Account, id, { balance: row.balance + amount });
}

function transfer(): void {
  const amount = BigInt(1 + random.below(20));
  const from = random.below(ACCOUNTS);
  const to = Array.from({ length: 1 + random.below(3) }, () => random.below(ACCOUNTS));
  db.transactSync((tx) => {
    add(tx, from, -amount * BigInt(to.length));
    for (const id of to) add(tx, id, amount);
  });
}

/** Makes a token out of an account's money, or turns it back into money. */
function exchange(): void {
  const id = random.below(TOKENS);
  const account = random.below(ACCOUNTS);
  const value = BigInt(1 + random.below(5));
  const memo = "token ".repeat(random.below(60));
  db.transactSync((tx) => {
    const token = tx.get(Token, id);
    if (token === undefined) tx.insert(Token, { id, value, memo });
    else tx.delete(Token, id);
    add(tx, account, token === undefined ? -value : token.value);
  });
}

function plan(): PlannedOperation[] {
  const first = (db.get(Generation, 0)?.current ?? 0) * LISTS_PER_GENERATION;
  return Array.from({ length: 1 + random.below(4) }, (): PlannedOperation => {
    const key = first + random.below(LISTS_PER_GENERATION);
    return [key, random.below(2) === 0 ? 0 : order.life * 1_000_000 + ++appended];
  });
}

function appendAndRead(): void {
  const planned = plan();
  write({ at: nowNs(), planned });
  let lists: number[][] = [];
  try {
    // A snapshot has all that was committed before it, so such reads are strictly serializable too.
    if (planned.every(([, value]) => value === 0) && random.below(2) === 0) {
      lists = withSnapshot((snapshot) =>
        planned.map(([id]) => decodeList(snapshot.get(List, id)?.values)),
      );
    } else {
      db.transactSync((tx) => {
        lists = [];
        for (const [id, value] of planned) {
          const values = decodeList(tx.get(List, id)?.values);
          if (value === 0) lists.push(values);
          else tx.put(List, { id, values: encodeList([...values, value]) });
        }
      });
    }
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    write({ at: nowNs(), failed: error.code });
    return;
  }
  write({ at: nowNs(), lists });
  const generation = Math.floor(planned[0][0] / LISTS_PER_GENERATION);
  if (lists.some((list) => list.length > LONG_LIST)) startGeneration(generation + 1);
}

function withSnapshot<T>(work: (snapshot: Snapshot) => T): T {
  const snapshot = db.snapshot();
  try {
    return work(snapshot);
  } finally {
    snapshot.close();
  }
}

/** The money is all there in every snapshot. */
function audit(): void {
  const sum = withSnapshot((snapshot) => {
    let total = 0n;
    for (const { balance } of snapshot.scan(Account)) total += balance;
    for (const { value } of snapshot.scan(Token)) total += value;
    return total;
  });
  if (sum !== TOTAL) throw new Error(`the money in a snapshot: ${sum} instead of ${TOTAL}`);
}

function startGeneration(generation: number): void {
  db.transactSync((tx) => {
    const row = tx.get(Generation, 0)!;
    if (row.current < generation) tx.put(Generation, { id: 0, current: generation });
  });
}

console.log("ready");
while (!stopped) {
  const end = performance.now() + BATCH_MS;
  while (performance.now() < end) {
    const dice = random.below(500);
    if (dice < 200) appendAndRead();
    else if (dice < 348) transfer();
    else if (dice < 498) exchange();
    else audit();
  }
  await new Promise((resolve) => setImmediate(resolve));
}
await db.close();
