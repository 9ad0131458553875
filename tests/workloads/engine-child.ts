/** A worker process of a test: joins a loaded engine of any kind, runs, says what was done. */

import { driverOf } from "../../benchmarks/engines/drivers.ts";
import type { EngineName, Place } from "../../benchmarks/engines/engine.ts";
import { serve, taskOf } from "../../benchmarks/harness/process-side.ts";
import { makeWorkload } from "../../benchmarks/suite/workloads.ts";
import type { Tally } from "../../workloads/workload.ts";
import { openOptions, type RunOptions, runSessions } from "./engine-run.ts";

export interface EngineTask {
  readonly engine: EngineName;
  readonly place: Place;
  readonly options: RunOptions;
  readonly seed: number;
  readonly lane: number;
}

export interface EngineOrder {
  readonly transactions: number;
}

const { engine: name, place, options, seed, lane } = taskOf<EngineTask>();
const workload = makeWorkload(options.workload, options.size);
const driver = await driverOf(name);
const engine = await driver.open(place, openOptions(options, workload, false));
const session = workload.session(engine, { seed, lane, lanes: options.processes });

serve<EngineOrder, Tally>({
  async handle({ transactions }, answer) {
    await runSessions([session], transactions, options.inFlight);
    answer(session.tally());
  },
  close: () => engine.close(),
});
