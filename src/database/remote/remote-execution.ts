/**
 * A transaction where the data is on other machines. Reads that came with one message are from one
 * moment and need no validation.
 *
 * With isolation "snapshot" all is read from a snapshot of the cluster, which is taken with the first read. Before the
 * commit the nodes are asked for the rows that are written: they must not have changed since (first committer
 * wins), and what they depend on is locked with them.
 */

import { Deadline } from "../../cluster/session.ts";
import { SubmitInDoubt } from "../../cluster/submit.ts";
import { CONFLICT, isSignal } from "../../engine/signals.ts";
import type { NodeId } from "../../fabric/fabric.ts";
import type { Outcome, Parts } from "../../protocols/coordinator.ts";
import type { HeldRows } from "../../protocols/execute/remote-access-set.ts";
import { locked } from "../../protocols/execute/single-get.ts";
import type { Routine } from "../../protocols/message.ts";
import type { Origin } from "../../protocols/origin.ts";
import { sleep } from "../../runtime/clock.ts";
import { ConflictError, type SituError, TimeoutError } from "../../runtime/errors.ts";
import { MAX_ASYNC_PAUSE_MS, OUTCOME_GRACE_MS } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { type AsyncLimits, AsyncRetry } from "../run/async-retry.ts";
import { ENDED } from "../run/ended.ts";
import type { Execution } from "../run/execution.ts";
import { Begun, type Doubts } from "./doubts.ts";
import { isPassing } from "./follower.ts";
import { outcomeWithin } from "./outcome-deadline.ts";
import type { ClusterConnection } from "./remote-database.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";
import { isTooOld, type TakenSnapshot } from "./taken-snapshot.ts";

const FIRST_PAUSE_MS = 0.25;
/** A transaction that has met a lock so many times in a row, or each time, has met one that stays. */
const LOCKED_IN_A_ROW = 8;

export interface RemoteLimits extends AsyncLimits {
  /** For whom a node runs it. */
  readonly origin?: Origin | undefined;
  /** With isolation "snapshot": makes what an attempt reads from. */
  readonly newSnapshot?: (() => TakenSnapshot) | undefined;
}

export class RemoteExecution implements Execution<RemoteTransaction> {
  readonly retry: AsyncRetry;
  readonly #connection: ClusterConnection;
  readonly #fetcher: Fetcher;
  readonly #doubts: Doubts;
  readonly #random: Random;
  readonly #origin: Origin | undefined;
  #tx: RemoteTransaction;
  #isCommitting = false;
  /** Attempts in a row that have met a locked row. */
  #lockedInARow = 0;
  /** What was the matter with the cluster in this attempt. */
  #trouble: SituError | undefined;
  readonly #newSnapshot: (() => TakenSnapshot) | undefined;
  #snapshot: TakenSnapshot | undefined;

  constructor(
    connection: ClusterConnection,
    fetcher: Fetcher,
    doubts: Doubts,
    random: Random,
    limits: RemoteLimits,
  ) {
    this.#connection = connection;
    this.#doubts = doubts;
    this.#fetcher = this.#watched(fetcher);
    this.#random = random;
    this.#origin = limits.origin;
    this.#newSnapshot = limits.newSnapshot;
    this.retry = new AsyncRetry(limits, connection.endpoint.clock);
    this.#tx = new RemoteTransaction(this.#fetcher);
  }

  begin(isOnly = false): RemoteTransaction {
    this.#isCommitting = false;
    this.#trouble = undefined;
    if (this.#newSnapshot !== undefined) {
      this.#snapshot = this.#newSnapshot();
      this.#tx = new RemoteTransaction(this.#snapshotFetcher(this.#snapshot));
    } else if (isOnly) this.#tx = new RemoteTransaction(this.#patientFetcher());
    else if (this.retry.attempts > 0) this.#tx = new RemoteTransaction(this.#fetcher);
    return this.#tx;
  }

  /** Takes note of locks: one who can do nothing for them is told what was in the way. */
  #watched(fetcher: Fetcher): Fetcher {
    return {
      get view() {
        return fetcher.view;
      },
      tableOf: (table) => fetcher.tableOf(table),
      pause: (configurationId, leftMs) => fetcher.pause(configurationId, leftMs),
      run: (routine) => fetcher.run(routine).catch((error: unknown) => this.#troubled(error)),
      fetch: async (entries, accesses) => {
        const isFree = await fetcher
          .fetch(entries, accesses)
          .catch((error: unknown) => this.#troubled(error));
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

  /** What a change of the configuration may mend is tried again; the caller is told of it if nothing does. */
  #troubled(error: unknown): never {
    if (!isPassing(error)) throw error;
    this.#note(error);
    throw CONFLICT;
  }

  #note(error: SituError): void {
    this.#trouble = error;
    this.retry.inTheWay = () => tooLong(error, this.retry.timeoutMs);
  }

  /** What is the matter with a snapshot before its time is over is mended by another one. */
  #snapshotFetcher(snapshot: TakenSnapshot): Fetcher {
    const fetcher = this.#fetcher;
    const caught = (error: unknown): never => {
      if (!isTooOld(error) || snapshot.isOverdue) this.#troubled(error);
      throw CONFLICT;
    };
    return {
      get view() {
        return fetcher.view;
      },
      readsAt: snapshot,
      tableOf: (table) => fetcher.tableOf(table),
      pause: (configurationId, leftMs) => fetcher.pause(configurationId, leftMs),
      patience: () => snapshot.patience(),
      run: (routine) => snapshot.run(routine).catch(caught),
      fetch: (entries, accesses) => snapshot.fetch(entries, accesses).catch(caught),
    };
  }

  /** Whether nobody has changed what the transaction writes since its snapshot was taken. */
  async #isConfirmed(snapshot: TakenSnapshot): Promise<boolean> {
    const { accesses } = this.#tx;
    const entries = accesses.toConfirm();
    if (entries.length === 0) return true;
    try {
      return await snapshot.confirm(entries, accesses);
    } catch (error) {
      if (isTooOld(error) && !snapshot.isOverdue) return false;
      if (!isPassing(error)) throw error;
      this.#note(error);
      return false;
    }
  }

