/** Work in the background of a thread that serves others: in small local transactions, with pauses. */

import type { Executor } from "../../engine/executor.ts";
import { isSignal } from "../../engine/signals.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { COPY_PAUSE_MS, COPY_SHARE } from "../../runtime/limits.ts";

/** Runs a piece of work as a transaction; undefined if something was locked, or had no room. */
export function attempt<T extends object>(
  executor: Executor,
  tx: Transaction,
  work: () => T,
): T | undefined {
  const entered = executor.enter();
  let exhausted = -1;
  try {
    const result = work();
    if (executor.commit(tx)) return result;
  } catch (error) {
    if (!isSignal(error)) throw error;
    if (tx.exhausted) exhausted = tx.exhaustedClass;
  } finally {
    tx.clear();
    executor.leave(entered);
    if (exhausted >= 0) executor.tryReclaim(exhausted);
  }
  return undefined;
}

/**
 * How long to pause after so much work, where so many do such work, for all of it to take no more than its share of
 * the time.
 */
export function pauseMs(workedMs: number, workers: number): number {
  return Math.max(COPY_PAUSE_MS, (workedMs * (workers - COPY_SHARE)) / COPY_SHARE);
}
