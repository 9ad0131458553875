/**
 * The mixed storm: processes at work in one store, in every way that there is to use it, and a driver
 * that kills and stops them at random moments and starts others in their place. Some kill themselves
 * at a random atomic step instead, so that short windows are hit too, those of opening and of
 * recovering others among them. In the end the history is checked, strict and snapshot-isolated
 * transactions together, the money is counted, and nothing may be held.
 */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Key, Operation, Transaction, Value } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { DEVICE_FOLDER, isDeviceFile } from "../../src/device/page-file.ts";
import type { Database, DurabilityMode } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { restProblems, slotProblems } from "../helpers/process-rest.ts";
import { killAndReplace, type Life, type StormOptions } from "../helpers/process-storm.ts";
import { type CounterLine, counterProblems, countUpdates } from "./mixed-counters.ts";
import {
  ACCOUNTS,
  Account,
  fillMixed,
  Generation,
  generationOf,
  kindOf,
  LISTS_PER_GENERATION,
  type LogLine,
  listsIn,
  type MixedWay,
  openMixed,
  type PlannedOperation,
  SCAN,
  TOKENS,
  TOTAL,
  valuesIn,
} from "./mixed-store.ts";
import type { MixedOrder } from "./mixed-worker.ts";

export interface MixedStormOptions extends StormOptions {
  /** Of the store; drawn from the seed if it is not given. */
  readonly durability?: DurabilityMode | undefined;
  /** A bug: reads of this kind of table are not validated. The check has to notice. */
  readonly plantedKind?: number | undefined;
}

export interface MixedStormReport {
  readonly seed: number;
  readonly durability: DurabilityMode;
  readonly kills: number;
  readonly transactions: Readonly<Record<Transaction["outcome"], number>>;
  /** Of those that ended well: in each way, and how many were asynchronous. */
  readonly ways: Readonly<Record<MixedWay | "async", number>>;
  readonly splits: number;
  readonly recoveries: number;
  /** Updates in the device that ended well. */
  readonly deviceUpdates: number;
  readonly lists: number;
  /** Everything that is wrong, as sentences; anomalies are among them. */
  readonly problems: readonly string[];
  /** Kinds of anomalies in the history. */
  readonly anomalies: readonly string[];
}

/** The storm goes on until so much has happened in each way. */
const ENOUGH = { transactions: 300, ofEachWay: 15, deviceUpdates: 20 } as const;
/** After the last process is gone: nobody is listed, no snapshot is open, no version is kept. */
const REST_MS = 60_000;
const LONGEST = { ms: 700, steps: 80_000 };

export async function runMixedStorm(options: MixedStormOptions): Promise<MixedStormReport> {
  const { seed, processes, minutes, progress, plantedKind } = options;
  const random = new Random(seed);
  const drawn = (["none", "lazy", "sync"] as const)[random.below(3)];
  const durability = options.durability ?? drawn;
  const folder = new StoreFolder();
  const { path } = folder;
  const problems: string[] = [];
  try {
    const db = await openMixed(path, durability);
    fillMixed(db);
    await db.close();
    const seats = Array.from({ length: processes }, () => ({
      script: "mixed-worker",
      isSpared: plantedKind !== undefined,
      order: (life: Life): MixedOrder => ({
        ...life,
        path,
        log: join(path, logName(life.life)),
        counterLog: join(path, counterLogName(life.life)),
        isDurable: durability !== "none",
        plantedKind,
      }),
    }));
    const kills = await killAndReplace({
      random,
      seats,
      kills: options.kills,
      endMs: performance.now() + minutes * 60_000,
      isEnough: () =>
        isEnough(readHistory(path)) &&
        hasPages(path) &&
        (plantedKind !== undefined || countUpdates(readUpdates(path)) >= ENOUGH.deviceUpdates),
      withStops: true,
      longest: LONGEST,
      problems,
      progress,
    });
    return await inspect(options, durability, path, kills, problems);
  } finally {
    endAll();
    await folder.remove();
  }
}

interface Told extends Transaction {
  readonly way: MixedWay;
  readonly isAsync: boolean;
}

function waysOf(history: readonly Told[]): Record<MixedWay | "async", number> {
  const ways = { strict: 0, snapshot: 0, frozen: 0, get: 0, async: 0 };
  for (const { way, isAsync, outcome } of history) {
    if (outcome !== "ok") continue;
    ways[way]++;
    if (isAsync) ways.async++;
  }
  return ways;
}

function isEnough(history: readonly Told[]): boolean {
  const ways = Object.values(waysOf(history));
  return (
    ways.every((count) => count >= ENOUGH.ofEachWay) &&
    history.filter(({ outcome }) => outcome === "ok").length >= ENOUGH.transactions
  );
}

