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
import { attach } from "../../src/database/attach.ts";
import { settingsOf } from "../../src/database/options.ts";
import { ACTIVE, IDLE, STATUS } from "../../src/engine/slot.ts";
import type { Database } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, type Running, StoreFolder, start } from "../helpers/engine-processes.ts";
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
  readonly progress?: (line: string) => void;
}

export interface StormReport {
  readonly seed: number;
  readonly kills: number;
  readonly transactions: Readonly<Record<Transaction["outcome"], number>>;
  readonly splits: number;
  readonly recoveries: number;
  readonly lists: number;
  /** How long the first transaction over everything took after the last kill. */
  readonly restMs: number;
  /** Everything that is wrong, as sentences. */
  readonly problems: readonly string[];
}

/** One place at the table: the process that sits there now, and how it will go. */
interface Seat {
  running: Running;
  ended: boolean;
  /** When the driver kills it, on the clock of performance.now(). */
  killAtMs: number;
}

export async function runStorm(options: StormOptions): Promise<StormReport> {
  const folder = new StoreFolder();
  const problems: string[] = [];
  try {
    const db = await openStorm(folder.path);
    fillStorm(db);
    await db.close();
    const kills = await killAndReplace(options, folder.path, problems);
    return await inspect(options.seed, folder.path, kills, problems);
  } finally {
    endAll();
    await folder.remove();
  }
}

async function killAndReplace(
  { seed, processes, kills: wanted, minutes, progress }: StormOptions,
  path: string,
  problems: string[],
): Promise<number> {
  const random = new Random(seed);
  const endMs = performance.now() + minutes * 60_000;
  let lives = 0;
  let kills = 0;

  const sit = (): Seat => {
    const life = ++lives;
    // From a handful of steps, inside of open, to tens of thousands: hundreds of transactions.
    const suicidal = random.below(2) === 0;
    const dieAtStep = suicidal ? Math.ceil(10 ** (0.5 + random.below(400) / 100)) : 0;
    const order: StormOrder = {
      path,
      log: join(path, `life-${life}.log`),
      seed: 1 + random.below(2 ** 30),
      life,
      dieAtStep,
    };
    const running = start("storm-worker", order, suicidal ? { SITU_ATOMICS: "all" } : {});
    // A process needs about 80 ms to start: some are killed while they open the store.
    const killAtMs = performance.now() + (suicidal ? 2_000 : 60 + random.below(300));
    const seat: Seat = { running, ended: false, killAtMs };
    void running.ended.then(({ code, signal, stderr }) => {
      seat.ended = true;
      if (signal === "SIGKILL") kills++;
      else if (code !== 0) problems.push(`process ${life} failed: ${stderr.slice(0, 2_000)}`);
    });
    return seat;
  };

  const seats = Array.from({ length: processes }, sit);
  while ((kills < wanted || performance.now() < endMs) && problems.length === 0) {
    const before = kills;
    for (let index = 0; index < seats.length; index++) {
      const seat = seats[index];
      if (!seat.ended && performance.now() > seat.killAtMs) {
        seat.running.child.kill("SIGKILL");
        // Now and then its neighbour goes with it, who may be recovering it or waiting for it.
        if (random.below(4) === 0) seats[(index + 1) % seats.length].killAtMs = 0;
        await seat.running.ended;
      }
      if (seat.ended) seats[index] = sit();
    }
    if (progress && kills !== before && kills % 100 === 0) progress(`${kills} kills`);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  for (const { running } of seats) running.child.stdin?.end();
  await Promise.all(seats.map(({ running }) => running.ended));
  return kills;
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
    const { executors, counters } = db.stats();
    const others = executors.filter(({ pid }) => pid !== process.pid);
    if (others.length > 0) problems.push(`still listed: ${JSON.stringify(others)}`);
    await checkSlots(path, problems);

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

/** At rest no slot has a commit under way or a transaction announced: so no lock has an owner. */
async function checkSlots(path: string, problems: string[]): Promise<void> {
  await attach(settingsOf({ path }), ({ executor }) => {
    const { control } = executor.memory;
    for (let slot = 0; slot < control.geometry.slots; slot++) {
      const at = control.slotAt(slot);
      const status = Atomics.load(control.i32, at + STATUS);
      const active = Atomics.load(control.i32, at + ACTIVE);
      if (status !== IDLE || active !== 0) {
        problems.push(`slot ${slot} at rest: status ${status}, active ${active}`);
      }
    }
    executor.close();
  });
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
