/**
 * An asynchronous transaction in local memory. Between its awaits other transactions of this thread
 * may run, and commit; each has a read and write set of its own. Committing is the same synchronous
 * code as for `transactSync`.
 *
 * The event loop goes on turning whatever happens (docs/decisions/0025). A transaction that begins
 * when a turn is due begins after it. Whoever is in the way is waited for within a turn for a
 * millisecond at most (`executor.hurry`); then the attempt ends as a conflict, and the callback is run
 * again when the lock that it has met is gone.
 */

import type { Executor } from "../../engine/executor.ts";
import { MEMORY_ABORT } from "../../engine/metrics.ts";
import {
  gaveUp,
  isCallersOwn,
  releaseSnapshot,
  storeFull,
  throwIfFatal,
} from "../../engine/run.ts";
import { isSignal } from "../../engine/signals.ts";
import { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import { lockOwner } from "../../memory/object.ts";
import { nowMs, sleep, turn } from "../../runtime/clock.ts";
import { ConflictError, type SituError } from "../../runtime/errors.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { MAX_ASYNC_PAUSE_MS, RECLAIM_ATTEMPTS } from "../../runtime/limits.ts";
import { showKey } from "../../runtime/show.ts";
import { type AsyncLimits, AsyncRetry } from "../run/async-retry.ts";
import type { Execution } from "../run/execution.ts";
import { LocalAsyncTransaction } from "./async-transaction.ts";
import {
  awaitLock,
  awaitMemory,
  awaitSnapshot,
  limitToSnapshot,
  metLockOf,
} from "./async-waits.ts";
import type { TransactionMetrics } from "./metrics.ts";
import { SnapshotTransaction } from "./snapshot-transaction.ts";
import { SyncTransaction } from "./sync-transaction.ts";
import { SnapshotStores, type Stores } from "./table-set.ts";

/** From this attempt on, a lock that is still there is asked for its owner. */
const SUSPECT_ATTEMPT = 2;
const FIRST_PAUSE_MS = 0.5;
const MAX_POOLED = 64;

export interface LocalLimits extends AsyncLimits {
  /** With a snapshot for each attempt: how long it lives at most. Else 0. */
  readonly snapshotMs: number;
  /** Whether it returns only when what it did and saw is on disk. */
  readonly waits: boolean;
}

/** What the asynchronous transactions of a database share. */
export class LocalTransactions {
  readonly executor: Executor;
  readonly stores: Stores;
  readonly metrics: TransactionMetrics;
  readonly maintain: () => void;
  readonly #pool: EngineTransaction[] = [];

  constructor(
    executor: Executor,
    stores: Stores,
    metrics: TransactionMetrics,
    maintain: () => void,
  ) {
    this.executor = executor;
    this.stores = stores;
    this.metrics = metrics;
    this.maintain = maintain;
  }

  take(): EngineTransaction {
    const tx = this.#pool.pop() ?? new EngineTransaction(this.executor);
    tx.isAsync = true;
    return tx;
  }

  giveBack(tx: EngineTransaction): void {
    if (this.#pool.length < MAX_POOLED) this.#pool.push(tx);
  }

  readonly commit = (tx: EngineTransaction): boolean => this.executor.commit(tx);
}

export class LocalExecution implements Execution<LocalAsyncTransaction> {
  readonly retry: AsyncRetry;
  readonly #host: LocalTransactions;
  readonly #executor: Executor;
  readonly #limits: LocalLimits;
  readonly #startMs = nowMs();
  /** From the first attempt on. */
  #tx!: EngineTransaction;
  #surface!: SyncTransaction;
  #isEntered = false;
  #entered = 0;
  /** How often it has found no memory. */
  #reclaims = 0;
  #isOnly = false;
  #attempts = 0;
  /** What must be durable before the caller is told. */
  #epoch = 0;

  constructor(host: LocalTransactions, limits: LocalLimits) {
    this.#host = host;
    this.#executor = host.executor;
    this.#limits = limits;
    this.retry = new AsyncRetry(limits, undefined, this.#startMs);
  }

  begin(isOnly = false): LocalAsyncTransaction | Promise<LocalAsyncTransaction> {
    if (this.#attempts++ > 0) {
      this.#executor.metrics.countRetry();
      return this.#attempt();
    }
    this.#isOnly = isOnly;
    // Before anything is held, and before the callback reads what others may change meanwhile.
    if (isTurnDue(this.#startMs)) return this.#attemptLater();
    this.#enter();
    return this.#attempt();
  }

  async #attemptLater(): Promise<LocalAsyncTransaction> {
    while (isTurnDue()) await nextTurn();
    this.#enter();
    return this.#attempt();
  }

  #enter(): void {
    const tx = this.#host.take();
    tx.timeoutMs = this.#limits.timeoutMs;
    if (this.#isOnly) {
      // It cannot wait for one that has priority, and is told which keys its conflict was about.
      tx.ignoresPriority = true;
      tx.trace = [];
    }
    this.#tx = tx;
    this.#entered = this.#executor.enter();
    this.#isEntered = true;
  }

  #attempt(): LocalAsyncTransaction | Promise<LocalAsyncTransaction> {
    const { snapshotMs, timeoutMs } = this.#limits;
    const tx = this.#tx;
    tx.clear();
    const slot = snapshotMs > 0 ? limitToSnapshot(this.#executor, tx, snapshotMs) : -1;
    const { stores } = this.#host;
    this.#surface =
      snapshotMs > 0
        ? new SnapshotTransaction(new SnapshotStores(stores).bind(tx.snapshot!), tx)
        : new SyncTransaction(stores, tx);
    this.#surface.begin(timeoutMs);
    const handle = new LocalAsyncTransaction(this.#surface, this.#executor);
    if (slot < 0) return handle;
    return awaitSnapshot(this.#executor, tx.snapshot!, slot, this.retry).then(() => handle);
  }

  commit(): boolean | Promise<boolean> {
    const tx = this.#tx;
    if (tx.doomed) return false;
    if (this.#executor.hurry(this.#host.commit, tx)) {
      if (this.#limits.waits) this.#epoch = this.#executor.committer.epochOf(tx);
      return true;
    }
    return this.#isOnly && tx.journalFull && this.#commitWhenThereIsRoom();
  }

  /** Nothing was locked or changed: the same commit can be tried again. */
  async #commitWhenThereIsRoom(): Promise<boolean> {
    const tx = this.#tx;
    await this.#awaitRoom();
    tx.journalFull = false;
    return this.commit();
  }

  isValid(): boolean {
    const tx = this.#tx;
    if (tx.doomed || (tx.snapshot !== undefined && !tx.snapshot.isRegistered)) return false;
    return this.#executor.committer.isValid(tx);
  }

  isCallersOwn(error: unknown): boolean {
    if (isSignal(error)) this.#tx.doom(this.#executor.blockingLock);
    return isCallersOwn(this.#executor, this.#tx, error);
  }

  countAbort(cause: unknown): void {
    this.#executor.metrics.countAbortBy(cause);
  }

  endAttempt(why: SituError): void {
    this.#surface.end(why);
  }

  async awaitRetry(): Promise<void> {
    const executor = this.#executor;
    const tx = this.#tx;
    const { retry } = this;
    throwIfFatal(executor, tx);
    retry.keys = tx.conflictKeys();
    // It waits for something else now: others need not wait for it.
    if (tx.exhausted || tx.journalFull) executor.priority.giveBack(tx);
    if (tx.exhausted && !(await this.#reclaim())) throw storeFull(executor, tx);
    if (tx.journalFull) {
      retry.attempts++;
      tx.clear();
      await this.#outside(() => this.#awaitRoom());
      return;
    }
    if (!retry.mayRetry()) throw gaveUp(executor, tx, retry);
    if (retry.attempts >= SUSPECT_ATTEMPT && tx.metLock !== 0) {
      executor.recoverIfDead(lockOwner(tx.metLock));
    }
    tx.trace ??= [];
    const lock = metLockOf(tx);
    if (tx.yielded || executor.priority.isHolder(tx)) await turn();
    else await sleep(retry.pauseMs(executor.random, FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS));
    if (lock !== undefined) await awaitLock(executor, lock, retry);
    if (retry.isOver()) throw gaveUp(executor, tx, retry);
    if (executor.priority.meet(tx)) {
      tx.clear();
      releaseSnapshot(tx);
      await this.#outside(() => executor.priority.await(tx, () => retry.checkSignal()));
    }
  }

  /** Waits for the log, which has fallen behind. */
  #awaitRoom(): Promise<void> {
    const { timeoutMs } = this.#limits;
    return this.#executor.durability.awaitRoom(timeoutMs, () => this.retry.checkSignal());
  }

  /** Makes room after an attempt found no memory, and says whether it could. */
  async #reclaim(): Promise<boolean> {
    const executor = this.#executor;
    const tx = this.#tx;
    this.#dropForMemory();
    if (++this.#reclaims > RECLAIM_ATTEMPTS) return false;
    return this.#outside(() => awaitMemory(executor, tx, this.retry));
  }

  /** Nothing of the attempt is of use any more; its snapshot may be what keeps the memory that is missing. */
  #dropForMemory(): void {
    this.#executor.metrics.countAbort(MEMORY_ABORT);
    this.#tx.clear();
    releaseSnapshot(this.#tx);
  }

  /** Waits without holding up what waits for the transactions that run. */
  async #outside<T>(wait: () => Promise<T>): Promise<T> {
    this.#executor.leave(this.#entered);
    try {
      return await wait();
    } finally {
      this.#entered = this.#executor.enter();
    }
  }

  whyNot(): SituError {
    const executor = this.#executor;
    const tx = this.#tx;
    if (tx.fatal !== undefined && executor.committer.isValid(tx))
      return tx.fatal.error as SituError;
    if (tx.snapshot !== undefined && !tx.snapshot.isRegistered) return tx.snapshot.tooOld();
    const keys = tx.conflictKeys();
    if (tx.exhausted) return this.#whyNoMemory();
    const what = keys.map(({ table, key }) => `${table} ${showKey(key)}`).join(", ");
    return new ConflictError(
      `another transaction changed ${what || `what this one used of ${tx.subject}`} meanwhile, or is ` +
        `changing it now: this one was rolled back. Begin it again`,
      keys,
    );
  }

  /** There will be memory for another one, at once or when others have ended; or the store is full. */
  #whyNoMemory(): SituError {
    const executor = this.#executor;
    const tx = this.#tx;
    this.#dropForMemory();
    executor.leave(this.#entered);
    try {
      if (executor.tryReclaim(tx.exhaustedClass) === "none") return storeFull(executor, tx);
    } finally {
      this.#entered = executor.enter();
    }
    return new ConflictError(
      `there was no memory for ${tx.subject} until other transactions end: this one was rolled back. ` +
        `Begin it again`,
      [],
    );
  }

  end(): void {
    if (!this.#isEntered) return;
    this.#isEntered = false;
    const executor = this.#executor;
    const tx = this.#tx;
    if (tx.conflicts > 0) executor.priority.end(tx);
    tx.ignoresPriority = false;
    tx.clear();
    tx.trace = undefined;
    releaseSnapshot(tx);
    this.#host.giveBack(tx);
    executor.leave(this.#entered);
    executor.hurry(this.#host.maintain, undefined);
  }

  acknowledge(): Promise<void> | undefined {
    const { waits, timeoutMs } = this.#limits;
    return waits ? this.#executor.durability.await(this.#epoch, timeoutMs) : undefined;
  }

  count(failed?: { readonly error: unknown }): void {
    const { metrics } = this.#host;
    const isSnapshot = this.#limits.snapshotMs > 0;
    if (failed === undefined) metrics.endAsync(this.#startMs, isSnapshot, this.#attempts);
    else metrics.failAsync(this.#startMs, isSnapshot, this.#attempts, failed.error);
  }
}
