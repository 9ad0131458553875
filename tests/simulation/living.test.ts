/**
 * Whole lives of clusters: leases, membership, recovery and copies as nodes have them, and the clients that users have.
 * Nothing acknowledged is lost or done twice, histories are strictly serializable, and when all is healed every copy is
 * there and equal.
 */

import { expect, test } from "vitest";
import { livingRun, replayLiving, simulateLiving } from "../../simulation/living/simulate.ts";
import { fixedSeed, SOAK } from "../helpers/seed.ts";

const FIRST = fixedSeed(1);
/** Lives that went wrong once, and what was the matter. */
const MENDED: readonly (readonly [string, number])[] = [
  ["a refusal of one copy of a request was taken for that of both, and done again: no lease", 1146],
  ["the same: another configuration", 1080],
  ["a node that returned dropped what it had logged with what it had locked", 1112],
  [
    "a primary did not tell one that copied of what it had logged, and installed in another partition",
    2021,
  ],
];

test("nodes die, stop, are cut off and come back, again and again", async () => {
  let [crashes, copied] = [0, 0];
  for (let seed = FIRST; seed < FIRST + 6 * SOAK; seed++) {
    const report = await simulateLiving(livingRun(seed));
    expect(report.problems, `replay: ${replayLiving(seed)}`).toEqual([]);
    crashes += report.crashes;
    copied += report.copied;
  }
  expect(crashes).toBeGreaterThan(0);
  expect(copied).toBeGreaterThan(0);
});

test.each(MENDED)("%s (seed %d)", async (_, seed) => {
  expect((await simulateLiving(livingRun(seed))).problems).toEqual([]);
});

test("the same seed gives the same life", async () => {
  const run = livingRun(FIRST);
  expect(await simulateLiving(run)).toEqual(await simulateLiving(run));
});
