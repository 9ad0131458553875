/**
 * Ends what takes too long. To set a timer for each request costs more than most requests are worth:
 * all that have a deadline are looked at together, every DEADLINE_LOOK_MS while there are any.
 */

import type { Clock } from "../fabric/fabric.ts";
import { DEADLINE_LOOK_MS } from "../runtime/limits.ts";

export interface Timed {
  readonly deadlineMs: number;
  /** Called once, soon after the deadline. */
  late(): void;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #timed = new Set<Timed>();
  #isLooking = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(timed: Timed): void {
    this.#timed.add(timed);
    if (!this.#isLooking) this.#lookSoon();
  }

  delete(timed: Timed): void {
    this.#timed.delete(timed);
  }

  #lookSoon(): void {
    this.#isLooking = true;
    this.#clock.after(DEADLINE_LOOK_MS, () => {
      this.#isLooking = false;
      const now = this.#clock.nowMs();
      for (const timed of this.#timed) {
        if (now < timed.deadlineMs) continue;
        this.#timed.delete(timed);
        timed.late();
      }
      if (this.#timed.size > 0 && !this.#isLooking) this.#lookSoon();
    });
  }
}
