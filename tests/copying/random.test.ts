/** Random lives of clusters that copy partitions under writes. */

import { expect, test } from "vitest";
import { simulateCopying } from "../../simulation/copying/simulate.ts";

const SEEDS = Array.from({ length: 12 }, (_, i) => i + 1);

test("copies are equal in the end, whatever was written and whoever died meanwhile", async () => {
  let rows = 0;
  let interrupted = 0;
  for (const seed of SEEDS) {
    const report = await simulateCopying({ seed });
    expect(report.problems, `seed ${seed}`).toEqual([]);
    expect(report.committed).toBeGreaterThan(100);
    rows += report.rows;
    interrupted += report.interrupted;
  }
  expect(rows).toBeGreaterThan(0);
  expect(interrupted).toBeGreaterThan(0);
});
