/** FaRM §3.3: 256 distinct sizes from 64 bytes to 1 MB; the bounds on fragmentation. */

import { describe, expect, test } from "vitest";
import { BLOCK_CELLS } from "../../src/memory/blocks.ts";
import { CELL_BYTES, fragmentation, sizeClassOf } from "../../src/memory/size-classes.ts";
import {
  MAX_BLOCK_UNITS,
  MAX_CELL_BYTES,
  MIN_CELL_BYTES,
  UNIT_BYTES,
} from "../../src/runtime/limits.ts";

describe("size classes", () => {
  test("there are 256, growing, multiples of eight, from 64 bytes to 1 MiB", () => {
    expect(CELL_BYTES).toHaveLength(256);
    expect(CELL_BYTES[0]).toBe(MIN_CELL_BYTES);
    expect(CELL_BYTES[255]).toBe(MAX_CELL_BYTES);
    for (let i = 0; i < 256; i++) expect(CELL_BYTES[i] % 8).toBe(0);
    for (let i = 1; i < 256; i++) expect(CELL_BYTES[i]).toBeGreaterThan(CELL_BYTES[i - 1]);
  });

  test("the class of a size is the smallest that holds it, for every size there is", () => {
    let sizeClass = 0;
    let wrong = 0;
    for (let bytes = 1; bytes <= MAX_CELL_BYTES; bytes++) {
      while (CELL_BYTES[sizeClass] < bytes) sizeClass++;
      if (sizeClassOf(bytes) !== sizeClass) wrong++;
    }
    expect(wrong).toBe(0);
  });

  test("no class holds more than the largest cell", () => {
    expect(sizeClassOf(MAX_CELL_BYTES)).toBe(255);
    expect(sizeClassOf(MAX_CELL_BYTES + 1)).toBe(-1);
    expect(sizeClassOf(2 ** 31)).toBe(-1);
  });

  test("internal fragmentation is at most 1.8 % on average and 3.6 % at worst", () => {
    // Counted here, not taken from the function under test; requests are multiples of eight.
    let sum = 0;
    let worst = 0;
    let requests = 0;
    for (let bytes = MIN_CELL_BYTES; bytes <= MAX_CELL_BYTES; bytes += 8) {
      const cell = CELL_BYTES.find((size) => size >= bytes)!;
      const waste = (100 * (cell - bytes)) / cell;
      sum += waste;
      worst = Math.max(worst, waste);
      requests++;
    }
    expect(sum / requests).toBeLessThanOrEqual(1.8);
    expect(worst).toBeLessThanOrEqual(3.6);
    const said = fragmentation();
    expect(said.averagePercent).toBeCloseTo(sum / requests, 6);
    expect(said.worstPercent).toBeCloseTo(worst, 6);
  });

  test("every class has a block that holds at least one cell, and no more than fit", () => {
    for (let i = 0; i < 256; i++) {
      expect(BLOCK_CELLS[i]).toBeGreaterThanOrEqual(1);
      expect(BLOCK_CELLS[i] * CELL_BYTES[i]).toBeLessThanOrEqual(MAX_BLOCK_UNITS * UNIT_BYTES);
    }
  });
});
