/** Indexes and rows agree, both ways, after a storm of changes and kills. Longer: `npm run soak`. */

import { afterAll, expect, test } from "vitest";
import { endAll } from "../helpers/engine-processes.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import { ENOUGH, runIndexStorm } from "./index-storm.ts";

const KILLS = 8 * SOAK;

afterAll(endAll);

test(`${KILLS} kills, and indexes added meanwhile: rows and entries agree, unique ones are unique`, async () => {
  const seed = freshSeed();
  const replay = `replay with SITU_SEED=${seed}`;
  const report = await runIndexStorm({ seed, processes: 4, kills: KILLS, minutes: 0 });
  expect(report.problems, replay).toEqual([]);
  expect(report.kills, replay).toBeGreaterThanOrEqual(KILLS);
  expect(report.counters.commits, replay).toBeGreaterThan(ENOUGH.commits);
  expect(report.refusals, replay).toBeGreaterThan(ENOUGH.refusals);
  expect(report.counters.recoveries, replay).toBeGreaterThan(ENOUGH.recoveries);
});
