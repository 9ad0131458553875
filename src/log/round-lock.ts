/**
 * The lock of the log, and where its next batch goes: words of the control segment. Whoever writes to the log
 * holds the lock for a whole round (group-commit.ts): its writer, or one who commits and waits for nobody else's
 * records (own-round.ts).
 *
 * Invariant: while the lock is free and there is a segment, all batches before the position are synced, and the
 * last one of them ends at the epoch `durability.written`. Whoever holds the lock moves the position when that is
 * true again. If it dies before, there is no position any more (engine/recovery.ts): what lies behind
 * the last batch that counts is void, and the next batch begins a segment of its own.
 */

import type { Executor } from "../engine/executor.ts";
import { LOG_ROUND, LOG_SEGMENT, LOG_USED_F64 } from "../memory/control.ts";
import { assert } from "../runtime/assert.ts";
import { nowMs, sleepSync } from "../runtime/clock.ts";
import { LOG_PATIENCE_MS, LOG_SPIN_MS } from "../runtime/limits.ts";

const SPINS_PER_LOOK = 16;
const SLEEP_MS = 1;

export class RoundLock {
  readonly #executor: Executor;
  readonly #i32: Int32Array;
  readonly #f64: Float64Array;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#i32 = executor.memory.control.i32;
    this.#f64 = executor.memory.control.f64;
  }

  /** Takes the lock if nobody has it. */
  tryLock(): boolean {
    return Atomics.compareExchange(this.#i32, LOG_ROUND, 0, this.#executor.slot + 1) === 0;
  }

  /** Waits for the lock: the slot that has kept it for too long, or -1 if it was taken. */
  lock(): number {
    const startMs = nowMs();
    for (let spins = 1; !this.tryLock(); spins++) {
      this.#executor.memory.parking.yield();
      if (spins % SPINS_PER_LOOK !== 0 || nowMs() - startMs < LOG_SPIN_MS) continue;
      const holder = Atomics.load(this.#i32, LOG_ROUND) - 1;
      if (holder < 0 || this.#executor.recoverIfDead(holder)) continue;
      if (nowMs() - startMs >= LOG_PATIENCE_MS) return holder;
      sleepSync(SLEEP_MS);
    }
    return -1;
  }

  unlock(): void {
    const mine = this.#executor.slot + 1;
    const holder = Atomics.compareExchange(this.#i32, LOG_ROUND, mine, 0);
    assert(holder === mine, "who ends a round has the lock of the log");
  }

  /** The number of the segment; 0 if there is none. */
  get segment(): number {
    return Atomics.load(this.#i32, LOG_SEGMENT);
  }

  /** How much of it is used. */
  get used(): number {
    return this.#f64[LOG_USED_F64];
  }

  moveTo(segment: number, used: number): void {
    this.#f64[LOG_USED_F64] = used;
    Atomics.store(this.#i32, LOG_SEGMENT, segment);
  }

  /** Nobody writes there any more: the next batch begins a segment. */
  leaveSegment(): void {
    Atomics.store(this.#i32, LOG_SEGMENT, 0);
  }
}
