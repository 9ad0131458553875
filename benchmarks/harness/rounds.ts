// Contestants take turns within each round, so that a slow moment of the machine hits all of
// them. Each brings its own hot loop: a loop shared between contestants would become megamorphic
// and charge every one of them for the others.
import type { Progress } from "./progress.ts";

export interface Contestant {
  readonly name: string;
  /** Operations that `run(1)` makes, such as the rows of one whole scan. Default: 1. */
  readonly unit?: number;
  /** Performs the operations and returns a number computed from their results. */
  run(operations: number): number | Promise<number>;
}

/** One that runs to the end within the call, as everything in this process's memory does. */
export interface SyncContestant extends Contestant {
  run(operations: number): number;
}

export interface RoundsPlan {
  readonly rounds: number;
  readonly roundMs: number;
}

/** Nanoseconds per operation of one contestant, one entry per round. */
export interface Timing {
  readonly name: string;
  readonly nanoseconds: readonly number[];
}

/** A batch is long against the clock that ends it, short against the round. */
const batchMs = 2;

/** Part of a round that goes by unmeasured after the garbage of others was collected. */
const resettling = 0.3;

/** Everything the loops return flows in here, so that no compiler may drop their work. */
let consumed = 0;

export async function measureRounds(
  contestants: readonly Contestant[],
  plan: RoundsPlan,
  progress: Progress,
): Promise<Timing[]> {
  const entries: { contestant: Contestant; batch: number; nanoseconds: number[] }[] = [];
  for (const contestant of contestants) {
    progress.show(`warming up: ${contestant.name}`);
    const batch = await warmUp(contestant, plan.roundMs);
    entries.push({ contestant, batch, nanoseconds: [] });
  }
  for (let round = 0; round < plan.rounds; round++) {
    for (let turn = 0; turn < entries.length; turn++) {
      // Another one starts each round: nobody always runs after the same neighbour.
      const entry = entries[(turn + round) % entries.length];
      progress.show(`round ${round + 1} of ${plan.rounds}: ${entry.contestant.name}`);
      globalThis.gc?.();
      // A collection also throws away optimized code, whose types have no instances for a moment.
      await measure(entry.contestant, entry.batch, plan.roundMs * resettling);
      entry.nanoseconds.push(await measure(entry.contestant, entry.batch, plan.roundMs));
    }
  }
  if (Number.isNaN(consumed)) throw new Error("a contestant returned garbage");
  return entries.map(({ contestant, nanoseconds }) => ({ name: contestant.name, nanoseconds }));
}

export function timingOf(timings: readonly Timing[], name: string): readonly number[] {
  const timing = timings.find((candidate) => candidate.name === name);
  if (timing === undefined) throw new Error(`no contestant is called ${name}`);
  return timing.nanoseconds;
}

/** Runs for about `roundMs` and returns how many operations make one batch. */
async function warmUp(contestant: Contestant, roundMs: number): Promise<number> {
  const start = performance.now();
  let batch = contestant.unit === undefined ? 16 : 1;
  for (;;) {
    const batchStart = performance.now();
    consumed += await contestant.run(batch);
    const now = performance.now();
    if (now - batchStart < batchMs) batch *= 2;
    else if (now - start >= roundMs) return batch;
  }
}

async function measure(contestant: Contestant, batch: number, roundMs: number): Promise<number> {
  let operations = 0;
  let elapsedMs = 0;
  const start = performance.now();
  do {
    const result = contestant.run(batch);
    // Awaiting a plain number would charge the synchronous contestants for a microtask.
    consumed += typeof result === "number" ? result : await result;
    operations += batch;
    elapsedMs = performance.now() - start;
  } while (elapsedMs < roundMs);
  return (elapsedMs * 1e6) / (operations * (contestant.unit ?? 1));
}
