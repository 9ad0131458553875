// Bars: nobody is claimed to be beaten who was not there.
import { describe, expect, test } from "vitest";
import { barResult } from "../../benchmarks/suite/bars.ts";
import { exitCodeOf } from "../../benchmarks/suite/exit-code.ts";
import { cellOf, measured } from "./results.ts";

const bar = { cell: "smallbank-none-2", atLeast: 3 };
const others = [measured("sqlite", 1, 1, 1), measured("redis", 5, 5, 5)];
const lmdb = measured("lmdb", 10, 20, 30);
const postgres = measured("postgres", 2, 2, 2);

function result(...entries: Parameters<typeof cellOf>[1][]) {
  return barResult(bar, [cellOf("another"), cellOf(bar.cell, ...entries)]);
}

describe("against the best of all", () => {
  test("the ratio is the median of the rounds' own", () => {
    // Of medians it would be 60 / 20 = 3.
    const situ = measured("situ", 60, 50, 90);
    expect(result(situ, lmdb, ...others, postgres)).toEqual({
      cell: bar.cell,
      title: "title of smallbank-none-2",
      atLeast: 3,
      ratio: 3,
      spread: { min: 2.5, max: 6 },
      met: true,
      best: "lmdb",
    });
  });

  test("what is below is missed, what is equal is met", () => {
    const at = (...perSecond: number[]) =>
      result(measured("situ", ...perSecond), lmdb, ...others, postgres);
    expect(at(29, 59, 89).met).toBe(false);
    expect(at(30, 60, 90).met).toBe(true);
  });

  test("the order of the entries does not matter", () => {
    const entries = [measured("situ", 60, 60, 60), postgres, ...others, lmdb];
    expect(result(...entries).best).toBe("lmdb");
    expect(result(...entries.reverse()).best).toBe("lmdb");
  });

  test("Situ's own cluster is no peer", () => {
    const cluster = measured("cluster", 1_000, 1_000, 1_000);
    const situ = measured("situ", 60, 60, 60);
    expect(result(situ, cluster, lmdb, ...others, postgres).best).toBe("lmdb");
  });
});

describe("against one", () => {
  const against = { ...bar, against: "postgres" } as const;
  const situ = measured("situ", 20, 20, 20);

  test("the others do not count", () => {
    const missing = { engine: "lmdb", missing: "not there" } as const;
    const cell = cellOf(bar.cell, situ, missing, postgres);
    expect(barResult(against, [cell])).toMatchObject({ ratio: 10, best: "postgres", met: true });
  });

  test("which is missing, the bar is as well", () => {
    const cell = cellOf(bar.cell, situ, lmdb);
    expect(barResult(against, [cell])).toEqual({
      cell: bar.cell,
      title: "title of smallbank-none-2",
      atLeast: 3,
      missing: "postgres: not part of this run",
    });
  });
});

describe("of a percentile", () => {
  const p99 = { cell: bar.cell, atLeast: 1, measure: "p99", against: "sqlite" } as const;
  const entry = (engine: "situ" | "sqlite", nanoseconds?: number) => ({
    ...measured(engine, 5, 5, 5),
    ...(nanoseconds !== undefined && {
      latency: { count: 1, mean: 1, max: 9, percentiles: [{ percent: 99, nanoseconds }] },
    }),
  });
  const of = (situ?: number, sqlite?: number) =>
    barResult(p99, [cellOf(bar.cell, entry("situ", situ), entry("sqlite", sqlite), lmdb)]);

  test("the ratio says how many times shorter it is", () => {
    expect(of(100, 150)).toEqual({
      cell: bar.cell,
      title: "title of smallbank-none-2, p99",
      atLeast: 1,
      measure: "p99",
      ratio: 1.5,
      met: true,
      best: "sqlite",
    });
    expect(of(150, 100)).toMatchObject({ met: false });
    expect(of(100, 100)).toMatchObject({ met: true });
  });

  test("without latencies it is missing", () => {
    for (const result of [of(100), of(undefined, 100), of()]) {
      expect(result.missing).toBe("latencies were not recorded");
      expect(result.met).toBe(undefined);
    }
  });
});

describe("a bar is missing, with the reason,", () => {
  const situ = measured("situ", 60, 60, 60);

  test("without its cell", () => {
    const without = barResult(bar, [cellOf("another", situ, lmdb)]);
    expect(without.missing).toBe("not part of this run");
    expect(without.title).toBe(bar.cell);
    expect(without.met).toBe(undefined);
  });

  test("without Situ, or if it failed", () => {
    expect(result(lmdb, ...others, postgres).missing).toBe("Situ did not run");
    const failed = { engine: "situ", missing: "failed: out of memory" } as const;
    expect(result(failed, lmdb, ...others, postgres).missing).toBe("failed: out of memory");
  });

  test("if a peer is missing, which could have been the best", () => {
    const missing = { engine: "redis", missing: "redis-server is not installed" } as const;
    const { met, ...rest } = result(situ, lmdb, others[0], missing, postgres);
    expect(met).toBe(undefined);
    expect(rest.missing).toBe("redis: redis-server is not installed");
  });

  test("if a peer was left out of the run", () => {
    expect(result(situ, lmdb).missing).toBe("sqlite: not part of this run");
    expect(result(situ).missing).toBe("lmdb: not part of this run");
  });
});

describe("exit code", () => {
  test("0 if all invariants hold, and for whoever was missing", () => {
    expect(exitCodeOf([])).toBe(0);
    const missing = { engine: "redis", missing: "not installed" } as const;
    expect(exitCodeOf([cellOf("a", lmdb, missing), cellOf("b", postgres)])).toBe(0);
  });

  test("1 if one is broken, wherever", () => {
    const broken = { ...lmdb, problems: ["the sum of all balances is 7 short"] };
    expect(exitCodeOf([cellOf("a", postgres), cellOf("b", postgres, broken)])).toBe(1);
  });
});
