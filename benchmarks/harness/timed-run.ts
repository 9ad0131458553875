// Running something for a given time, with a clock that is the same in every process of the
// machine: CLOCK_MONOTONIC.
import { readFileSync } from "node:fs";
import type { SyncContestant } from "./rounds.ts";
import { sink } from "./sink.ts";

export interface TimedRun {
  readonly operations: number;
  readonly startNs: number;
  readonly endNs: number;
  /** How long the process was ready to run while others had the processors. */
  readonly waitedNs: number;
}

const operationsPerCheck = 256;

export function runFor(contestant: SyncContestant, ms: number): TimedRun {
  let operations = 0;
  const waitedBefore = waitedForProcessorNs();
  const startNs = monotonicNs();
  const deadlineNs = startNs + ms * 1e6;
  let endNs = startNs;
  while (endNs < deadlineNs) {
    sink.value = contestant.run(operationsPerCheck);
    operations += operationsPerCheck;
    endNs = monotonicNs();
  }
  return { operations, startNs, endNs, waitedNs: waitedForProcessorNs() - waitedBefore };
}

/** A run of operations that take long enough to look at the clock between them. */
export interface TimedEach extends TimedRun {
  /** What half of the operations take at most. */
  readonly p50Ns: number;
}

export function runEach(contestant: SyncContestant, ms: number): TimedEach {
  const durations: number[] = [];
  const waitedBefore = waitedForProcessorNs();
  const startNs = monotonicNs();
  const deadlineNs = startNs + ms * 1e6;
  let endNs = startNs;
  while (endNs < deadlineNs) {
    const beforeNs = endNs;
    sink.value = contestant.run(1);
    endNs = monotonicNs();
    durations.push(endNs - beforeNs);
  }
  const waitedNs = waitedForProcessorNs() - waitedBefore;
  durations.sort((left, right) => left - right);
  const p50Ns = durations[(durations.length - 1) >> 1];
  return { operations: durations.length, startNs, endNs, waitedNs, p50Ns };
}

/** The part of a run in which others had the processors: what it measures is not Situ then. */
export function waitedPart({ startNs, endNs, waitedNs }: TimedRun): number {
  return waitedNs / (endNs - startNs);
}

/** Operations per second of all of them, from the first start to the last end. */
export function perSecond(...runs: readonly TimedRun[]): number {
  const start = Math.min(...runs.map(({ startNs }) => startNs));
  const end = Math.max(...runs.map(({ endNs }) => endNs));
  return (runs.reduce((sum, { operations }) => sum + operations, 0) * 1e9) / (end - start);
}

export function monotonicNs(): number {
  return Number(process.hrtime.bigint());
}

/** Of this thread, ever; as Linux counts it, and 0 elsewhere. */
function waitedForProcessorNs(): number {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[1]);
  } catch {
    return 0;
  }
}
