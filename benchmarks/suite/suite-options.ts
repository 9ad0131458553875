// The command line of the suite: the whole of it, a part of it, or one workload under conditions of
// your own.
import { parseArgs } from "node:util";
import {
  type ClusterProtocol,
  clusterProtocols,
  type Durability,
  type EngineName,
  engineNames,
} from "../engines/engine.ts";
import { type GroupPlan, group, suite } from "./plan.ts";
import {
  enginesOf,
  type WorkloadName,
  type WorkloadParameters,
  workloadNames,
} from "./workloads.ts";

export interface SuiteOptions {
  readonly groups: readonly GroupPlan[];
  readonly quick: boolean;
  readonly json: boolean;
  readonly rounds: number;
  readonly roundMs: number;
  readonly warmUpMs: number;
  readonly seed: number;
  readonly folder: string | undefined;
  /** Whether it is the suite as it is, so that bars which were not measured are worth a word. */
  readonly isWhole: boolean;
  /** Whether its cells are the suite's: nobody can claim a bar under conditions of his own. */
  readonly hasBars: boolean;
  /** Whether what is counted of graphs follows (graph-counts/). */
  readonly graphCounts: boolean;
}

export const suiteUsage = `npm run bench                       the suite: all workloads, Situ and its peers, and a report
npm run bench -- --quick            the same in under three minutes: to see that it runs, not to quote
npm run bench -- --only <text>      the groups and cells whose id contains the text
npm run bench -- <workload>         one workload, under conditions of your own:
                                    ${workloadNames.slice(0, 6).join(", ")},
                                    ${workloadNames.slice(6).join(", ")}
npm run bench -- tpcc               TPC-C as the suite has it, with its goals, unless there are conditions
npm run bench -- graph              LinkBench and TAO's mix as the suite has them, with their goals; then graph-counts
npm run bench -- --compare A B      what changed between two results

  --engines <a,b>      of ${engineNames.join(", ")}
  --rounds <n>         measuring rounds (5, quick 3)
  --round-ms <n>       how long each is (1000, quick 120)
  --seed <n>           seed of all chance (42)
  --out <folder>       where the report goes (benchmarks/results/<date>)
  --json               print the result as one JSON object on the last line

  with a <workload>:
  --processes <n>      worker processes (1)
  --in-flight <n>      closed loop: transactions in flight in each, where the engine can
                       (as many as each engine is quickest with)
  --rate <n>           open loop: transactions begun per second, in all
  --durability <mode>  none, lazy or sync (none)
  --size <n>           records, accounts, subscribers, keys or TPC-C's customers, of whom a warehouse
                       has 30000, or 300 of a reduced one (100000, quick 10000)
  --remote <percent>   TPC-C: orders and payments that use another warehouse (as specified)
  --zipf <theta>       TPC-C: items are drawn zipfian (NURand, as specified)
  --protocol <name>    of the engine cluster: rpc, one-sided, or for smallbank, retwis and objects xenic (rpc)`;

const optionTypes = {
  quick: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  only: { type: "string" },
  engines: { type: "string" },
  rounds: { type: "string" },
  "round-ms": { type: "string" },
  seed: { type: "string", default: "42" },
  out: { type: "string" },
  processes: { type: "string" },
  "in-flight": { type: "string" },
  rate: { type: "string" },
  durability: { type: "string" },
  size: { type: "string" },
  remote: { type: "string" },
  zipf: { type: "string" },
  protocol: { type: "string" },
} as const;

const mostProcesses = 64;
const mostInFlight = 4_096;
const mostPerSecond = 10_000_000;
const durabilities: readonly Durability[] = ["none", "lazy", "sync"];
const ownConditions = [
  "processes",
  "in-flight",
  "rate",
  "durability",
  "size",
  "remote",
  "zipf",
  "protocol",
] as const;

/** Throws a TypeError that says what is wrong with the arguments. */
export function parseSuiteArguments(args: readonly string[]): SuiteOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: optionTypes,
    allowPositionals: true,
  });
  const { quick, json, out: folder } = values;
  if (folder === "") throw new TypeError("--out wants a folder");
  const engines = parseEngines(values.engines);
  const [name, ...surplus] = positionals;
  if (surplus.length > 0)
    throw new TypeError(`one workload at a time; "${surplus.join(" ")}" is too much`);
  // TPC-C has several cells of its own in the suite, with goals: these are what its name stands for.
  const isSuites =
    (name === "tpcc" || name === "graph") &&
    ownConditions.every((each) => values[each] === undefined);
  let groups: GroupPlan[];
  if (name === undefined) {
    for (const option of ownConditions) {
      if (values[option] !== undefined) throw new TypeError(`--${option} goes with a workload`);
    }
    groups = chosen(suite(quick), values.only);
  } else {
    if (values.only !== undefined) throw new TypeError("--only chooses from the whole suite");
    groups = isSuites ? chosen(suite(quick), name) : [ownGroup(parseWorkload(name), values, quick)];
  }
  if (engines !== undefined) {
    if (name === "graph") refuseUnable("linkbench", engines);
    else if (name !== undefined) refuseUnable(parseWorkload(name), engines);
    groups = groups
      .map((plan) => ({ ...plan, engines: ableOf(plan, engines) }))
      .filter((plan) => plan.engines.length > 0);
  }
  return {
    groups,
    quick,
    json,
    rounds: whole("rounds", values.rounds ?? (quick ? "3" : "5"), 1_000),
    roundMs: whole("round-ms", values["round-ms"] ?? (quick ? "120" : "1000"), 600_000),
    warmUpMs: quick ? 120 : 1_000,
    seed: whole("seed", values.seed, 2 ** 31),
    folder,
    isWhole: name === undefined && values.only === undefined && engines === undefined,
    hasBars: name === undefined || isSuites,
    graphCounts: name === "graph",
  };
}

