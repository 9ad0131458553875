/**
 * One database on three nodes: three processes here, three machines elsewhere. A client loads
 * accounts, moves money between them in two ways, reads, and stops the nodes. Then the stores of the
 * nodes are opened one by one, to see that the copies of each row agree.
 *
 *   npm run cluster -- [--seconds 3] [--accounts 1000] [--json]
 *
 *   procedures.ts   the table, and the procedures that the nodes run
 *   nodes.ts        starting and stopping nodes
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { destroy, open, type RemoteDatabase, SituError } from "situ";
import { type Node, startNodes, stopNodes } from "./nodes.ts";
import { Account } from "./procedures.ts";

const NODES = 3;
const OPENING_BALANCE = 1_000n;
const BATCH = 100;
/** Transactions that are under way at the same time. */
const AT_ONCE = 16;

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    accounts: { type: "string", default: "1000" },
    json: { type: "boolean", default: false },
  },
});
const seconds = Number(flags.seconds);
const accounts = Number(flags.accounts);

const say = (text = ""): void => console.log(text);
const count = (value: number | bigint): string => value.toLocaleString("en-US");
/** Ctrl-C: everything comes to its end, early. */
let signal: NodeJS.Signals | undefined;
const isOver = (): boolean => signal !== undefined;
const below = (limit: number): number => Math.floor(Math.random() * limit);

async function load(db: RemoteDatabase): Promise<void> {
  for (let first = 0; first < accounts && !isOver(); first += BATCH) {
    await db.transact(async (tx) => {
      for (let id = first; id < Math.min(first + BATCH, accounts); id++) {
        await tx.insert(Account, { id, balance: OPENING_BALANCE });
      }
    });
  }
}

/** How many accounts each node is the primary of: a procedure runs there, and says where it is. */
async function primaries(db: RemoteDatabase, nodes: readonly Node[]): Promise<number[]> {
  const found = nodes.map(() => 0);
  for (let first = 0; first < accounts && !isOver(); first += BATCH) {
    const ids = Array.from({ length: Math.min(BATCH, accounts - first) }, (_, i) => first + i);
    for (const pid of await Promise.all(ids.map((id) => db.call("whoHas", [id])))) {
      found[nodes.findIndex(({ process: child }) => child.pid === pid)]++;
    }
  }
  return found;
}

/** A transfer as a transaction of this process: it reads here, decides here, and commits there. */
function transferHere(db: RemoteDatabase, from: number, to: number, amount: bigint): Promise<void> {
  return db.transact(async (tx) => {
    const [source, target] = await tx.getMany(Account, [from, to]);
    if (source!.balance < amount) throw new Error("not enough money");
    await tx.put(Account, { id: from, balance: source!.balance - amount });
    await tx.put(Account, { id: to, balance: target!.balance + amount });
  });
}

/** The same as a procedure: one message there, one back. */
async function transferThere(db: RemoteDatabase, ...values: unknown[]): Promise<void> {
  await db.call("transfer", values);
}

/** Does something again and again, many at once, and says how often it was done. */
async function repeat(what: () => Promise<unknown>): Promise<number> {
  const endMs = performance.now() + (seconds * 1_000) / 3;
  let done = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < endMs && !isOver()) {
      try {
        await what();
        done++;
      } catch (error) {
        // What a procedure throws comes with this code.
        const isPoor = (error as Error).message.includes("not enough money");
        if (!isPoor && !(error instanceof SituError && error.retryable)) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return done;
}

async function sumOf(db: RemoteDatabase): Promise<bigint> {
  return db.transact(async (tx) => {
    let sum = 0n;
    for await (const { balance } of tx.scan(Account)) sum += balance;
    return sum;
  });
}

/** Each row as each node has it. The nodes are closed: their stores are opened as local ones. */
async function copies(nodes: readonly Node[]): Promise<{ rows: number[]; agree: boolean }> {
  const seen = new Map<number, bigint[]>();
  const rows: number[] = [];
  for (const { path } of nodes) {
    await using db = await open({ path, tables: [Account] });
    const all = db.transactSync((tx) => [...tx.scan(Account)]);
    rows.push(all.length);
    for (const { id, balance } of all) seen.set(id, [...(seen.get(id) ?? []), balance]);
  }
  const agree = [...seen.values()].every((each) => each.length === 2 && each[0] === each[1]);
  return { rows, agree: agree && seen.size === accounts };
}

async function main(folder: string, nodes: Node[]): Promise<boolean> {
  say(`One database on ${NODES} nodes`);
  await startNodes(folder, NODES, (node) => nodes.push(node));
  nodes.sort((a, b) => a.id - b.id);
  for (const node of nodes) say(`  node ${node.id}: process ${node.process.pid}, ${node.address}`);

  const db = await open({ connect: nodes.map(({ address }) => address), tables: [Account] });
  const result = { transactions: 0, calls: 0, reads: 0, sum: 0n };
  let primaryOf: number[];
  try {
    await load(db);
    const total = OPENING_BALANCE * BigInt(accounts);
    say(`\n  ${count(accounts)} accounts with ${count(total)} coins, each on 2 of the nodes:`);
    primaryOf = await primaries(db, nodes);
    for (const { id } of nodes) say(`  node ${id} is the primary of ${count(primaryOf[id])}`);

    const pair = (): [number, number, bigint] => {
      const from = below(accounts);
      const to = (from + 1 + below(accounts - 1)) % accounts;
      return [from, to, BigInt(1 + below(100))];
    };
    say(`\n  ${AT_ONCE} at once, for a third of ${seconds} s each:`);
    result.transactions = await repeat(() => transferHere(db, ...pair()));
    say(`  ${count(result.transactions)} transfers as transactions of this process`);
    result.calls = await repeat(() => transferThere(db, ...pair()));
    say(`  ${count(result.calls)} transfers as procedures, run where the money is`);
    result.reads = await repeat(() => db.get(Account, below(accounts)));
    say(`  ${count(result.reads)} reads of one account`);
    result.sum = await sumOf(db);
  } finally {
    await db.close();
  }

  const isClean = await stopNodes(nodes);
  const { rows, agree } = await copies(nodes);
  say(`\n  The nodes have stopped, with ${rows.map(count).join(", ")} rows.`);
  say(agree ? "  The copies of every row agree." : "  Some copies differ!");
  const holds = result.sum === OPENING_BALANCE * BigInt(accounts);
  say(holds ? "  The sum holds." : `  The sum is ${count(result.sum)}!`);
  const ok = isClean && agree && holds;
  if (flags.json) {
    say(JSON.stringify({ ok, accounts, primaryOf, rows, ...result, sum: Number(result.sum) }));
  }
  return ok;
}

const folder = mkdtempSync(join(tmpdir(), "situ-cluster-"));
const nodes: Node[] = [];
for (const each of ["SIGINT", "SIGTERM"] as const) {
  process.on(each, () => {
    signal = each;
  });
}

try {
  process.exitCode = (await main(folder, nodes)) ? 0 : 1;
} finally {
  // Whatever happened: no process, no memory, no folder is left.
  await stopNodes(nodes);
  for (const { path } of nodes) await destroy(path);
  rmSync(folder, { recursive: true, force: true });
}
if (signal !== undefined) process.exitCode = signal === "SIGINT" ? 130 : 143;
