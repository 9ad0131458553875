/**
 * Running a transaction body until it commits. A body may have read two objects at different
 * moments (it is a zombie then), so nothing it throws is believed before its reads are validated:
 * invalid means retry, valid means the error is the caller's own.
 */

import { LIMIT_RISES } from "../memory/control.ts";
import { lockOwner } from "../memory/object.ts";
import { type ConflictError, SituError, TimeoutError } from "../runtime/errors.ts";
import { ASYNC_PATIENCE_MS, RECLAIM_ATTEMPTS, UNIT_BYTES } from "../runtime/limits.ts";
import type { RetryPolicy } from "../runtime/retry-policy.ts";
import { shownSize } from "../runtime/units.ts";
import type { Backoff } from "./backoff.ts";
import type { Executor } from "./executor.ts";
import { MEMORY_ABORT } from "./metrics.ts";
import { isSignal, PAGE_MISS } from "./signals.ts";
import { Snapshot } from "./snapshots/snapshot.ts";
import type { Transaction } from "./transaction.ts";

/**
 * Runs a body to the end inside this turn, retrying on conflict, and returns what it returned. With
 * `snapshotMs` each attempt reads from a snapshot of its own, which lives that long at most. For one
 * who waits for the disk then, `tx.epoch` is what to wait for. `timeoutMs` is for other executors;
 * a full journal is waited for as long as `diskMs`: a slow disk is no stuck process.
 */
export function runSync<A, T>(
  executor: Executor,
  tx: Transaction,
  timeoutMs: number,
  body: (argument: A) => T,
  argument: A,
  snapshotMs = 0,
  waits = false,
  diskMs = timeoutMs,
): T {
  tx.timeoutMs = timeoutMs;
  executor.enter();
  try {
    let reclaims = 0;
    for (let attempt = 1; ; attempt++) {
      // Every run leaves its transaction clear, unless the stack was too short even for that.
      if (attempt > 1) executor.metrics.countRetry();
      if (attempt > 1 || !tx.isClear) tx.clear();
      if (snapshotMs > 0) limitToSnapshot(executor, tx, snapshotMs);
      try {
        const result = body(argument);
        if (isThenable(result)) throw asyncBody(result);
        if (!tx.doomed && executor.commit(tx)) {
          if (waits) tx.epoch = executor.committer.epochOf(tx);
          return result;
        }
      } catch (error) {
        if (isCallersOwn(executor, tx, error)) throw error;
      }
      throwIfFatal(executor, tx);
      if (attempt === 1) executor.backoff.begin(timeoutMs);
      // It waits for something else now: others need not wait for it.
      if (tx.exhausted || tx.journalFull) executor.priority.giveBack(tx);
      if (tx.exhausted) {
        executor.metrics.countAbort(MEMORY_ABORT);
        tx.clear();
        // Of no use any more, and perhaps what keeps the memory that is missing.
        if (snapshotMs > 0) releaseSnapshot(tx);
        executor.leave();
        try {
          if (++reclaims > RECLAIM_ATTEMPTS || !executor.reclaim(tx.exhaustedClass))
            throw storeFull(executor, tx);
        } finally {
          executor.enter();
        }
        continue;
      }
      if (tx.journalFull) {
        // Nothing is locked, and the body is run again with what it finds then.
        tx.clear();
        executor.leave();
        try {
          executor.durability.awaitRoomSync(diskMs);
        } finally {
          executor.enter();
        }
        continue;
      }
      const { backoff } = executor;
      const lock = tx.metLock;
      const mayRetry =
        !executor.isGivenUp(lock, attempt) &&
        (tx.yielded ? backoff.mayRetry() : backoff.meet(lock));
      if (!mayRetry) throw gaveUp(executor, tx, backoff);
      tx.trace ??= [];
      if (executor.priority.meet(tx)) {
        if (snapshotMs > 0) releaseSnapshot(tx);
        awaitPriority(executor, tx);
      }
    }
  } finally {
    executor.leave();
    if (tx.conflicts > 0) executor.priority.end(tx);
    tx.clear();
    tx.trace = undefined;
    if (snapshotMs > 0) releaseSnapshot(tx);
  }
}

/** Takes a snapshot for an attempt, instead of that of the attempt before. */
export function limitToSnapshot(executor: Executor, tx: Transaction, snapshotMs: number): void {
  releaseSnapshot(tx);
  tx.snapshot = Snapshot.take(executor, snapshotMs, tx.timeoutMs);
  tx.readsOnly = true;
}

