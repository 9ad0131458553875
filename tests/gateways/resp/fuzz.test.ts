/** The decoder under 30,000 inputs; `npm run fuzz` is the same with as many as one likes. */

import { expect, test } from "vitest";
import { fuzz } from "./fuzz.ts";

const INPUTS = 30_000;

test("a decoder gives what the model gives, for inputs of all kinds and however they are cut", () => {
  const report = fuzz(7, 0, INPUTS);
  expect(report.inputs).toBe(INPUTS);
  // Neither all of them nonsense nor all of them fine.
  expect(report.requests).toBeGreaterThan(INPUTS / 2);
  expect(report.errors).toBeGreaterThan(INPUTS / 10);
  expect(report.errors).toBeLessThan(INPUTS);
});
