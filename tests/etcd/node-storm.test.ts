/** A short storm of nodes; `npm run soak -- --storm nodes --kills 200 --minutes 60` is a long one. */

import { expect, test } from "vitest";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import { runNodeStorm } from "./node-storm.ts";

const SEED = freshSeed();

test(`nodes are killed at random under load: nothing is lost or done twice (seed ${SEED})`, async () => {
  const kills = 4 * SOAK;
  const report = await runNodeStorm({ seed: SEED, kills, minutes: 2 * SOAK, processes: 4 });
  expect(report.problems, JSON.stringify(report, undefined, 1)).toEqual([]);
  expect(report.kills).toBeGreaterThan(0);
  expect(report.committed).toBeGreaterThan(0);
});
