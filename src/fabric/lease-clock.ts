/**
 * The clock of leases. It goes on while the machine sleeps: a node that was suspended and wakes up must
 * not believe in a lease that ended long ago. Linux and macOS have such a clock, the same one for all
 * threads of a machine.
 *
 * Elsewhere the monotonic clock stops during sleep, and only the wall clock tells how long it was; but
 * that can be set. So there are two readings: `nowMs`, which takes every step forward of the wall clock
 * for sleep and is never behind, for what one has been granted; and `atLeastMs`, which knows of no sleep
 * and is never ahead, for what one has promised to others.
 */

import { bootTimeClock } from "../memory/libc.ts";
import { machineMs, wallClockMs } from "../runtime/clock.ts";

export interface LeaseClock {
  /** Never behind the true time: whoever holds a lease stops early rather than late. */
  nowMs(): number;
  /** Never ahead of it: whoever waits for a lease to end waits longer rather than shorter. */
  atLeastMs(): number;
}

export function leaseClock(): LeaseClock {
  const nowMs = bootTimeClock();
  return nowMs === undefined
    ? new WallCheckedClock(machineMs, wallClockMs)
    : { nowMs, atLeastMs: nowMs };
}

/** Where no clock counts the sleep of the machine. */
export class WallCheckedClock implements LeaseClock {
  readonly atLeastMs: () => number;
  readonly #wallMs: () => number;
  #before: number;
  #asleepMs = 0;

  constructor(monotonicMs: () => number, wallMs: () => number) {
    this.atLeastMs = monotonicMs;
    this.#wallMs = wallMs;
    this.#before = wallMs() - monotonicMs();
  }

  nowMs(): number {
    const now = this.atLeastMs();
    const difference = this.#wallMs() - now;
    // A step back is somebody who sets the clock, never sleep.
    if (difference > this.#before) this.#asleepMs += difference - this.#before;
    this.#before = difference;
    return now + this.#asleepMs;
  }
}
