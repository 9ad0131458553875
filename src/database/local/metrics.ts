/**
 * What an open database counts of its transactions, and of the commands of a gateway: in shared
 * memory, so that one process speaks for all (engine/metrics.ts). Asynchronous transactions, and
 * those that wait for the disk, are all timed. Of the other synchronous ones about one in 64 is,
 * after a random number of them, and stands for all since the one before: a look at the clock costs
 * too much, and counting off would fall into step with a workload.
 */

import type { Executor } from "../../engine/executor.ts";
import {
  ASYNC_TRANSACTIONS,
  CLIENTS,
  COMMAND_CALLS,
  COMMAND_FAILURES,
  COMMAND_TIMES,
  failureOf,
  GATEWAY_COUNTERS,
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
import { MAX_COMMANDS, TIMED_ONE_IN } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { type Gauges, gaugesOf } from "./gauges.ts";

/** What a database counts; for gateways, and those who show it. */
export class DatabaseMetrics {
  readonly transactions: TransactionMetrics;
  readonly commands: CommandMetrics;
  readonly #executor: Executor;

  constructor(executor: Executor, namespace: string) {
    this.#executor = executor;
    this.transactions = new TransactionMetrics(executor, namespace);
    this.commands = new CommandMetrics(executor.metrics);
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

const CONNECTIONS_RECEIVED = GATEWAY_COUNTERS.indexOf("connectionsReceived");
const CONNECTIONS_REJECTED = GATEWAY_COUNTERS.indexOf("connectionsRejected");
const BYTES_RECEIVED = GATEWAY_COUNTERS.indexOf("bytesReceived");
const BYTES_SENT = GATEWAY_COUNTERS.indexOf("bytesSent");
const KEYS_EXPIRED = GATEWAY_COUNTERS.indexOf("keysExpired");
const KEYSPACE_HITS = GATEWAY_COUNTERS.indexOf("keyspaceHits");
const KEYSPACE_MISSES = GATEWAY_COUNTERS.indexOf("keyspaceMisses");

/**
 * For a gateway, of one thread: what its clients do. Commands have numbers from 0 up to
 * MAX_COMMANDS; the gateway has their names. Each of these is a few plain loads and stores.
 */
export class CommandMetrics {
  readonly #slot: SlotMetrics;

  constructor(slot: SlotMetrics) {
    this.#slot = slot;
  }

  /** A command was run `n` times. */
  count(command: number, n = 1): void {
    // Beyond its own counters there are others.
    if (command < MAX_COMMANDS) this.#slot.add(COMMAND_CALLS + command, n);
  }

  /** It was answered with an error; it is also one of those that were run. */
  failed(command: number, n = 1): void {
    if (command < MAX_COMMANDS) this.#slot.add(COMMAND_FAILURES + command, n);
  }

  /** `n` commands took so long each, from the request to the reply. */
  observe(durationMs: number, n = 1): void {
    this.#slot.observe(COMMAND_TIMES, durationMs, n);
  }

  /** How many clients this thread has now. */
  clients(open: number): void {
    this.#slot.set(CLIENTS, open);
  }

  connectionReceived(): void {
    this.#slot.countGateway(CONNECTIONS_RECEIVED, 1);
  }

  connectionRejected(): void {
    this.#slot.countGateway(CONNECTIONS_REJECTED, 1);
  }

  received(bytes: number): void {
    this.#slot.countGateway(BYTES_RECEIVED, bytes);
  }

  sent(bytes: number): void {
    this.#slot.countGateway(BYTES_SENT, bytes);
  }

  expired(keys: number): void {
    this.#slot.countGateway(KEYS_EXPIRED, keys);
  }

  hits(keys: number): void {
    this.#slot.countGateway(KEYSPACE_HITS, keys);
  }

  misses(keys: number): void {
    this.#slot.countGateway(KEYSPACE_MISSES, keys);
  }
}
