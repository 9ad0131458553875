// The workloads by name and size, and which store of an engine each runs on. A worker process makes
// its own from the name: only names and numbers travel between processes.
import { objects } from "../../workloads/objects/objects.ts";
import { Objects, RetwisObjects } from "../../workloads/objects/store.ts";
import { retwis } from "../../workloads/retwis/retwis.ts";
import { smallbank } from "../../workloads/smallbank/smallbank.ts";
import { tatp } from "../../workloads/tatp/tatp.ts";
import type { Session, SessionOptions, Workload } from "../../workloads/workload.ts";
import { OrderedUserTable, UserTable } from "../../workloads/ycsb/store.ts";
import { type Letter, ycsb } from "../../workloads/ycsb/ycsb.ts";
import type { Engine } from "../engines/engine.ts";

export const workloadNames = [
  "ycsb-a",
  "ycsb-b",
  "ycsb-c",
  "ycsb-d",
  "ycsb-e",
  "ycsb-f",
  "smallbank",
  "tatp",
  "retwis",
  "objects-1-0",
  "objects-4-0",
  "objects-4-2",
] as const;
export type WorkloadName = (typeof workloadNames)[number];

/** A workload with its engine's store already chosen: all that a run needs. */
export interface Runnable extends Omit<Workload<never>, "session"> {
  session(engine: Engine, options: SessionOptions): Session;
}

/** What is drawn before a run and then repeated: fewer for few rows, where most are met anyway. */
const mostDraws = 2 ** 19;
const fewestDraws = 2 ** 12;
const drawsPerRow = 16;

function drawsFor(size: number): number {
  let draws = fewestDraws;
  while (draws < mostDraws && draws < size * drawsPerRow) draws *= 2;
  return draws;
}

export function makeWorkload(name: WorkloadName, size: number): Runnable {
  const options = { draws: drawsFor(size) };
  if (name === "smallbank") return runnable(smallbank(size), (engine) => engine.smallbank());
  if (name === "tatp") return runnable(tatp(size), (engine) => engine.tatp());
  if (name === "retwis")
    return runnable(retwis(size, options), (engine) => engine.objects(RetwisObjects));
  if (name.startsWith("objects-")) {
    const [reads, writes] = name.split("-").slice(1).map(Number);
    return runnable(objects(reads, writes, size, options), (engine) => engine.objects(Objects));
  }
  const letter = name.slice("ycsb-".length) as Letter;
  const table = letter === "e" ? OrderedUserTable : UserTable;
  return runnable(ycsb(letter, size, options), (engine) => engine.ycsb(table));
}

function runnable<Store>(workload: Workload<Store>, storeOf: (engine: Engine) => Store): Runnable {
  return {
    ...workload,
    rows: () => workload.rows(),
    check: (read, tally) => workload.check(read, tally),
    session: (engine, options) => workload.session(storeOf(engine), options),
  };
}
