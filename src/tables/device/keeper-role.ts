/**
 * Pages are reserved, and mostly written, by one executor of a store at a time: whoever has its slot in the word DEVICE_KEEPER. It
 * holds the role within one call, and never across turns of the event loop. The word is freed when a
 * dead holder is recovered. Invariant: while somebody holds the role, nobody else takes a free page or
 * adds one to them, and pages are written only by the holder and by jobs that are announced (elements/device-jobs.ts).
 *
 * Work in the background finds its tables by their addresses, not through the catalogue as transactions do. So it looks
 * under the role whether its table was dropped; and whoever frees a table that was dropped has had the role before.
 */

import type { Executor } from "../../engine/executor.ts";
import { DEVICE_FLUSHER, DEVICE_KEEPER } from "../../memory/control.ts";
import { nowMs, sleep, sleepSync } from "../../runtime/clock.ts";
import { TimeoutError } from "../../runtime/errors.ts";
import type { DeviceTable } from "./device-table.ts";

/** How long to wait for one who has the role. */
const ROLE_MS = 1;

/** What `asKeeper` returns if another has the role, or there is nothing to keep. */
export const NOT_KEEPER = Symbol("another executor writes pages");

/** Works for a table, unless it was dropped. */
export function asKeeper<T>(table: DeviceTable, work: () => T): T | typeof NOT_KEEPER {
  return withRole(table.executor, () => (table.isGone() ? NOT_KEEPER : work()));
}

/** The same, as soon as nobody else has the role: NOT_KEEPER only if the table is gone, or `isEnding`. */
export async function asKeeperSoon<T>(
  table: DeviceTable,
  isEnding: () => boolean,
  work: () => T,
): Promise<T | typeof NOT_KEEPER> {
  for (;;) {
    const done = asKeeper(table, work);
    if (done !== NOT_KEEPER || table.isGone() || isEnding()) return done;
    await sleep(ROLE_MS);
  }
}

/** For one who has dropped a table: false as long as another may work for it that does not know. */
export function nobodyKeeps(executor: Executor): boolean {
  return withRole(executor, () => true) === true;
}

/** For one who has no table yet: waits until nobody else has the role. */
export function keeperSync<T>(executor: Executor, timeoutMs: number, work: () => T): T {
  const endMs = nowMs() + timeoutMs;
  for (;;) {
    const done = withRole(executor, work);
    if (done !== NOT_KEEPER) return done;
    if (nowMs() >= endMs) {
      throw new TimeoutError(
        `gave up after ${timeoutMs} ms: another process writes pages of device tables and does not move; is it stopped?`,
      );
    }
    sleepSync(ROLE_MS);
  }
}

function withRole<T>(executor: Executor, work: () => T): T | typeof NOT_KEEPER {
  if (!take(executor, DEVICE_KEEPER)) return NOT_KEEPER;
  try {
    return work();
  } finally {
    Atomics.store(executor.memory.control.i32, DEVICE_KEEPER, 0);
  }
}

/**
 * Becomes the one executor that moves rows in the background, across turns of the event loop; false if there is
 * another one. Two of them would do no harm, but write the same rows twice.
 */
export function beginFlush(executor: Executor): boolean {
  return take(executor, DEVICE_FLUSHER);
}

export function endFlush({ memory: { control }, slot }: Executor): void {
  Atomics.compareExchange(control.i32, DEVICE_FLUSHER, slot + 1, 0);
}

function take(executor: Executor, word: number): boolean {
  const { i32 } = executor.memory.control;
  const mine = executor.slot + 1;
  const holder = Atomics.compareExchange(i32, word, 0, mine);
  if (holder === 0) return true;
  if (holder === mine || !executor.recoverIfDead(holder - 1)) return false;
  return Atomics.compareExchange(i32, word, 0, mine) === 0;
}
