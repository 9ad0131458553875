/**
 * Where processes that run synchronous code wait for each other, so that a test need not hope that
 * they meet: a file with one counter for each of them. Who has read and has not written yet waits
 * until another has got on, which puts that one's step between its own two.
 */

import { constants, openSync, readSync, writeSync } from "node:fs";
import { sleepSync } from "../../src/runtime/clock.ts";

const { O_CREAT, O_RDWR } = constants;
/** A process may have nobody to wait for, because the others have come to their end. */
const LONGEST_MS = 250;
const LOOK_MS = 0.05;
const COUNTER_BYTES = 4;
const MOST_MEMBERS = 16;

export class Meeting {
  readonly #file: number;
  readonly #member: number;
  readonly #own = new Uint32Array(1);
  readonly #seen = new Uint32Array(MOST_MEMBERS);
  readonly #now = new Uint32Array(MOST_MEMBERS);

  constructor(path: string, member: number) {
    // Without O_TRUNC and without O_APPEND: whoever comes first makes it, and each writes its place.
    this.#file = openSync(path, O_RDWR | O_CREAT);
    this.#member = member;
  }

  /** The others see that this one has got on. */
  advance(): void {
    this.#own[0]++;
    writeSync(this.#file, this.#own, 0, COUNTER_BYTES, this.#member * COUNTER_BYTES);
  }

  /** Gets on, then waits until another does. */
  waitForAnother(): void {
    this.#look(this.#seen);
    this.advance();
    const deadline = performance.now() + LONGEST_MS;
    while (performance.now() < deadline) {
      this.#look(this.#now);
      for (let member = 0; member < MOST_MEMBERS; member++) {
        if (member !== this.#member && this.#now[member] !== this.#seen[member]) return;
      }
      sleepSync(LOOK_MS);
    }
  }

  #look(into: Uint32Array): void {
    readSync(this.#file, into, 0, into.byteLength, 0);
  }
}
