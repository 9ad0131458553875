/** One contract, two implementations: memory/segments.ts. */

import { describe, expect, test } from "vitest";
import { SituError } from "../../src/runtime/errors.ts";
import { SHARINGS, testSegments } from "../helpers/engine-store.ts";

const BYTES = 1 << 20;
const SIZES = new Map([
  ["region-0", BYTES],
  ["region-1", BYTES],
]);

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof SituError) return error.code;
    throw error;
  }
  return "no error";
}

describe.each(SHARINGS)("segments: %s", (sharing) => {
  function withSegments(work: (place: ReturnType<typeof testSegments>) => void): void {
    const place = testSegments(sharing, SIZES);
    try {
      work(place);
    } finally {
      place.remove();
    }
  }

  test("a created segment is zeroed and as long as asked for", () => {
    withSegments(({ segments }) => {
      const segment = segments().create("region-0", BYTES);
      expect(segment.buffer.byteLength).toBe(BYTES);
      expect(new Int32Array(segment.buffer).every((word) => word === 0)).toBe(true);
      segment.release();
    });
  });

  test("what one writes, those who attach see, and the other way round", () => {
    withSegments(({ segments }) => {
      const created = segments().create("region-0", BYTES);
      const attached = segments().attach("region-0", BYTES);
      const here = new Int32Array(created.buffer);
      const there = new Int32Array(attached.buffer);
      here[5] = 42;
      expect(there[5]).toBe(42);
      Atomics.store(there, BYTES / 4 - 1, 7);
      expect(Atomics.load(here, BYTES / 4 - 1)).toBe(7);
      expect(Atomics.compareExchange(there, 5, 42, 43)).toBe(42);
      expect(here[5]).toBe(43);
      created.release();
      attached.release();
    });
  });

  test("64-bit and 32-bit atomics see the same words", () => {
    withSegments(({ segments }) => {
      const { buffer, release } = segments().create("region-0", BYTES);
      const words = new Int32Array(buffer);
      const pairs = new BigInt64Array(buffer);
      Atomics.store(pairs, 1, (7n << 32n) | 0xffffffffn);
      expect([Atomics.load(words, 2), Atomics.load(words, 3)]).toEqual([-1, 7]);
      expect(Atomics.add(pairs, 1, 1n)).toBe((7n << 32n) | 0xffffffffn);
      expect([Atomics.load(words, 2), Atomics.load(words, 3)]).toEqual([0, 8]);
      release();
    });
  });

  test("segments are separate", () => {
    withSegments(({ segments }) => {
      const first = segments().create("region-0", BYTES);
      const second = segments().create("region-1", BYTES);
      new Int32Array(first.buffer).fill(1);
      expect(new Int32Array(second.buffer).every((word) => word === 0)).toBe(true);
      first.release();
      second.release();
    });
  });

  test("attaching with another length is refused", () => {
    withSegments(({ segments }) => {
      segments().create("region-0", BYTES).release();
      expect(codeOf(() => segments().attach("region-0", BYTES / 2))).toBe("SITU_CORRUPT");
      expect(codeOf(() => segments().attach("region-0", BYTES * 2))).toBe("SITU_CORRUPT");
    });
  });

  test("attaching what nobody created is refused", () => {
    withSegments(({ segments }) => {
      expect(codeOf(() => segments().attach("region-7", BYTES))).toBe("SITU_CORRUPT");
    });
  });
});

describe("segments: mapped files only", () => {
  test("what a creator who died left behind is not taken for zeroes", () => {
    const place = testSegments("mapped files", SIZES);
    try {
      const half = place.segments().create("region-0", BYTES / 2);
      new Int32Array(half.buffer).fill(-1);
      half.release();
      const whole = place.segments().create("region-0", BYTES);
      expect(new Int32Array(whole.buffer).every((word) => word === 0)).toBe(true);
      whole.release();
    } finally {
      place.remove();
    }
  });
});
