/**
 * Looking at rings, without a busy loop and without a thread. While messages come, one looks at each
 * turn of the event loop; after a while without any, one sleeps until the bell rings. Everything else
 * of the thread gets its turns meanwhile.
 *
 * Nobody is missed: who sends rings after the message is written, and whoever goes to sleep says so
 * first, and then looks once more.
 */

import { afterTurn, nowMs } from "../../runtime/clock.ts";
import { RING_POLL_MS } from "../../runtime/limits.ts";

export interface Polled {
  /** Handles what has come. True if there was something. */
  poll(): boolean;
}

export interface Sleeper {
  /** From now on who sends must ring. */
  prepare(): void;
  /** Sleeps unless the bell rang since `prepare`; then calls back. */
  sleep(wakened: () => void): void;
  /** Awake. */
  cancel(): void;
}

export class Poller {
  readonly #polled = new Set<Polled>();
  readonly #sleeper: Sleeper;
  #isRunning = false;
  #busyMs = 0;
  readonly #turn = (): void => this.#poll();
  readonly #wakened = (): void => {
    this.#sleeper.cancel();
    this.#busyMs = nowMs();
    this.#poll();
  };

  constructor(sleeper: Sleeper) {
    this.#sleeper = sleeper;
  }

  get isEmpty(): boolean {
    return this.#polled.size === 0;
  }

  add(polled: Polled): void {
    this.#polled.add(polled);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#busyMs = nowMs();
    afterTurn(this.#turn);
  }

  /** Ring the bell after this: one who sleeps learns then that there is nothing left to look at. */
  remove(polled: Polled): void {
    this.#polled.delete(polled);
  }

  #poll(): void {
    const found = this.#look();
    // Looking may have closed the last of them: then the sleeper is gone as well.
    if (this.#polled.size === 0) this.#isRunning = false;
    else this.#goOn(found);
  }

  #goOn(found: boolean): void {
    if (found) this.#busyMs = nowMs();
    else if (nowMs() - this.#busyMs > RING_POLL_MS) {
      this.#sleeper.prepare();
      const foundNow = this.#look();
      if (this.#polled.size === 0) {
        this.#isRunning = false;
        return;
      }
      if (!foundNow) {
        this.#sleeper.sleep(this.#wakened);
        return;
      }
      this.#sleeper.cancel();
      this.#busyMs = nowMs();
    }
    afterTurn(this.#turn);
  }

  #look(): boolean {
    let found = false;
    for (const polled of this.#polled) if (polled.poll()) found = true;
    return found;
  }
}
