/**
 * Zipfian draws: item i has a chance proportional to 1 / (i + 1)^theta. The method is that of Gray
 * et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994, in the way YCSB has
 * it (core/src/main/java/site/ycsb/generator). It is exact for the first two items and close for
 * the others: one power for each draw, whatever the number of items.
 */

import type { Distribution } from "./distribution.ts";
import { fnv64Modulo } from "./fnv.ts";
import type { Stream } from "./stream.ts";

/** ZipfianGenerator.ZIPFIAN_CONSTANT. */
export const YCSB_THETA = 0.99;

/** Item 0 is the most popular one. */
export class Zipfian implements Distribution {
  readonly items: number;
  readonly #zeta: number;
  readonly #second: number;
  readonly #alpha: number;
  readonly #eta: number;

  /** `zeta`: the sum of all 1 / i^theta, where somebody has computed it before. */
  constructor(items: number, theta: number, zeta = zetaOf(items, theta)) {
    this.items = items;
    this.#zeta = zeta;
    this.#second = 1 + 0.5 ** theta;
    this.#alpha = 1 / (1 - theta);
    this.#eta = (1 - (2 / items) ** (1 - theta)) / (1 - zetaOf(2, theta) / zeta);
  }

  draw(stream: Stream): number {
    const unit = stream.unit();
    const scaled = unit * this.#zeta;
    if (scaled < 1) return 0;
    if (scaled < this.#second) return 1;
    const item = Math.floor(this.items * (this.#eta * unit - this.#eta + 1) ** this.#alpha);
    return Math.min(item, this.items - 1);
  }
}

/** ScrambledZipfianGenerator.ITEM_COUNT, and ZETAN, which is zeta for it and theta 0.99. */
const SCRAMBLED_ITEMS = 10_000_000_000;
const SCRAMBLED_ZETA = 26.46902820178302;

/**
 * YCSB's "zipfian": draws from 10^10 items, whatever the number of records, and scatters them over
 * the records by their hash. So the same records are popular when there are more, and none is as
 * popular as the first item of a plain zipfian distribution over the records would be.
 */
export class ScrambledZipfian implements Distribution {
  readonly items: number;
  readonly #zipfian = new Zipfian(SCRAMBLED_ITEMS, YCSB_THETA, SCRAMBLED_ZETA);

  constructor(items: number) {
    this.items = items;
  }

  draw(stream: Stream): number {
    return fnv64Modulo(this.#zipfian.draw(stream), this.items);
  }
}

/**
 * YCSB's "latest" (SkewedLatestGenerator): the last item is the most popular one. Where `added`
 * items have come since, all draws move up by that; the oldest ones are not drawn then, which the
 * chance of 1 in many millions hides.
 */
export class Latest implements Distribution {
  readonly items: number;
  readonly #zipfian: Zipfian;

  constructor(items: number) {
    this.items = items;
    this.#zipfian = new Zipfian(items, YCSB_THETA);
  }

  draw(stream: Stream, added = 0): number {
    return this.items - 1 + added - this.#zipfian.draw(stream);
  }
}

/**
 * The same chances, but the popular items lie anywhere: item i becomes i * step modulo items, where
 * items and step have no common divisor, so no two become the same.
 */
export class Scattered implements Distribution {
  readonly items: number;
  readonly #drawn: Distribution;
  readonly #step: number;

  constructor(drawn: Distribution) {
    this.items = drawn.items;
    if (this.items > 2 ** 26) throw new RangeError(`${this.items} items are too many to scatter`);
    this.#drawn = drawn;
    this.#step = coprimeTo(this.items);
  }

  draw(stream: Stream): number {
    return (this.#drawn.draw(stream) * this.#step) % this.items;
  }
}

export function zetaOf(items: number, theta: number): number {
  let sum = 0;
  for (let item = 1; item <= items; item++) sum += item ** -theta;
  return sum;
}

/** Near the golden part of `items`: neighbours go far apart (Knuth, volume 3, §6.4). */
function coprimeTo(items: number): number {
  let step = Math.max(1, Math.floor(items * 0.6180339887498949));
  while (divisorOf(step, items) !== 1) step++;
  return step;
}

function divisorOf(a: number, b: number): number {
  return b === 0 ? a : divisorOf(b, a % b);
}
