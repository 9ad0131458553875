/**
 * Running an asynchronous body until it commits. Between its awaits other transactions of this
 * thread may run, and commit; each has a read and write set of its own. Committing is the same
 * synchronous code as for `transactSync`.
 *
 * The event loop goes on turning whatever happens (docs/decisions/0025). A transaction that begins
 * when a turn is due begins after it. Whoever is in the way is waited for within a turn for a
 * millisecond at most (`executor.hurry`); then the attempt ends as a conflict, and the body is run
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
import type { SituError } from "../../runtime/errors.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { MAX_ASYNC_PAUSE_MS, MAX_ATTEMPTS } from "../../runtime/limits.ts";
import { type AsyncLimits, Expiry, runInside } from "../run/async-retry.ts";
import { ENDED, type Stores, Transaction } from "../transaction.ts";
import { AsyncTransaction } from "./async-transaction.ts";
import { awaitLock, awaitSnapshot, limitToSnapshot, metLockOf } from "./async-waits.ts";
import type { TransactionMetrics } from "./metrics.ts";
import { SnapshotTransaction } from "./snapshot-transaction.ts";

/** From this attempt on, a lock that is still there is asked for its owner. */
const SUSPECT_ATTEMPT = 2;
const MAX_POOLED = 64;

export class AsyncRunner {
  readonly #executor: Executor;
  readonly #stores: Stores;
  readonly #metrics: TransactionMetrics;
  readonly #pool: EngineTransaction[] = [];

  constructor(executor: Executor, stores: Stores, metrics: TransactionMetrics) {
    this.#executor = executor;
    this.#stores = stores;
    this.#metrics = metrics;
  }

  async run<T>(
    body: (tx: AsyncTransaction) => T | PromiseLike<T>,
    limits: AsyncLimits,
  ): Promise<T> {
    const executor = this.#executor;
    const startMs = nowMs();
    const expiry = new Expiry(limits, startMs);
    const isSnapshot = limits.snapshotMs > 0;
    let attempts = 0;
    // Before anything is held, and before the body reads what others may change meanwhile.
    while (isTurnDue()) await nextTurn();
    const tx = this.#pool.pop() ?? new EngineTransaction(executor);
    tx.isAsync = true;
    tx.timeoutMs = limits.timeoutMs;
    let entered = executor.enter();
    let committed: { readonly result: T; readonly epoch: number };
    try {
      for (let attempt = 1; ; attempt++) {
        attempts = attempt;
        if (attempt > 1) executor.metrics.countRetry();
        const outcome = await this.#attempt(body, tx, limits, expiry);
        if (outcome.done) {
          committed = outcome;
          break;
        }
        throwIfFatal(executor, tx);
        expiry.attempts = attempt;
        expiry.met = tx.conflictKeys();
        // It waits for something else now: others need not wait for it.
        if (tx.exhausted || tx.journalFull) executor.turns.giveBack(tx);
        if (tx.exhausted) {
          executor.metrics.countAbort(MEMORY_ABORT);
          tx.clear();
          // Of no use any more, and perhaps what keeps the memory that is missing.
          releaseSnapshot(tx);
          executor.leave(entered);
          let reclaimed = false;
          try {
            reclaimed = executor.reclaim(tx.exhaustedClass);
          } finally {
            entered = executor.enter();
          }
          if (!reclaimed) throw storeFull(executor, tx);
        }
        if (tx.journalFull) {
          tx.clear();
          executor.leave(entered);
          try {
            await executor.durability.awaitRoom(limits.timeoutMs);
          } finally {
            entered = executor.enter();
          }
          continue;
        }
        expiry.check();
        if (attempt >= MAX_ATTEMPTS) throw gaveUp(executor, tx, limits.timeoutMs);
        if (attempt >= SUSPECT_ATTEMPT && tx.metLock !== 0) {
          executor.recoverIfDead(lockOwner(tx.metLock));
        }
        tx.trace ??= [];
        const lock = metLockOf(tx);
        if (tx.yielded || executor.turns.isHolder(tx)) await turn();
        else await sleep(executor.random.below(Math.min(2 ** attempt / 2, MAX_ASYNC_PAUSE_MS)));
        if (lock !== undefined) await awaitLock(executor, lock, expiry);
        if (expiry.isOver()) throw gaveUp(executor, tx, limits.timeoutMs);
        if (executor.turns.meet(tx)) {
          tx.clear();
          releaseSnapshot(tx);
          executor.leave(entered);
          try {
            await executor.turns.await(tx, () => expiry.check());
          } finally {
            entered = executor.enter();
          }
        }
      }
    } catch (error) {
      this.#metrics.failAsync(startMs, isSnapshot, attempts, error);
      throw error;
    } finally {
      expiry.stop();
      if (tx.conflicts > 0) executor.turns.end(tx);
      tx.clear();
      tx.trace = undefined;
      releaseSnapshot(tx);
      if (this.#pool.length < MAX_POOLED) this.#pool.push(tx);
      executor.leave(entered);
    }
    // Nothing is held any more: others may go on with what it has done.
    try {
      if (limits.waits) await executor.durability.await(committed.epoch, limits.timeoutMs);
    } catch (error) {
      this.#metrics.failAsync(startMs, isSnapshot, attempts, error);
      throw error;
    }
    this.#metrics.endAsync(startMs, isSnapshot, attempts);
    return committed.result;
  }

  readonly #commit = (tx: EngineTransaction): boolean => this.#executor.commit(tx);

  async #attempt<T>(
    body: (tx: AsyncTransaction) => T | PromiseLike<T>,
    tx: EngineTransaction,
    { timeoutMs, snapshotMs, waits }: AsyncLimits,
    expiry: Expiry,
  ): Promise<{ done: true; result: T; epoch: number } | { done: false }> {
    tx.clear();
    if (snapshotMs > 0) {
      const slot = limitToSnapshot(this.#executor, tx, snapshotMs);
      if (slot >= 0) await awaitSnapshot(this.#executor, tx.snapshot!, slot, expiry);
    }
    const surface =
      snapshotMs > 0
        ? new SnapshotTransaction(this.#stores, tx)
        : new Transaction(this.#stores, tx);
    surface.begin(timeoutMs);
    const handle = new AsyncTransaction(surface, this.#executor);
    const inside = runInside(this.#stores);
    let why = ENDED;
    try {
      const result = await expiry.race(inside.run(() => Promise.resolve(body(handle))));
      if (!handle.flush()) await expiry.race(handle.drain());
      const unseen = handle.unseenFailure();
      if (unseen !== undefined) throw unseen.error;
      if (!tx.doomed && this.#executor.hurry(this.#commit, tx)) {
        const epoch = waits ? this.#executor.committer.epochOf(tx) : 0;
        return { done: true, result, epoch };
      }
    } catch (error) {
      if (expiry.isCause(error)) {
        why = error as SituError;
        this.#executor.metrics.countAbortBy(error);
        throw expiry.explained(error);
      }
      if (isSignal(error)) tx.doom(this.#executor.blockingLock);
      if (isCallersOwn(this.#executor, tx, error)) throw error;
    } finally {
      // Parts of the body may still run: they must not touch what the next attempt does.
      surface.end(why);
      inside.end();
    }
    return { done: false };
  }
}
