/** Runs a workload on an engine as the suite does: started, opened, loaded, run, checked, stopped. */

import type { Engine, EngineDriver, OpenOptions, Place } from "../../benchmarks/engines/engine.ts";
import {
  makeWorkload,
  type Runnable,
  type WorkloadName,
} from "../../benchmarks/suite/workloads.ts";
import { DONE, type Session } from "../../workloads/workload.ts";

export interface RunOptions {
  readonly workload: WorkloadName;
  readonly size: number;
  readonly inFlight: number;
  readonly processes: number;
  readonly durability: OpenOptions["durability"];
  readonly protocol?: OpenOptions["protocol"];
}

export interface Opened {
  readonly engine: Engine;
  readonly place: Place;
  readonly workload: Runnable;
}

export function openOptions(
  options: RunOptions,
  workload: Runnable,
  isFirst: boolean,
): OpenOptions {
  const { durability, processes, inFlight } = options;
  const { bytes, tables } = workload;
  return { durability, processes, inFlight, bytes, tables, isFirst };
}

/** `use` gets the engine with all rows in it. Whatever happens, nothing is left running. */
export async function withEngine(
  driver: EngineDriver,
  options: RunOptions,
  use: (opened: Opened) => Promise<void>,
): Promise<void> {
  const { bytes } = makeWorkload(options.workload, options.size);
  const started = await driver.start({ ...options, bytes });
  if (!started.available) throw new Error(started.missing);
  const { place, stop } = started.value;
  try {
    await withRows(driver, place, options, use);
  } finally {
    await stop();
  }
}

/** The same for one that runs already: whoever opens it first finds it empty. */
export async function withRows(
  driver: EngineDriver,
  place: Place,
  options: RunOptions,
  use: (opened: Opened) => Promise<void>,
): Promise<void> {
  const workload = makeWorkload(options.workload, options.size);
  // As a worker gets it: what does not survive JSON is not there.
  const travelled = JSON.parse(JSON.stringify(place)) as Place;
  const engine = await driver.open(travelled, openOptions(options, workload, true));
  try {
    await engine.load(workload.rows());
    await use({ engine, place: travelled, workload });
  } finally {
    await engine.close();
  }
}

/** Runs all sessions side by side, each with so many in flight; returns how many were refused. */
export async function runSessions(
  sessions: readonly Session[],
  transactions: number,
  inFlight: number,
): Promise<number> {
  let left = transactions;
  let refused = 0;
  const one = async (session: Session): Promise<void> => {
    while (left > 0) {
      left--;
      if ((await session.next()) !== DONE) refused++;
    }
  };
  const lanes = sessions.flatMap((session) => Array.from({ length: inFlight }, () => one(session)));
  await Promise.all(lanes);
  return refused;
}
