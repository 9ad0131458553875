// Three nodes on loopback that commit as Xenic does, against three that commit by RPC: SmallBank, Retwis and O(4, 2), each as
// procedures at the nodes and as transactions of the client. Both clusters of a workload have the same rows and draw the same
// transactions; each contestant has a client process of its own, and they take turns in every round.

import { addTallies, type Tally } from "../../workloads/workload.ts";
import { clusterDriver } from "../engines/cluster/driver.ts";
import type { EngineHost, OpenOptions } from "../engines/engine.ts";
import type { BenchOptions } from "../harness/bench-options.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import { ratiosPerRound, type Summary, summarize } from "../harness/statistics.ts";
import { monotonicNs } from "../harness/timed-run.ts";
import { Latencies } from "../suite/latencies.ts";
import type { FromWorker, RunAnswer, ToWorker, WorkerTask } from "../suite/worker-process.ts";
import { makeWorkload, type WorkloadName } from "../suite/workloads.ts";

const WORKLOADS = ["smallbank", "retwis", "objects-4-2"] as const satisfies WorkloadName[];
const PROTOCOLS = ["xenic", "rpc"] as const;
type Protocol = (typeof PROTOCOLS)[number];

/** Three nodes that are measured. */
interface System {
  readonly name: string;
  readonly protocol: Protocol;
  readonly techniques?: Readonly<Record<string, boolean>>;
}

const COMPARED: readonly System[] = PROTOCOLS.map((protocol) => ({ name: protocol, protocol }));

/** As in the paper's Figure 9b: a baseline, and techniques that come on top one after the other. */
const STEPS: readonly System[] = [
  {
    name: "baseline",
    protocol: "xenic",
    techniques: { combines: false, runsAtNic: false, hops: false },
  },
  {
    name: "+ combined operations",
    protocol: "xenic",
    techniques: { runsAtNic: false, hops: false },
  },
  { name: "+ execution at the NIC", protocol: "xenic", techniques: { hops: false } },
  { name: "+ multi-hop", protocol: "xenic", techniques: {} },
];
const WAYS = ["procedures at the nodes", "transactions of the client"] as const;
type Way = (typeof WAYS)[number];

/** In flight: where the latency is read, and where the throughput. */
const LOW = 1;
const HIGH = 64;
const LATENCY_BAR = 0.8;
const THROUGHPUT_BAR = 1.2;
const NOTICE_NS = 20e6;

type Worker = MeasuringProcess<ToWorker, FromWorker>;

interface Contestant {
  readonly system: string;
  readonly way: Way;
  readonly worker: Worker;
  /** By round. */
  readonly medianUs: number[];
  readonly perSecond: number[];
}

interface Running {
  readonly hosts: readonly EngineHost[];
  readonly contestants: readonly Contestant[];
}

export interface Comparison {
  readonly workload: string;
  readonly way: Way;
  readonly medianUs: Readonly<Record<Protocol, Summary>>;
  readonly perSecond: Readonly<Record<Protocol, Summary>>;
  /** Of Xenic's to RPC's, round by round. */
  readonly latency: Summary;
  readonly throughput: Summary;
}

export async function measureSockets(
  options: BenchOptions,
  progress: Progress,
): Promise<Comparison[]> {
  const compared: Comparison[] = [];
  for (const workload of WORKLOADS) {
    progress.show(`${workload}: starting and loading two clusters`);
    const contestants = await measured(workload, COMPARED, WAYS, options, progress);
    for (const way of WAYS) compared.push(comparisonOf(workload, way, contestants));
  }
  return compared;
}

export interface AblationStep {
  readonly name: string;
  readonly medianUs: Summary;
  readonly perSecond: Summary;
  /** Against the baseline, round by round. */
  readonly latency: Summary;
  readonly throughput: Summary;
}