export function releaseSnapshot(tx: Transaction): void {
  tx.snapshot?.release();
  tx.snapshot = undefined;
}

/** Whether an error out of a body is to be believed, and not the dream of a zombie. */
export function isCallersOwn(executor: Executor, tx: Transaction, error: unknown): boolean {
  if (tx.doomed) return false;
  // What a released snapshot led to is not to be believed either.
  if (tx.snapshot !== undefined && !tx.snapshot.isRegistered) {
    const tooOld = tx.snapshot.tooOld();
    executor.metrics.countAbortBy(tooOld);
    throw tooOld;
  }
  if (executor.committer.isValid(tx)) {
    executor.metrics.countAbortBy(error);
    return true;
  }
  executor.countConflict(tx);
  return false;
}

/** The error of an operation that failed half-way, if it is to be believed. */
export function throwIfFatal(executor: Executor, tx: Transaction): void {
  if (tx.fatal === undefined || !executor.committer.isValid(tx)) return;
  executor.metrics.countAbortBy(tx.fatal.error);
  throw tx.fatal.error;
}

export function storeFull(executor: Executor, tx: Transaction): SituError {
  const { memory, slabs } = executor;
  const limitBytes = slabs.blocks.limit * UNIT_BYTES;
  const { shortage } = memory;
  if (shortage !== undefined && memory.regionCount < memory.control.regionLimit) {
    const usedBytes = slabs.blocks.count * UNIT_BYTES;
    return new SituError(
      "SITU_FULL",
      `no room for ${tx.subject}: ${shownSize(usedBytes)} of the store's ${shownSize(limitBytes)} are in ` +
        `use, and there is no memory for more: ${shortage.message}`,
      { cause: shortage },
    );
  }
  const isAutomatic = Atomics.load(memory.control.i32, LIMIT_RISES) !== 0;
  const why = isAutomatic ? `, and memoryBytes "auto" allows no more on this machine` : "";
  // Twice as large, as a proposal.
  const more = shownSize(2 * limitBytes).replace(" ", "");
  const how =
    memory.path === undefined
      ? "create the store with a larger memoryBytes (a store that only threads share cannot grow)"
      : `make the store larger, also while it is in use: situ resize --path ${memory.path} --memory ${more}, ` +
        `or db.resize(${2 * limitBytes})`;
  return new SituError(
    "SITU_FULL",
    `no room for ${tx.subject}: all ${shownSize(limitBytes)} of the store are in use${why}; delete rows, ` +
      `or ${how}`,
  );
}

/** The error for a transaction that never got through, with all that is known about why. */
export function gaveUp(
  executor: Executor,
  tx: Transaction,
  policy: RetryPolicy,
): ConflictError | TimeoutError {
  if (tx.metLock !== 0) {
    const holder = executor.holder(lockOwner(tx.metLock));
    return new TimeoutError(
      `gave up after ${policy.timeoutMs} ms: process ${holder.pid} (thread ${holder.threadId}, slot ` +
        `${holder.slot}) holds a lock and does not move; is it stopped?`,
      holder,
    );
  }
  return policy.conflict(`what this one read of ${tx.subject}`, tx.conflictKeys());
}

/**
 * A read-only body of the engine itself, on a transaction kept for the purpose. Nested inside a
 * user's transaction it reads beside it, not as part of it.
 */
export function runReadOnly<A, T>(
  executor: Executor,
  tx: Transaction,
  body: (tx: Transaction, argument: A) => T,
  argument: A,
): T {
  return runReads(executor, tx, undefined, body, argument);
}

/**
 * The same for a body that writes, too: what it does is committed when this returns, whatever becomes
 * of the user's transaction. It should not allocate: nobody reclaims memory for it.
 */
export function runBeside<A, T>(
  executor: Executor,
  tx: Transaction,
  body: (tx: Transaction, argument: A) => T,
  argument: A,
): T {
  return runReads(executor, tx, undefined, body, argument);
}

/**
 * An operation of a snapshot's reader. It sees one state whatever happens meanwhile; should an
 * object change while it is read, it is run again. What it returns, or throws, counts only if the
 * snapshot is still registered then.
 */
export function readAtSnapshot<A, T>(
  executor: Executor,
  tx: Transaction,
  snapshot: Snapshot,
  body: (tx: Transaction, argument: A) => T,
  argument: A,
): T {
  return runReads(executor, tx, snapshot, body, argument);
}

