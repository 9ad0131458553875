/**
 * What all who run asynchronous bodies need: the end of the caller's patience, and to know whether a
 * call comes from inside of a body.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock, Timer } from "../fabric/fabric.ts";
import { nowMs, realClock } from "../runtime/clock.ts";
import { ConflictError, type ConflictKey, SituError, TimeoutError } from "../runtime/errors.ts";

/** The transaction whose body the running code belongs to, or did before it ended. */
class Context {
  readonly database: object;
  running = true;

  constructor(database: object) {
    this.database = database;
  }

  run<T>(body: () => Promise<T>): Promise<T> {
    return context.run(this, body);
  }

  end(): void {
    this.running = false;
  }
}

const context = new AsyncLocalStorage<Context>();

/** For one body: code that it runs is inside a transaction of the database, until `end`. */
export function runInside(database: object): Context {
  return new Context(database);
}

/** Whether the caller runs inside a body of this database's that has not ended. */
export function isInsideTransaction(database: object): boolean {
  const found = context.getStore();
  return found?.database === database && found.running;
}

export interface AsyncLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** With a snapshot for each attempt: how long it lives at most. Else 0. */
  readonly snapshotMs: number;
  /** Whether it returns only when what it did and saw is on disk. */
  readonly waits: boolean;
}

/** The end of the caller's patience: a deadline, or a signal. */
export class Expiry {
  readonly #limits: AsyncLimits;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  #over: ((cause: SituError) => void) | undefined;
  readonly #timer: Timer;
  #onAbort: (() => void) | undefined;
  #cause: SituError | undefined;
  /** Attempts that met others, and the keys that the last of them was about. */
  attempts = 0;
  met: readonly ConflictKey[] = [];

  constructor(limits: AsyncLimits, now = nowMs(), clock: Clock = realClock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#deadlineMs = now + limits.timeoutMs;
    const { signal } = limits;
    if (signal?.aborted) throw aborted(signal);
    this.#timer = clock.after(limits.timeoutMs, () => this.#end(tooSlow(limits.timeoutMs)));
    if (signal) {
      this.#onAbort = () => this.#end(aborted(signal));
      signal.addEventListener("abort", this.#onAbort, { once: true });
    }
  }

  /** What `running` comes to, or the end of the patience, whichever is first. One at a time. */
  race<T>(running: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#over = reject;
      running.then(resolve, reject);
      if (this.#cause !== undefined) reject(this.#cause);
    });
  }

  #end(cause: SituError): void {
    this.#cause = cause;
    this.#over?.(cause);
  }

  isCause(error: unknown): boolean {
    return this.#cause !== undefined && error === this.#cause;
  }

  /** A body that ran too long because it had to be run again was not too slow. */
  explained(cause: unknown): unknown {
    if (this.attempts === 0 || !(cause instanceof TimeoutError)) return cause;
    return metOthers(this.#limits.timeoutMs, this.attempts + 1, this.met);
  }

  get timeoutMs(): number {
    return this.#limits.timeoutMs;
  }

  isOver(): boolean {
    return this.#clock.nowMs() >= this.#deadlineMs;
  }

  /** Between attempts: an abort counts at once, the deadline is for the caller to name. */
  check(): void {
    if (this.#limits.signal?.aborted) throw aborted(this.#limits.signal);
  }

  stop(): void {
    this.#timer.cancel();
    if (this.#onAbort) this.#limits.signal?.removeEventListener("abort", this.#onAbort);
  }
}

function tooSlow(timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `the body of the transaction did not end within ${timeoutMs} ms; nothing was committed`,
  );
}

function metOthers(
  timeoutMs: number,
  attempts: number,
  keys: readonly ConflictKey[],
): ConflictError {
  const what = keys.map(({ table, key }) => `${table} ${String(key)}`).join(", ");
  return new ConflictError(
    `other transactions kept changing ${what || "what this one read"}; it was run ${attempts} ` +
      `times within ${timeoutMs} ms, and nothing was committed. Try again later, or make the ` +
      `transaction shorter`,
    keys,
  );
}

function aborted(signal: AbortSignal): SituError {
  return new SituError("SITU_ABORTED", "the transaction was aborted by its signal", {
    cause: signal.reason,
  });
}
