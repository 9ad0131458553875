/**
 * Running an asynchronous body until it commits. Between its awaits other transactions of this
 * thread may run, and commit; each has a read and write set of its own. Committing is the same
 * synchronous code as for `transactSync`.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Executor } from "../engine/executor.ts";
import {
  gaveUp,
  isCallersOwn,
  limitToSnapshot,
  releaseSnapshot,
  storeFull,
  throwIfFatal,
} from "../engine/run.ts";
import { Transaction as EngineTransaction } from "../engine/transaction.ts";
import { lockOwner } from "../memory/object.ts";
import { nowMs, sleep } from "../runtime/clock.ts";
import { ConflictError, type ConflictKey, SituError, TimeoutError } from "../runtime/errors.ts";
import { MAX_ATTEMPTS } from "../runtime/limits.ts";
import { AsyncTransaction } from "./async-transaction.ts";
import { SnapshotTransaction } from "./snapshot-transaction.ts";
import { ENDED, type Stores, Transaction } from "./transaction.ts";

/** From this attempt on, a lock that is still there is asked for its owner. */
const SUSPECT_ATTEMPT = 2;
const MAX_PAUSE_MS = 20;
const MAX_POOLED = 64;

/** The transaction whose body the running code belongs to, or did before it ended. */
interface Context {
  readonly stores: Stores;
  running: boolean;
}

const context = new AsyncLocalStorage<Context>();

/** Whether the caller runs inside a body of this database's that has not ended. */
export function isInsideTransaction(stores: Stores): boolean {
  const found = context.getStore();
  return found?.stores === stores && found.running;
}

export interface AsyncLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** With a snapshot for each attempt: how long it lives at most. Else 0. */
  readonly snapshotMs: number;
  /** Whether it returns only when what it did and saw is on disk. */
  readonly waits: boolean;
}

export class AsyncRunner {
  readonly #executor: Executor;
  readonly #stores: Stores;
  readonly #pool: EngineTransaction[] = [];

  constructor(executor: Executor, stores: Stores) {
    this.#executor = executor;
    this.#stores = stores;
  }

