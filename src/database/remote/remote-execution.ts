/**
 * A transaction where the data is on other machines. Reads that came with one message are from one
 * moment and need no validation.
 */

import { isSignal } from "../../engine/signals.ts";
import { sleep } from "../../runtime/clock.ts";
import { ConflictError, type SituError } from "../../runtime/errors.ts";
import { MAX_ASYNC_PAUSE_MS } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { type AsyncLimits, AsyncRetry } from "../run/async-retry.ts";
import { ENDED } from "../run/ended.ts";
import type { Execution } from "../run/execution.ts";
import { outcomeWithin } from "./outcome-deadline.ts";
import type { Ends } from "./remote-database.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";

const FIRST_PAUSE_MS = 0.25;

export class RemoteExecution implements Execution<RemoteTransaction> {
  readonly retry: AsyncRetry;
  readonly #ends: Ends;
  readonly #fetcher: Fetcher;
  readonly #random: Random;
  #tx: RemoteTransaction;
  #isCommitting = false;

  constructor(ends: Ends, fetcher: Fetcher, random: Random, limits: AsyncLimits) {
    this.#ends = ends;
    this.#fetcher = fetcher;
    this.#random = random;
    this.retry = new AsyncRetry(limits, ends.endpoint.clock);
    this.#tx = new RemoteTransaction(fetcher);
  }

  begin(): RemoteTransaction {
    this.#isCommitting = false;
    if (this.retry.attempts > 0) this.#tx = new RemoteTransaction(this.#fetcher);
    return this.#tx;
  }

  async commit(): Promise<boolean> {
    const tx = this.#tx;
    if (tx.isDoomed) return false;
    tx.end(ENDED);
    this.#isCommitting = true;
    const { driver, session, own, endpoint } = this.#ends;
    const { timeoutMs } = this.retry;
    const written = tx.written();
    if (written === undefined && tx.held === undefined) return this.#areReadsValid();
    const { parts, first } = written ?? { parts: tx.parts, first: session.nodes[0] };
    const { held } = tx;
    tx.held = undefined;
    const routine = own === undefined ? session.submit(parts, first) : own.commit(parts, held);
    // The outcome must be heard, for which the commit has a time of its own.
    const running = driver.start(routine, timeoutMs);
    const outcome = await outcomeWithin(running, timeoutMs, "the transaction", endpoint.clock);
    if (outcome.kind === "committed") return true;
    if (outcome.kind === "aborted") return false;
    throw outcome.error;
  }

  isValid(): boolean | Promise<boolean> {
    return !this.#tx.isDoomed && this.#areReadsValid();
  }

  isCallersOwn(error: unknown): boolean | Promise<boolean> {
    if (this.#isCommitting) return true;
    return !isSignal(error) && this.#areReadsValid();
  }

  #areReadsValid(): boolean | Promise<boolean> {
    const { driver, session } = this.#ends;
    const { reads, parts } = this.#tx;
    return reads <= 1 || driver.start(session.validate(parts), this.retry.timeoutMs);
  }

  countAbort(): void {}

  /** Rows that were locked as they were read, and did not get to a commit, are released. */
  endAttempt(why: SituError): void {
    const tx = this.#tx;
    tx.end(why);
    const { held } = tx;
    tx.held = undefined;
    if (held !== undefined) this.#ends.own?.locks?.release(held);
  }

  async awaitRetry(): Promise<void> {
    const { retry } = this;
    if (!retry.mayRetry()) throw retry.conflict("what this one read");
    if (retry.attempts === 1) return;
    const pauseMs = retry.pauseMs(this.#random, FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS);
    await sleep(pauseMs, this.#ends.endpoint.clock);
  }

  whyNot(): SituError {
    return new ConflictError(
      "another transaction changed what this one used, or is changing it now: this one was rolled " +
        "back. Begin it again",
      [],
    );
  }

  end(): void {}

  acknowledge(): undefined {}

  count(): void {}
}
