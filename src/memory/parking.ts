/**
 * Sleeping until a word of shared memory changes, across processes: the kernel's futex, which
 * `Atomics.wait` does not offer on mapped memory. Where there is none, one sleeps in short turns.
 * Whoever changes a word that others may sleep on wakes them; nobody who looks at the word before
 * and after can be missed, and every sleep ends after its time anyway.
 */

import { sleep, sleepSync } from "../runtime/clock.ts";
import { type Futex, futex } from "./libc.ts";

/** Without a futex: how long one sleeps before looking again. */
const TURN_MS = 1;

export class Parking {
  readonly #i32: Int32Array;
  readonly #address: bigint;
  readonly #futex: Futex | undefined;

  /** The words, and where they are mapped, if they are. */
  constructor(i32: Int32Array, address: bigint | undefined) {
    this.#i32 = i32;
    this.#address = address ?? 0n;
    this.#futex = address === undefined ? undefined : futex();
  }

  /** Sleeps, event loop and all, while the word has this value, and so long at most. */
  sleepSync(at: number, value: number, ms: number): void {
    if (Atomics.load(this.#i32, at) !== value) return;
    if (this.#futex === undefined) sleepSync(Math.min(ms, TURN_MS));
    else this.#futex.wait(this.#addressOf(at), value, ms);
  }

  /** The same for one whose event loop must turn. */
  async sleep(at: number, value: number, ms: number): Promise<void> {
    if (Atomics.load(this.#i32, at) !== value) return;
    if (this.#futex === undefined) await sleep(Math.min(ms, TURN_MS));
    else await this.#futex.waitAsync(this.#addressOf(at), value, ms);
  }

  /**
   * For one who looks at a word again and again, because waking up takes too long: lets others
   * have the processor in between, such as the kernel's threads that end the write waited for.
   */
  yield(): void {
    this.#futex?.yield();
  }

  wake(at: number): void {
    this.#futex?.wake(this.#addressOf(at));
  }

  #addressOf(at: number): bigint {
    return this.#address + BigInt(4 * at);
  }
}