function runReads<A, T>(
  executor: Executor,
  tx: Transaction,
  snapshot: Snapshot | undefined,
  body: (tx: Transaction, argument: A) => T,
  argument: A,
): T {
  // A policy of its own: it may run inside a transaction that is counting its attempts.
  let policy: Backoff | undefined;
  tx.timeoutMs = executor.timeoutMs;
  tx.snapshot = snapshot;
  executor.enter();
  try {
    for (;;) {
      tx.clear();
      try {
        snapshot?.check();
        const result = body(tx, argument);
        snapshot?.check();
        if (snapshot !== undefined || executor.commit(tx)) return result;
      } catch (error) {
        const isOwn =
          snapshot === undefined
            ? isCallersOwn(executor, tx, error)
            : isSnapshotsOwn(snapshot, error);
        if (isOwn) throw error;
      }
      throwIfFatal(executor, tx);
      if (tx.journalFull && !executor.isHurried) {
        executor.durability.awaitRoomSync(executor.diskMs);
        continue;
      }
      policy ??= executor.newPatience(executor.isHurried ? ASYNC_PATIENCE_MS : executor.timeoutMs);
      meetOrGiveUp(executor, tx, policy);
      // A snapshot's reader is in nobody's way: it need not take priority.
      if (snapshot === undefined && !executor.isHurried && executor.priority.meet(tx)) {
        awaitPriority(executor, tx);
      }
    }
  } finally {
    if (tx.conflicts > 0) executor.priority.end(tx);
    tx.clear();
    tx.snapshot = undefined;
    executor.leave();
  }
}

/** Whether an error out of a snapshot's reader is to be believed. */
function isSnapshotsOwn(snapshot: Snapshot, error: unknown): boolean {
  if (!snapshot.isRegistered) throw snapshot.tooOld();
  // One that waits for a page repeats the step when that is there.
  return error === PAGE_MISS || !isSignal(error);
}

/** Waits until another no longer has priority, or this transaction has it. Nothing is held meanwhile. */
function awaitPriority(executor: Executor, tx: Transaction): void {
  tx.clear();
  executor.leave();
  try {
    executor.priority.awaitSync(tx);
  } finally {
    executor.enter();
  }
}

/** Waits for whoever a read outside of transactions has met; a hurried one is cut short instead. */
function meetOrGiveUp(executor: Executor, tx: Transaction, policy: Backoff): void {
  const { isHurried } = executor;
  // One who holds a lock was waited for already, when it was met.
  if (isHurried && tx.metLock !== 0) executor.cutShort(tx.metLock);
  if (policy.meet(tx.metLock)) return;
  if (isHurried) executor.cutShort(0);
  throw gaveUp(executor, tx, policy);
}

/** How long work that may be left undone waits for another executor. */
const LEISURE_MS = 1;

/** Work that may be left undone: tries a few times, and says whether it was done. */
export function tryRun(
  executor: Executor,
  tx: Transaction,
  attempts: number,
  body: (tx: Transaction) => void,
): boolean {
  tx.timeoutMs = LEISURE_MS;
  executor.enter();
  try {
    for (let attempt = 0; attempt < attempts; attempt++) {
      tx.clear();
      try {
        body(tx);
        if (executor.commit(tx)) return true;
      } catch (error) {
        if (isCallersOwn(executor, tx, error)) throw error;
      }
      if (tx.exhausted) executor.metrics.countAbort(MEMORY_ABORT);
      // Nor does it wait for one that has priority: it yields by being left undone.
      if (tx.exhausted || tx.journalFull || tx.yielded || tx.fatal !== undefined) return false;
    }
    return false;
  } finally {
    tx.clear();
    executor.leave();
  }
}

/** The same for a body that only reads: also one that it must wait for is left undone. */
export function tryReadOnly(
  executor: Executor,
  tx: Transaction,
  attempts: number,
  body: (tx: Transaction) => void,
): boolean {
  try {
    return tryRun(executor, tx, attempts, body);
  } catch (error) {
    if (error instanceof TimeoutError) return false;
    throw error;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}

function asyncBody(result: PromiseLike<unknown>): SituError {
  // The body goes on without its transaction, and what it runs into is not news.
  Promise.resolve(result).catch(() => {});
  return new SituError(
    "SITU_ASYNC_BODY",
    "the body of transactSync returned a promise; nothing was committed. Use transact for " +
      "asynchronous bodies",
  );
}