  async run<T>(
    body: (tx: AsyncTransaction) => T | PromiseLike<T>,
    limits: AsyncLimits,
  ): Promise<T> {
    const executor = this.#executor;
    const expiry = new Expiry(limits);
    const tx = this.#pool.pop() ?? new EngineTransaction(executor);
    tx.timeoutMs = limits.timeoutMs;
    let entered = executor.enter();
    let committed: { readonly result: T; readonly epoch: number };
    try {
      for (let attempt = 1; ; attempt++) {
        const outcome = await this.#attempt(body, tx, limits, expiry);
        if (outcome.done) {
          committed = outcome;
          break;
        }
        throwIfFatal(executor, tx);
        expiry.attempts = attempt;
        expiry.met = tx.conflictKeys();
        if (tx.exhausted) {
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
        await sleep(executor.random.below(Math.min(2 ** attempt / 2, MAX_PAUSE_MS)));
        if (expiry.isOver()) throw gaveUp(executor, tx, limits.timeoutMs);
      }
    } finally {
      expiry.stop();
      tx.clear();
      tx.trace = undefined;
      releaseSnapshot(tx);
      if (this.#pool.length < MAX_POOLED) this.#pool.push(tx);
      executor.leave(entered);
    }
    // Nothing is held any more: others may go on with what it has done.
    if (limits.waits) await executor.durability.await(committed.epoch, limits.timeoutMs);
    return committed.result;
  }

  async #attempt<T>(
    body: (tx: AsyncTransaction) => T | PromiseLike<T>,
    tx: EngineTransaction,
    { timeoutMs, snapshotMs, waits }: AsyncLimits,
    expiry: Expiry,
  ): Promise<{ done: true; result: T; epoch: number } | { done: false }> {
    tx.clear();
    if (snapshotMs > 0) limitToSnapshot(this.#executor, tx, snapshotMs);
    const surface =
      snapshotMs > 0
        ? new SnapshotTransaction(this.#stores, tx)
        : new Transaction(this.#stores, tx);
    surface.begin(timeoutMs);
    const handle = new AsyncTransaction(surface);
    const inside = { stores: this.#stores, running: true };
    let why = ENDED;
    try {
      const running = context.run(inside, async () => body(handle));
      const result = await expiry.race(running);
      handle.flush();
      const unseen = handle.unseenFailure();
      if (unseen !== undefined) throw unseen.error;
      if (!tx.doomed && this.#executor.commit(tx)) {
        const epoch = waits ? this.#executor.committer.epochOf(tx) : 0;
        return { done: true, result, epoch };
      }
    } catch (error) {
      if (expiry.isCause(error)) {
        why = error as SituError;
        throw expiry.explained(error);
      }
      if (isCallersOwn(this.#executor, tx)) throw error;
    } finally {
      // Parts of the body may still run: they must not touch what the next attempt does.
      surface.end(why);
      inside.running = false;
    }
    return { done: false };
  }
}

/** The end of the caller's patience: a deadline, or a signal. */
class Expiry {
  readonly #limits: AsyncLimits;
  readonly #deadlineMs: number;
  readonly #over: Promise<never>;
  #timer: NodeJS.Timeout | undefined;
  #onAbort: (() => void) | undefined;
  #cause: SituError | undefined;
  /** Attempts that met others, and the keys that the last of them was about. */
  attempts = 0;
  met: readonly ConflictKey[] = [];

  constructor(limits: AsyncLimits) {
    this.#limits = limits;
    this.#deadlineMs = nowMs() + limits.timeoutMs;
    const { signal } = limits;
    if (signal?.aborted) throw aborted(signal);
    this.#over = new Promise((_, reject) => {
      const end = (cause: SituError): void => {
        this.#cause = cause;
        reject(cause);
      };
      this.#timer = setTimeout(() => end(tooSlow(limits.timeoutMs)), limits.timeoutMs);
      if (signal) {
        this.#onAbort = () => end(aborted(signal));
        signal.addEventListener("abort", this.#onAbort, { once: true });
      }
    });
    this.#over.catch(() => {});
  }

  race<T>(running: Promise<T>): Promise<T> {
    return Promise.race([running, this.#over]);
  }

  isCause(error: unknown): boolean {
    return this.#cause !== undefined && error === this.#cause;
  }

  /** A body that ran too long because it had to be run again was not too slow. */
  explained(cause: unknown): unknown {
    if (this.attempts === 0 || !(cause instanceof TimeoutError)) return cause;
    return metOthers(this.#limits.timeoutMs, this.attempts + 1, this.met);
  }

  isOver(): boolean {
    return nowMs() >= this.#deadlineMs;
  }

  /** Between attempts: an abort counts at once, the deadline is for the caller to name. */
  check(): void {
    if (this.#limits.signal?.aborted) throw aborted(this.#limits.signal);
  }

  stop(): void {
    clearTimeout(this.#timer);
    if (this.#onAbort) this.#limits.signal?.removeEventListener("abort", this.#onAbort);
  }
}

function tooSlow(timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `the body of the transaction did not end within ${timeoutMs} ms; nothing was committed`,
  );
}

function metOthers(
  timeoutMs: number,
  attempts: number,
  keys: readonly ConflictKey[],
): ConflictError {
  const what = keys.map(({ table, key }) => `${table} ${String(key)}`).join(", ");
  return new ConflictError(
    `other transactions kept changing ${what || "what this one read"}; it was run ${attempts} ` +
      `times within ${timeoutMs} ms, and nothing was committed. Try again later, or make the ` +
      `transaction shorter`,
    keys,
  );
}

function aborted(signal: AbortSignal): SituError {
  return new SituError("SITU_ABORTED", "the transaction was aborted by its signal", {
    cause: signal.reason,
  });
}
