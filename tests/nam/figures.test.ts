/** NAM-DB's figures, from the project's coroutines on a model of its machines: simulation/nam/ says what of it was fitted. */

import { expect, it } from "vitest";
import { FIGURE_6, figure4, figure6 } from "../../simulation/nam/new-order-figure.ts";
import { FIGURE_7, timestampRate } from "../../simulation/nam/timestamps-figure.ts";
import { verbsOfCommit } from "../../simulation/nam/verbs-of-commit.ts";
import type { TimestampLayout } from "../../src/protocols/nam/timestamps.ts";

it.each(Object.keys(FIGURE_7) as TimestampLayout[])(
  "Figure 7, %s: within 1.25 of the paper",
  (layout) => {
    const { mtps, paper } = timestampRate(layout, 30);
    expect(mtps).toBeGreaterThan(paper / 1.25);
    expect(mtps).toBeLessThan(paper * 1.25);
  },
);

it("O(4,2): 10 verbs as the paper counts", () => {
  expect(verbsOfCommit(4, 2)).toMatchObject({
    paper: 10,
    versions: 6,
    journals: 2,
    roundTrips: 7,
  });
});

it("Figure 4: twice the machines do twice the New-Orders, and more with locality", () => {
  const two = figure4(2, "without locality", 250);
  const four = figure4(4, "without locality", 250);
  const local = figure4(2, "with locality", 250);
  expect(four.mtps / two.mtps).toBeGreaterThan(1.7);
  expect(four.mtps / two.mtps).toBeLessThan(2.3);
  expect(local.mtps / two.mtps).toBeGreaterThan(1.4);
  // A read, a lock and an install for each row, and what versions and journals add.
  expect(two.verbsPerTransaction).toBeGreaterThan(80);
});

it("Figure 6: what locality is worth, within 0.1 of the paper", () => {
  // The latency shows it with fewer transactions than the rate: each thread has one at a time.
  const gain = figure6(10, false, 100).medianUs / figure6(10, true, 100).medianUs;
  expect(Math.abs(gain - FIGURE_6.gain)).toBeLessThan(0.1);
});
