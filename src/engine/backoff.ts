/**
 * The retry policy of synchronous calls, which block the thread: spin a little, then sleep for a
 * random time, check whether the process in the way is alive, and give up at the deadline. Nothing
 * here is touched while nobody is in the way.
 */

import { lockOwner } from "../memory/object.ts";
import { nowMs, sleepSync } from "../runtime/clock.ts";
import { MAX_SLEEP_MS, SPIN_MICROSECONDS, SUSPECT_MS } from "../runtime/limits.ts";
import type { Random } from "../runtime/random.ts";
import { type RetryLimits, RetryPolicy } from "../runtime/retry-policy.ts";

/** Recovers the slot if its executor is dead; says whether it was. */
export type RecoverIfDead = (slot: number) => boolean;

/** Loop rounds that take about a microsecond; only the scale of the back-off rests on it. */
const ROUNDS_PER_MICROSECOND = 200;
const SHORTEST_SLEEP_MS = 0.05;
/** The attempt at which the spin, a quarter of a microsecond at first, has grown too long. */
const FIRST_SLEEP = Math.ceil(Math.log2(4 * SPIN_MICROSECONDS));

export class Backoff extends RetryPolicy {
  readonly #recoverIfDead: RecoverIfDead;
  readonly #random: Random;
  #metSinceMs = 0;
  #metLock = 0;

  constructor(limits: RetryLimits, recoverIfDead: RecoverIfDead, random: Random) {
    super(limits);
    this.#recoverIfDead = recoverIfDead;
    this.#random = random;
  }

  override begin(timeoutMs: number): void {
    super.begin(timeoutMs);
    this.#metLock = 0;
  }

  /**
   * Somebody was in the way, with this lock word (0: gone already). Returns when it is time to
   * try again, or false when it is time to give up.
   */
  meet(lock: number): boolean {
    const attempt = this.attempts++;
    if (attempt < FIRST_SLEEP) {
      spin(this.#random.below((ROUNDS_PER_MICROSECOND * 2 ** attempt) / 4));
      return true;
    }
    const now = nowMs();
    const leftMs = this.leftMs(now);
    this.#suspect(lock, now);
    if (leftMs <= 0 || this.attempts >= this.maxAttempts) return false;
    const longest = Math.min(
      MAX_SLEEP_MS,
      SHORTEST_SLEEP_MS * 2 ** Math.min(attempt - FIRST_SLEEP, 10),
    );
    const sleepMs = SHORTEST_SLEEP_MS + this.#random.below(1000) * (longest / 1000);
    sleepSync(Math.min(sleepMs, leftMs));
    return true;
  }

  /** A lock that stays the same for a while may belong to a dead executor. */
  #suspect(lock: number, now: number): void {
    if (lock === 0 || lock !== this.#metLock) {
      this.#metLock = lock;
      this.#metSinceMs = now;
    } else if (now - this.#metSinceMs >= SUSPECT_MS) {
      this.#metSinceMs = now;
      this.#recoverIfDead(lockOwner(lock));
    }
  }
}

let sink = 0;

/** Adds up something, so that the loop is not optimized away. */
function spin(rounds: number): number {
  for (let round = 0; round < rounds; round++) sink = (sink + round) | 0;
  return sink;
}
