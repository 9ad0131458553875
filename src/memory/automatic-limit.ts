/**
 * `memoryBytes: "auto"`: a limit that rises by itself, one region at a time, when an executor runs short
 * of memory. It rises up to a share of what the machine has, or the container may use, and only where
 * the file system of the store's memory has room for the region and something beside it.
 *
 * Raising is one compare-and-swap. It is not recorded in the store's folder: after a restart or a
 * recovery the limit rises again as far as it is needed. `resize` to a number ends it: it clears
 * LIMIT_RISES before it sets the limit. Here the limit is read before LIMIT_RISES, so one who sees the new limit
 * also sees that it does not rise, and one who has seen the old limit does not change the new one.
 */

import { AUTO_MEMORY_SHARE, AUTO_SPARE_BYTES } from "../runtime/limits.ts";
import { LIMIT_RISES, REGION_LIMIT } from "./control.ts";
import { freeBytesOf, machineBytes } from "./free-bytes.ts";
import type { StoreMemory } from "./store-memory.ts";

/** The most bytes that an automatic limit comes to on this machine. */
export function automaticMostBytes(): number {
  return AUTO_MEMORY_SHARE * machineBytes();
}

/** Allows another region, if the limit rises by itself and there is room. True also if another was quicker. */
export function raiseByItself(memory: StoreMemory): boolean {
  const { control, segments } = memory;
  const { regionBytes, regions } = control.geometry;
  const limit = control.regionLimit;
  if (Atomics.load(control.i32, LIMIT_RISES) === 0) return false;
  if (limit >= regions || (limit + 1) * regionBytes > automaticMostBytes()) return false;
  if (freeBytesOf(segments.place) < regionBytes + AUTO_SPARE_BYTES) return false;
  memory.reserveUnits(limit + 1);
  const seen = Atomics.compareExchange(control.i32, REGION_LIMIT, limit, limit + 1);
  return seen === limit || seen > limit;
}
