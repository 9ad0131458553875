/**
 * Pages are written by one executor of a store at a time: whoever has its slot in the word DEVICE_KEEPER. It
 * holds the role within one call, and never across turns of the event loop. The word is freed when a
 * dead holder is recovered. Invariant: while somebody holds the role, nobody else writes a page, takes a
 * free one or adds one to them.
 *
 * Work in the background finds its tables by their addresses, not through the catalogue as transactions do. So it looks
 * under the role whether its table was dropped; and whoever frees a table that was dropped has had the role before.
 */

import type { Executor } from "../../engine/executor.ts";
import { DEVICE_KEEPER } from "../../memory/control.ts";
import type { DeviceTable } from "./device-table.ts";

/** What `asKeeper` returns if another has the role, or there is nothing to keep. */
export const NOT_KEEPER = Symbol("another executor writes pages");

/** Works for a table, unless it was dropped. */
export function asKeeper<T>(table: DeviceTable, work: () => T): T | typeof NOT_KEEPER {
  return withRole(table.executor, () => (table.isGone() ? NOT_KEEPER : work()));
}

/** For one who has dropped a table: false as long as another may work for it that does not know. */
export function nobodyKeeps(executor: Executor): boolean {
  return withRole(executor, () => true) === true;
}

function withRole<T>(executor: Executor, work: () => T): T | typeof NOT_KEEPER {
  const { i32 } = executor.memory.control;
  const mine = executor.slot + 1;
  const holder = Atomics.compareExchange(i32, DEVICE_KEEPER, 0, mine);
  if (holder !== 0) {
    if (holder === mine || !executor.recoverIfDead(holder - 1)) return NOT_KEEPER;
    if (Atomics.compareExchange(i32, DEVICE_KEEPER, 0, mine) !== 0) return NOT_KEEPER;
  }
  try {
    return work();
  } finally {
    Atomics.store(i32, DEVICE_KEEPER, 0);
  }
}
