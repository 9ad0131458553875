/** TPC-C on a cluster of three nodes, by either protocol, with some transactions in flight. */

import { afterAll, expect, test } from "vitest";
import { clusterDriver } from "../../benchmarks/engines/cluster/driver.ts";
import { releaseAll } from "../../benchmarks/harness/resources.ts";
import { addTallies } from "../../workloads/workload.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { type RunOptions, runSessions, withEngine } from "./engine-run.ts";

const SEED = fixedSeed(20_272);
/** Of each of two sessions: more would mostly be in each other's way. */
const inFlight = 1;
const transactions = 60;

afterAll(() => releaseAll());

test.each(["rpc", "one-sided"] as const)("%s", { timeout: 180_000 }, async (protocol) => {
  const options: RunOptions = {
    workload: "tpcc",
    size: 600,
    inFlight,
    processes: 1,
    durability: "none",
    protocol,
  };
  await withEngine(clusterDriver, options, async ({ engine, workload }) => {
    const sessions = [0, 1].map((lane) => workload.session(engine, { seed: SEED, lane, lanes: 2 }));
    await runSessions(sessions, transactions, inFlight);
    const tally = addTallies(sessions.map((session) => session.tally()));
    expect(await workload.check(engine.rows, tally), `seed ${SEED}`).toEqual([]);
  });
});
