// The workloads by name and size, and which store of an engine each runs on. A worker process makes
// its own from the name: only names and numbers travel between processes.
import { linkbench } from "../../workloads/linkbench/linkbench.ts";
import type { LinkStore } from "../../workloads/linkbench/store.ts";
import { objects } from "../../workloads/objects/objects.ts";
import { Objects, RetwisObjects } from "../../workloads/objects/store.ts";
import { retwis } from "../../workloads/retwis/retwis.ts";
import { smallbank } from "../../workloads/smallbank/smallbank.ts";
import { tatp } from "../../workloads/tatp/tatp.ts";
import { scaleOf } from "../../workloads/tpcc/parameters.ts";
import type { TpccStore } from "../../workloads/tpcc/store.ts";
import { tpcc } from "../../workloads/tpcc/tpcc.ts";
import type { Session, SessionOptions, Workload } from "../../workloads/workload.ts";
import { OrderedUserTable, UserTable } from "../../workloads/ycsb/store.ts";
import { type Letter, ycsb } from "../../workloads/ycsb/ycsb.ts";
import { type Engine, type EngineName, engineNames } from "../engines/engine.ts";

export const workloadNames = [
  "ycsb-a",
  "ycsb-b",
  "ycsb-c",
  "ycsb-d",
  "ycsb-e",
  "ycsb-f",
  "smallbank",
  "tatp",
  "tpcc",
  "tpcc-new-order",
  "retwis",
  "linkbench",
  "tao",
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

/** What a workload can be given beside its size; travels as JSON. */
export interface WorkloadParameters {
  /** TPC-C: the percentage of orders and payments that use another warehouse. */
  readonly remotePercent?: number;
  /** TPC-C: items are drawn zipfian. */
  readonly itemTheta?: number;
}

const withIndexes: readonly EngineName[] = ["situ", "cluster", "sqlite", "postgres"];
const withLists: readonly EngineName[] = ["situ", "sqlite", "redis", "postgres"];

/** The engines that a workload runs on. */
export function enginesOf(name: WorkloadName): readonly EngineName[] {
  if (name === "linkbench" || name === "tao") return withLists;
  return name.startsWith("tpcc") ? withIndexes : engineNames;
}

export function makeWorkload(
  name: WorkloadName,
  size: number,
  parameters: WorkloadParameters = {},
): Runnable {
  const options = { draws: drawsFor(size) };
  if (name === "smallbank") return runnable(smallbank(size), (engine) => engine.smallbank());
  if (name === "tatp") return runnable(tatp(size), (engine) => engine.tatp());
  if (name.startsWith("tpcc")) {
    const newOrderOnly = name === "tpcc-new-order";
    return runnable(tpcc(scaleOf(size), { newOrderOnly, ...parameters }), tpccOf);
  }
  if (name === "linkbench" || name === "tao") {
    return runnable(linkbench(name, size, options), linkbenchOf);
  }
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

function linkbenchOf(engine: Engine): LinkStore {
  if (engine.linkbench === undefined) throw new TypeError("this engine does not run LinkBench");
  return engine.linkbench();
}

function tpccOf(engine: Engine): TpccStore {
  if (engine.tpcc === undefined) throw new TypeError("this engine does not run TPC-C");
  return engine.tpcc();
}

function runnable<Store>(workload: Workload<Store>, storeOf: (engine: Engine) => Store): Runnable {
  return {
    ...workload,
    rows: () => workload.rows(),
    check: (read, tally) => workload.check(read, tally),
    session: (engine, options) => workload.session(storeOf(engine), options),
  };
}
