/**
 * When a loop that meets other transactions tries again, and when it gives up. All such loops follow
 * this policy; they differ in how they wait and in what they do when it is over:
 *
 *   loop                              waits                          when it is over
 *   transactSync, gateways            blocks the thread (Backoff)    ConflictError or TimeoutError
 *   get, scan, snapshots (local)      blocks the thread (Backoff)    the same
 *   maintenance of structures         never: `tryRun`                leaves the work undone
 *   transact, local and remote        the event loop turns           ConflictError or TimeoutError
 *   get and scan (remote)             the event loop turns           the same
 *
 * A policy ends when its time has passed, when it has seen `maxAttempts` failed attempts, or when its
 * signal is aborted. `begin` says nothing about the clock: the time counts from the first look at
 * it, because most operations never meet anybody, and a look at the clock costs more than they do.
 */

import { realClock } from "./clock.ts";
import { ConflictError, type ConflictKey, SituError } from "./errors.ts";
import { MAX_ATTEMPTS } from "./limits.ts";
import type { Random } from "./random.ts";
import { showKey } from "./show.ts";

export interface RetryLimits {
  readonly timeoutMs: number;
  readonly maxAttempts?: number;
  readonly signal?: AbortSignal | undefined;
  /** Default: the monotonic clock of this process. */
  readonly clock?: { nowMs(): number };
}

export class RetryPolicy {
  /** Attempts that have failed so far. */
  attempts = 0;
  readonly maxAttempts: number;
  readonly #signal: AbortSignal | undefined;
  readonly #clock: { nowMs(): number };
  #timeoutMs = 0;
  #deadlineMs = 0;

  constructor(limits: RetryLimits) {
    const { timeoutMs, maxAttempts = MAX_ATTEMPTS, signal, clock = realClock } = limits;
    this.maxAttempts = maxAttempts;
    this.#signal = signal;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** Starts over, for the next operation. */
  begin(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs;
    this.#deadlineMs = 0;
    this.attempts = 0;
  }

  /** Counts an attempt that failed. False if it was the last; throws if the signal is aborted. */
  mayRetry(): boolean {
    this.attempts++;
    this.checkSignal();
    return this.attempts < this.maxAttempts && !this.isOver();
  }

  isOver(): boolean {
    return this.leftMs() <= 0;
  }

  /** How much of the time is left; the first call starts it. */
  leftMs(now = this.#clock.nowMs()): number {
    if (this.#deadlineMs === 0) this.#deadlineMs = now + this.#timeoutMs;
    return this.#deadlineMs - now;
  }

  checkSignal(): void {
    if (this.#signal?.aborted) throw aborted(this.#signal);
  }

  /** The longest pause after the attempts so far: twice as long with each of them. */
  longestPauseMs(firstMs: number, longestMs: number): number {
    return Math.min(firstMs * 2 ** Math.min(this.attempts, 16), longestMs);
  }

  /** A random pause up to that, so that two that met do not meet again. */
  pauseMs(random: Random, firstMs: number, longestMs: number): number {
    return random.below(this.longestPauseMs(firstMs, longestMs));
  }

  /** The error for one that others never let through. */
  conflict(what: string, keys: readonly ConflictKey[] = []): ConflictError {
    const named = keys.map(({ table, key }) => `${table} ${showKey(key)}`).join(", ");
    return new ConflictError(
      `other transactions kept changing ${named || what}: gave up after ${this.attempts} ` +
        `${this.attempts === 1 ? "attempt" : "attempts"} within ${this.#timeoutMs} ms, and nothing ` +
        `was committed. Try again later, or make the transaction shorter`,
      keys,
    );
  }
}

export function aborted(signal: AbortSignal): SituError {
  return new SituError("SITU_ABORTED", "the transaction was aborted by its signal", {
    cause: signal.reason,
  });
}
