// Figures of an engine from what its processes counted.
import { describe, expect, test } from "vitest";
import { entryOf } from "../../benchmarks/suite/entries.ts";
import { createLatencies } from "../../benchmarks/suite/latencies.ts";
import type { RunAnswer } from "../../benchmarks/suite/worker-process.ts";

function answer(counted: Partial<RunAnswer>, ...latenciesMs: number[]): RunAnswer {
  const latencies = createLatencies();
  for (const ms of latenciesMs) latencies.record(ms);
  const none = { transactions: 0, refused: 0, dropped: 0, elapsedMs: 1_000, retries: 0 };
  return { ...none, latencies: latencies.encode(), ...counted };
}

describe("an entry", () => {
  const entry = entryOf(
    "redis",
    "as its makers advise",
    [
      [
        answer({ transactions: 100, refused: 10, retries: 3 }, 1, 2),
        answer({ transactions: 300, elapsedMs: 2_000, dropped: 100 }, 3),
      ],
      [answer({ transactions: 50, elapsedMs: 500 }, 4), answer({ transactions: 50, retries: 7 })],
    ],
    ["the sum is wrong"],
  );

  test("adds up the rates of the processes, round by round", () => {
    expect(entry.perSecond).toEqual([250, 150]);
    expect(entry.throughput).toEqual({ median: 200, min: 150, max: 250 });
  });

  test("has parts of all transactions", () => {
    expect(entry.refusedPart).toBe(10 / 500);
    expect(entry.retriesPerTransaction).toBe(10 / 500);
    expect(entry.droppedPart).toBe(100 / 600);
  });

  test("has the latencies of all processes and rounds", () => {
    expect(entry.latency?.count).toBe(4);
    expect((entry.latency?.max ?? 0) / 1e6).toBeCloseTo(4, 2);
    expect((entry.latency?.mean ?? 0) / 1e6).toBeCloseTo(2.5, 1);
  });

  test("keeps what did not hold", () => {
    expect(entry).toMatchObject({ engine: "redis", settings: "as its makers advise" });
    expect(entry.problems).toEqual(["the sum is wrong"]);
  });
});

test("an entry without a single transaction has no latency, and no numbers that are none", () => {
  const entry = entryOf("redis", "", [[answer({}), answer({})]], []);
  expect(entry.latency).toBe(undefined);
  expect(entry).toMatchObject({ perSecond: [0], retriesPerTransaction: 0, refusedPart: 0 });
  expect(entry.droppedPart).toBe(0);
});
