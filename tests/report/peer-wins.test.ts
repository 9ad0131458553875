import { expect, test } from "vitest";
import { summarize } from "../../benchmarks/harness/statistics.ts";
import { percentile } from "../../benchmarks/report/measures.ts";
import { describeWin, peerWins } from "../../benchmarks/report/peer-wins.ts";
import type { Entry, SuiteResult } from "../../benchmarks/report/result.ts";
import { check, fc } from "../helpers/property.ts";
import { changedEntry, fixtureResult } from "./fixture.ts";

const found = (result: SuiteResult): string[] =>
  peerWins(result).map(({ cell, peer, measure }) => `${cell.id} ${peer} ${measure}`);

test("finds the cells and measures in which a peer is better, and no others", () => {
  expect(found(fixtureResult())).toEqual([
    "ycsb-e-none-1 sqlite throughput",
    "ycsb-e-none-1 sqlite p50",
  ]);
});

test("says by how much, in plain sentences", () => {
  const result = fixtureResult();
  expect(peerWins(result).map((win) => describeWin(result, win))).toEqual([
    "SQLite does 1.10× the transactions of Situ (10.0 k/s against 9.10 k/s).",
    "SQLite has the shorter p50 by 1.08× (102 µs against 111 µs).",
  ]);
});

test("says when not every round agrees", () => {
  const perSecond = [8_000, 9_500, 9_600, 9_700, 20_000];
  const result = changedEntry("ycsb-e-none-1", "sqlite", (entry) => ({
    ...entry,
    perSecond,
    throughput: summarize(perSecond),
  }));
  const [win] = peerWins(result);
  expect(win.withinSpread).toBe(true);
  expect(describeWin(result, win)).toContain("not in every round");
});

test("where rounds and medians disagree, either is a win, and no win is Situ's loss twice", () => {
  const disagree = (rounds: readonly number[]): SuiteResult =>
    changedEntry("retwis-none-2", "redis", (entry) => ({
      ...entry,
      perSecond: rounds,
      throughput: summarize(rounds),
    }));
  const situ = fixtureResult().cells.find(({ id }) => id === "retwis-none-2")!.entries[0]
    .perSecond!;
  // A little better in three rounds of five, much worse in two.
  const byRounds = disagree(situ.map((rate, round) => (round < 3 ? rate * 1.001 : rate / 2)));
  const [win] = peerWins(byRounds).filter(({ cell }) => cell.id === "retwis-none-2");
  expect(win.times).toBeCloseTo(1.001);
  expect(describeWin(byRounds, win)).toMatch(
    /^Redis round by round does 1\.00×.*not in every round/,
  );
  // Equal medians, and the rounds the other way round: nobody wins.
  const none = peerWins(disagree(situ)).filter(({ measure }) => measure === "throughput");
  expect(none.map(({ cell }) => cell.id)).toEqual(["ycsb-e-none-1"]);
});

test("says when the peer has fewer in flight, which shortens latency", () => {
  const result = changedEntry("smallbank-sync-1", "postgres", (entry) => ({
    ...entry,
    inFlight: 1,
    latency: quick,
  }));
  const wins = peerWins(result).filter(({ peer }) => peer === "postgres");
  expect(wins.map(({ measure }) => measure)).toEqual(["p50", "p99"]);
  expect(describeWin(result, wins[1])).toContain("PostgreSQL has 1 in flight per process, Situ 64");
});

const quick = { count: 9, mean: 1, max: 2, percentiles: [{ percent: 99.9, nanoseconds: 1 }] };

test("Situ's cluster is no peer", () => {
  const result = changedEntry("ycsb-a-none-1", "cluster", (entry) => ({
    ...entry,
    perSecond: [1e9],
    throughput: { median: 1e9, min: 1e9, max: 1e9 },
  }));
  expect(found(result)).toEqual(found(fixtureResult()));
});

test("in an open loop the same rate is no win, but one that Situ cannot keep is", () => {
  const slower = (part: number): SuiteResult =>
    changedEntry("tatp-none-2-open", "situ", (entry) => {
      const perSecond = entry.perSecond!.map((rate) => rate * part);
      return { ...entry, perSecond, throughput: summarize(perSecond) };
    });
  expect(found(slower(0.995))).not.toContain("tatp-none-2-open redis throughput");
  expect(found(slower(0.9))).toContain("tatp-none-2-open redis throughput");
});

test("agrees with the definition on any numbers", () => {
  const rate = fc.double({ min: 1, max: 1e6, noNaN: true });
  check(
    fc.property(rate, rate, rate, rate, (situRate, peerRate, situTime, peerTime) => {
      const numbers = (perSecond: number, nanoseconds: number) => (entry: Entry) => ({
        ...entry,
        perSecond: [perSecond],
        throughput: summarize([perSecond]),
        latency: { ...quick, percentiles: [{ percent: 100, nanoseconds }] },
      });
      const first = changedEntry("retwis-none-2", "situ", numbers(situRate, situTime));
      const cell = first.cells.find(({ id }) => id === "retwis-none-2")!;
      const entries = cell.entries
        .filter(({ engine }) => engine === "situ" || engine === "redis")
        .map((entry) => (entry.engine === "redis" ? numbers(peerRate, peerTime)(entry) : entry));
      const wins = peerWins({ cells: [{ ...cell, entries }] }).map(({ measure }) => measure);
      expect(wins.includes("throughput")).toBe(peerRate / situRate > 1);
      expect(wins.includes("p50")).toBe(peerTime < situTime);
      expect(wins.includes("p99")).toBe(peerTime < situTime);
    }),
  );
});

test("a win says what the entries say", () => {
  const result = fixtureResult();
  for (const { cell, peer, measure, situValue, peerValue, times } of peerWins(result)) {
    const entry = (engine: string): Entry => cell.entries.find((own) => own.engine === engine)!;
    const [own, other] = [entry("situ"), entry(peer)];
    if (measure === "throughput") {
      expect([situValue, peerValue]).toEqual([own.throughput!.median, other.throughput!.median]);
      expect(times).toBe(other.throughput!.median / own.throughput!.median);
    } else {
      const percent = Number(measure.slice(1));
      expect(situValue).toBe(percentile(own.latency, percent));
      expect(peerValue).toBe(percentile(other.latency, percent));
    }
  }
});
