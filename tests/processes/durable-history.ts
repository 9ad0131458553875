/**
 * Whether what is in the store is what was acknowledged. Transactions that were lost are told by the
 * ledger; then:
 *
 *   - each transaction is there whole or not at all: its ledger row, its money, all that it appended;
 *   - nothing acknowledged in sync is lost, neither what it wrote nor what it had read;
 *   - where memory was not lost, nothing is;
 *   - what is lost is the end: of those who wrote in the same memory, none that is there began after
 *     one that is lost had returned;
 *   - those that are there, and who read only them, are strictly serializable, lists and all.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Operation, Outcome, Transaction, Value } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import type { Database } from "../../src/index.ts";
import { indexProblems } from "../helpers/process-rest.ts";
import {
  ACCOUNTS,
  Account,
  type DurableLine,
  decodeList,
  FIRST_BALANCE,
  Ledger,
  List,
  type Plan,
} from "./durable-store.ts";

/** Of an error that says: it is committed, but not known to be on disk. */
const COMMITTED = "SITU_NOT_DURABLE";
/** Nothing was committed, and the caller may try again. */
const PASSING = ["SITU_CONFLICT", "SITU_TIMEOUT"];

/** A transaction as its process has written it down. */
interface Told extends Transaction {
  readonly round: number;
  /** The round after which the memory that it wrote to was lost; Infinity: it is still there. */
  readonly memoryEnd: number;
  readonly plan: Plan;
  /** It returned, and says that what it did and saw is on disk. */
  readonly isPromised: boolean;
}

export interface Judgement {
  readonly problems: readonly string[];
  readonly acknowledged: number;
  /** Of these in sync. */
  readonly promised: number;
  /** Acknowledged, and gone with the memory. */
  readonly lost: number;
  /** How long before the last word of its round the first of them had returned. */
  readonly longestLagMs: number;
}

/**
 * Judges the store by the logs in a folder. `reboots` are the rounds after which memory was lost.
 */
export function judge(db: Database, folder: string, reboots: ReadonlySet<number>): Judgement {
  const problems: string[] = [];
  const complain = (what: string): void => {
    if (problems.length < 20) problems.push(what);
  };
  const told = readLogs(folder, reboots, complain);
  const { ledger, lists } = readStore(db, complain);
  for (const [list, values] of lists) {
    if (new Set(values).size !== values.length) complain(`list ${list} has a value twice`);
  }
  const known = new Map(told.map((one) => [one.plan.number, one]));
  for (const number of ledger) {
    const { outcome } = known.get(number) ?? {};
    if (outcome === undefined) complain(`transaction ${number} is there, and nobody had begun it`);
    else if (outcome === "failed") complain(`transaction ${number} is there, and had failed`);
  }

  const there = new Set(Array.from(lists.values()).flat());
  const survivors: Told[] = [];
  const lost: Told[] = [];
  for (const one of told) {
    const { number, transfer } = one.plan;
    const isThere =
      transfer === undefined ? hasReadOnly(one, lists) : ledger.has(number) || isFailed(one);
    if (transfer !== undefined && !isFailed(one)) {
      for (const value of appendedBy(one.plan)) {
        if (there.has(value) === isThere) continue;
        complain(
          `transaction ${number} is not whole: ${value} is ${isThere ? "missing" : "there"}`,
        );
      }
    }
    if (isThere) survivors.push(one);
    else if (one.outcome === "ok") lost.push(one);
    if (isThere || one.outcome !== "ok") continue;
    if (one.isPromised) complain(`LOST: ${shown(one)}, acknowledged in sync`);
    else if (one.memoryEnd === Number.POSITIVE_INFINITY) {
      complain(`LOST: ${shown(one)}, although memory was there`);
    }
  }
  checkPrefix(survivors, lost, complain);

  const { ok, anomalies, counts } = checkListAppend(survivors, {
    isolation: "strict-serializable",
    finalReads: lists,
  });
  if (!ok) {
    problems.push(`anomalies: ${JSON.stringify([...counts])}`);
    problems.push(...anomalies.slice(0, 10).map((anomaly) => JSON.stringify(anomaly)));
  }
  const acknowledged = told.filter(({ outcome }) => outcome === "ok");
  return {
    problems,
    acknowledged: acknowledged.length,
    promised: acknowledged.filter(({ isPromised }) => isPromised).length,
    lost: lost.length,
    longestLagMs: longestLagMs(told, lost),
  };
}

function shown({ round, process, plan }: Told): string {
  const kind = plan.transfer === undefined ? "reading" : "writing";
  return `round ${round}, life ${process}: ${kind} transaction ${plan.number}`;
}

function isFailed({ outcome }: Told): boolean {
  return outcome === "failed";
}

function appendedBy({ operations }: Plan): number[] {
  return operations.map(([, value]) => value).filter((value) => value !== 0);
}

