/**
 * The sum of all balances is the same in every snapshot that is taken during a storm of transfers
 * and kills. The longer form is `npm run soak`.
 */

import { afterAll, expect, test } from "vitest";
import { endAll } from "../helpers/engine-processes.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import { runSnapshotStorm } from "./snapshot-storm.ts";

const KILLS = 12 * SOAK;

afterAll(endAll);

test(`${KILLS} kills: the same sum in every snapshot, and nothing is kept in the end`, async () => {
  const seed = freshSeed();
  const replay = `replay with SITU_SEED=${seed}`;
  const report = await runSnapshotStorm({ seed, processes: 4, kills: KILLS, minutes: 0 });
  expect(report.problems, replay).toEqual([]);
  expect(report.kills, replay).toBeGreaterThanOrEqual(KILLS);
  // The storm was one: there was work, snapshots were taken, versions kept.
  expect(report.counters.commits, replay).toBeGreaterThan(200);
  expect(report.counters.snapshots, replay).toBeGreaterThan(10);
  expect(report.counters.versionsKept, replay).toBeGreaterThan(1_000);
  expect(report.counters.recoveries, replay).toBeGreaterThan(1);
});
