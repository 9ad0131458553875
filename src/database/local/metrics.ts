/**
 * What an open database counts of its transactions: in shared memory, so that one process speaks for
 * all (engine/metrics.ts). Asynchronous transactions, and
 * those that wait for the disk, are all timed. Of the other synchronous ones about one in 64 is,
 * after a random number of them, and stands for all since the one before: a look at the clock costs
 * too much, and counting off would fall into step with a workload.
 */

import type { Executor } from "../../engine/executor.ts";
import {
  ASYNC_TRANSACTIONS,
  failureOf,
  MetricSums,
  type SlotMetrics,
  SYNC_TRANSACTIONS,
} from "../../engine/metrics.ts";
import { nowMs } from "../../runtime/clock.ts";
import {
  publishTransaction,
  type TransactionOutcome,
  transactionChannel,
} from "../../runtime/diagnostics.ts";
import { SituError } from "../../runtime/errors.ts";
import { TIMED_ONE_IN } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { type Gauges, gaugesOf } from "./gauges.ts";

/** What a database counts, for those who show it. */
export class DatabaseMetrics {
  readonly transactions: TransactionMetrics;
  readonly #executor: Executor;

  constructor(executor: Executor, namespace: string) {
    this.#executor = executor;
    this.transactions = new TransactionMetrics(executor, namespace);
  }

  /** Of all executors that the store ever had. */
  sums(): MetricSums {
    return new MetricSums(this.#executor.memory.control);
  }

  gauges(): Gauges {
    return gaugesOf(this.#executor);
  }
}

export class TransactionMetrics {
  readonly #slot: SlotMetrics;
  readonly #random: Random;
  readonly #namespace: string;
  /** Synchronous transactions until one is timed, and for how many that one stands. */
  #untilTimed: number;
  #standsFor: number;
  /** Of this executor, when the last one that is timed began. */
  #retriesBefore = 0;

  constructor(executor: Executor, namespace: string) {
    this.#slot = executor.metrics;
    this.#random = executor.random;
    this.#namespace = namespace;
    this.#untilTimed = this.#standsFor = this.#pause();
  }

  /** From one to twice the average less one. */
  #pause(): number {
    return 1 + this.#random.below(2 * TIMED_ONE_IN - 1);
  }

  /** A synchronous transaction begins: the time, or 0 if this one is not timed. */
  beginSync(waits: boolean): number {
    if (!waits && --this.#untilTimed > 0 && !transactionChannel.hasSubscribers) return 0;
    this.#retriesBefore = this.#slot.retries;
    return nowMs();
  }

  /** One that is timed has committed. */
  endSync(startMs: number, waits: boolean, isSnapshot: boolean): void {
    const durationMs = this.#observeSync(startMs, waits);
    if (!transactionChannel.hasSubscribers) return;
    this.#publish(true, isSnapshot, durationMs, this.#syncAttempts(), "committed", undefined);
  }

  /** One has failed, whether it is timed or not. */
  failSync(startMs: number, waits: boolean, isSnapshot: boolean, error: unknown): void {
    this.#slot.countFailure(error);
    if (startMs === 0) return;
    const durationMs = this.#observeSync(startMs, waits);
    if (!transactionChannel.hasSubscribers) return;
    this.#publish(true, isSnapshot, durationMs, this.#syncAttempts(), outcomeOf(error), error);
  }

  #observeSync(startMs: number, waits: boolean): number {
    const durationMs = nowMs() - startMs;
    if (waits) {
      this.#slot.observe(SYNC_TRANSACTIONS, durationMs, 1);
    } else if (this.#untilTimed <= 0) {
      this.#slot.observe(SYNC_TRANSACTIONS, durationMs, this.#standsFor);
      this.#untilTimed = this.#standsFor = this.#pause();
    }
    return durationMs;
  }

  /** Nothing else of this executor runs beside a synchronous transaction. */
  #syncAttempts(): number {
    return 1 + this.#slot.retries - this.#retriesBefore;
  }

  endAsync(startMs: number, isSnapshot: boolean, attempts: number): void {
    const durationMs = nowMs() - startMs;
    this.#slot.observe(ASYNC_TRANSACTIONS, durationMs, 1);
    if (!transactionChannel.hasSubscribers) return;
    this.#publish(false, isSnapshot, durationMs, attempts, "committed", undefined);
  }

  failAsync(startMs: number, isSnapshot: boolean, attempts: number, error: unknown): void {
    const durationMs = nowMs() - startMs;
    this.#slot.countFailure(error);
    this.#slot.observe(ASYNC_TRANSACTIONS, durationMs, 1);
    if (!transactionChannel.hasSubscribers) return;
    this.#publish(false, isSnapshot, durationMs, attempts, outcomeOf(error), error);
  }

  #publish(
    isSync: boolean,
    isSnapshot: boolean,
    durationMs: number,
    attempts: number,
    outcome: TransactionOutcome,
    error: unknown,
  ): void {
    const namespace = this.#namespace;
    publishTransaction(namespace, isSync, isSnapshot, durationMs, attempts, outcome, error);
  }
}

function outcomeOf(error: unknown): TransactionOutcome {
  if (error instanceof SituError && error.code === "SITU_NOT_DURABLE") return "not_durable";
  const reason = failureOf(error);
  if (reason === "tooLarge") return "too_large";
  return reason === "rolledBack" ? "rolled_back" : reason;
}
