/**
 * Items that were drawn before anything is measured: a hot loop then pays one sequential load for
 * a draw, and every engine the same. Loops walk through them and begin again at the end.
 */

import type { Distribution } from "./distribution.ts";
import type { Stream } from "./stream.ts";

/**
 * So many that a walk over them meets far more rows than caches hold, and that drawing them takes
 * half a second at most. A power of two, for masks.
 */
export const DRAWS = 2 ** 19;

export function drawItems(
  distribution: Distribution,
  stream: Stream,
  count: number = DRAWS,
): Int32Array {
  const items = new Int32Array(count);
  for (let index = 0; index < count; index++) items[index] = distribution.draw(stream);
  return items;
}

/** The next `count` places of `items`, from `first` on, all with different items. */
export function drawDistinct(
  distribution: Distribution,
  stream: Stream,
  items: Int32Array,
  first: number,
  count: number,
): void {
  if (count > distribution.items) {
    throw new RangeError(`there are no ${count} different ones of ${distribution.items}`);
  }
  for (let index = first; index < first + count; index++) {
    let item = distribution.draw(stream);
    while (isAmong(items, item, first, index)) item = distribution.draw(stream);
    items[index] = item;
  }
}

export function checkPowerOfTwo(count: number): void {
  if (count < 1 || (count & (count - 1)) !== 0) {
    throw new RangeError(`${count} draws are not a power of two`);
  }
}

function isAmong(items: Int32Array, item: number, first: number, end: number): boolean {
  for (let index = first; index < end; index++) if (items[index] === item) return true;
  return false;
}
