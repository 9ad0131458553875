/**
 * Updates that the device's threads have begun and not ended: a count in the slot of each thread, which is
 * cleared when a dead owner is recovered. While there is any, pages that nothing leads to may be an update's.
 */

import type { Executor } from "../../../engine/executor.ts";
import { DEVICE_JOBS, slotsInUse } from "../../../engine/slot.ts";

export function beginDeviceJob({ memory: { control }, slot }: Executor): void {
  Atomics.add(control.i32, control.slotAt(slot) + DEVICE_JOBS, 1);
}

export function endDeviceJob({ memory: { control }, slot }: Executor): void {
  Atomics.sub(control.i32, control.slotAt(slot) + DEVICE_JOBS, 1);
}

/** Whether any executor of the store has one. */
export function hasDeviceJobs({ memory: { control } }: Executor): boolean {
  const slots = slotsInUse(control);
  for (let slot = 0; slot < slots; slot++) {
    if (Atomics.load(control.i32, control.slotAt(slot) + DEVICE_JOBS) !== 0) return true;
  }
  return false;
}