/** SmallBank by procedures at the nodes, with some of the techniques. */
export async function measureAblation(
  options: BenchOptions,
  progress: Progress,
): Promise<AblationStep[]> {
  progress.show("starting and loading four clusters");
  const [way] = WAYS;
  const contestants = await measured("smallbank", STEPS, [way], options, progress);
  const [baseline] = contestants;
  return contestants.map(({ system, medianUs, perSecond }) => ({
    name: system,
    medianUs: summarize(medianUs),
    perSecond: summarize(perSecond),
    latency: summarize(ratiosPerRound(medianUs, baseline.medianUs)),
    throughput: summarize(ratiosPerRound(perSecond, baseline.perSecond)),
  }));
}

async function measured(
  workload: WorkloadName,
  systems: readonly System[],
  ways: readonly Way[],
  options: BenchOptions,
  progress: Progress,
): Promise<readonly Contestant[]> {
  const running = await start(workload, systems, ways, options);
  try {
    await measure(workload, running.contestants, options, progress);
    progress.show(`${workload}: checking`);
    await check(workload, running.contestants);
    return running.contestants;
  } finally {
    await stop(running);
  }
}

async function start(
  workload: WorkloadName,
  systems: readonly System[],
  ways: readonly Way[],
  { quick, seed }: BenchOptions,
): Promise<Running> {
  const size = quick ? 10_000 : 100_000;
  const { bytes } = makeWorkload(workload, size);
  const hosts: EngineHost[] = [];
  const contestants: Contestant[] = [];
  const running = { hosts, contestants };
  try {
    for (const { name, protocol, techniques } of systems) {
      const shared = { durability: "none", processes: ways.length, inFlight: HIGH, bytes } as const;
      const started = await clusterDriver.start({ ...shared, protocol, techniques });
      if (!started.available) throw new Error(`${name}: ${started.missing}`);
      hosts.push(started.value);
      for (const [lane, way] of ways.entries()) {
        const isFirst = lane === 0;
        const opened: Omit<OpenOptions, "tables"> = {
          ...shared,
          protocol,
          size,
          isFirst,
          calls: way === "procedures at the nodes",
        };
        const task: WorkerTask = {
          engine: "cluster",
          place: started.value.place,
          options: opened,
          workloads: [workload],
          size,
          parameters: {},
          seed,
          lane,
        };
        const script = new URL("../suite/worker-process.js", import.meta.url);
        const worker: Worker = await MeasuringProcess.start(script, task);
        contestants.push({ system: name, way, worker, medianUs: [], perSecond: [] });
        if (isFirst) await ask(worker, { kind: "load" }, "loaded");
      }
    }
  } catch (error) {
    await stop(running);
    throw error;
  }
  return running;
}

async function stop({ hosts, contestants }: Running): Promise<void> {
  for (const { worker } of contestants) await worker.stop().catch(() => worker.kill());
  for (const host of hosts) await host.stop();
}

async function measure(
  workload: WorkloadName,
  contestants: readonly Contestant[],
  { rounds, quick }: BenchOptions,
  progress: Progress,
): Promise<void> {
  const turnMs = quick ? 300 : 1_000;
  for (const { system, way, worker } of contestants) {
    progress.show(`${workload}: warming up ${system}, ${way}`);
    await run(worker, workload, HIGH, quick ? 300 : 3_000);
    await run(worker, workload, LOW, quick ? 200 : 1_000);
  }
  for (let round = 0; round < rounds; round++) {
    for (const inFlight of [LOW, HIGH]) {
      for (let turn = 0; turn < contestants.length; turn++) {
        // Another one starts each round: nobody always runs after the same neighbour.
        const contestant = contestants[(turn + round) % contestants.length];
        const { system, way, worker, medianUs, perSecond } = contestant;
        progress.show(`${workload}: round ${round + 1} of ${rounds}: ${system}, ${way}`);
        const answer = await run(worker, workload, inFlight, turnMs);
        if (inFlight === HIGH) perSecond.push((answer.transactions * 1_000) / answer.elapsedMs);
        else medianUs.push(medianOf(answer));
      }
    }
  }
}

async function run(
  worker: Worker,
  workload: WorkloadName,
  inFlight: number,
  ms: number,
): Promise<RunAnswer> {
  await ask(worker, { kind: "prepare", workload }, "prepared");
  const load = { kind: "closed", inFlight } as const;
  const order = { workload, load, ms, startNs: monotonicNs() + NOTICE_NS };
  return (await ask(worker, { kind: "run", order }, "ran")).answer;
}

