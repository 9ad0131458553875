// One group: all its engines are started and loaded, then take turns in every round of every cell,
// so that a slow moment of the machine hits all of them. Whoever's turn it is not, sleeps.

import { addTallies } from "../../workloads/workload.ts";
import { driverOf } from "../engines/drivers.ts";
import type { EngineDriver, EngineHost, EngineName } from "../engines/engine.ts";
import { firstLine } from "../harness/peers.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { monotonicNs } from "../harness/timed-run.ts";
import type { Cell, Entry } from "../report/result.ts";
import { entryOf } from "./entries.ts";
import { checkMs, loadMs, type RoundsPlan, turnMs, turnsMs } from "./estimates.ts";
import { type CellPlan, type GroupPlan, inFlightOf, openingsOf } from "./plan.ts";
import type { Steps } from "./steps.ts";
import type { FromWorker, RunAnswer, ToWorker, WorkerLoad, WorkerTask } from "./worker-process.ts";
import { makeWorkload } from "./workloads.ts";

type Worker = MeasuringProcess<ToWorker, FromWorker>;

/** An engine at work, or the reason why it is not. */
interface Contestant {
  readonly engine: EngineName;
  readonly version: string;
  readonly host: EngineHost;
  readonly workers: readonly Worker[];
  /** What it takes part in. */
  readonly cells: readonly CellPlan[];
  /** Why it is out of the rest of the group, if it failed. */
  failure: string | undefined;
}

interface Absent {
  readonly engine: EngineName;
  readonly cells: readonly CellPlan[];
  readonly missing: string;
}

export interface GroupResult {
  readonly cells: readonly Cell[];
  /** Of those that could be had. */
  readonly versions: ReadonlyMap<EngineName, string>;
  readonly missing: ReadonlyMap<EngineName, string>;
}

/** Processes hear of their order a little before they begin. */
const noticeNs = 20e6;

export async function runGroup(
  plan: GroupPlan,
  rounds: RoundsPlan,
  steps: Steps,
): Promise<GroupResult> {
  const present: Contestant[] = [];
  const absent: Absent[] = [];
  try {
    const openings = plan.engines.flatMap((engine) =>
      openingsOf(engine, plan).map((opening) => ({ engine, opening })),
    );
    for (const { engine, opening } of openings) {
      steps.begin(`${plan.id}: loading ${engine}`, loadMs(engine, plan.size));
      const started = await start(await driverOf(engine), opening, rounds.seed);
      steps.end();
      if ("missing" in started) {
        absent.push(started);
        steps.say(`${plan.id}: ${engine} is missing: ${started.missing}`);
        steps.skip(turnsMs(opening, rounds));
      } else present.push(started);
    }
    const measured: CellMeasurement[] = [];
    for (const cell of plan.cells) {
      const contestants = present.filter(({ cells }) => cells.includes(cell));
      measured.push(await measureCell(plan, cell, contestants, rounds, steps));
    }
    for (const contestant of present) {
      const { engine, cells } = contestant;
      steps.begin(`${plan.id}: checking ${engine}`, checkMs(plan.size));
      const found = await check(contestant, steps);
      for (const { cell, problems } of measured) {
        if (cells.includes(cell)) problems.set(engine, found);
      }
      steps.end();
    }
    return {
      cells: measured.map((measurement) => cellOf(plan, measurement, rounds, present, absent)),
      versions: new Map(present.map(({ engine, version }) => [engine, version])),
      missing: new Map(absent.map(({ engine, missing }) => [engine, missing])),
    };
  } finally {
    for (const contestant of present) await end(contestant, steps);
  }
}

async function start(
  driver: EngineDriver,
  plan: GroupPlan,
  seed: number,
): Promise<Contestant | Absent> {
  const { durability, processes, size, cells, parameters, protocol } = plan;
  const engine = driver.name;
  const [{ workload: first }] = cells;
  const inFlight = inFlightOf(engine, durability, plan.inFlight);
  const { bytes } = makeWorkload(first, size, parameters);
  const options = { durability, processes, inFlight, bytes, size, protocol };
  const workers: Worker[] = [];
  let host: EngineHost | undefined;
  try {
    const peer = await driver.start(options);
    if (!peer.available) return { engine, cells, missing: peer.missing };
    const { version } = peer;
    host = peer.value;
    const workloads = [...new Set(cells.map(({ workload }) => workload))];
    for (let lane = 0; lane < processes; lane++) {
      const task: WorkerTask = {
        engine,
        place: host.place,
        options: { ...options, isFirst: lane === 0 },
        workloads,
        size,
        parameters,
        seed,
        lane,
      };
      const script = new URL("./worker-process.js", import.meta.url);
      const worker: Worker = await MeasuringProcess.start(script, task);
      workers.push(worker);
      // The rows are there before the others open it.
      if (lane === 0) await ask(worker, { kind: "load" }, "loaded");
    }
    return { engine, version, host, workers, cells, failure: undefined };
  } catch (error) {
    for (const worker of workers) worker.kill();
    await host?.stop().catch(() => undefined);
    return { engine, cells, missing: `failed to start or load: ${firstLine(error)}` };
  }
}

/** What was measured is not lost for an engine that does not end well. */
async function end({ engine, workers, host, failure }: Contestant, steps: Steps): Promise<void> {
  try {
    if (failure === undefined) await Promise.all(workers.map((worker) => worker.stop()));
    else for (const worker of workers) worker.kill();
  } catch (error) {
    steps.say(`${engine} did not end well: ${firstLine(error)}`);
    for (const worker of workers) worker.kill();
  }
  try {
    await host.stop();
  } catch (error) {
    steps.say(`${engine} did not stop: ${firstLine(error)}`);
  }
}

