/**
 * The 256 sizes in which memory is handed out (FaRM §3.3), from 64 bytes to 1 MiB, header
 * included. Cells are multiples of eight bytes so that 64-bit fields are aligned; up to about
 * 220 bytes every such multiple is a class of its own and nothing is wasted. Above, classes grow
 * by the largest step that keeps the waste of the worst request under the bound; the bound is
 * the smallest one for which 256 classes reach 1 MiB. It is written down and not searched for: every
 * process that opens a store loads this module.
 */

import { assert } from "../runtime/assert.ts";
import { MAX_CELL_BYTES, MIN_CELL_BYTES, SIZE_CLASSES } from "../runtime/limits.ts";

const GRAIN = 8;
const WASTE_BOUND = 0.03340381;

/** Class sizes such that no request, a multiple of eight, wastes more than `bound` of its cell. */
function classesFor(bound: number): number[] {
  const sizes = [MIN_CELL_BYTES];
  for (let last = MIN_CELL_BYTES; last < MAX_CELL_BYTES; ) {
    const largest = Math.floor((last + GRAIN) / (1 - bound) / GRAIN) * GRAIN;
    last = Math.min(Math.max(last + GRAIN, largest), MAX_CELL_BYTES);
    sizes.push(last);
  }
  return sizes;
}

export const CELL_BYTES: readonly number[] = classesFor(WASTE_BOUND);
assert(CELL_BYTES.length === SIZE_CLASSES, "exactly 256 size classes");

/** Smallest class of a request in grains of eight bytes; 256 KiB as two bytes each, one look-up. */
const classOfGrains = new Uint8Array(MAX_CELL_BYTES / GRAIN + 1);
for (let sizeClass = 1; sizeClass < SIZE_CLASSES; sizeClass++) {
  classOfGrains.fill(sizeClass, CELL_BYTES[sizeClass - 1] / GRAIN + 1);
}

/** The class whose cells hold `bytes`, header included; -1 if none does. */
export function sizeClassOf(bytes: number): number {
  return bytes > MAX_CELL_BYTES ? -1 : classOfGrains[(bytes + GRAIN - 1) >>> 3];
}

/** Internal fragmentation over every request size, uniformly weighted, computed. */
export function fragmentation(): { averagePercent: number; worstPercent: number } {
  let sum = 0;
  let worst = 0;
  let requests = 0;
  for (let bytes = MIN_CELL_BYTES; bytes <= MAX_CELL_BYTES; bytes += GRAIN) {
    const cell = CELL_BYTES[sizeClassOf(bytes)];
    const waste = (cell - bytes) / cell;
    sum += waste;
    worst = Math.max(worst, waste);
    requests++;
  }
  return { averagePercent: (100 * sum) / requests, worstPercent: 100 * worst };
}
