/**
 * What an executor counts beside the counters of its slot (slot.ts), in a block of the control
 * segment of its own. The rule is the same: only the owner writes, with plain stores of float64,
 * and anyone sums over all slots. A block outlives its owner, so the sums speak for all executors
 * that the store ever had. Only gauges, which say how things are now, end with the owner.
 *
 *   f64 0–7      aborts: attempts that did not commit, by reason
 *   f64 8–15     failures: transactions that ended with an error, by reason
 *   f64 16       retries: attempts after the first
 *   f64 24–31    gauges
 *   f64 32–47    what a gateway counts
 *   f64 48…      histograms, 28 each: synchronous and asynchronous transactions, commands
 *   f64 132…     calls of each command of the gateway, then its failures, 160 each
 *
 * An attempt is counted once: as a commit in the slot, or as an abort here. A transaction whose
 * attempts all met others is a failure as well; one that was run again and got through is none.
 *
 * A histogram has buckets that end at powers of two, from 1 µs to 2^24 µs (16.8 s), one more for all
 * that took longer, and the sum in milliseconds. How many there were is the sum of the buckets: a
 * count of its own could disagree with them, as nobody stops the writers.
 */

import { type Control, METRIC_WORDS } from "../memory/control.ts";
import { assert } from "../runtime/assert.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_COMMANDS } from "../runtime/limits.ts";
import { slotsInUse } from "./slot.ts";

/** Why an attempt did not commit. */
export const ABORT_REASONS = [
  /** What it needs is locked by another, or another has priority. */
  "lock",
  /** What it read has changed. */
  "validation",
  /** No memory was left; some is made free before the next attempt. */
  "memory",
  /** Its journal is full: the log has to catch up first. */
  "journal",
  /** Its body threw an error of its own, or called an operation that failed. */
  "rolledBack",
  /** Its time was over. */
  "timeout",
  /** A value, a row or the whole was larger than its limit. */
  "tooLarge",
  /** Cancelled by its signal; or the log has failed; or its snapshot was released. */
  "other",
] as const;
export type AbortReason = (typeof ABORT_REASONS)[number];