function medianOf({ latencies }: RunAnswer): number {
  const percentiles = Latencies.decode(latencies).summary()?.percentiles ?? [];
  const median = percentiles.find(({ percent }) => percent === 50);
  if (median === undefined) throw new Error("too few transactions ended for a median");
  return median.nanoseconds / 1e3;
}

/** A contestant that is fast and wrong must not be told of. */
async function check(workload: WorkloadName, contestants: readonly Contestant[]): Promise<void> {
  for (const system of new Set(contestants.map((each) => each.system))) {
    const workers = contestants.filter((each) => each.system === system);
    const tallies: Tally[] = [];
    for (const { worker } of workers) {
      tallies.push((await ask(worker, { kind: "tally" }, "tally")).tally);
    }
    const message = { kind: "check", tally: addTallies(tallies) } as const;
    const { problems } = await ask(workers[0].worker, message, "checked");
    if (problems.length > 0) {
      throw new Error(`${workload} by ${system} went wrong: ${problems.join("; ")}`);
    }
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

function comparisonOf(workload: string, way: Way, contestants: readonly Contestant[]): Comparison {
  const of = (wanted: Protocol): Contestant =>
    contestants.find((each) => each.system === wanted && each.way === way)!;
  const [xenic, rpc] = PROTOCOLS.map(of);
  return {
    workload,
    way,
    medianUs: { xenic: summarize(xenic.medianUs), rpc: summarize(rpc.medianUs) },
    perSecond: { xenic: summarize(xenic.perSecond), rpc: summarize(rpc.perSecond) },
    latency: summarize(ratiosPerRound(xenic.medianUs, rpc.medianUs)),
    throughput: summarize(ratiosPerRound(xenic.perSecond, rpc.perSecond)),
  };
}

export function tellAblation(steps: readonly AblationStep[], rounds: number): string[] {
  const whole = (value: number): string => Math.round(value).toLocaleString("en");
  const ratio = ({ median, min, max }: Summary): string =>
    `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
  return [
    `SmallBank by procedures, techniques that come one after the other, ${rounds} rounds in turns; medians, ratios to the baseline per round`,
    "",
    `| | latency, ${LOW} in flight: µs | ratio | throughput, ${HIGH} in flight: /s | ratio |`,
    "|---|---|---|---|---|",
    ...steps.map(({ name, medianUs, perSecond, latency, throughput }) => {
      const cells = [
        name,
        whole(medianUs.median),
        ratio(latency),
        whole(perSecond.median),
        ratio(throughput),
      ];
      return `| ${cells.join(" | ")} |`;
    }),
  ];
}

export function tellSockets(compared: readonly Comparison[], rounds: number): string[] {
  const whole = (value: number): string => Math.round(value).toLocaleString("en");
  const ratio = ({ median, min, max }: Summary): string =>
    `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
  const verdict = (isMet: boolean, bar: string): string => `${isMet ? "met" : "not met"} (${bar})`;
  return [
    `Three nodes, three copies, loopback: "xenic" against "rpc", ${rounds} rounds in turns; medians, ratios per round`,
    "",
    `| workload | as | latency, ${LOW} in flight: xenic, rpc, µs | ratio | | throughput, ${HIGH} in flight: xenic, rpc, /s | ratio | |`,
    "|---|---|---|---|---|---|---|---|",
    ...compared.map(({ workload, way, medianUs, perSecond, latency, throughput }) => {
      const cells = [
        workload,
        way,
        `${whole(medianUs.xenic.median)}, ${whole(medianUs.rpc.median)}`,
        ratio(latency),
        verdict(latency.median <= LATENCY_BAR, `at most ${LATENCY_BAR}`),
        `${whole(perSecond.xenic.median)}, ${whole(perSecond.rpc.median)}`,
        ratio(throughput),
        verdict(throughput.median >= THROUGHPUT_BAR, `at least ${THROUGHPUT_BAR}`),
      ];
      return `| ${cells.join(" | ")} |`;
    }),
  ];
}
