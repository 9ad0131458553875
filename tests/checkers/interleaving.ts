/**
 * Many processes in one: each is a generator that yields wherever another may run, and a seeded
 * scheduler picks who goes on. Time is the number of steps taken.
 */

import type {
  FinalReads,
  History,
  Operation,
  Transaction,
} from "../../simulation/checkers/history.ts";

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** mulberry32: uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }
}

export interface Recording {
  readonly history: History;
  readonly finalReads: FinalReads;
}

/** What a transaction is going to do, before anybody knows what its reads return. */
export interface Intention {
  readonly kind: "append" | "read";
  readonly key: number;
}

export function planTransaction(random: Random, keyCount: number): readonly Intention[] {
  const length = 1 + random.below(4);
  const appendShare = random.chance(0.4) ? 0 : 0.5;
  return Array.from({ length }, () => ({
    kind: random.chance(appendShare) ? "append" : "read",
    key: random.below(keyCount),
  }));
}

export type Steps<Result> = Generator<void, Result, void>;
export type Finished = Pick<Transaction, "outcome"> & { readonly operations: readonly Operation[] };

export interface Schedule {
  readonly random: Random;
  readonly processCount: number;
  readonly transactionCount: number;
  readonly run: (process: number) => Steps<Finished>;
  readonly beforeStep?: (time: number) => void;
}

export function interleave(schedule: Schedule): History {
  const { random, processCount, transactionCount, run, beforeStep } = schedule;
  const history: Transaction[] = [];
  const running: { process: number; start: number; steps: Steps<Finished> }[] = [];
  let started = 0;
  let time = 0;
  const startOne = (process: number): void => {
    if (started === transactionCount) return;
    started++;
    running.push({ process, start: time, steps: run(process) });
  };
  for (let process = 0; process < processCount; process++) startOne(process);

  while (running.length > 0) {
    time++;
    beforeStep?.(time);
    const chosen = random.below(running.length);
    const { process, start, steps } = running[chosen];
    const step = steps.next();
    if (step.done !== true) continue;
    running.splice(chosen, 1);
    history.push({ process, start, end: time, ...step.value });
    time++;
    startOne(process);
  }
  return history;
}
