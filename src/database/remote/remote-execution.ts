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
import type { ClusterConnection } from "./remote-database.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";

const FIRST_PAUSE_MS = 0.25;

export class RemoteExecution implements Execution<RemoteTransaction> {
  readonly retry: AsyncRetry;
  readonly #connection: ClusterConnection;
  readonly #fetcher: Fetcher;
  readonly #random: Random;
  #tx: RemoteTransaction;
  #isCommitting = false;

  constructor(
    connection: ClusterConnection,
    fetcher: Fetcher,
    random: Random,
    limits: AsyncLimits,
  ) {
    this.#connection = connection;
    this.#fetcher = fetcher;
    this.#random = random;
    this.retry = new AsyncRetry(limits, connection.endpoint.clock);
    this.#tx = new RemoteTransaction(fetcher);
  }

  begin(isOnly = false): RemoteTransaction {
    this.#isCommitting = false;
    if (isOnly) this.#tx = new RemoteTransaction(this.#patientFetcher());
    else if (this.retry.attempts > 0) this.#tx = new RemoteTransaction(this.#fetcher);
    return this.#tx;
  }

  /** Fetches rows that are locked again until they are free: most locks last as long as a message takes. */
  #patientFetcher(): Fetcher {
    const { retry } = this;
    const fetcher = this.#fetcher;
    const { clock } = this.#connection.endpoint;
    return {
      nodes: fetcher.nodes,
      tableOf: (table) => fetcher.tableOf(table),
      run: (routine) => fetcher.run(routine),
      fetch: async (entries, accesses) => {
        let pauseMs = FIRST_PAUSE_MS;
        while (
          !(await fetcher.fetch(
            entries.filter(({ isKnown }) => !isKnown),
            accesses,
          ))
        ) {
          // Two that wait for each other's rows, with locks of their own, would wait for ever.
          if (accesses.held !== undefined || retry.isOver()) return false;
          await sleep(pauseMs, clock);
          pauseMs = Math.min(2 * pauseMs, MAX_ASYNC_PAUSE_MS);
        }
        return true;
      },
    };
  }

  async commit(): Promise<boolean> {
    const tx = this.#tx;
    if (tx.isDoomed) return false;
    tx.end(ENDED);
    this.#isCommitting = true;
    const { driver, client, own, endpoint } = this.#connection;
    const { timeoutMs } = this.retry;
    const { accesses } = tx;
    const written = accesses.written();
    if (written === undefined && accesses.held === undefined) return this.#areReadsValid();
    const { parts, first } = written ?? { parts: accesses.parts, first: client.nodes[0] };
    const held = accesses.takeHeld();
    const routine = own === undefined ? client.submit(parts, first) : own.commit(parts, held);
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
    const { driver, client } = this.#connection;
    const { reads, parts } = this.#tx.accesses;
    return reads <= 1 || driver.start(client.validate(parts), this.retry.timeoutMs);
  }

  countAbort(): void {}

  /** Rows that were locked as they were read, and did not get to a commit, are released. */
  endAttempt(why: SituError): void {
    const tx = this.#tx;
    tx.end(why);
    const held = tx.accesses.takeHeld();
    if (held !== undefined) this.#connection.own?.locks?.release(held);
  }

  async awaitRetry(): Promise<void> {
    const { retry } = this;
    if (!retry.mayRetry()) throw retry.conflict("what this one read");
    if (retry.attempts === 1) return;
    const pauseMs = retry.pauseMs(this.#random, FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS);
    await sleep(pauseMs, this.#connection.endpoint.clock);
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
