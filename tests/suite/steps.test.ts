// The line on the terminal: how far, how long. Times are not asserted, only what follows from none.
import { describe, expect, test } from "vitest";
import { expectedMs } from "../../benchmarks/suite/estimates.ts";
import { suite } from "../../benchmarks/suite/plan.ts";
import { Steps } from "../../benchmarks/suite/steps.ts";

function steps(totalMs: number) {
  const shown: string[] = [];
  const said: string[] = [];
  let cleared = 0;
  const progress = {
    show: (text: string) => shown.push(text),
    clear: () => {
      cleared++;
    },
  };
  const made = new Steps(progress, totalMs, (line) => said.push(line));
  return { made, shown, said, cleared: () => cleared, last: () => shown[shown.length - 1] };
}

describe("the bar", () => {
  test("begins empty, with the plan's own estimate", () => {
    const { made, last } = steps(60_000);
    made.begin("loading", 1_000);
    expect(last()).toBe(`${"░".repeat(24)}   0 % 60 s left loading`);
  });

  test("says minutes where seconds would be many", () => {
    const { made, last } = steps(600_000);
    made.begin("loading");
    expect(last()).toContain("10 min left");
  });

  test("fills up to the end, and not beyond", () => {
    const { made, last } = steps(4_000);
    const seen: number[] = [];
    for (let step = 0; step < 6; step++) {
      made.begin(`step ${step}`, 1_000);
      made.end();
      seen.push(Number(/(\d+) %/.exec(last())?.[1]));
    }
    expect(seen).toEqual([0, 25, 50, 75, 100, 100]);
    expect(last()).toContain(`${"█".repeat(24)} 100 % 0 s left`);
  });

  test("leaves out what will not happen", () => {
    const { made, last } = steps(4_000);
    made.begin("one", 1_000);
    made.end();
    made.skip(2_000);
    made.begin("two", 1_000);
    expect(last()).toContain(" 50 %");
  });

  test.each([0, -5])("has no numbers that are none, with %i ms in all", (totalMs) => {
    const { made, last } = steps(totalMs);
    made.begin("one", 0);
    expect(last()).toBe(`${"░".repeat(24)}   0 % 0 s left one`);
    made.end();
    made.begin("two", 0);
    expect(last()).not.toMatch(/NaN|Infinity/);
  });
});

test("what is said stays, on a line of its own", () => {
  const { made, said, shown, cleared } = steps(1_000);
  made.say("redis is missing");
  expect(said).toEqual(["redis is missing"]);
  expect(cleared()).toBe(1);
  expect(shown).toEqual([]);
});

test("a plan takes longer with more rounds, longer ones, and more rows", () => {
  const [plan] = suite(true);
  const rounds = { rounds: 2, roundMs: 100, warmUpMs: 100, seed: 1 };
  const base = expectedMs(plan, rounds);
  expect(base).toBeGreaterThan(plan.engines.length * plan.cells.length * 300);
  expect(expectedMs(plan, { ...rounds, rounds: 3 })).toBeGreaterThan(base);
  expect(expectedMs(plan, { ...rounds, roundMs: 200 })).toBeGreaterThan(base);
  expect(expectedMs({ ...plan, size: plan.size * 2 }, rounds)).toBeGreaterThan(base);
});
