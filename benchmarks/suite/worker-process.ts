// A worker: one engine, one stream of transactions. It opens the engine, does what it is told, and
// answers with what it counted. One engine and one workload to a process: nobody's hot path is
// shared with another engine's.
import { addTallies, type Session } from "../../workloads/workload.ts";
import { driverOf } from "../engines/drivers.ts";
import type { EngineName, OpenOptions, Place } from "../engines/engine.ts";
import { firstLine } from "../harness/peers.ts";
import { serve, taskOf } from "../harness/process-side.ts";
import { closedLoop, openLoop, waitUntil } from "./loops.ts";
import { makeWorkload, type WorkloadName, type WorkloadParameters } from "./workloads.ts";

export interface WorkerTask {
  readonly engine: EngineName;
  readonly place: Place;
  readonly options: Omit<OpenOptions, "tables">;
  /** All of them run on the tables and rows of the first. */
  readonly workloads: readonly WorkloadName[];
  readonly size: number;
  readonly parameters: WorkloadParameters;
  readonly seed: number;
  readonly lane: number;
}

export type ToWorker =
  | { readonly kind: "load" }
  | { readonly kind: "prepare"; readonly workload: WorkloadName }
  | { readonly kind: "run"; readonly order: RunOrder }
  | { readonly kind: "tally" }
  | { readonly kind: "check"; readonly tally: Readonly<Record<string, number>> };

export type WorkerLoad =
  | { readonly kind: "closed"; readonly inFlight: number }
  | { readonly kind: "open"; readonly perSecond: number };

export interface RunOrder {
  readonly workload: WorkloadName;
  /** Of this process; its rate, in an open loop. */
  readonly load: WorkerLoad;
  readonly ms: number;
  readonly startNs: number;
}

export interface RunAnswer {
  readonly transactions: number;
  readonly refused: number;
  readonly dropped: number;
  readonly elapsedMs: number;
  readonly retries: number;
  readonly latencies: string;
}

export type FromWorker =
  | { readonly kind: "loaded" }
  | { readonly kind: "prepared" }
  | { readonly kind: "ran"; readonly answer: RunAnswer }
  | { readonly kind: "tally"; readonly tally: Readonly<Record<string, number>> }
  | { readonly kind: "checked"; readonly problems: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };

const task = taskOf<WorkerTask>();
const { seed, lane, options } = task;
const lanes = options.processes;
const [first] = task.workloads;
const loaded = makeWorkload(first, task.size, task.parameters);
const engine = await (await driverOf(task.engine)).open(task.place, {
  ...options,
  tables: loaded.tables,
});
const sessions = new Map<WorkloadName, Session>();

function sessionOf(name: WorkloadName): Session {
  let session = sessions.get(name);
  if (session === undefined) {
    const workload = name === first ? loaded : makeWorkload(name, task.size, task.parameters);
    session = workload.session(engine, { seed, lane, lanes });
    sessions.set(name, session);
  }
  return session;
}

async function run({ workload, load, ms, startNs }: RunOrder): Promise<RunAnswer> {
  const session = sessionOf(workload);
  const retriesBefore = engine.retries();
  await waitUntil(startNs);
  const { latencies, ...counted } =
    load.kind === "closed"
      ? await closedLoop(session, load.inFlight, ms)
      : await openLoop(session, load.perSecond, ms);
  const retries = engine.retries() - retriesBefore;
  return { ...counted, retries, latencies: latencies.encode() };
}

async function answerTo(message: ToWorker): Promise<FromWorker> {
  if (message.kind === "load") {
    await engine.load(loaded.rows());
    return { kind: "loaded" };
  }
  if (message.kind === "prepare") {
    sessionOf(message.workload);
    globalThis.gc?.();
    return { kind: "prepared" };
  }
  if (message.kind === "run") return { kind: "ran", answer: await run(message.order) };
  if (message.kind === "tally") {
    const tallies = [...sessions.values()].map((session) => session.tally());
    return { kind: "tally", tally: addTallies(tallies) };
  }
  return { kind: "checked", problems: await loaded.check(engine.rows, message.tally) };
}

serve<ToWorker, FromWorker>({
  async handle(message, answer) {
    try {
      answer(await answerTo(message));
    } catch (error) {
      console.error(`${task.engine}, ${message.kind}:`, error);
      answer({ kind: "failed", message: firstLine(error) });
    }
  },
  close: () => engine.close(),
});
