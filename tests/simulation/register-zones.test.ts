/** The checker for registers against all orders, tried one by one. */

import { describe, expect, test } from "vitest";
import {
  checkRegister,
  INITIAL,
  type RegisterRead,
  type RegisterWrite,
} from "../../simulation/cluster/workloads/register-zones.ts";
import { check, fc } from "../helpers/property.ts";

// The same inputs in every run; a failure prints the seed and the path to its counterexample.
const write = (value: number, start: number, end: number): RegisterWrite => ({ value, start, end });
const read = (value: number, start: number, end: number): RegisterRead => ({ value, start, end });

describe("by hand", () => {
  test("one after the other", () => {
    expect(checkRegister([write(1, 0, 1), write(2, 4, 5)], [read(1, 2, 3), read(2, 6, 7)])).toEqual(
      [],
    );
  });

  test("a stale read", () => {
    expect(checkRegister([write(1, 0, 1), write(2, 2, 3)], [read(1, 4, 5)])).not.toEqual([]);
  });

  test("a value that comes back", () => {
    const writes = [write(1, 0, 10), write(2, 0, 10)];
    const reads = [read(1, 11, 12), read(2, 13, 14), read(1, 15, 16)];
    expect(checkRegister(writes, reads)).not.toEqual([]);
  });

  test("a read before the write", () => {
    expect(checkRegister([write(1, 5, 6)], [read(1, 1, 2)])).not.toEqual([]);
  });

  test("a value nobody wrote", () => {
    expect(checkRegister([], [read(9, 1, 2)])).not.toEqual([]);
  });

  test("an unknown write may be done late, or never", () => {
    const unknown = write(1, 0, Number.POSITIVE_INFINITY);
    expect(checkRegister([unknown, write(2, 1, 2)], [read(2, 3, 4), read(1, 5, 6)])).toEqual([]);
    expect(checkRegister([unknown, write(2, 1, 2)], [read(2, 3, 4)])).toEqual([]);
  });
});

/** Tries all orders that real time allows. */
function isLinearizable(writes: readonly RegisterWrite[], reads: readonly RegisterRead[]): boolean {
  const seen = new Set(reads.map(({ value }) => value));
  const all = [
    ...writes
      .filter(({ value, end }) => end !== Number.POSITIVE_INFINITY || seen.has(value))
      .map((each) => ({ ...each, isWrite: true })),
    ...reads.map((each) => ({ ...each, isWrite: false })),
  ];
  const place = (left: typeof all, value: number): boolean => {
    if (left.length === 0) return true;
    return left.some((next) => {
      if (left.some((other) => other !== next && other.end < next.start)) return false;
      if (!next.isWrite && next.value !== value) return false;
      return place(
        left.filter((each) => each !== next),
        next.isWrite ? next.value : value,
      );
    });
  };
  return place(all, INITIAL);
}

test("random histories: the same answer as trying all orders", () => {
  const interval = fc.tuple(fc.nat(12), fc.nat(6));
  const history = fc.record({
    writes: fc.array(fc.tuple(interval, fc.nat(7)), { maxLength: 4 }),
    reads: fc.array(fc.tuple(interval, fc.nat(4)), { maxLength: 4 }),
  });
  check(
    fc.property(history, (given) => {
      const writes = given.writes.map(([[start, length], known], i) =>
        write(i + 1, start, known === 0 ? Number.POSITIVE_INFINITY : start + length),
      );
      const reads = given.reads.map(([[start, length], value]) =>
        read(Math.min(value, writes.length), start, start + length),
      );
      expect(checkRegister(writes, reads).length === 0).toBe(isLinearizable(writes, reads));
    }),
    { numRuns: 3_000 },
  );
});
