// Latencies: what was recorded comes back, within the three digits of the histogram.
import { describe, expect, test } from "vitest";
import { createLatencies, Latencies } from "../../benchmarks/suite/latencies.ts";
import { check, fc } from "../helpers/property.ts";

/** Three significant digits, rounded twice at most. */
const precision = 2e-3;

function recorded(values: readonly number[]): Latencies {
  const latencies = createLatencies();
  for (const ms of values) latencies.record(ms);
  return latencies;
}

function expectClose(nanoseconds: number | undefined, ms: number): void {
  expect(Math.abs((nanoseconds ?? Number.NaN) / 1e6 - ms)).toBeLessThanOrEqual(
    ms * precision + 1e-6,
  );
}

describe("summary", () => {
  test("of nothing is nothing", () => {
    expect(createLatencies().summary()).toBe(undefined);
    expect(Latencies.decode(createLatencies().encode()).summary()).toBe(undefined);
  });

  test("of a single value has its least and its most", () => {
    const summary = recorded([1.5]).summary();
    expect(summary?.count).toBe(1);
    expect(summary?.percentiles.map(({ percent }) => percent)).toEqual([0, 100]);
    for (const { nanoseconds } of summary?.percentiles ?? []) expectClose(nanoseconds, 1.5);
    expectClose(summary?.max, 1.5);
    expectClose(summary?.mean, 1.5);
  });

  test("has no finer percentile than values were recorded", () => {
    const percents = (count: number) =>
      recorded(Array.from({ length: count }, (_, index) => index + 1))
        .summary()
        ?.percentiles.map(({ percent }) => percent);
    expect(percents(100)?.slice(-2)).toEqual([99, 100]);
    expect(percents(1_000)?.slice(-2)).toEqual([99.9, 100]);
  });

  test("weights change the percentiles, not the number of values", () => {
    const latencies = createLatencies();
    for (let index = 0; index < 10; index++) {
      latencies.record(1, 9);
      latencies.record(100);
    }
    const summary = latencies.summary();
    expect(summary?.count).toBe(20);
    const at = new Map(summary?.percentiles.map((each) => [each.percent, each.nanoseconds]));
    expectClose(at.get(85), 1);
    expectClose(at.get(95), 100);
    expectClose(summary?.mean, 10.9);
  });

  test("is ascending in both, and right for any values", () => {
    check(
      fc.property(
        fc.array(fc.double({ min: 1e-6, max: 59_000, noNaN: true }), { minLength: 1 }),
        (values) => {
          const sorted = [...values].sort((left, right) => left - right);
          const { percentiles = [], max = 0, count } = recorded(values).summary() ?? {};
          expect(count).toBe(values.length);
          expectClose(max, sorted[sorted.length - 1]);
          let before = { percent: -1, nanoseconds: 0 };
          for (const each of percentiles) {
            expect(each.percent).toBeGreaterThan(before.percent);
            expect(each.nanoseconds).toBeGreaterThanOrEqual(before.nanoseconds);
            const rank = Math.ceil((each.percent / 100) * sorted.length);
            expectClose(each.nanoseconds, sorted[Math.max(0, rank - 1)]);
            before = each;
          }
        },
      ),
    );
  });
});

test("what is out of range is kept at its edge", () => {
  const summary = recorded([-1, 0, 3_600_000]).summary();
  expect(summary?.percentiles[0].nanoseconds).toBe(1);
  expectClose(summary?.max, 60_000);
});

test("travels as text, and adds up", () => {
  const values = fc.array(fc.double({ min: 1e-6, max: 1_000, noNaN: true }));
  check(
    fc.property(values, values, (left, right) => {
      const together = Latencies.decode(recorded(left).encode());
      together.add(Latencies.decode(recorded(right).encode()));
      // Encoding rounds to the value of the bucket.
      const whole = Latencies.decode(recorded([...left, ...right]).encode());
      expect(together.summary()).toEqual(whole.summary());
    }),
  );
});
