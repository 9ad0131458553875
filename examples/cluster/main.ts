/**
 * One database on four nodes that survives one of them: processes here, machines elsewhere. A client moves money
 * between accounts, and in the middle of it a node is killed with SIGKILL. Its accounts wait for a moment, until
 * other nodes take over; then the node is started again, and gets its copies back. No transfer may be lost,
 * and none done twice.
 *
 *   npm run cluster -- [--seconds 6] [--accounts 1000] [--json]
 *
 *   procedures.ts   the table, and the procedures that the nodes run
 *   etcd.ts         etcd, which keeps the configuration of the cluster
 *   nodes.ts        starting and stopping nodes
 *   tellers.ts      the load, and what must be there afterwards
 *   processes.ts    children of this process
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { destroy, open, type RemoteDatabase } from "situ";
import { type Etcd, startEtcd } from "./etcd.ts";
import { type Node, restart, startNodes, status, stopNodes } from "./nodes.ts";
import { Account } from "./procedures.ts";
import { stop } from "./processes.ts";
import { Tellers, type Transfer, transferHere, transferThere } from "./tellers.ts";

const NODES = 4;
const OPENING_BALANCE = 1_000n;
const BATCH = 100;
/** How long a transaction may take: longer than the pause when a node dies. */
const TIMEOUT_MS = 30_000;

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "6" },
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

/** Waits until something holds, or Ctrl-C. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!isOver() && !(await holds())) await sleep(20);
}

async function pass(ms: number): Promise<void> {
  const endMs = performance.now() + ms;
  await until(() => performance.now() >= endMs);
}

async function load(db: RemoteDatabase): Promise<void> {
  for (let first = 0; first < accounts && !isOver(); first += BATCH) {
    await db.transact(async (tx) => {
      for (let id = first; id < Math.min(first + BATCH, accounts); id++) {
        await tx.insert(Account, { id, balance: OPENING_BALANCE });
      }
    });
  }
}

/** The accounts that each node is the primary of: a procedure runs there, and says where it is. */
async function accountsOf(db: RemoteDatabase, nodes: readonly Node[]): Promise<number[][]> {
  const found: number[][] = nodes.map(() => []);
  for (let first = 0; first < accounts && !isOver(); first += BATCH) {
    const ids = Array.from({ length: Math.min(BATCH, accounts - first) }, (_, i) => first + i);
    const pids = await Promise.all(ids.map((id) => db.call("whoHas", [id])));
    for (const [i, pid] of pids.entries()) {
      found[nodes.findIndex(({ process: child }) => child.pid === pid)].push(ids[i]);
    }
  }
  return found;
}

/** What transfers have added to each account, as far as they were acknowledged. */
const added = new Map<number, bigint>();

/** Has tellers work while something else happens; returns what they did. */
async function work<T>(
  db: RemoteDatabase,
  transfer: Transfer,
  groups: readonly (readonly number[])[],
  meanwhile: (tellers: Tellers) => Promise<T>,
): Promise<{ transfers: number; result: T }> {
  const tellers = new Tellers(db, transfer, groups, added);
  let result: T;
  try {
    result = await meanwhile(tellers);
  } finally {
    await tellers.stop();
  }
  return { transfers: tellers.count, result };
}

interface Survived {
  /** How long nothing was committed on accounts of the node, and on those of other nodes. */
  readonly gapMs: number;
  readonly othersGapMs: number;
}

/** Kills a node, waits until its accounts can be written again, and starts it once more. */
async function killAndRestart(
  nodes: readonly Node[],
  victim: Node,
  [own, others]: readonly (readonly number[])[],
  tellers: Tellers,
): Promise<Survived> {
  await pass((seconds * 1_000) / 3);
  const killedMs = performance.now();
  await stop(victim.process, "SIGKILL");
  say(`  node ${victim.id} is killed, with ${count(own.length)} accounts`);
  await until(() => tellers.hasWritten(own, killedMs));
  await pass((seconds * 1_000) / 3);
  const gapMs = tellers.longestPauseMs(own, killedMs);
  const othersGapMs = tellers.longestPauseMs(others, killedMs);
  say(`  its accounts could be written again after ${gapMs.toFixed(0)} ms`);
  say(`  the longest pause of the others was ${othersGapMs.toFixed(0)} ms`);
  say(`  status: ${await status(nodes)}`);
  if (!isOver()) {
    const restartedMs = performance.now();
    await restart(victim);
    let last = "";
    await until(async () => {
      // Each look is a process of its own.
      await sleep(250);
      last = await status(nodes);
      return last.startsWith("healthy");
    });
    const healedMs = performance.now() - restartedMs;
    say(`  node ${victim.id} is back, and has its copies after ${(healedMs / 1_000).toFixed(1)} s`);
    say(`  status: ${last}`);
  }
  return { gapMs, othersGapMs };
}

