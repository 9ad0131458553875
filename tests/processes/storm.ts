/**
 * The kill storm: processes at work in one store, and a driver that kills them at random moments
 * and starts others in their place. Some kill themselves at a random atomic step instead, so that
 * short windows are hit too, those of opening and of recovering others among them. In the end the
 * history is checked, the money is counted, and nothing may be held.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Key, Operation, Transaction, Value } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import type { Database } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { restProblems, slotProblems } from "../helpers/process-rest.ts";
import { killAndReplace, type Life } from "../helpers/process-storm.ts";
import {
  ACCOUNTS,
  Account,
  decodeList,
  fillStorm,
  Generation,
  LISTS_PER_GENERATION,
  List,
  openStorm,
  TOKENS,
  TOTAL,
  Token,
} from "./storm-store.ts";
import type { LogLine, StormOrder } from "./storm-worker.ts";

export interface StormOptions {
  readonly seed: number;
  readonly processes: number;
  /** The storm ends when both are reached. */
  readonly kills: number;
  readonly minutes: number;
  readonly progress?: ((line: string) => void) | undefined;
}

export interface StormReport {
  readonly seed: number;
  readonly kills: number;
  readonly transactions: Readonly<Record<Transaction["outcome"], number>>;
  readonly splits: number;
  readonly snapshots: number;
  readonly recoveries: number;
  readonly lists: number;
  /** How long the first transaction over everything took after the last kill. */
  readonly restMs: number;
  /** Everything that is wrong, as sentences. */
  readonly problems: readonly string[];
}

/** After the last process is gone: nobody is listed, no snapshot is open, no version is kept. */
const REST_MS = 2_000;

export async function runStorm(options: StormOptions): Promise<StormReport> {
  const { seed, processes, kills: wanted, minutes, progress } = options;
  const folder = new StoreFolder();
  const { path } = folder;
  const problems: string[] = [];
  try {
    const db = await openStorm(path);
    fillStorm(db);
    await db.close();
    const kills = await killAndReplace({
      random: new Random(seed),
      seats: Array.from({ length: processes }, () => ({
        script: "storm-worker",
        order: (life: Life): StormOrder => ({
          ...life,
          path,
          log: join(path, `life-${life.life}.log`),
        }),
      })),
      kills: wanted,
      endMs: performance.now() + minutes * 60_000,
      problems,
      progress,
    });
    return await inspect(seed, path, kills, problems);
  } finally {
    endAll();
    await folder.remove();
  }
}

async function inspect(
  seed: number,
  path: string,
  kills: number,
  problems: string[],
): Promise<StormReport> {
  const history = readHistory(path);
  const begin = performance.now();
  const db = await openStorm(path);
  try {
    const generations = (db.get(Generation, 0)?.current ?? 0) + 1;
    const finalReads = touchEverything(db, generations * LISTS_PER_GENERATION, problems);
    const restMs = performance.now() - begin;
    problems.push(...(await restProblems(db, REST_MS)));
    problems.push(...(await slotProblems(path)));
    const { counters } = db.stats();

    const { ok, anomalies, counts } = checkListAppend(history, {
      isolation: "strict-serializable",
      finalReads,
    });
    if (!ok) {
      problems.push(`anomalies: ${JSON.stringify([...counts])}`);
      problems.push(...anomalies.map((anomaly) => JSON.stringify(anomaly)));
    }
    const count = (outcome: Transaction["outcome"]): number =>
      history.filter((transaction) => transaction.outcome === outcome).length;
    return {
      seed,
      kills,
      transactions: { ok: count("ok"), failed: count("failed"), unknown: count("unknown") },
      splits: counters.splits,
      snapshots: counters.snapshots,
      recoveries: counters.recoveries,
      lists: finalReads.size,
      restMs,
      problems,
    };
  } finally {
    await db.close();
  }
}

/** Reads and rewrites every row, so every lock word is passed; counts the money on the way. */
function touchEverything(db: Database, lists: number, problems: string[]): Map<Key, Value[]> {
  const finalReads = new Map<Key, Value[]>();
  const sum = db.transactSync((tx) => {
    let total = 0n;
    for (let id = 0; id < ACCOUNTS; id++) {
      const row = tx.get(Account, id)!;
      total += row.balance;
      tx.put(Account, row);
    }
    for (let id = 0; id < TOKENS; id++) {
      const token = tx.get(Token, id);
      if (token === undefined) continue;
      total += token.value;
      tx.put(Token, token);
    }
    return total;
  });
  if (sum !== TOTAL) problems.push(`the money: ${sum} instead of ${TOTAL}`);
  for (let id = 0; id < lists; id++) {
    const row = db.transactSync((tx) => {
      const found = tx.get(List, id);
      if (found !== undefined) tx.put(List, found);
      return found;
    });
    if (row !== undefined) finalReads.set(id, decodeList(row.values));
  }
  return finalReads;
}

function readHistory(path: string): Transaction[] {
  const history: Transaction[] = [];
  for (const name of readdirSync(path)) {
    const life = /^life-(\d+)\.log$/.exec(name)?.[1];
    if (life === undefined) continue;
    const text = readFileSync(join(path, name), "utf8");
    // A line that the death cut off was the outcome of nothing, or a plan that never ran.
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    const lines = whole.split("\n").filter((line) => line !== "");
    readLife(
      lines.map((line) => JSON.parse(line) as LogLine),
      Number(life),
      history,
    );
  }
  return history;
}

function readLife(lines: readonly LogLine[], life: number, history: Transaction[]): void {
  for (let i = 0; i < lines.length; i++) {
    const begun = lines[i];
    if (!("planned" in begun)) throw new Error("an outcome without a plan");
    const next = lines[i + 1];
    const ended = next !== undefined && !("planned" in next) ? next : undefined;
    if (ended !== undefined) i++;
    const lists = ended !== undefined && "lists" in ended ? ended.lists : undefined;
    const operations: Operation[] = [];
    let reads = 0;
    for (const [key, value] of begun.planned) {
      if (value !== 0) operations.push({ kind: "append", key, value });
      else if (lists !== undefined) operations.push({ kind: "read", key, list: lists[reads++] });
    }
    const outcome = ended === undefined ? "unknown" : lists === undefined ? "failed" : "ok";
    history.push({
      process: life,
      start: begun.at,
      end: ended?.at ?? begun.at,
      operations,
      outcome,
    });
  }
}
