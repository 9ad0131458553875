/** The dice of the workloads: the same for the same seed, and as likely as distributions say. */

import { describe, expect, test } from "vitest";
import { type Distribution, Hotspot, Uniform } from "../../workloads/random/distribution.ts";
import { checkPowerOfTwo, drawDistinct, drawItems } from "../../workloads/random/drawn.ts";
import { fnv64Modulo, writeFnv64 } from "../../workloads/random/fnv.ts";
import { Stream } from "../../workloads/random/stream.ts";
import {
  Latest,
  Scattered,
  ScrambledZipfian,
  YCSB_THETA,
  Zipfian,
  zetaOf,
} from "../../workloads/random/zipfian.ts";
import { fixedSeed } from "../helpers/seed.ts";

const SEED = fixedSeed(20_264);
const DRAWS = 400_000;

/** Parts of the draws that each item got. */
function parts(distribution: Distribution, lane: number): Float64Array {
  const counts = new Float64Array(distribution.items);
  const stream = new Stream(SEED, lane);
  for (let draw = 0; draw < DRAWS; draw++) counts[distribution.draw(stream)]++;
  return counts.map((count) => count / DRAWS);
}

/** Within five standard deviations of a chance: one test in a million would fail by chance. */
function expectPart(part: number, chance: number): void {
  const deviation = Math.sqrt((chance * (1 - chance)) / DRAWS);
  expect(Math.abs(part - chance), `${part} for ${chance}, seed ${SEED}`).toBeLessThan(
    5 * deviation,
  );
}

/** Pearson's statistic, for chances that are not too small. */
function chiSquare(found: ArrayLike<number>, chances: ArrayLike<number>): number {
  let sum = 0;
  for (let item = 0; item < chances.length; item++) {
    sum += (DRAWS * (found[item] - chances[item]) ** 2) / chances[item];
  }
  return sum;
}

/** It has a mean of `freedom` and a variance of twice that; five deviations, as above. */
function expectChiSquare(statistic: number, freedom: number): void {
  const limit = freedom + 5 * Math.sqrt(2 * freedom);
  expect(statistic, `seed ${SEED}`).toBeLessThan(limit);
}

describe("the stream", () => {
  test("draws the same for the same seed and lane, today and tomorrow", () => {
    const first = (seed: number, lane: number): number[] => {
      const stream = new Stream(seed, lane);
      return [stream.next(), stream.next(), stream.next(), stream.next()];
    };
    expect(first(1, 0)).toEqual([3511771352, 911862845, 1098038911, 2061990154]);
    expect(first(1, 1)).toEqual([7752366, 4194593300, 2385440190, 338038185]);
    expect(first(42, 7)).toEqual([2291200186, 3052131844, 2993992684, 3921389953]);
  });

  test("lanes and seeds that are close to each other have nothing in common", () => {
    const seen = new Set<number>();
    let differingBits = 0;
    const pairs = 4_096;
    for (let pair = 0; pair < pairs; pair++) {
      const one = new Stream(SEED + (pair >> 6), pair & 63).next();
      const other = new Stream(SEED + (pair >> 6), (pair & 63) + 1).next();
      seen.add(one);
      for (let bits = one ^ other; bits !== 0; bits &= bits - 1) differingBits++;
    }
    // Of 4,096 numbers of 32 bits two are the same with a chance of 1 in 500.
    expect(seen.size).toBeGreaterThan(pairs - 3);
    expect(Math.abs(differingBits / pairs - 16)).toBeLessThan(0.25);
  });

  test("below and unit are uniform, and stay within their limits", () => {
    const items = 1_000;
    expectChiSquare(
      chiSquare(parts(new Uniform(items), 1), Array(items).fill(1 / items)),
      items - 1,
    );
    const stream = new Stream(SEED, 2);
    let sum = 0;
    for (let draw = 0; draw < DRAWS; draw++) {
      const unit = stream.unit();
      if (!(unit >= 0 && unit < 1)) throw new Error(`${unit}`);
      sum += unit;
    }
    expect(Math.abs(sum / DRAWS - 0.5)).toBeLessThan(5 / Math.sqrt(12 * DRAWS));
  });
});

describe("FNV", () => {
  /** As Java has it, with wide integers. */
  function fnvhash64(value: number): bigint {
    let hash = 0xcbf29ce484222325n;
    for (let octet = 0n; octet < 8n; octet++) {
      hash ^= (BigInt(value) >> (8n * octet)) & 0xffn;
      hash = BigInt.asUintN(64, hash * 1099511628211n);
    }
    const signed = BigInt.asIntN(64, hash);
    return signed < 0n ? -signed : signed;
  }

  function decimal(value: number): string {
    const bytes = Buffer.alloc(24, " ");
    return bytes.toString("latin1", 1, writeFnv64(value, bytes, 1));
  }

  test("gives YCSB's keys", () => {
    // The first keys that YCSB itself loads.
    expect(decimal(0)).toBe("6284781860667377211");
    expect(decimal(1)).toBe("8517097267634966620");
  });

  test("is the same as with wide integers", () => {
    const stream = new Stream(SEED, 3);
    for (let round = 0; round < 2_000; round++) {
      const value = Math.floor(stream.unit() * 2 ** (1 + stream.below(53)));
      const items = 1 + stream.below(2 ** 26);
      expect(decimal(value)).toBe(fnvhash64(value).toString());
      expect(fnv64Modulo(value, items)).toBe(Number(fnvhash64(value) % BigInt(items)));
    }
    expect(() => fnv64Modulo(1, 2 ** 26 + 1)).toThrow(RangeError);
  });
});

