/**
 * How many transactions and calls of one connected database run at once. More under way do not get more
 * done: beyond a few hundred, each only waits longer for its nodes, meets more of the others, and is
 * run again. So the rest wait here, in their order, and nothing is sent for them.
 *
 * How many may run follows from how long they take, while some wait: fewer when they take so long that
 * they must be waiting for each other, more when they are quick.
 *
 * Load that cannot be served is refused while it is cheap to say so: when so little time is left that, by
 * how long the others take, it would not be done, and nothing was begun. Until then a caller waits, which
 * keeps one that tries again at once from doing nothing else. So what is begun can be done in time, and as
 * much is done under too much load as under just enough.
 */

import type { Clock, Timer } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  ADMISSION_WINDOW_MS,
  FIRST_RUNNING_TRANSACTIONS,
  MAX_RUNNING_TRANSACTIONS,
  MAX_WAITING_TRANSACTIONS,
  MIN_RUNNING_TRANSACTIONS,
  QUICK_TRANSACTION_MS,
  SLOW_TRANSACTION_MS,
} from "../../runtime/limits.ts";
import { aborted } from "../../runtime/retry-policy.ts";

interface Waiting {
  readonly deadlineMs: number;
  readonly timer: Timer;
  isOver: boolean;
  begin(leftMs: number): void;
  refuse(): void;
}

export class Admission {
  readonly #clock: Clock;
  #running = 0;
  #limit = FIRST_RUNNING_TRANSACTIONS;
  /** In their order, from `#head` on; some are over. */
  #queue: Waiting[] = [];
  #head = 0;
  #waiting = 0;
  /** How long they take, as last measured while some waited. */
  #takenMs = 0;
  /** What is measured: since when, how many have ended, and how long they took together. */
  #sinceMs = 0;
  #ended = 0;
  #sumMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many may run at once just now. */
  get limit(): number {
    return this.#limit;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Runs `work` when its turn has come, with what is left of its time. */
  async run<T>(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    work: (leftMs: number) => Promise<T>,
  ): Promise<T> {
    let leftMs = timeoutMs;
    if (this.#running < this.#limit && this.#waiting === 0) this.#running++;
    else leftMs = await this.#turn(timeoutMs, signal);
    const beganMs = this.#clock.nowMs();
    try {
      return await work(leftMs);
    } finally {
      this.#running--;
      const now = this.#clock.nowMs();
      this.#measure(now, now - beganMs);
      this.#admit(now);
    }
  }

  #turn(timeoutMs: number, signal: AbortSignal | undefined): Promise<number> {
    if (this.#waiting >= MAX_WAITING_TRANSACTIONS) throw this.#overloaded();
    return new Promise((resolve, reject) => {
      const end = (): void => {
        waiting.isOver = true;
        this.#waiting--;
        waiting.timer.cancel();
        signal?.removeEventListener("abort", onAbort);
      };
      const waiting: Waiting = {
        deadlineMs: this.#clock.nowMs() + timeoutMs,
        timer: this.#clock.after(timeoutMs, () => waiting.refuse()),
        isOver: false,
        begin: (leftMs) => {
          end();
          resolve(leftMs);
        },
        refuse: () => {
          const why = this.#overloaded();
          end();
          reject(why);
        },
      };
      const onAbort = (): void => {
        end();
        reject(aborted(signal!));
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#queue.push(waiting);
      this.#waiting++;
    });
  }

  #admit(now: number): void {
    while (this.#waiting > 0 && this.#running < this.#limit) {
      const next = this.#queue[this.#head++];
      if (next.isOver) continue;
      const leftMs = Math.ceil(next.deadlineMs - now);
      if (leftMs <= this.#takenMs) next.refuse();
      else {
        this.#running++;
        next.begin(leftMs);
      }
    }
    if (this.#waiting > 0 && 2 * this.#head < this.#queue.length) return;
    this.#queue = this.#waiting === 0 ? [] : this.#queue.slice(this.#head);
    this.#head = 0;
  }

  #measure(now: number, tookMs: number): void {
    // What ends while nobody waits says nothing about how much could be done.
    if (this.#waiting === 0 || this.#sinceMs === 0) {
      this.#begin(this.#waiting === 0 ? 0 : now);
      if (this.#waiting === 0) this.#takenMs = 0;
      return;
    }
    this.#ended++;
    this.#sumMs += tookMs;
    if (now - this.#sinceMs < ADMISSION_WINDOW_MS) return;
    this.#takenMs = this.#sumMs / this.#ended;
    this.#begin(now);
    if (this.#takenMs > SLOW_TRANSACTION_MS) {
      this.#limit = Math.max(MIN_RUNNING_TRANSACTIONS, Math.floor((3 / 4) * this.#limit));
    } else if (this.#takenMs < QUICK_TRANSACTION_MS) {
      this.#limit = Math.min(MAX_RUNNING_TRANSACTIONS, this.#limit + MIN_RUNNING_TRANSACTIONS);
    }
  }

  #begin(now: number): void {
    this.#sinceMs = now;
    this.#ended = 0;
    this.#sumMs = 0;
  }

  #overloaded(): SituError {
    return new SituError(
      "SITU_OVERLOADED",
      `${this.#running} transactions of this database run, and ${this.#waiting} wait for their ` +
        `turn: this one would come too late and was not begun. Try again later, with fewer at once`,
    );
  }
}