async function balances(db: RemoteDatabase): Promise<Map<number, bigint>> {
  return db.transact(async (tx) => {
    const found = new Map<number, bigint>();
    for await (const { id, balance } of tx.scan(Account)) found.set(id, balance);
    return found;
  });
}

async function use(db: RemoteDatabase, nodes: readonly Node[]): Promise<boolean> {
  await load(db);
  const total = OPENING_BALANCE * BigInt(accounts);
  say(`\n  ${count(accounts)} accounts with ${count(total)} coins, each on 3 of the nodes:`);
  let all = await accountsOf(db, nodes);
  // The fourth node has joined, and gets its share of the accounts a few at a time.
  await until(async () => {
    all = await accountsOf(db, nodes);
    return all.every(({ length }) => length > 1);
  });
  for (const { id } of nodes) say(`  node ${id} is the primary of ${count(all[id].length)}`);

  say("\n  Transfers, 16 at once:");
  const called = await work(db, transferThere, [all.flat()], () => pass((seconds * 1_000) / 3));
  say(`  ${count(called.transfers)} as procedures, run where the money is`);
  const victim = nodes[Math.floor(Math.random() * NODES)];
  const groups = [all[victim.id], all.filter((_, id) => id !== victim.id).flat()];
  const { transfers, result } = await work(db, transferHere, groups, (tellers) =>
    killAndRestart(nodes, victim, groups, tellers),
  );
  say(`  ${count(transfers)} as transactions of this process, before, while and after`);

  const found = await balances(db);
  const sum = [...found.values()].reduce((so, each) => so + each, 0n);
  const wrong = Array.from({ length: accounts }, (_, id) => id).filter(
    (id) => found.get(id) !== OPENING_BALANCE + (added.get(id) ?? 0n),
  ).length;
  say(`\n  The sum is ${count(sum)}: ${sum === total ? "the sum holds." : "money was lost!"}`);
  say(
    wrong === 0
      ? "  Every account has what the transfers left: none is lost, none was done twice."
      : `  ${count(wrong)} accounts are wrong!`,
  );
  const ok = sum === total && wrong === 0;
  if (flags.json) {
    const primaryOf = all.map(({ length }) => length);
    const { transfers: calls } = called;
    const killed = victim.id;
    const shown = { ok, accounts, primaryOf, calls, transactions: transfers, killed, ...result };
    say(JSON.stringify({ ...shown, wrong, sum: Number(sum) }));
  }
  return ok;
}

async function main(
  folder: string,
  nodes: Node[],
  started: (etcd: Etcd) => void,
): Promise<boolean> {
  say(`One database on ${NODES} nodes`);
  let etcd: Etcd | undefined;
  await startEtcd(folder, (each) => {
    etcd = each;
    started(each);
  });
  say(`  etcd: process ${etcd!.process.pid}, ${etcd!.address}`);
  await startNodes(folder, NODES, etcd!.address, (node) => nodes.push(node));
  for (const node of nodes) say(`  node ${node.id}: process ${node.process.pid}, ${node.address}`);
  await until(async () => (await status(nodes)).startsWith("healthy"));

  const connect = nodes.map(({ address }) => address);
  const db = await open({ connect, cluster: "bank", tables: [Account], timeoutMs: TIMEOUT_MS });
  try {
    return await use(db, nodes);
  } finally {
    await db.close();
  }
}

const folder = mkdtempSync(join(tmpdir(), "situ-cluster-"));
const nodes: Node[] = [];
let etcd: Etcd | undefined;
for (const each of ["SIGINT", "SIGTERM"] as const) {
  process.on(each, () => {
    signal = each;
  });
}

try {
  const ok = await main(folder, nodes, (started) => {
    etcd = started;
  });
  process.exitCode = ok ? 0 : 1;
} catch (error) {
  if (signal === undefined) console.error((error as Error).message);
  process.exitCode = 1;
} finally {
  // Whatever happened: no process, no memory, no folder is left.
  const failed = await stopNodes(nodes);
  if (failed.length > 0 && signal === undefined) {
    for (const { message } of failed) console.error(message);
    process.exitCode = 1;
  }
  if (etcd !== undefined) await stop(etcd.process, "SIGTERM");
  for (const { path } of nodes) await destroy(path);
  rmSync(folder, { recursive: true, force: true });
}
if (signal !== undefined) process.exitCode = signal === "SIGINT" ? 130 : 143;
