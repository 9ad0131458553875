/**
 * Running a body until it commits, where the data is on other machines. As everywhere, nothing that a
 * body throws is believed before its reads are validated: it may have seen two rows at different
 * moments. Reads that came with one message are from one moment and need no validation.
 */

import { isSignal } from "../../engine/signals.ts";
import { sleep } from "../../runtime/clock.ts";
import { ConflictError, type SituError } from "../../runtime/errors.ts";
import { MAX_ATTEMPTS } from "../../runtime/limits.ts";
import { Random } from "../../runtime/random.ts";
import { Expiry, runInside } from "../expiry.ts";
import { ENDED } from "../transaction.ts";
import { outcomeWithin } from "./outcome-deadline.ts";
import type { Ends } from "./remote-database.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";

const MAX_PAUSE_MS = 20;

type Attempt<T> = { readonly isDone: true; readonly result: T } | { readonly isDone: false };

export class RemoteRunner {
  readonly #ends: Ends;
  readonly #fetcher: Fetcher;
  readonly #random: Random;

  constructor(ends: Ends, fetcher: Fetcher) {
    this.#ends = ends;
    this.#fetcher = fetcher;
    this.#random = ends.random ?? new Random();
  }

  async run<T>(
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Awaited<T>> {
    const { clock } = this.#ends.endpoint;
    const limits = { timeoutMs, signal, snapshotMs: 0, waits: false };
    const expiry = new Expiry(limits, clock.nowMs(), clock);
    try {
      for (let attempt = 1; ; attempt++) {
        const outcome = await this.#attempt(body, timeoutMs, expiry);
        if (outcome.isDone) return outcome.result;
        expiry.attempts = attempt;
        expiry.check();
        if (attempt >= MAX_ATTEMPTS || expiry.isOver()) throw gaveUp(timeoutMs, attempt);
        const pauseMs = this.#random.below(Math.min(2 ** Math.min(attempt, 10) / 4, MAX_PAUSE_MS));
        if (attempt > 1) await sleep(pauseMs, clock);
      }
    } finally {
      expiry.stop();
    }
  }

  async #attempt<T>(
    body: (tx: RemoteTransaction) => T | PromiseLike<T>,
    timeoutMs: number,
    expiry: Expiry,
  ): Promise<Attempt<Awaited<T>>> {
    const tx = new RemoteTransaction(this.#fetcher);
    const inside = runInside(this.#fetcher);
    let why = ENDED;
    let executed: { readonly result: Awaited<T> };
    try {
      const result = await expiry.race(inside.run(async () => await body(tx)));
      await tx.settle();
      const unseen = tx.unseenFailure();
      if (unseen !== undefined) throw unseen.error;
      executed = { result };
    } catch (error) {
      if (expiry.isCause(error)) why = error as SituError;
      // First, so that nothing is locked any more that nobody would release.
      tx.end(why);
      this.#release(tx);
      if (expiry.isCause(error)) throw expiry.explained(error);
      if (isSignal(error) || !(await this.#isCallersOwn(tx, timeoutMs))) return { isDone: false };
      throw error;
    } finally {
      tx.end(why);
      inside.end();
    }
    if (tx.isDoomed) {
      this.#release(tx);
      return { isDone: false };
    }
    // From here on the outcome must be heard, for which the commit has a time of its own.
    const isDone = await this.#commit(tx, timeoutMs);
    return isDone ? { isDone, ...executed } : { isDone: false };
  }

  /** Rows that were locked as they were read, by a body that did not get to its commit. */
  #release(tx: RemoteTransaction): void {
    const { held } = tx;
    tx.held = undefined;
    if (held !== undefined) this.#ends.own?.locks?.release(held);
  }

  async #commit(tx: RemoteTransaction, timeoutMs: number): Promise<boolean> {
    const { driver, session, own, endpoint } = this.#ends;
    const written = tx.written();
    if (written === undefined && tx.held === undefined) {
      return tx.reads <= 1 || driver.start(session.validate(tx.parts), timeoutMs);
    }
    const { parts, first } = written ?? { parts: tx.parts, first: session.nodes[0] };
    const { held } = tx;
    tx.held = undefined;
    const routine = own === undefined ? session.submit(parts, first) : own.commit(parts, held);
    const running = driver.start(routine, timeoutMs);
    const { clock } = endpoint;
    const outcome = await outcomeWithin(running, timeoutMs, "the transaction", clock);
    if (outcome.kind === "committed") return true;
    if (outcome.kind === "aborted") return false;
    throw outcome.error;
  }

  /** Whether an error is to be believed, and not the dream of a body that saw two moments. */
  async #isCallersOwn(tx: RemoteTransaction, timeoutMs: number): Promise<boolean> {
    const { driver, session } = this.#ends;
    if (tx.isDoomed && tx.reads <= 1) return true;
    return tx.reads <= 1 || driver.start(session.validate(tx.parts), timeoutMs);
  }
}

function gaveUp(timeoutMs: number, attempts: number): ConflictError {
  return new ConflictError(
    `other transactions kept changing what this one read; it was run ${attempts} times within ` +
      `${timeoutMs} ms, and nothing was committed. Try again later, or make the transaction shorter`,
    [],
  );
}
