/**
 * TPC-C on one store by processes that are killed: whatever a dead one has left half-done is completed
 * or undone by the others, so all conditions hold in the end. What it had been told is lost with it.
 */

import { afterAll, expect, test } from "vitest";
import type { Engine } from "../../benchmarks/engines/engine.ts";
import { situDriver } from "../../benchmarks/engines/situ/driver.ts";
import { MeasuringProcess } from "../../benchmarks/harness/processes.ts";
import { releaseAll } from "../../benchmarks/harness/resources.ts";
import { checkConditions } from "../../workloads/tpcc/check.ts";
import { scaleOf } from "../../workloads/tpcc/parameters.ts";
import { District } from "../../workloads/tpcc/tables.ts";
import type { Tally } from "../../workloads/workload.ts";
import { fixedSeed } from "../helpers/seed.ts";
import type { EngineOrder, EngineTask } from "./engine-child.ts";
import { type RunOptions, withEngine } from "./engine-run.ts";

const SEED = fixedSeed(20_271);
const child = new URL("../../dist/tests/workloads/engine-child.js", import.meta.url);
const options: RunOptions = {
  workload: "tpcc",
  size: 600,
  inFlight: 1,
  processes: 2,
  durability: "none",
};
const kills = 4 * Number(process.env.SITU_SOAK ?? "1");
/** More than a process gets to before it is killed. */
const endless = 1e9;
/** Orders that are taken between two kills. */
const ordersPerLife = 200;

type Child = MeasuringProcess<EngineOrder, Tally>;

afterAll(() => releaseAll());

test("processes that are killed leave every condition intact", { timeout: 120_000 }, async () => {
  await withEngine(situDriver, options, async ({ engine, place }) => {
    let lives = 0;
    const begin = async (): Promise<Child> => {
      const task: EngineTask = { engine: "situ", place, options, seed: SEED, lane: lives++ };
      const started: Child = await MeasuringProcess.start(child, task);
      // It is killed before it has an answer.
      void started.ask({ transactions: endless }).catch(() => undefined);
      return started;
    };
    const atWork = [await begin(), await begin()];
    for (let kill = 0; kill < kills; kill++) {
      const enough = (await ordersOf(engine)) + ordersPerLife;
      while ((await ordersOf(engine)) < enough)
        await new Promise((resolve) => setTimeout(resolve, 5));
      atWork.shift()?.kill();
      atWork.push(await begin());
    }
    for (const each of atWork) each.kill();
    expect(await checkConditions(scaleOf(options.size), engine.rows), `seed ${SEED}`).toEqual([]);
  });
});

async function ordersOf(engine: Engine): Promise<number> {
  let orders = 0;
  for await (const row of engine.rows(District)) orders += (row.d_next_o_id as number) - 1;
  return orders;
}