/** Why a transaction ended with an error. */
export const FAILURE_REASONS = [
  "conflict",
  "timeout",
  "full",
  "tooLarge",
  "rolledBack",
  "other",
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

const ABORTS = 0;
const FAILURES = 8;
const RETRIES = 16;
const GAUGES = 24;
const GAUGE_COUNT = 8;
export const CLIENTS = GAUGES;
/** What a gateway counts is for the gateway to name (gateways/metrics/metric-table.ts). */
export const GATEWAY = 32;
export const GATEWAY_ROOM = 16;
export const SYNC_TRANSACTIONS = 48;
export const ASYNC_TRANSACTIONS = 76;
export const COMMAND_TIMES = 104;
const HISTOGRAM_SIZE = 28;
export const COMMAND_CALLS = 132;
export const COMMAND_FAILURES = COMMAND_CALLS + MAX_COMMANDS;

/** The last bucket with an end takes up to 2^24 µs; the one after it takes the rest. */
const LAST_POWER = 24;
const BUCKETS = LAST_POWER + 2;
const SUM_MS = BUCKETS;
const LAST_END_US = 2 ** LAST_POWER;

assert(COMMAND_FAILURES + MAX_COMMANDS <= METRIC_WORDS / 2, "the counters fit their block");
assert(SUM_MS < HISTOGRAM_SIZE, "the buckets and their sum fit a histogram");
assert(ABORT_REASONS.length <= FAILURES - ABORTS, "the reasons fit");
assert(GATEWAY + GATEWAY_ROOM <= SYNC_TRANSACTIONS, "the gateway's counters fit");

const LOCK = ABORT_REASONS.indexOf("lock");
const VALIDATION = ABORT_REASONS.indexOf("validation");
export const MEMORY_ABORT = ABORT_REASONS.indexOf("memory");
export const JOURNAL_ABORT = ABORT_REASONS.indexOf("journal");

/** The block of one executor. It may be used after the store was closed, and then counts nothing. */
export class SlotMetrics {
  readonly #control: Control;
  readonly #base: number;

  constructor(control: Control, slot: number) {
    this.#control = control;
    this.#base = control.metricsAt(slot) / 2;
  }

  add(counter: number, by: number): void {
    this.#control.f64[this.#base + counter] += by;
  }

  set(gauge: number, value: number): void {
    this.#control.f64[this.#base + gauge] = value;
  }

  /** An attempt met another: with a lock or another's priority in its way, or too late. */
  countConflict(isHeld: boolean): void {
    this.add(ABORTS + (isHeld ? LOCK : VALIDATION), 1);
  }

  countAbort(reason: number): void {
    this.add(ABORTS + reason, 1);
  }

  /** An attempt ended with an error that is the caller's to see. */
  countAbortBy(error: unknown): void {
    this.add(ABORTS + abortOf(error), 1);
  }

  countRetry(): void {
    this.add(RETRIES, 1);
  }

  /** A transaction ended with this error. */
  countFailure(error: unknown): void {
    this.add(FAILURES + FAILURE_REASONS.indexOf(failureOf(error)), 1);
  }

  /** Of this executor alone. */
  get retries(): number {
    return this.#control.f64[this.#base + RETRIES];
  }

  /** Something took so long, `count` times. */
  observe(histogram: number, durationMs: number, count: number): void {
    const { f64 } = this.#control;
    const at = this.#base + histogram;
    f64[at + bucketOf(durationMs)] += count;
    f64[at + SUM_MS] += durationMs * count;
  }
}

/** The bucket ends at 2^bucket µs, and takes what is equal to its end. */
export function bucketOf(durationMs: number): number {
  const us = Math.ceil(durationMs * 1e3);
  if (us > LAST_END_US) return LAST_POWER + 1;
  return us > 1 ? 32 - Math.clz32(us - 1) : 0;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof SituError ? error.code : undefined;
}

const REASONS_OF_ABORTS: Readonly<Record<string, AbortReason>> = {
  SITU_CONFLICT: "validation",
  SITU_TIMEOUT: "timeout",
  SITU_FULL: "memory",
  SITU_NO_MEMORY: "memory",
  SITU_TOO_LARGE: "tooLarge",
  SITU_ABORTED: "other",
  SITU_LOG_FAILED: "other",
  SITU_MEMORY_LOST: "other",
  SITU_DISK_FULL: "other",
  SITU_SNAPSHOT_TOO_OLD: "other",
};

function abortOf(error: unknown): number {
  const code = codeOf(error);
  const reason = code === undefined ? undefined : REASONS_OF_ABORTS[code];
  return ABORT_REASONS.indexOf(reason ?? "rolledBack");
}

const REASONS_OF_FAILURES: Readonly<Record<string, FailureReason>> = {
  SITU_CONFLICT: "conflict",
  SITU_TIMEOUT: "timeout",
  SITU_FULL: "full",
  SITU_NO_MEMORY: "full",
  SITU_TOO_LARGE: "tooLarge",
  SITU_ABORTED: "other",
  SITU_LOG_FAILED: "other",
  SITU_MEMORY_LOST: "other",
  SITU_DISK_FULL: "other",
  SITU_NOT_DURABLE: "other",
  SITU_SNAPSHOT_TOO_OLD: "other",
};

export function failureOf(error: unknown): FailureReason {
  const code = codeOf(error);
  return (code === undefined ? undefined : REASONS_OF_FAILURES[code]) ?? "rolledBack";
}

/** Whoever was counted in the gauges of a slot is gone with its owner. */
export function clearGauges(control: Control, slot: number): void {
  const at = control.metricsAt(slot) / 2 + GAUGES;
  control.f64.fill(0, at, at + GAUGE_COUNT);
}

/** How many took how long. */
export interface Histogram {
  /** Up to 2^i µs each, and not in an earlier one; the last has no end. */
  readonly buckets: readonly number[];
  readonly count: number;
  readonly sumMs: number;
}

/** Where each bucket ends, in microseconds. */
export const BUCKET_ENDS_US: readonly number[] = Array.from({ length: BUCKETS }, (_, power) =>
  power > LAST_POWER ? Number.POSITIVE_INFINITY : 2 ** power,
);

/** The blocks of all slots, added up at one moment. */
export class MetricSums {
  readonly #sums = new Float64Array(METRIC_WORDS / 2);

  constructor(control: Control) {
    const sums = this.#sums;
    const slots = slotsInUse(control);
    for (let slot = 0; slot < slots; slot++) {
      const base = control.metricsAt(slot) / 2;
      for (let i = 0; i < sums.length; i++) sums[i] += control.f64[base + i];
    }
  }

  get aborts(): Readonly<Record<AbortReason, number>> {
    return this.#named(ABORTS, ABORT_REASONS);
  }

  get failures(): Readonly<Record<FailureReason, number>> {
    return this.#named(FAILURES, FAILURE_REASONS);
  }

  /** One counter, by its place. */
  at(counter: number): number {
    return this.#sums[counter];
  }

  get retries(): number {
    return this.#sums[RETRIES];
  }

  get clients(): number {
    return this.#sums[CLIENTS];
  }

  callsOf(command: number): number {
    return this.#sums[COMMAND_CALLS + command];
  }

  failuresOf(command: number): number {
    return this.#sums[COMMAND_FAILURES + command];
  }

  histogram(at: number): Histogram {
    const buckets = [...this.#sums.subarray(at, at + BUCKETS)];
    const count = buckets.reduce((sum, bucket) => sum + bucket, 0);
    return { buckets, count, sumMs: this.#sums[at + SUM_MS] };
  }

  #named<Name extends string>(at: number, names: readonly Name[]): Record<Name, number> {
    const entries = names.map((name, i) => [name, this.#sums[at + i]]);
    return Object.fromEntries(entries) as Record<Name, number>;
  }
}
