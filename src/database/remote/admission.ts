/**
 * How many transactions and calls of one connected database run at once. More under way do not get more
 * done: beyond a few hundred, each only waits longer for its nodes, meets more of the others, and is
 * run again. So the rest wait here, in their order, and nothing is sent for them.
 *
 * Load that cannot be served is refused while it is cheap to say so: at once where, by the rate of the
 * last seconds, a turn would come too late, and otherwise when the time is over. Nothing was begun then,
 * and the caller may try again later.
 */

import type { Clock, Timer } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  MAX_RUNNING_TRANSACTIONS,
  MAX_WAITING_TRANSACTIONS,
  RATE_WINDOW_MS,
} from "../../runtime/limits.ts";
import { aborted } from "../../runtime/retry-policy.ts";

interface Waiting {
  readonly begin: (leftMs: number) => void;
  readonly deadlineMs: number;
  readonly timer: Timer;
}

export class Admission {
  readonly #clock: Clock;
  #running = 0;
  readonly #waiting = new Set<Waiting>();
  /** How many ended in a millisecond, as last measured; 0 if that is not known. */
  #ratePerMs = 0;
  #windowMs = 0;
  #ended = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `work` when its turn has come, with what is left of its time. */
  async run<T>(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    work: (leftMs: number) => Promise<T>,
  ): Promise<T> {
    let leftMs = timeoutMs;
    if (this.#running < MAX_RUNNING_TRANSACTIONS) this.#running++;
    else leftMs = await this.#turn(timeoutMs, signal);
    try {
      return await work(leftMs);
    } finally {
      this.#end();
    }
  }

  #turn(timeoutMs: number, signal: AbortSignal | undefined): Promise<number> {
    const waiting = this.#waiting.size;
    const isHopeless = this.#ratePerMs > 0 && waiting > this.#ratePerMs * timeoutMs;
    if (isHopeless || waiting >= MAX_WAITING_TRANSACTIONS) throw overloaded(waiting);
    return new Promise((resolve, reject) => {
      const leave = (why: SituError): void => {
        this.#waiting.delete(turn);
        turn.timer.cancel();
        signal?.removeEventListener("abort", onAbort);
        reject(why);
      };
      const onAbort = (): void => leave(aborted(signal!));
      const turn: Waiting = {
        deadlineMs: this.#clock.nowMs() + timeoutMs,
        timer: this.#clock.after(timeoutMs, () => leave(overloaded(this.#waiting.size))),
        begin: (leftMs) => {
          signal?.removeEventListener("abort", onAbort);
          resolve(leftMs);
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(turn);
    });
  }

  #end(): void {
    this.#measure();
    const now = this.#clock.nowMs();
    for (const next of this.#waiting) {
      const leftMs = Math.ceil(next.deadlineMs - now);
      // Its timer is about to say so.
      if (leftMs <= 0) continue;
      this.#waiting.delete(next);
      next.timer.cancel();
      next.begin(leftMs);
      return;
    }
    this.#running--;
  }

  #measure(): void {
    // What ends while nobody waits says nothing about how much could be done.
    if (this.#waiting.size === 0) {
      this.#windowMs = 0;
      this.#ratePerMs = 0;
      return;
    }
    const now = this.#clock.nowMs();
    if (this.#windowMs === 0) {
      this.#windowMs = now;
      this.#ended = 0;
      return;
    }
    this.#ended++;
    const passedMs = now - this.#windowMs;
    if (passedMs < RATE_WINDOW_MS) return;
    this.#ratePerMs = this.#ended / passedMs;
    this.#windowMs = now;
    this.#ended = 0;
  }
}

function overloaded(waiting: number): SituError {
  return new SituError(
    "SITU_OVERLOADED",
    `${MAX_RUNNING_TRANSACTIONS} transactions of this database run, and ${waiting} wait for their ` +
      `turn: this one was not begun. Try again later, with fewer at once`,
  );
}
