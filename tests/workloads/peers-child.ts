/** A worker process of a test: joins a server that is loaded, runs transactions, says what they did. */

import { driverOf } from "../../benchmarks/engines/drivers.ts";
import type { EngineName, Place } from "../../benchmarks/engines/engine.ts";
import { serve, taskOf } from "../../benchmarks/harness/process-side.ts";
import { makeWorkload } from "../../benchmarks/suite/workloads.ts";
import type { Tally } from "../../workloads/workload.ts";
import { openOptions, type RunOptions, runSessions } from "./situ-run.ts";

export interface PeerTask {
  readonly engine: EngineName;
  readonly place: Place;
  readonly options: RunOptions;
  readonly seed: number;
  readonly lane: number;
}

export interface PeerOrder {
  readonly transactions: number;
}

const { engine: name, place, options, seed, lane } = taskOf<PeerTask>();
const workload = makeWorkload(options.workload, options.size);
const engine = await (await driverOf(name)).open(place, openOptions(options, workload, false));
const session = workload.session(engine, { seed, lane, lanes: options.processes });

serve<PeerOrder, Tally>({
  async handle({ transactions }, answer) {
    await runSessions([session], transactions, options.inFlight);
    answer(session.tally());
  },
  close: () => engine.close(),
});
