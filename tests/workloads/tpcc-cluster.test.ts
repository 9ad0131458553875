/** TPC-C on a cluster of three nodes whose reader finds rows itself; `cluster.test.ts` has it by rpc. */

import { afterAll, expect, test } from "vitest";
import { clusterDriver } from "../../benchmarks/engines/cluster/driver.ts";
import { releaseAll } from "../../benchmarks/harness/resources.ts";
import { addTallies } from "../../workloads/workload.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { type RunOptions, runSessions, withEngine } from "./engine-run.ts";

const SEED = fixedSeed(20_272);

afterAll(() => releaseAll());

test("one-sided", { timeout: 120_000 }, async () => {
  const options: RunOptions = {
    workload: "tpcc",
    size: 600,
    inFlight: 8,
    processes: 1,
    durability: "none",
    protocol: "one-sided",
  };
  await withEngine(clusterDriver, options, async ({ engine, workload }) => {
    const sessions = [0, 1].map((lane) => workload.session(engine, { seed: SEED, lane, lanes: 2 }));
    await runSessions(sessions, 200, options.inFlight);
    const tally = addTallies(sessions.map((session) => session.tally()));
    expect(await workload.check(engine.rows, tally), `seed ${SEED}`).toEqual([]);
  });
});
