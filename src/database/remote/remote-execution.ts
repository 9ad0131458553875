/**
 * A transaction where the data is on other machines. Reads that came with one message are from one
 * moment and need no validation.
 */

import { Deadline } from "../../cluster/session.ts";
import { isSignal } from "../../engine/signals.ts";
import type { Outcome } from "../../protocols/coordinator.ts";
import { locked } from "../../protocols/execute/single-get.ts";
import type { Routine } from "../../protocols/message.ts";
import type { Origin } from "../../protocols/origin.ts";
import { sleep } from "../../runtime/clock.ts";
import { ConflictError, type SituError } from "../../runtime/errors.ts";
import { MAX_ASYNC_PAUSE_MS, OUTCOME_GRACE_MS } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { type AsyncLimits, AsyncRetry } from "../run/async-retry.ts";
import { ENDED } from "../run/ended.ts";
import type { Execution } from "../run/execution.ts";
import { outcomeWithin } from "./outcome-deadline.ts";
import type { ClusterConnection } from "./remote-database.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";

const FIRST_PAUSE_MS = 0.25;
/** A transaction that has met a lock so many times in a row, or each time, has met one that stays. */
const LOCKED_IN_A_ROW = 8;

export interface RemoteLimits extends AsyncLimits {
  /** For whom a node runs it. */
  readonly origin?: Origin | undefined;
}

export class RemoteExecution implements Execution<RemoteTransaction> {
  readonly retry: AsyncRetry;
  readonly #connection: ClusterConnection;
  readonly #fetcher: Fetcher;
  readonly #random: Random;
  readonly #origin: Origin | undefined;
  #tx: RemoteTransaction;
  #isCommitting = false;
  /** Attempts in a row that have met a locked row. */
  #lockedInARow = 0;

  constructor(
    connection: ClusterConnection,
    fetcher: Fetcher,
    random: Random,
    limits: RemoteLimits,
  ) {
    this.#connection = connection;
    this.#fetcher = this.#watched(fetcher);
    this.#random = random;
    this.#origin = limits.origin;
    this.retry = new AsyncRetry(limits, connection.endpoint.clock);
    this.#tx = new RemoteTransaction(this.#fetcher);
  }

  begin(isOnly = false): RemoteTransaction {
    this.#isCommitting = false;
    if (isOnly) this.#tx = new RemoteTransaction(this.#patientFetcher());
    else if (this.retry.attempts > 0) this.#tx = new RemoteTransaction(this.#fetcher);
    return this.#tx;
  }

  /** Takes note of locks: one who can do nothing for them is told what was in the way. */
  #watched(fetcher: Fetcher): Fetcher {
    return {
      nodes: fetcher.nodes,
      tableOf: (table) => fetcher.tableOf(table),
      run: (routine) => fetcher.run(routine),
      fetch: async (entries, accesses) => {
        const isFree = await fetcher.fetch(entries, accesses);
        this.#lockedInARow = isFree ? 0 : this.#lockedInARow + 1;
        const isEach = this.#lockedInARow > this.retry.attempts;
        if (this.#lockedInARow >= LOCKED_IN_A_ROW || (isEach && !isFree)) {
          const [{ table }] = entries;
          this.retry.inTheWay = () => locked(table, this.retry.timeoutMs);
        } else if (isFree) this.retry.inTheWay = undefined;
        return isFree;
      },
    };
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
    const { accesses } = tx;
    const written = accesses.written();
    if (written === undefined && accesses.held === undefined) return this.#areReadsValid();
    const { parts, first } = written ?? { parts: accesses.parts, first: client.nodes[0] };
    const held = accesses.takeHeld();
    const leftMs = Math.max(Math.ceil(this.retry.leftMs()), OUTCOME_GRACE_MS);
    const time = new Deadline(endpoint.clock, leftMs);
    const outcome =
      own === undefined
        ? // The node may find at the last moment that its time is over, and has to say so.
          await driver.start(client.submit(parts, first, time), leftMs + OUTCOME_GRACE_MS)
        : await this.#outcomeWithin(own.commit(parts, held, time, this.#origin), leftMs);
    if (outcome.kind === "committed") return true;
    if (outcome.kind === "aborted") return false;
    throw outcome.error;
  }

  /** What is past its point of no return goes on, though nobody waits for it any more. */
  #outcomeWithin(routine: Routine<Outcome>, leftMs: number): Promise<Outcome> {
    const { driver, endpoint } = this.#connection;
    const running = driver.start(routine, leftMs);
    return outcomeWithin(running, leftMs, "the transaction", endpoint.clock);
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
    const leftMs = Math.max(Math.ceil(this.retry.leftMs()), OUTCOME_GRACE_MS);
    return reads <= 1 || driver.start(client.validate(parts), leftMs);
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
    if (!retry.mayRetry()) throw retry.inTheWay?.() ?? retry.conflict("what this one read");
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