/** Whether the device tables have rows on pages: else nobody was killed who moved any. */
function hasPages(path: string): boolean {
  const folder = join(path, DEVICE_FOLDER);
  if (!existsSync(folder)) return false;
  const files = readdirSync(folder).filter(isDeviceFile);
  return files.some((name) => statSync(join(folder, name)).size > 0);
}

async function inspect(
  { seed }: MixedStormOptions,
  durability: DurabilityMode,
  path: string,
  kills: number,
  problems: string[],
): Promise<MixedStormReport> {
  const history = readHistory(path);
  const db = await openMixed(path);
  try {
    const generations = (db.get(Generation, 0)?.current ?? 0) + 1;
    const updates = readUpdates(path);
    problems.push(...counterProblems(db, updates));
    const finalReads = touchEverything(db, generations * LISTS_PER_GENERATION, problems);
    problems.push(...(await restProblems(db, REST_MS)));
    problems.push(...(await slotProblems(path)));
    problems.push(...(await db.verify()).problems);
    const { counters } = db.stats();

    const { anomalies, counts } = checkListAppend(history, { isolation: "mixed", finalReads });
    problems.push(...anomalies.map((anomaly) => JSON.stringify(anomaly)));
    const count = (outcome: Transaction["outcome"]): number =>
      history.filter((transaction) => transaction.outcome === outcome).length;
    return {
      seed,
      durability,
      kills,
      transactions: { ok: count("ok"), failed: count("failed"), unknown: count("unknown") },
      ways: waysOf(history),
      splits: counters.splits,
      recoveries: counters.recoveries,
      deviceUpdates: countUpdates(updates),
      lists: finalReads.size,
      problems,
      anomalies: [...counts.keys()],
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
    for (const tokens of TOKENS) {
      for (const row of tx.scan(tokens).toArray()) {
        total += row.value;
        tx.put(tokens, row);
      }
    }
    return total;
  });
  if (sum !== TOTAL) problems.push(`the money: ${sum} instead of ${TOTAL}`);
  for (let id = 0; id < lists; id++) {
    const row = db.transactSync((tx) => {
      const found = tx.get(kindOf(id), id);
      if (found !== undefined) tx.put(kindOf(id), found);
      return found;
    });
    if (row !== undefined) finalReads.set(id, valuesIn(row));
  }
  return finalReads;
}

function logName(life: number): string {
  return `life-${life}.log`;
}

function counterLogName(life: number): string {
  return `life-${life}-updates.log`;
}

function readHistory(path: string): Told[] {
  const history: Told[] = [];
  for (const name of readdirSync(path)) {
    const life = /^life-(\d+)\.log$/.exec(name)?.[1];
    if (life !== undefined) readLife(linesOf<LogLine>(join(path, name)), Number(life), history);
  }
  return history;
}

function readUpdates(path: string): CounterLine[][] {
  const names = readdirSync(path).filter((name) => /^life-\d+-updates\.log$/.test(name));
  return names.map((name) => linesOf<CounterLine>(join(path, name)));
}

function linesOf<Line>(path: string): Line[] {
  const text = readFileSync(path, "utf8");
  // A line that the death cut off was the outcome of nothing, or a plan that never ran.
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  const lines = whole.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as Line);
}

/** Errors after which a transaction may be there nevertheless. */
const NOT_SURE = ["SITU_NOT_DURABLE", "SITU_DISK_FULL", "SITU_UNKNOWN_OUTCOME"];

function readLife(lines: readonly LogLine[], life: number, history: Told[]): void {
  const ends = new Map<number, LogLine>();
  for (const line of lines) if (!("planned" in line)) ends.set(line.number, line);
  for (const begun of lines) {
    if (!("planned" in begun)) continue;
    const { way, isAsync, at: start } = begun;
    const ended = ends.get(begun.number);
    const lists = ended !== undefined && "lists" in ended ? ended.lists : undefined;
    const isSure = ended !== undefined && "failed" in ended && !NOT_SURE.includes(ended.failed);
    const outcome = lists !== undefined ? "ok" : isSure ? "failed" : "unknown";
    history.push({
      process: life,
      start,
      end: ended?.at ?? start,
      operations: operationsOf(begun.planned, lists),
      outcome,
      // What is read in one snapshot, or is one row, is of one moment.
      isolation: way === "snapshot" ? "snapshot" : "strict-serializable",
      way,
      isAsync,
    });
  }
}

function operationsOf(
  planned: readonly PlannedOperation[],
  lists: readonly (readonly number[])[] | undefined,
): Operation[] {
  const operations: Operation[] = [];
  let reads = 0;
  for (const [key, value] of planned) {
    if (value > 0) {
      operations.push({ kind: "append", key, value });
      continue;
    }
    if (lists === undefined) continue;
    const keys = value === SCAN ? listsIn(kindOf(key), generationOf(key)) : [key];
    for (const each of keys) operations.push({ kind: "read", key: each, list: lists[reads++] });
  }
  return operations;
}
