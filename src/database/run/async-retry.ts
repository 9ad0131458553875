/**
 * The retry policy of asynchronous transactions. Its deadline and its signal also interrupt a callback
 * that is running: the caller gets the error at once, and what is left of the callback can do nothing.
 *
 * On this machine most transactions end before the event loop turns, and no timer could interrupt them
 * earlier. Those that are still under way when it turns get a timer then: one immediate for all that
 * began in the turn, instead of a timer for each. On the clock of a fabric, which may be virtual, each has
 * a timer at once.
 */

import type { Clock, Timer } from "../../fabric/fabric.ts";
import { afterTurn, nowMs, realClock } from "../../runtime/clock.ts";
import { type ConflictKey, type SituError, TimeoutError } from "../../runtime/errors.ts";
import { aborted, RetryPolicy } from "../../runtime/retry-policy.ts";

export interface AsyncLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

const NO_KEYS: readonly ConflictKey[] = [];

/** Those that began since the event loop turned last, and have not ended. */
let unwatched: AsyncRetry[] = [];
let isWatchDue = false;

export class AsyncRetry extends RetryPolicy {
  readonly #signal: AbortSignal | undefined;
  #interrupt: ((cause: SituError) => void) | undefined;
  #timer: Timer | undefined;
  /** Its place among the unwatched; -1 if it has a timer, or has ended. */
  #place = -1;
  #onAbort: (() => void) | undefined;
  #cause: SituError | undefined;
  /** The keys that the last failed attempt was about. */
  keys = NO_KEYS;
  /** A lock that has ended several attempts in a row, as the caller is to be told of it. */
  inTheWay: (() => SituError) | undefined;

  /** Without a clock of its own: on that of this machine, where it is `startMs` now. */
  constructor({ timeoutMs, signal }: AsyncLimits, clock?: Clock, startMs = nowMs()) {
    super({ timeoutMs, signal, clock: clock ?? realClock });
    this.#signal = signal;
    this.checkSignal();
    // Starts the time.
    if (clock === undefined) {
      this.leftMs(startMs);
      this.#place = unwatched.push(this) - 1;
      if (!isWatchDue) watchAfterTurn();
    } else {
      this.leftMs();
      this.#watch(clock, timeoutMs);
    }
    if (signal) {
      this.#onAbort = () => this.#end(aborted(signal));
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
  }

  #watch(clock: Clock, leftMs: number): void {
    this.#timer = clock.after(leftMs, () => this.#end(tooSlow(this.timeoutMs)));
  }

  /** The event loop turns, and these are still under way. */
  static watchAll(): void {
    isWatchDue = false;
    const all = unwatched;
    unwatched = [];
    for (const retry of all) {
      retry.#place = -1;
      retry.#watch(realClock, Math.max(retry.leftMs(), 0));
    }
  }

  /** What `running` comes to, or the error of the deadline or the signal if that is first. One at a time. */
  race<T>(running: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      running.then(resolve, reject);
      if (this.#cause !== undefined) reject(this.#cause);
    });
  }

  /** Calls `interrupt` when the time is over, or the signal aborted. */
  onEnd(interrupt: (cause: SituError) => void): void {
    this.#interrupt = interrupt;
    if (this.#cause !== undefined) interrupt(this.#cause);
  }

  #end(cause: SituError): void {
    this.#cause = cause;
    this.#interrupt?.(cause);
  }

  /** Whether an error is that of the deadline or the signal. */
  isCause(error: unknown): boolean {
    return this.#cause !== undefined && error === this.#cause;
  }

  /** A callback that ran too long because it had to be run again was not too slow. */
  explained(cause: unknown): unknown {
    if (!(cause instanceof TimeoutError)) return cause;
    if (this.inTheWay !== undefined) return this.inTheWay();
    if (this.attempts === 0) return cause;
    this.attempts++;
    return this.conflict("what this one read", this.keys);
  }

  stop(): void {
    this.#timer?.cancel();
    if (this.#place >= 0) {
      const last = unwatched.pop()!;
      if (last !== this) {
        unwatched[this.#place] = last;
        last.#place = this.#place;
      }
      this.#place = -1;
    }
    if (this.#onAbort) this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}

function watchAfterTurn(): void {
  isWatchDue = true;
  afterTurn(AsyncRetry.watchAll);
}

function tooSlow(timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `the transaction did not end within ${timeoutMs} ms; nothing was committed`,
  );
}
