/**
 * The retry policy of asynchronous transactions. Its deadline and its signal also interrupt a callback
 * that is running: the caller gets the error at once, and what is left of the callback can do nothing.
 */

import type { Clock, Timer } from "../../fabric/fabric.ts";
import { realClock } from "../../runtime/clock.ts";
import { type ConflictKey, type SituError, TimeoutError } from "../../runtime/errors.ts";
import { aborted, RetryPolicy } from "../../runtime/retry-policy.ts";

export interface AsyncLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

export class AsyncRetry extends RetryPolicy {
  readonly #signal: AbortSignal | undefined;
  #interrupt: ((cause: SituError) => void) | undefined;
  readonly #timer: Timer;
  #onAbort: (() => void) | undefined;
  #cause: SituError | undefined;
  /** The keys that the last failed attempt was about. */
  keys: readonly ConflictKey[] = [];
  /** A lock that has ended several attempts in a row, as the caller is to be told of it. */
  inTheWay: (() => SituError) | undefined;

  constructor({ timeoutMs, signal }: AsyncLimits, clock: Clock = realClock) {
    super({ timeoutMs, signal, clock });
    this.#signal = signal;
    this.checkSignal();
    // Starts the time.
    this.leftMs();
    this.#timer = clock.after(timeoutMs, () => this.#end(tooSlow(timeoutMs)));
    if (signal) {
      this.#onAbort = () => this.#end(aborted(signal));
      signal.addEventListener("abort", this.#onAbort, { once: true });
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
    this.#timer.cancel();
    if (this.#onAbort) this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}

function tooSlow(timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `the transaction did not end within ${timeoutMs} ms; nothing was committed`,
  );
}
