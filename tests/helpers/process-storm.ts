/**
 * Seats at a table: processes at work, each of which is killed at a random moment, or kills itself
 * at a random atomic step, and is replaced by another. What every kill storm is made of.
 */

import type { Random } from "../../src/runtime/random.ts";
import { type Running, start } from "./engine-processes.ts";

/** What a process is started with; `life` is different for every one that ever takes part. */
export interface Life {
  readonly life: number;
  readonly seed: number;
  /** 0: does not kill itself. */
  readonly dieAtStep: number;
}

export interface StormOptions {
  readonly seed: number;
  readonly processes: number;
  /** The storm ends when both are reached. */
  readonly kills: number;
  readonly minutes: number;
  readonly progress?: ((line: string) => void) | undefined;
}

export interface SeatsOptions {
  readonly random: Random;
  /** The script of each seat, and what it gets beside its life. */
  readonly seats: readonly SeatPlan[];
  /** The storm ends when both are reached. */
  readonly kills: number;
  readonly endMs: number;
  /** Asked then, now and again: a loaded machine may have killed them before they did much. */
  readonly isEnough?: () => boolean | Promise<boolean>;
  /** Whether processes are also stopped for a while, wherever they are, and resumed. */
  readonly withStops?: boolean;
  /** Processes live up to so many ms, or atomic steps. */
  readonly longest?: { readonly ms: number; readonly steps: number };
  /** Sentences about what went wrong; the first one ends the storm. */
  readonly problems: string[];
  readonly progress?: ((line: string) => void) | undefined;
}

export interface SeatPlan {
  readonly script: string;
  /** Lives until the end of the storm. */
  readonly isSpared?: boolean;
  order(life: Life): unknown;
}

interface Seat {
  readonly plan: SeatPlan;
  running: Running;
  ended: boolean;
  /** When the driver kills it, on the clock of performance.now(). */
  killAtMs: number;
  isReady: boolean;
  /** While it is stopped: when it may go on. */
  resumeAtMs: number | undefined;
}

/** What a process needs to start, on a machine at rest; lives are longer where it needs longer. */
const START_MS = 100;
/** Far more than enough, on any machine. */
const LONGEST_STORM_MS = 240_000;
/** How often the storm asks whether it is enough, if nobody was killed meanwhile. */
const ASK_MS = 500;
const NEVER = Number.POSITIVE_INFINITY;
const STOP_CHANCE = 60;
const LONGEST_STOP_MS = 120;

/** Stops a process that runs, now and then, and lets one go on whose time has come. */
function stopOrResume(seat: Seat, random: Random): void {
  if (seat.resumeAtMs !== undefined) {
    if (performance.now() >= seat.resumeAtMs) resume(seat);
  } else if (random.below(STOP_CHANCE) === 0) {
    seat.resumeAtMs = performance.now() + random.below(LONGEST_STOP_MS);
    seat.running.child.kill("SIGSTOP");
  }
}

function resume(seat: Seat): void {
  if (seat.resumeAtMs === undefined) return;
  seat.resumeAtMs = undefined;
  seat.running.child.kill("SIGCONT");
}

/** Keeps the seats taken until the storm is over; returns how many were killed. */
export async function killAndReplace(options: SeatsOptions): Promise<number> {
  const { random, endMs, problems, progress } = options;
  const { longest = { ms: 500, steps: 50_000 } } = options;
  let wanted = options.kills;
  let askAgainMs = NEVER;
  let lives = 0;
  let kills = 0;
  /** How many times slower than at rest the machine is: of the processes that started last. */
  let pace = 1;
  const lastMs = Math.max(endMs, performance.now()) + LONGEST_STORM_MS;

  const sit = (plan: SeatPlan): Seat => {
    const life = ++lives;
    // From a handful of steps, inside of open, to tens of thousands: hundreds of transactions.
    const suicidal = plan.isSpared !== true && random.below(2) === 0;
    const part = Math.sqrt(random.below(1_000) / 1_000);
    const dieAtStep = suicidal ? Math.ceil(3 * (longest.steps / 3) ** part) : 0;
    const order = plan.order({ life, seed: 1 + random.below(2 ** 30), dieAtStep });
    const running = start(plan.script, order, suicidal ? { SITU_ATOMICS: "all" } : {});
    // Some are killed while they start or open the store, the others some time after.
    const isEarly = random.below(5) === 0;
    const startMs = performance.now();
    const lifeMs = pace * (suicidal ? 2_000 : 20 + random.below(longest.ms));
    const killsEarly = isEarly && !plan.isSpared;
    const killAtMs = killsEarly ? startMs + pace * random.below(2 * START_MS) : NEVER;
    const seat: Seat = {
      plan,
      running,
      ended: false,
      killAtMs,
      resumeAtMs: undefined,
      isReady: false,
    };
    running.child.stdout?.once("data", () => {
      seat.isReady = true;
      const nowMs = performance.now();
      pace = Math.max(1, (pace + (nowMs - startMs) / START_MS) / 2);
      if (!plan.isSpared && !killsEarly) seat.killAtMs = nowMs + lifeMs;
    });
    void running.ended.then(({ code, signal, stderr }) => {
      seat.ended = true;
      if (signal === "SIGKILL") kills++;
      else if (code !== 0) problems.push(`process ${life} failed: ${stderr.slice(0, 2_000)}`);
    });
    return seat;
  };

  const isOver = async (): Promise<boolean> => {
    const isAsked = kills >= wanted || performance.now() > askAgainMs;
    if (!isAsked || performance.now() < endMs) return isTooLong();
    // One that is stopped may hold what the question needs, and nobody resumes it meanwhile.
    for (const seat of seats) resume(seat);
    const answered = kills;
    if (options.isEnough === undefined || (await options.isEnough())) return true;
    wanted = answered + 1;
    askAgainMs = performance.now() + ASK_MS;
    return isTooLong();
  };

  const isTooLong = (): boolean => {
    if (performance.now() < lastMs) return false;
    problems.push(`too little happened in ${LONGEST_STORM_MS} ms more than there was time for`);
    return true;
  };

  const seats = options.seats.map(sit);
  while (problems.length === 0 && !(await isOver())) {
    const before = kills;
    for (let index = 0; index < seats.length; index++) {
      const seat = seats[index];
      if (!seat.ended && performance.now() > seat.killAtMs) {
        seat.running.child.kill("SIGKILL");
        // Now and then its neighbour goes with it, who may be recovering it or waiting for it.
        const neighbour = seats[(index + 1) % seats.length];
        if (random.below(4) === 0 && !neighbour.plan.isSpared) neighbour.killAtMs = 0;
        await seat.running.ended;
      }
      if (seat.ended) seats[index] = sit(seat.plan);
      else if (options.withStops) stopOrResume(seat, random);
    }
    if (progress && kills !== before && kills % 100 === 0) progress(`${kills} kills`);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  for (const seat of seats) {
    resume(seat);
    seat.running.child.stdin?.end();
  }
  await Promise.all(seats.map(({ running }) => running.ended));
  return kills;
}