describe("zipfian", () => {
  test.each([0.99, 0.5])("theta %d: as Gray's method says, and close to the law", (theta) => {
    const items = 1_000;
    const found = parts(new Zipfian(items, theta), 4);
    expectChiSquare(chiSquare(found, chancesByGray(items, theta)), items - 1);
    const zeta = zetaOf(items, theta);
    expectPart(found[0], 1 / zeta);
    expectPart(found[1], 0.5 ** theta / zeta);
    // From the third item on the method is an approximation, never far from the law.
    let sum = 0;
    let law = 0;
    for (let item = 0; item < items; item++) {
      sum += found[item];
      law += (item + 1) ** -theta / zeta;
      expect(Math.abs(sum - law), `up to item ${item}, seed ${SEED}`).toBeLessThan(0.02);
    }
  });

  /** The chance of each item: the part of the unit interval that the formula maps to it. */
  function chancesByGray(items: number, theta: number): Float64Array {
    const zeta = zetaOf(items, theta);
    const eta = (1 - (2 / items) ** (1 - theta)) / (1 - zetaOf(2, theta) / zeta);
    const second = (1 + 0.5 ** theta) / zeta;
    const from = (item: number): number => {
      const inverse = 1 + ((item / items) ** (1 - theta) - 1) / eta;
      return item <= 1 ? item / zeta : Math.max(second, inverse);
    };
    const chances = new Float64Array(items);
    for (let item = 0; item < items; item++) chances[item] = from(item + 1) - from(item);
    return chances;
  }

  test("scrambled: hashes of YCSB's ten thousand million items, the first ones the hottest", () => {
    const items = 100_000;
    const found = parts(new ScrambledZipfian(items), 5);
    // ZETAN; others of the 10^10 items fall on the same records, but hardly matter to the hottest.
    const zeta = 26.46902820178302;
    for (const item of [0, 1]) {
      const part = found[fnv64Modulo(item, items)];
      const chance = (item + 1) ** -YCSB_THETA / zeta;
      expect(part, `seed ${SEED}`).toBeGreaterThan(chance * 0.97);
      expect(part, `seed ${SEED}`).toBeLessThan(chance * 1.03 + 3 / items);
    }
    const hottest = [...found.keys()].sort((a, b) => found[b] - found[a]).slice(0, 5);
    expect(hottest).toEqual([0, 1, 2, 3, 4].map((item) => fnv64Modulo(item, items)));
  });

  test("latest: the newest is the most popular one, also when others have come", () => {
    const items = 1_000;
    const zeta = zetaOf(items, YCSB_THETA);
    const latest = new Latest(items);
    const found = parts(latest, 6);
    expectPart(found[items - 1], 1 / zeta);
    expectPart(found[items - 2], 0.5 ** YCSB_THETA / zeta);
    const one = new Stream(SEED, 7);
    const other = new Stream(SEED, 7);
    for (let draw = 0; draw < 100; draw++) {
      expect(latest.draw(one, 30)).toBe(latest.draw(other) + 30);
    }
  });

  test("scattered: the same chances, on other items, no two on the same", () => {
    for (const items of [1, 2, 3, 10, 1_000, 99_991]) {
      const inOrder: Distribution & { item: number } = { items, item: 0, draw: () => inOrder.item };
      const scattered = new Scattered(inOrder);
      const seen = new Set<number>();
      const stream = new Stream(SEED);
      for (inOrder.item = 0; inOrder.item < items; inOrder.item++) seen.add(scattered.draw(stream));
      expect(seen.size).toBe(items);
      expect(Math.max(...seen)).toBe(items - 1);
    }
  });
});

describe("others", () => {
  test("a hot spot gets its part, evenly", () => {
    const hotspot = new Hotspot(500, 0.04, 0.9);
    const found = parts(hotspot, 8);
    expect(hotspot.hotItems).toBe(20);
    const chances = Array.from({ length: 500 }, (_, item) => (item < 20 ? 0.9 / 20 : 0.1 / 480));
    expectChiSquare(chiSquare(found, chances), 499);
    expectPart(
      found.slice(0, 20).reduce((sum, part) => sum + part),
      0.9,
    );
    expect(() => new Hotspot(10, 0.01, 0.9)).toThrow(RangeError);
    expect(() => new Hotspot(10, 1, 0.9)).toThrow(RangeError);
  });

  test("draws before the run are those that the stream would have given", () => {
    const uniform = new Uniform(77);
    const items = drawItems(uniform, new Stream(SEED, 9), 256);
    const stream = new Stream(SEED, 9);
    expect([...items]).toEqual(Array.from({ length: 256 }, () => uniform.draw(stream)));
    expect(drawItems(uniform, stream).length).toBe(2 ** 19);
    for (const count of [0, 3, 12]) expect(() => checkPowerOfTwo(count)).toThrow(RangeError);
  });

  test("distinct ones are distinct, and all that there are if as many are asked for", () => {
    const stream = new Stream(SEED, 10);
    const items = new Int32Array(12);
    for (let round = 0; round < 200; round++) {
      drawDistinct(new Zipfian(10, YCSB_THETA), stream, items, 1, 10);
      const sorted = [...items.subarray(1, 11)].sort((a, b) => a - b);
      expect(sorted).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      expect(items[0] + items[11]).toBe(0);
    }
    expect(() => drawDistinct(new Uniform(3), stream, items, 0, 4)).toThrow(RangeError);
  });
});