function chosen(groups: readonly GroupPlan[], only: string | undefined): GroupPlan[] {
  if (only === undefined) return [...groups];
  if (only === "") throw new TypeError("--only wants a part of an id");
  const found = groups.flatMap((plan) => {
    const cells = plan.id.includes(only)
      ? plan.cells
      : plan.cells.filter(({ id }) => id.includes(only));
    const processes = Math.max(...cells.map((cell) => cell.processes));
    return cells.length === 0 ? [] : [{ ...plan, cells, processes }];
  });
  if (found.length > 0) return found;
  const ids = groups.flatMap(({ cells }) => cells.map(({ id }) => id)).join(", ");
  throw new TypeError(`--only ${only}: there are ${ids}`);
}

function ownGroup(
  workload: WorkloadName,
  values: Readonly<Partial<Record<(typeof ownConditions)[number], string>>>,
  quick: boolean,
): GroupPlan {
  const durability = (values.durability ?? "none") as Durability;
  if (!durabilities.includes(durability)) {
    throw new TypeError(`--durability is ${durabilities.join(", ")}, not "${durability}"`);
  }
  if (values.rate !== undefined && values["in-flight"] !== undefined) {
    throw new TypeError("--rate is an open loop, --in-flight a closed one: choose");
  }
  const processes = whole("processes", values.processes ?? "1", mostProcesses);
  const size = whole("size", values.size ?? (quick ? "10000" : "100000"), 100_000_000);
  const loop = {
    ...(values["in-flight"] !== undefined && {
      inFlight: whole("in-flight", values["in-flight"], mostInFlight),
    }),
    ...(values.rate !== undefined && { perSecond: whole("rate", values.rate, mostPerSecond) }),
  };
  const protocol = parseProtocol(workload, values.protocol);
  const parameters = parametersOf(workload, values);
  const cells = [{ workload, processes, ...loop }];
  return group(workload, {
    durability,
    size,
    parameters,
    ...(protocol !== undefined && { protocol }),
    cells,
  });
}

function parseProtocol(
  workload: WorkloadName,
  text: string | undefined,
): ClusterProtocol | undefined {
  const protocol = clusterProtocols.find((candidate) => candidate === text);
  if (text !== undefined && protocol === undefined) {
    throw new TypeError(`--protocol is ${clusterProtocols.join(" or ")}, not "${text}"`);
  }
  if (protocol === "xenic" && !/^(smallbank|retwis|objects-.*)$/.test(workload)) {
    throw new TypeError(`--protocol xenic: such a cluster has no tables for ${workload}`);
  }
  return protocol;
}

function parametersOf(
  workload: WorkloadName,
  { remote, zipf }: { readonly remote?: string; readonly zipf?: string },
): WorkloadParameters {
  if ((remote !== undefined || zipf !== undefined) && !workload.startsWith("tpcc")) {
    throw new TypeError("--remote and --zipf are for TPC-C");
  }
  return {
    ...(remote !== undefined && { remotePercent: within("remote", remote, 0, 100) }),
    ...(zipf !== undefined && { itemTheta: within("zipf", zipf, 0, 0.999) }),
  };
}

function within(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text === "" || !(value >= least && value <= most)) {
    throw new TypeError(`--${option} wants a number from ${least} to ${most}, not "${text}"`);
  }
  return value;
}

function refuseUnable(workload: WorkloadName, engines: readonly EngineName[]): void {
  const unable = engines.find((engine) => !enginesOf(workload).includes(engine));
  if (unable === undefined) return;
  throw new TypeError(`--engines: ${workload} runs on ${enginesOf(workload).join(", ")}`);
}

/** Of the engines that were asked for, those that run all workloads of a group. */
function ableOf({ cells }: GroupPlan, engines: readonly EngineName[]): readonly EngineName[] {
  return engines.filter((engine) =>
    cells.every(({ workload }) => enginesOf(workload).includes(engine)),
  );
}

function parseWorkload(name: string): WorkloadName {
  const found = workloadNames.find((candidate) => candidate === name);
  if (found !== undefined) return found;
  throw new TypeError(`there is no benchmark "${name}"`);
}

function parseEngines(text: string | undefined): EngineName[] | undefined {
  const engines = text?.split(",").map((name) => {
    const found = engineNames.find((candidate) => candidate === name.trim());
    if (found === undefined) {
      throw new TypeError(`--engines: "${name}" is none of ${engineNames.join(", ")}`);
    }
    return found;
  });
  if (engines !== undefined && new Set(engines).size < engines.length) {
    throw new TypeError(`--engines: one of "${text}" is there twice`);
  }
  return engines;
}

function whole(option: string, text: string, most: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1 || value > most) {
    throw new TypeError(`--${option} wants a whole number from 1 to ${most}, not "${text}"`);
  }
  return value;
}