interface CellMeasurement {
  readonly cell: CellPlan;
  readonly runs: ReadonlyMap<EngineName, RunAnswer[][]>;
  readonly problems: Map<EngineName, readonly string[]>;
}

async function measureCell(
  plan: GroupPlan,
  cell: CellPlan,
  contestants: readonly Contestant[],
  { rounds, roundMs, warmUpMs }: RoundsPlan,
  steps: Steps,
): Promise<CellMeasurement> {
  const runs = new Map(contestants.map(({ engine }) => [engine, [] as RunAnswer[][]]));
  for (let round = -1; round < rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const contestant = contestants[turnOrder(round, turn, contestants.length)];
      const what = round < 0 ? "warming up" : `round ${round + 1} of ${rounds}`;
      const ms = round < 0 ? warmUpMs : roundMs;
      steps.begin(`${cell.id}: ${what}, ${contestant.engine}`, ms + turnMs);
      const answers = await runOnce(plan, cell, contestant, ms, steps);
      if (answers !== undefined && round >= 0) runs.get(contestant.engine)?.push(answers);
      steps.end();
    }
  }
  return { cell, runs, problems: new Map() };
}

/**
 * Whose turn it is. Another one starts each round, and every other round goes backwards: nobody
 * always runs after the same neighbour, with whatever that one left to do behind the scenes.
 */
export function turnOrder(round: number, turn: number, contestants: number): number {
  const place = (turn + Math.max(round, 0)) % contestants;
  return round % 2 === 0 ? place : contestants - 1 - place;
}

/** Undefined if the contestant fails, now or before: the others go on. */
async function runOnce(
  { durability }: GroupPlan,
  cell: CellPlan,
  contestant: Contestant,
  ms: number,
  steps: Steps,
): Promise<RunAnswer[] | undefined> {
  if (contestant.failure !== undefined) return undefined;
  const { workload } = cell;
  const load = loadOfEach(cell, contestant.engine, durability);
  try {
    const workers = contestant.workers.slice(0, cell.processes);
    // Before the start is set: drawing and collecting take some longer than others.
    const prepare = { kind: "prepare", workload } as const;
    await Promise.all(workers.map((worker) => ask(worker, prepare, "prepared")));
    const order = { workload, load, ms, startNs: monotonicNs() + noticeNs };
    const answers = await Promise.all(
      workers.map((worker) => ask(worker, { kind: "run", order }, "ran")),
    );
    return answers.map(({ answer }) => answer);
  } catch (error) {
    fail(contestant, `${cell.id}: ${firstLine(error)}`, steps);
    return undefined;
  }
}

/** The part of a cell's load that each of its processes has. */
function loadOfEach(
  { load, processes }: CellPlan,
  engine: EngineName,
  durability: GroupPlan["durability"],
): WorkerLoad {
  return load.kind === "closed"
    ? { kind: "closed", inFlight: inFlightOf(engine, durability, load.inFlight) }
    : { kind: "open", perSecond: load.perSecond / processes };
}

function fail(contestant: Contestant, failure: string, steps: Steps): void {
  contestant.failure = failure;
  steps.say(`${contestant.engine} failed in ${failure}`);
}

async function check(contestant: Contestant, steps: Steps): Promise<readonly string[]> {
  const { workers, failure } = contestant;
  if (failure !== undefined) return [];
  try {
    const tallies = await Promise.all(
      workers.map((worker) => ask(worker, { kind: "tally" }, "tally")),
    );
    const tally = addTallies(tallies.map((answer) => answer.tally));
    return (await ask(workers[0], { kind: "check", tally }, "checked")).problems;
  } catch (error) {
    fail(contestant, `the check of its invariant: ${firstLine(error)}`, steps);
    return [];
  }
}

async function ask<Kind extends FromWorker["kind"]>(
  worker: Worker,
  message: ToWorker,
  kind: Kind,
): Promise<Extract<FromWorker, { kind: Kind }>> {
  const reply = await worker.ask(message);
  if (reply.kind === "failed") throw new Error(reply.message);
  if (reply.kind !== kind) throw new Error(`a worker answers ${reply.kind} to ${message.kind}`);
  return reply as Extract<FromWorker, { kind: Kind }>;
}

function cellOf(
  { durability, size, parameters }: GroupPlan,
  { cell, runs, problems }: CellMeasurement,
  { rounds, roundMs }: RoundsPlan,
  present: readonly Contestant[],
  absent: readonly Absent[],
): Cell {
  const { id, title, workload, processes, load, notes } = cell;
  const { scale, source, mix } = makeWorkload(workload, size, parameters);
  const takesPart = ({ cells }: Contestant | Absent): boolean => cells.includes(cell);
  const entries = present.filter(takesPart).map(({ engine, failure, host }): Entry => {
    const answers = runs.get(engine) ?? [];
    if (failure !== undefined || answers.length === 0) {
      return { engine, missing: `failed in ${failure}` };
    }
    const found = problems.get(engine) ?? [];
    const each = loadOfEach(cell, engine, durability);
    return {
      ...entryOf(engine, host.settings, answers, found),
      ...(each.kind === "closed" ? { inFlight: each.inFlight } : {}),
    };
  });
  const missing = absent.filter(takesPart).map((each) => ({
    engine: each.engine,
    missing: each.missing,
  }));
  return {
    id,
    workload,
    title,
    scale,
    source,
    mix,
    durability,
    processes,
    load,
    rounds,
    roundMs,
    entries: [...entries, ...missing],
    notes,
  };
}