  /** Fetches rows that are locked again until they are free: most locks last as long as a message takes. */
  #patientFetcher(): Fetcher {
    const { retry } = this;
    const fetcher = this.#fetcher;
    const { clock } = this.#connection.endpoint;
    return {
      get view() {
        return fetcher.view;
      },
      tableOf: (table) => fetcher.tableOf(table),
      pause: (configurationId, leftMs) => fetcher.pause(configurationId, leftMs),
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
    if (tx.isDoomed || tx.isStale) return false;
    tx.end(ENDED);
    this.#isCommitting = true;
    const { accesses } = tx;
    if (this.#snapshot !== undefined && !(await this.#isConfirmed(this.#snapshot))) return false;
    const written = accesses.written();
    if (written === undefined && accesses.held === undefined) return this.#areReadsValid();
    const { parts, first } = written ?? { parts: accesses.parts, first: tx.view.nodes[0] };
    const outcome = await this.#outcomeOf(parts, first, accesses.takeHeld());
    if (outcome.kind === "committed") return true;
    if (outcome.kind === "aborted") return false;
    // Nothing was done.
    if (outcome.kind === "refused" && isPassing(outcome.error)) {
      this.#note(outcome.error);
      return false;
    }
    throw outcome.error;
  }

  async #outcomeOf(
    parts: Parts,
    coordinator: NodeId,
    held: HeldRows | undefined,
  ): Promise<Outcome> {
    const { driver, client, own, endpoint } = this.#connection;
    const leftMs = Math.max(Math.ceil(this.retry.leftMs()), OUTCOME_GRACE_MS);
    const time = new Deadline(endpoint.clock, leftMs);
    const begun = new Begun(client.view.current, time);
    if (own !== undefined) {
      const origin = this.#origin;
      const told = await this.#outcomeWithin(own.commit(parts, held, time, origin), leftMs);
      const isAsked = told instanceof SubmitInDoubt && origin !== undefined;
      return isAsked ? this.#doubts.ofSubmit(told, parts, begun, origin) : told;
    }
    // The node may find at the last moment that its time is over, and has to say so.
    const longestMs = leftMs + OUTCOME_GRACE_MS;
    const outcome = await driver.start(client.submit(parts, coordinator, time), longestMs);
    return outcome instanceof SubmitInDoubt
      ? this.#doubts.ofSubmit(outcome, parts, begun)
      : outcome;
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
    const { accesses, view, isStale } = this.#tx;
    const { reads, parts } = accesses;
    if (reads <= 1) return true;
    if (isStale) return false;
    const leftMs = Math.max(Math.ceil(this.retry.leftMs()), OUTCOME_GRACE_MS);
    return driver
      .start(client.validate(parts), leftMs, view.configurationId)
      .catch((error: unknown) => {
        if (!isPassing(error)) throw error;
        this.#note(error);
        return false;
      });
  }

  /** The time is over: what is the matter with the cluster may be why. */
  countAbort(): void {
    const trouble = this.#connection.follower?.trouble;
    if (trouble !== undefined) this.retry.inTheWay ??= () => tooLong(trouble, this.retry.timeoutMs);
  }

  /** Rows that were locked as they were read, and did not get to a commit, are released. */
  endAttempt(why: SituError): void {
    const tx = this.#tx;
    tx.end(why);
    void this.#snapshot?.release();
    const held = tx.accesses.takeHeld();
    if (held !== undefined) this.#connection.own?.locks?.release(held);
  }

  async awaitRetry(): Promise<void> {
    const { retry } = this;
    if (!retry.mayRetry()) throw retry.inTheWay?.() ?? retry.conflict("what this one read");
    if (this.#trouble !== undefined) {
      this.#trouble = undefined;
      await this.#fetcher.pause(this.#tx.view.configurationId, retry.leftMs());
      return;
    }
    if (retry.attempts === 1) return;
    const pauseMs = retry.pauseMs(this.#random, FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS);
    await sleep(pauseMs, this.#connection.endpoint.clock);
  }

  whyNot(): SituError {
    if (this.#trouble !== undefined || this.#tx.isStale) return changed(this.#trouble);
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

/** Nobody has taken the place of the node that does not answer, or it takes long. */
function tooLong(why: SituError, timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `gave up after ${timeoutMs} ms, and nothing was committed: ${why.message}. Try again later`,
  );
}

function changed(why: SituError | undefined): ConflictError {
  return new ConflictError(
    `the nodes of the cluster have changed, or one does not answer${why ? ` (${why.message})` : ""}: the ` +
      "transaction was rolled back. Begin it again",
    [],
  );
}
