/** Strict and snapshot-isolated transactions on the same lists: what they may see of each other. */

import { describe, expect, it } from "vitest";
import type { Operation, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { type Bug, runOptimisticEngine } from "./optimistic-engine.ts";
import { runSnapshotEngine } from "./snapshot-engine.ts";

type Isolation = NonNullable<Transaction["isolation"]>;
const STRICT: Isolation = "strict-serializable";
const SNAPSHOT: Isolation = "snapshot";

const read = (key: string, ...list: number[]): Operation => ({ kind: "read", key, list });
const append = (key: string, value: number): Operation => ({ kind: "append", key, value });

/** Side by side, unless `at` says when. */
function transaction(
  isolation: Isolation,
  operations: Operation[],
  [start, end] = [0, 100],
): Transaction {
  return { process: 0, start, end, operations, outcome: "ok", isolation };
}

function kindsOf(history: readonly Transaction[], final: Record<string, number[]>): string[] {
  const finalReads = new Map(Object.entries(final));
  return [...checkListAppend(history, { isolation: "mixed", finalReads }).counts.keys()];
}

describe("write skew", () => {
  const skew = (one: Isolation, other: Isolation): string[] =>
    kindsOf(
      [
        transaction(one, [read("x"), append("y", 1)]),
        transaction(other, [read("y"), append("x", 2)]),
      ],
      { x: [2], y: [1] },
    );

  it("is allowed if one of the two has snapshot isolation: that one commits last", () => {
    expect(skew(SNAPSHOT, SNAPSHOT)).toEqual([]);
    expect(skew(STRICT, SNAPSHOT)).toEqual([]);
    expect(skew(SNAPSHOT, STRICT)).toEqual([]);
  });

  it("is not allowed between strict ones", () => {
    expect(skew(STRICT, STRICT)).toEqual(["not-isolated"]);
  });

  it("of three in a ring is allowed as soon as one of them has snapshot isolation", () => {
    const ring = (...levels: Isolation[]): string[] =>
      kindsOf(
        levels.map((level, i) => transaction(level, [read(`${i}`), append(`${(i + 1) % 3}`, i)])),
        { 0: [2], 1: [0], 2: [1] },
      );
    expect(ring(SNAPSHOT, SNAPSHOT, SNAPSHOT)).toEqual([]);
    expect(ring(STRICT, SNAPSHOT, SNAPSHOT)).toEqual([]);
    expect(ring(STRICT, STRICT, SNAPSHOT)).toEqual([]);
    expect(ring(STRICT, STRICT, STRICT)).toEqual(["not-isolated"]);
  });
});

it.each([STRICT, SNAPSHOT])("a long fork is never allowed, whoever reads: %s", (reader) => {
  const history = [
    transaction(SNAPSHOT, [append("x", 1)]),
    transaction(SNAPSHOT, [append("y", 2)]),
    transaction(reader, [read("x", 1), read("y")]),
    transaction(reader, [read("x"), read("y", 2)]),
  ];
  expect(kindsOf(history, { x: [1], y: [2] })).toEqual(["not-isolated"]);
});

it.each([
  [STRICT, SNAPSHOT],
  [SNAPSHOT, STRICT],
  [SNAPSHOT, SNAPSHOT],
])("a lost update is never allowed: %s and %s", (one, other) => {
  const history = [
    transaction(one, [read("x"), append("x", 1)]),
    transaction(other, [read("x"), append("x", 2)]),
  ];
  expect(kindsOf(history, { x: [1, 2] })).toEqual(["not-isolated"]);
});

it.each([STRICT, SNAPSHOT])(
  "a snapshot is fresh: no read is older than its begin: %s",
  (reader) => {
    const stale = [
      transaction(STRICT, [append("x", 1)], [0, 10]),
      transaction(reader, [read("x")], [20, 30]),
    ];
    expect(kindsOf(stale, { x: [1] })).toEqual(["not-isolated"]);
    const beside = [stale[0], { ...stale[1], start: 5 }];
    expect(kindsOf(beside, { x: [1] })).toEqual([]);
  },
);

describe("against the checks of one isolation alone", () => {
  const seeds = Array.from({ length: 20 }, (_, seed) => seed + 1);
  const bugs: readonly Bug[] = ["none", "skip-validation", "stale-read", "never-lock-exclusively"];

  it.each(bugs)("if all are strict, it is strict serializability: %s", (bug) => {
    for (const seed of seeds) {
      const { history, finalReads } = runOptimisticEngine({ seed, bug });
      const isOk = (isolation: "mixed" | "strict-serializable"): boolean =>
        checkListAppend(history, { isolation, finalReads }).ok;
      expect(isOk("mixed"), `seed ${seed}`).toBe(isOk("strict-serializable"));
    }
  });

  it("accepts an engine with snapshot isolation, and catches one where both committers win", () => {
    for (const seed of seeds) {
      for (const firstCommitterWins of [true, false]) {
        const { history, finalReads } = runSnapshotEngine({ seed, firstCommitterWins });
        const weak = history.map((each) => ({ ...each, isolation: SNAPSHOT }));
        const { ok } = checkListAppend(weak, { isolation: "mixed", finalReads });
        expect(ok, `seed ${seed}`).toBe(firstCommitterWins);
        expect(checkListAppend(history, { isolation: "mixed", finalReads }).ok).toBe(false);
      }
    }
  });
});