/** Whether all that a reading transaction has seen is there. */
function hasReadOnly({ operations }: Told, lists: ReadonlyMap<number, readonly Value[]>): boolean {
  return operations.every((operation) => {
    if (operation.kind !== "read") return true;
    const now = lists.get(operation.key as number) ?? [];
    return operation.list.every((value, i) => now[i] === value);
  });
}

/** What is lost is the end of what was in memory. */
function checkPrefix(
  survivors: readonly Told[],
  lost: readonly Told[],
  complain: (what: string) => void,
): void {
  for (const end of new Set(lost.map(({ memoryEnd }) => memoryEnd))) {
    const writers = (one: Told): boolean =>
      one.memoryEnd === end && one.plan.transfer !== undefined;
    const gone = lost.filter(writers);
    if (gone.length === 0) continue;
    const first = gone.reduce((a, b) => (a.end <= b.end ? a : b));
    const later = survivors.find((one) => writers(one) && !isFailed(one) && one.start > first.end);
    if (later === undefined) continue;
    complain(`not a prefix: ${shown(first)} is lost, ${shown(later)} began later and is there`);
  }
}

function longestLagMs(told: readonly Told[], lost: readonly Told[]): number {
  let longest = 0;
  for (const { round, end } of lost) {
    const last = told.reduce((max, one) => (one.round === round ? Math.max(max, one.end) : max), 0);
    longest = Math.max(longest, (last - end) / 1e6);
  }
  return longest;
}

/** The ledger and the lists, in one transaction; money and indexes are checked on the way. */
function readStore(
  db: Database,
  complain: (what: string) => void,
): { ledger: Set<number>; lists: Map<number, number[]> } {
  return db.transactSync((tx) => {
    const rows = tx.scan(Ledger).toArray();
    const balances = Array<bigint>(ACCOUNTS).fill(FIRST_BALANCE);
    for (const { from, to, amount } of rows) {
      balances[from] -= amount;
      balances[to] += amount;
    }
    for (let id = 0; id < ACCOUNTS; id++) {
      const balance = tx.get(Account, id)?.balance;
      if (balance === balances[id]) continue;
      complain(`account ${id} has ${balance}, and ${balances[id]} by the ledger`);
    }
    for (const problem of indexProblems(tx, Ledger)) complain(problem);
    const lists = tx.scan(List).toArray();
    return {
      ledger: new Set(rows.map(({ id }) => id)),
      lists: new Map(lists.map(({ id, values }) => [id, decodeList(values)])),
    };
  });
}

function readLogs(
  folder: string,
  reboots: ReadonlySet<number>,
  complain: (what: string) => void,
): Told[] {
  const told: Told[] = [];
  for (const name of readdirSync(folder)) {
    const found = /^round-(\d+)-life-(\d+)\.txt$/.exec(name);
    if (found === null) continue;
    const text = readFileSync(join(folder, name), "utf8");
    // A line that the death cut off was the outcome of nothing, or a plan that never ran.
    const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    const [round, life] = [Number(found[1]), Number(found[2])];
    const memoryEnd = Math.min(...[...reboots].filter((reboot) => reboot >= round));
    const whole = lines
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as DurableLine);
    for (const one of readLife(whole, complain)) {
      told.push({ ...one, process: life, round, memoryEnd });
    }
  }
  return told;
}

type Ending = Exclude<DurableLine, { plan: Plan }>;

function readLife(
  lines: readonly DurableLine[],
  complain: (what: string) => void,
): Omit<Told, "process" | "round" | "memoryEnd">[] {
  const endings = new Map<number, Ending>();
  for (const line of lines) if (!("plan" in line)) endings.set(line.number, line);
  return lines.flatMap((line) => {
    if (!("plan" in line)) return [];
    const { plan, at } = line;
    const ending = endings.get(plan.number);
    const outcome = outcomeOf(ending, plan, complain);
    const lists = ending !== undefined && "lists" in ending ? ending.lists : undefined;
    const isPromised = plan.isSync && lists !== undefined;
    const operations = operationsOf(plan, lists);
    const end = ending?.at ?? at;
    return [{ plan, start: at, end, operations, outcome, isPromised }];
  });
}

function outcomeOf(
  ending: Ending | undefined,
  { number }: Plan,
  complain: (what: string) => void,
): Outcome {
  if (ending === undefined) return "unknown";
  if ("lists" in ending || ending.failed === COMMITTED) return "ok";
  if (!PASSING.includes(ending.failed)) complain(`transaction ${number}: ${ending.failed}`);
  return "failed";
}

function operationsOf(
  { operations }: Plan,
  lists: readonly (readonly number[])[] | undefined,
): Operation[] {
  const found: Operation[] = [];
  let reads = 0;
  for (const [key, value] of operations) {
    if (value !== 0) found.push({ kind: "append", key, value });
    else if (lists !== undefined) found.push({ kind: "read", key, list: lists[reads++] });
  }
  return found;
}
