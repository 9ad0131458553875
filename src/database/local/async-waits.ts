/** What asynchronous transactions wait for while the event loop turns: locks, and others' commits. */

import type { Executor } from "../../engine/executor.ts";
import { releaseSnapshot } from "../../engine/run.ts";
import { committingSlot, Snapshot, stillCommitting } from "../../engine/snapshots/snapshot.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { LOCK, lockOwner, VERSION_HIGH, VERSION_LOW } from "../../memory/object.ts";
import { sleep } from "../../runtime/clock.ts";
import { TimeoutError } from "../../runtime/errors.ts";
import { ASYNC_PATIENCE_MS, MAX_ASYNC_PAUSE_MS } from "../../runtime/limits.ts";
import type { AsyncRetry } from "../run/async-retry.ts";

/** A lock that an attempt has met, and where. */
export interface MetLock {
  readonly lock: number;
  /** The words of the object's region, and where its header is. */
  readonly i32: Int32Array;
  readonly word: number;
  readonly versionHigh: number;
  readonly versionLow: number;
}

/** The lock that the last conflict was about; undefined if none was held, or not on an object. */
export function metLockOf(tx: Transaction): MetLock | undefined {
  const { metLock: lock, metEntry: entry, set } = tx;
  if (lock === 0 || entry < 0) return undefined;
  const { i32 } = set.regionOf(entry);
  const word = set.wordOf(entry);
  return {
    lock,
    i32,
    word,
    versionHigh: i32[word + VERSION_HIGH],
    versionLow: i32[word + VERSION_LOW],
  };
}

/**
 * Returns when the lock is gone, or its holder has changed the object: before that, running the body
 * again would only meet it again. Or when the transaction's time is over.
 */
export async function awaitLock(
  executor: Executor,
  met: MetLock,
  retry: AsyncRetry,
): Promise<void> {
  const { lock, i32, word } = met;
  for (let pauseMs = 1; !retry.isOver(); pauseMs = Math.min(2 * pauseMs, MAX_ASYNC_PAUSE_MS)) {
    const isHeld =
      Atomics.load(i32, word + LOCK) === lock &&
      i32[word + VERSION_HIGH] === met.versionHigh &&
      i32[word + VERSION_LOW] === met.versionLow;
    if (!isHeld || executor.recoverIfDead(lockOwner(lock))) return;
    await sleep(pauseMs);
    retry.checkSignal();
  }
}

/**
 * After a transaction found no memory: returns true when it may find some, false if the store is full. What was
 * freed can be used when the transactions that were running then have ended, some of which may be of this thread.
 */
export async function awaitMemory(
  executor: Executor,
  tx: Transaction,
  retry: AsyncRetry,
): Promise<boolean> {
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, MAX_ASYNC_PAUSE_MS)) {
    const found = executor.tryReclaim(tx.exhaustedClass);
    if (found === "room") return true;
    // What was waited for may have been given back by another transaction of this executor, or used by it.
    if (found === "none") return pauseMs > 1;
    if (retry.isOver()) throw noMemoryYet(executor, tx, retry.timeoutMs);
    await sleep(Math.min(pauseMs, Math.max(retry.leftMs(), 1)));
    retry.checkSignal();
  }
}

function noMemoryYet(executor: Executor, tx: Transaction, timeoutMs: number): TimeoutError {
  const holder = executor.epochs.laggard(executor.slabs.waitsFor(tx.exhaustedClass));
  const who = holder === undefined ? "" : `, such as one of process ${holder.pid},`;
  return new TimeoutError(
    `no room for ${tx.subject} within ${timeoutMs} ms: the memory of deleted rows can be used when the ` +
      `transactions that were running then${who} have ended`,
    holder,
  );
}

/**
 * Takes a snapshot for an attempt, instead of that of the attempt before. Returns the slot of one who
 * is in the middle of a commit, and must be waited for before anything is read; or -1.
 */
export function limitToSnapshot(executor: Executor, tx: Transaction, snapshotMs: number): number {
  releaseSnapshot(tx);
  const snapshot = Snapshot.begin(executor, snapshotMs);
  // From here on it is released with the transaction, whatever is thrown.
  tx.snapshot = snapshot;
  tx.readsOnly = true;
  const slot = committingSlot(executor, snapshot.epoch, 0);
  if (slot < 0 || executor.isStuck(slot)) return slot;
  const stuck = committingSlot(executor, snapshot.epoch, ASYNC_PATIENCE_MS);
  if (stuck >= 0) executor.markStuck(stuck);
  return stuck;
}

/** Waits for those whose commits a snapshot may have to see; `first` is one of them. */
export async function awaitSnapshot(
  executor: Executor,
  snapshot: Snapshot,
  first: number,
  retry: AsyncRetry,
): Promise<void> {
  let slot = first;
  for (let pauseMs = 1; slot >= 0; pauseMs = Math.min(2 * pauseMs, MAX_ASYNC_PAUSE_MS)) {
    if (retry.isOver()) throw stillCommitting(executor, slot, retry.timeoutMs);
    await sleep(pauseMs);
    retry.checkSignal();
    executor.recoverIfDead(slot);
    slot = committingSlot(executor, snapshot.epoch, 0);
  }
}
