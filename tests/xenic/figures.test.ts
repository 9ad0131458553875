/**
 * Xenic's Figures 8 and 9 with few transactions: simulation/xenic/figures/ has the models, and says what of them was fitted.
 * `npm run bench -- xenic figures` has the figures. Every run compares its rows with what was committed.
 */

import { describe, expect, it } from "vitest";
import { FIGURE_9B, smallbankMedianUs } from "../../simulation/xenic/figures/figure9.ts";
import { measure } from "../../simulation/xenic/figures/measure.ts";
import { newOrder } from "../../simulation/xenic/figures/new-order.ts";
import { retwis } from "../../simulation/xenic/figures/retwis.ts";
import { smallbank } from "../../simulation/xenic/figures/smallbank.ts";

const LOW = { clientsPerServer: 1, warmUpUs: 10, measuredUs: 80 };
const HIGH = { clientsPerServer: 16, warmUpUs: 12, measuredUs: 12 };

describe.each([smallbank, retwis, newOrder])("Figure 8, $name", (workload) => {
  it("Xenic's median at low load is below that of DrTM+H's mixture", () => {
    const xenic = measure(workload, { kind: "xenic" }, LOW);
    const drtm = measure(workload, { kind: "drtm+h" }, LOW);
    expect(xenic.committed).toBeGreaterThan(0);
    expect(xenic.medianUs).toBeLessThan(drtm.medianUs);
    expect(xenic.bytesPerTransaction).toBeLessThan(drtm.bytesPerTransaction);
  });
});

it("Figure 8, SmallBank: with 16 clients a server Xenic does more, in fewer packets", () => {
  const xenic = measure(smallbank, { kind: "xenic" }, HIGH);
  const drtm = measure(smallbank, { kind: "drtm+h" }, HIGH);
  expect(xenic.mtps).toBeGreaterThan(drtm.mtps);
  expect(xenic.packetsPerTransaction).toBeLessThan(drtm.packetsPerTransaction);
});

it("Figure 9b: each technique lowers SmallBank's latency", () => {
  const medians = FIGURE_9B.map(({ system }) => smallbankMedianUs(system, 0.15));
  expect(medians).toEqual([...medians].sort((a, b) => b - a));
  expect(new Set(medians).size).toBe(medians.length);
});
