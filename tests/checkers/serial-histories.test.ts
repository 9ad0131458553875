/**
 * Transactions that were executed one after the other, and only appear to overlap, are correct by
 * construction: whatever the shape of the history, the checker must accept it. At scale, too.
 */

import { describe, expect, it } from "vitest";
import type { Operation, Outcome, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import { check, fc } from "../helpers/property.ts";
import { SOAK } from "../helpers/seed.ts";
import { type Intention, planTransaction, Random, type Recording } from "./interleaving.ts";

interface Plan {
  readonly intentions: readonly Intention[];
  readonly outcome: Outcome;
  /** Whether an unknown transaction took effect. */
  readonly isApplied: boolean;
  /** How far the interval reaches to either side of the moment of execution. */
  readonly before: number;
  readonly after: number;
}

function executeSerially(plans: readonly Plan[]): Recording {
  const state = new Map<number, readonly number[]>();
  let lastValue = 0;
  const history = plans.map(
    ({ intentions, outcome, isApplied, before, after }, at): Transaction => {
      const view = new Map(state);
      const operations = intentions.map(({ kind, key }): Operation => {
        const list = view.get(key) ?? [];
        if (kind === "read") return { kind, key, list };
        const value = ++lastValue;
        view.set(key, [...list, value]);
        return { kind, key, value };
      });
      if (outcome === "ok" || (outcome === "unknown" && isApplied)) {
        for (const [key, list] of view) state.set(key, list);
      }
      return { process: at % 7, start: at - before, end: at + after, operations, outcome };
    },
  );
  return { history, finalReads: state };
}

const plan: fc.Arbitrary<Plan> = fc.record({
  intentions: fc.array(
    fc.record({ kind: fc.constantFrom("append", "read"), key: fc.integer({ min: 0, max: 3 }) }),
    { maxLength: 5 },
  ),
  outcome: fc.constantFrom("ok", "ok", "ok", "failed", "unknown"),
  isApplied: fc.boolean(),
  before: fc.double({ min: 0, max: 6, noNaN: true }),
  after: fc.double({ min: 0, max: 6, noNaN: true }),
});
const plans = fc.array(plan, { maxLength: 40 });
const settings = { numRuns: 150 * SOAK };
const ISOLATIONS = ["strict-serializable", "serializable", "snapshot"] as const;

describe("serial executions with overlapping intervals", () => {
  it.each(ISOLATIONS)("are accepted as %s", (isolation) => {
    check(
      fc.property(plans, (planned) => {
        const { history, finalReads } = executeSerially(planned);
        expect(checkListAppend(history, { isolation }).anomalies).toEqual([]);
        expect(checkListAppend(history, { isolation, finalReads }).anomalies).toEqual([]);
      }),
      settings,
    );
  });

  it("are accepted in whatever order they were recorded", () => {
    check(
      fc.property(plans, fc.integer(), (planned, seed) => {
        const { history, finalReads } = executeSerially(planned);
        const random = new Random(seed);
        const shuffled = history
          .map((transaction) => ({ transaction, rank: random.next() }))
          .sort((left, right) => left.rank - right.rank)
          .map(({ transaction }) => transaction);
        const options = { isolation: "strict-serializable", finalReads } as const;
        expect(checkListAppend(shuffled, options).anomalies).toEqual([]);
      }),
      settings,
    );
  });

  it("are refused when a committed append is missing in the end", () => {
    check(
      fc.property(plans, fc.nat(), (planned, choice) => {
        const { history, finalReads } = executeSerially(planned);
        const lost = history
          .filter(({ outcome }) => outcome === "ok")
          .flatMap(({ operations }) => operations)
          .filter((operation) => operation.kind === "append");
        fc.pre(lost.length > 0);
        const { key, value } = lost[choice % lost.length];
        const damaged = new Map(finalReads);
        damaged.set(
          key,
          damaged.get(key)!.filter((other) => other !== value),
        );
        const result = checkListAppend(history, { isolation: "serializable", finalReads: damaged });
        expect([...result.counts.keys()]).toContain("lost-write");
      }),
      settings,
    );
  });
});

describe("a large history", () => {
  // Nobody reads a key for long: keys are retired as the history goes on, as in a real workload.
  const random = new Random(7);
  const large = executeSerially(
    Array.from({ length: 100_000 }, (_, at) => ({
      intentions: planTransaction(random, 20).map(({ kind, key }) => ({
        kind,
        key: key + 20 * Math.floor(at / 1000),
      })),
      outcome: random.chance(0.9) ? "ok" : random.chance(0.5) ? "failed" : "unknown",
      isApplied: random.chance(0.5),
      before: random.next() * 20,
      after: random.next() * 20,
    })),
  );

  it.each(ISOLATIONS)("of 100,000 transactions is checked for %s", (isolation) => {
    const result = checkListAppend(large.history, { isolation, finalReads: large.finalReads });
    expect(result.anomalies).toEqual([]);
  });

  it("in which one transaction is misplaced is refused with a small cycle", () => {
    const history = [...large.history];
    const at = history.findIndex(
      ({ outcome, operations }, index) =>
        index > 50_000 && outcome === "ok" && operations.some(({ kind }) => kind === "append"),
    );
    // As if it had started long after others had read it.
    history[at] = { ...history[at], start: 90_000, end: 90_001 };
    const { ok, anomalies } = checkListAppend(history, { isolation: "strict-serializable" });
    expect(ok).toBe(false);
    expect(anomalies[0].kind).toBe("not-strictly-serializable");
    expect(anomalies[0].cycle).toHaveLength(2);
  });

  it("that is one single component does not overflow the stack", () => {
    // Each reads the append of the one before, and the first reads that of the last.
    const count = 100_000;
    const history = Array.from({ length: count }, (_, at): Transaction => {
      const operations: readonly Operation[] = [
        { kind: "append", key: at, value: 1 },
        { kind: "read", key: (at + count - 1) % count, list: [1] },
      ];
      return { process: at, start: 0, end: 1, operations, outcome: "ok" };
    });
    const { anomalies } = checkListAppend(history, { isolation: "strict-serializable" });
    expect(anomalies.map(({ kind }) => kind)).toEqual(["circular-information-flow"]);
    expect(anomalies[0].cycle).toHaveLength(count);
  });
});
