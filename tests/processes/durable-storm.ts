/**
 * Processes that commit in sync and lazily, are killed one by one (the one that writes the log among
 * them) and replaced, and then all at once. Then either the memory is still there, or it is lost as in a reboot, and
 * the next processes rebuild it from disk, some of which die over that, too. Whatever was acknowledged
 * is judged by durable-history.ts.
 */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import { memoryFolder, readIdentity } from "../../src/folder/store-files.ts";
import type { Recovered } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { verifyTables } from "../../src/tools/tables/verify.ts";
import { endAll, type Running, StoreFolder, start } from "../helpers/engine-processes.ts";
import { slotProblems } from "../helpers/process-rest.ts";
import type { StormOptions } from "../helpers/process-storm.ts";
import type { DurableOrder } from "./durable-child.ts";
import { type Judgement, judge } from "./durable-history.ts";
import { fillDurable, logName, openDurable } from "./durable-store.ts";

export interface DurableStormReport {
  readonly seed: number;
  readonly kills: number;
  /** Times that all were killed at once, and of these, that the memory was lost. */
  readonly crashes: number;
  readonly reboots: number;
  readonly acknowledged: number;
  readonly promised: number;
  readonly lost: number;
  readonly longestLagMs: number;
  /** Recoveries that the judge has done, and of these, those that began with a checkpoint. */
  readonly recoveries: number;
  readonly fromCheckpoint: number;
  readonly longestRecoveryMs: number;
  readonly problems: readonly string[];
}

/** A store is used for so many rounds: its ledger only ever grows. */
const ROUNDS_PER_STORE = 5;
const SHORTEST_ROUND_MS = 150;
const LONGEST_ROUND_MS = 1_200;
const LONGEST_STEPS = 40_000;
const STARTED_MS = 240_000;
/** So often that processes die while checkpoints are taken; and never in the time of a storm. */
const MANY_BYTES = 128 * 1024;
const FEW_BYTES = 2 ** 30;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What a reboot does: the folder in memory is gone, the one on disk is left. */
export function loseMemory(path: string): void {
  rmSync(memoryFolder(readIdentity(path)!), { recursive: true });
}

export async function runDurableStorm(options: StormOptions): Promise<DurableStormReport> {
  const endMs = performance.now() + options.minutes * 60_000;
  const random = new Random(options.seed);
  const total = new Totals(options.seed);
  while (total.problems.length === 0) {
    const storm = new StoreStorm(options, random, total);
    await storm.run();
    if (total.kills >= options.kills && performance.now() >= endMs) break;
    options.progress?.(`${total.kills} kills, ${total.crashes} crashes, ${total.reboots} reboots`);
  }
  return total;
}

class Totals implements DurableStormReport {
  readonly seed: number;
  kills = 0;
  crashes = 0;
  reboots = 0;
  acknowledged = 0;
  promised = 0;
  lost = 0;
  longestLagMs = 0;
  recoveries = 0;
  fromCheckpoint = 0;
  longestRecoveryMs = 0;
  readonly problems: string[] = [];

  constructor(seed: number) {
    this.seed = seed;
  }

  note(recovered: Recovered | undefined): void {
    if (recovered === undefined) return;
    this.recoveries++;
    if (recovered.checkpoints.length > 0) this.fromCheckpoint++;
    this.longestRecoveryMs = Math.max(this.longestRecoveryMs, recovered.ms);
  }

  add(judgement: Judgement): void {
    this.acknowledged += judgement.acknowledged;
    this.promised += judgement.promised;
    this.lost += judgement.lost;
    this.longestLagMs = Math.max(this.longestLagMs, judgement.longestLagMs);
    this.problems.push(...judgement.problems);
  }
}

interface Seat {
  readonly running: Running;
  ended: boolean;
  isReady: boolean;
  killAtMs: number;
}

class StoreStorm {
  readonly #options: StormOptions;
  readonly #random: Random;
  readonly #total: Totals;
  readonly #folder = new StoreFolder();
  readonly #reboots = new Set<number>();
  /** A checkpoint has all that is in memory: where there are many, a gap in the log is not met. */
  readonly #checkpoints: "many" | "few" | "none";
  #lives = 0;

  constructor(options: StormOptions, random: Random, total: Totals) {
    this.#options = options;
    this.#random = random;
    this.#total = total;
    this.#checkpoints = (["many", "few", "none"] as const)[random.below(3)];
  }

  async run(): Promise<void> {
    const { path } = this.#folder;
    const { problems } = this.#total;
    try {
      const db = await openDurable(path, { durability: "lazy" });
      fillDurable(db);
      await db.close();
      for (let round = 1; round <= ROUNDS_PER_STORE && problems.length === 0; round++) {
        await this.#round(round);
        this.#total.crashes++;
        const isReboot = this.#random.below(3) > 0;
        if (isReboot) {
          loseMemory(path);
          this.#reboots.add(round);
          this.#total.reboots++;
        }
        const isLast = round === ROUNDS_PER_STORE;
        // Otherwise it is the next round's processes that find what is left.
        if (isLast || this.#random.below(2) === 0) await this.#judge(isLast);
      }
    } finally {
      endAll();
      await this.#folder.remove();
    }
  }

  /** Processes at work, killed and replaced; in the end all are killed at once. */
  async #round(round: number): Promise<void> {
    const random = this.#random;
    const { problems } = this.#total;
    const seats = Array.from({ length: this.#options.processes }, () => this.#sit(round));
    // At least one of them has got so far that there is something to lose.
    const deadline = performance.now() + STARTED_MS;
    while (!seats.some(({ isReady }) => isReady) && problems.length === 0) {
      if (performance.now() > deadline) problems.push(`round ${round}: nobody has got ready`);
      this.#killAndReplace(seats, round);
      await sleep(3);
    }
    const endMs =
      performance.now() + SHORTEST_ROUND_MS + random.below(LONGEST_ROUND_MS - SHORTEST_ROUND_MS);
    while (performance.now() < endMs && problems.length === 0) {
      this.#killAndReplace(seats, round);
      await sleep(3);
    }
    for (const { running } of seats) running.child.kill("SIGKILL");
    await Promise.all(seats.map(({ running }) => running.ended));
  }

  #killAndReplace(seats: Seat[], round: number): void {
    for (let i = 0; i < seats.length; i++) {
      const seat = seats[i];
      if (!seat.ended && performance.now() > seat.killAtMs) seat.running.child.kill("SIGKILL");
      if (seat.ended) seats[i] = this.#sit(round);
    }
  }

  #sit(round: number): Seat {
    const random = this.#random;
    const life = ++this.#lives;
    const { path } = this.#folder;
    // From a handful of steps, inside of open, to tens of thousands: hundreds of transactions.
    const suicidal = random.below(3) === 0;
    const part = Math.sqrt(random.below(1_000) / 1_000);
    const order: DurableOrder = {
      life,
      seed: 1 + random.below(2 ** 30),
      dieAtStep: suicidal ? Math.ceil(3 * (LONGEST_STEPS / 3) ** part) : 0,
      path,
      log: join(path, logName(round, life)),
      syncPercent: [0, 30, 100][random.below(3)],
      checkpointBytes: this.#checkpoints === "many" ? MANY_BYTES : FEW_BYTES,
      takesCheckpoints: this.#checkpoints !== "none" && random.below(3) === 0,
    };
    const running = start("durable-child", order, suicidal ? { SITU_ATOMICS: "all" } : {});
    const livesLong = random.below(2) === 0;
    const lifeMs = livesLong ? Number.POSITIVE_INFINITY : 100 + random.below(1_000);
    const seat: Seat = {
      running,
      ended: false,
      isReady: false,
      killAtMs: performance.now() + lifeMs,
    };
    running.child.stdout?.once("data", () => {
      seat.isReady = true;
    });
    void running.ended.then(({ code, signal, stderr }) => {
      seat.ended = true;
      if (signal === "SIGKILL") this.#total.kills++;
      else if (code !== 0) {
        this.#total.problems.push(`process ${life} failed: ${stderr.slice(0, 2_000)}`);
      }
    });
    return seat;
  }

  async #judge(isLast: boolean): Promise<void> {
    const { path } = this.#folder;
    const total = this.#total;
    try {
      const db = await openDurable(path);
      try {
        total.note(db.recovered);
        const judgement = judge(db, path, this.#reboots);
        // It is about all rounds so far.
        if (isLast || judgement.problems.length > 0) total.add(judgement);
        // What has come back is good for more than reading.
        if (this.#checkpoints === "few") await db.checkpoint();
      } finally {
        await db.close();
      }
      total.problems.push(...(await slotProblems(path)), ...(await structureProblems(path)));
    } catch (error) {
      total.problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }
}

/** Every structure of the store, and every index against its rows. */
export async function structureProblems(path: string): Promise<readonly string[]> {
  const executor = await attach(settingsOf({ path }), (attached) => attached.executor);
  try {
    return (await verifyTables(executor)).problems;
  } finally {
    executor.close();
  }
}
