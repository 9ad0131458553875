// What is measured: groups of comparisons on the same rows, and the claims about them.
//
// Situ and SQLite run a transaction to its end within the call; more in flight would only wait in a
// queue. The others have as many in flight as they are quickest with: those behind a socket, and
// lmdb, which commits what is in flight as one batch. Where a commit waits for the disk, all that
// can have 64 in flight.
import type { ClusterProtocol, Durability, EngineName } from "../engines/engine.ts";
import type { Load } from "../report/result.ts";
import { enginesOf, type WorkloadName, type WorkloadParameters } from "./workloads.ts";

export interface CellPlan {
  readonly id: string;
  readonly title: string;
  readonly workload: WorkloadName;
  readonly processes: number;
  readonly load: Load;
  readonly notes: readonly string[];
}

/** Started and loaded once for all its cells. */
export interface GroupPlan {
  readonly id: string;
  readonly durability: Durability;
  readonly engines: readonly EngineName[];
  /** Rows, accounts, subscribers, customers: what the workloads call their size. */
  readonly size: number;
  readonly parameters: WorkloadParameters;
  /** Of the cluster, if it takes part. */
  readonly protocol: ClusterProtocol | undefined;
  readonly processes: number;
  /** The largest number in flight of its cells, if they say so. */
  readonly inFlight: number | undefined;
  readonly cells: readonly CellPlan[];
}

/** A goal for a cell. */
export interface BarPlan {
  readonly cell: string;
  readonly atLeast: number;
  /** How many times shorter this percentile is than the peer's. Default: how many times the throughput. */
  readonly measure?: "p99";
  /** The only one to compare with; otherwise the best of all. */
  readonly against?: EngineName;
}

export const bars: readonly BarPlan[] = [
  { cell: "ycsb-b-none-1", atLeast: 3 },
  { cell: "ycsb-c-none-1", atLeast: 3 },
  { cell: "ycsb-a-none-2", atLeast: 5 },
  { cell: "smallbank-none-2", atLeast: 15 },
  { cell: "smallbank-none-1-open", atLeast: 1, measure: "p99", against: "sqlite" },
  { cell: "tatp-none-2", atLeast: 6 },
  { cell: "smallbank-sync-1", atLeast: 5, against: "postgres" },
  { cell: "retwis-none-2", atLeast: 8 },
  { cell: "tpcc-none-2", atLeast: 10 },
  { cell: "tpcc-sync-1", atLeast: 4, against: "postgres" },
  { cell: "tao-none-2", atLeast: 10 },
  { cell: "linkbench-none-2", atLeast: 6 },
  { cell: "linkbench-sync-1", atLeast: 5, against: "postgres" },
];

/** Whoever is left out of a comparison could have been the best: a bar needs all that run the workload. */
export const local: readonly EngineName[] = ["situ", "lmdb", "sqlite", "redis", "postgres"];

/** In flight in each process, where nothing waits for a disk. */
const quickest: Readonly<Record<EngineName, number>> = {
  situ: 1,
  cluster: 64,
  lmdb: 64,
  sqlite: 1,
  redis: 64,
  postgres: 64,
};

const quickestOnDisk = 64;

/** What an engine is given of a cell's load: SQLite answers within the call, whatever is asked. */
export function inFlightOf(
  engine: EngineName,
  durability: Durability,
  inFlight: number | undefined,
): number {
  if (engine === "sqlite") return 1;
  return inFlight ?? (durability === "sync" ? quickestOnDisk : quickest[engine]);
}

/**
 * How often an engine is opened for a group, and for which cells. SQLite in one process can be in
 * that process's memory, without locks, which is three times as quick; as its users would, it is
 * opened anew where others come in.
 */
export function openingsOf(engine: EngineName, plan: GroupPlan): readonly GroupPlan[] {
  const alone = plan.cells.filter(({ processes }) => processes === 1);
  if (engine !== "sqlite" || alone.length === 0 || alone.length === plan.cells.length) {
    return [plan];
  }
  const together = plan.cells.filter(({ processes }) => processes > 1);
  return [
    { ...plan, processes: 1, cells: alone },
    { ...plan, cells: together },
  ];
}

const numbers = ["no", "one", "two", "three", "four"];
const places: Readonly<Record<Durability, string>> = {
  none: "in memory",
  lazy: "on disk a moment later",
  sync: "on disk at commit",
};

export function titleOf(
  workload: WorkloadName,
  { durability, processes, load }: { durability: Durability; processes: number; load: Load },
): string {
  const count = numbers[processes] ?? processes;
  const who = processes === 1 ? `${count} process` : `${count} processes`;
  const how =
    load.kind === "open"
      ? `, ${load.perSecond.toLocaleString("en")} a second`
      : load.inFlight === undefined
        ? ""
        : `, ${load.inFlight} in flight`;
  return `${workloadTitle(workload)}, ${who}, ${places[durability]}${how}`;
}

export function workloadTitle(workload: WorkloadName): string {
  if (workload.startsWith("ycsb-")) return `YCSB-${workload.slice(-1).toUpperCase()}`;
  if (workload.startsWith("objects-")) {
    const [, reads, writes] = workload.split("-");
    return `Objects O(${reads}, ${writes})`;
  }
  return otherTitles[workload as keyof typeof otherTitles];
}

const otherTitles = {
  smallbank: "SmallBank",
  tatp: "TATP",
  tpcc: "TPC-C",
  "tpcc-new-order": "TPC-C New-Order",
  retwis: "Retwis",
  linkbench: "LinkBench",
  tao: "TAO",
} as const;

interface CellChoice {
  readonly workload: WorkloadName;
  readonly processes?: number;
  readonly inFlight?: number;
  readonly perSecond?: number;
}

/** What a reader should know, wherever the workload stands. */
const notesOn: Partial<Record<WorkloadName, readonly string[]>> = {
  "ycsb-e": [
    "Situ's table is ordered here, as a scan needs it; for the other letters it is hashed.",
  ],
  tpcc: [
    "Think times are off and warehouses do not grow with the throughput: this is no result of the " +
      "TPC. The terminals of a warehouse are connected to one process. With several in flight on " +
      "disk, Situ runs each by transactSync and answers after db.durable().",
  ],
  smallbank: [
    "Amalgamate empties savings for good, so refusals grow from 2 to 13 % with what was done: a " +
      "quicker engine has a few more of the cheap, refused ones.",
  ],
};

export function group(
  id: string,
  choice: Pick<GroupPlan, "durability" | "size"> & {
    readonly engines?: readonly EngineName[];
    readonly parameters?: WorkloadParameters;
    readonly protocol?: GroupPlan["protocol"];
    readonly cells: readonly CellChoice[];
  },
): GroupPlan {
  const { durability, size, parameters = {}, protocol } = choice;
  const runsAll = (engine: EngineName): boolean =>
    choice.cells.every(({ workload }) => enginesOf(workload).includes(engine));
  const { engines = local.filter(runsAll) } = choice;
  const cells = choice.cells.map((cell): CellPlan => {
    const { workload, processes = 1, inFlight, perSecond } = cell;
    const closed: Load = inFlight === undefined ? { kind: "closed" } : { kind: "closed", inFlight };
    const load: Load = perSecond === undefined ? closed : { kind: "open", perSecond };
    const kind = perSecond === undefined ? "" : "-open";
    return {
      id: `${workload}-${durability}-${processes}${kind}`,
      title: titleOf(workload, { durability, processes, load }),
      workload,
      processes,
      load,
      notes: notesOn[workload] ?? [],
    };
  });
  const inFlights = choice.cells.flatMap(({ inFlight }) => inFlight ?? []);
  return {
    id,
    durability,
    engines,
    size,
    parameters,
    protocol,
    processes: Math.max(...choice.cells.map(({ processes = 1 }) => processes)),
    inFlight: inFlights.length === 0 ? undefined : Math.max(...inFlights),
    cells,
  };
}

/** Sizes are the papers' and specifications', as far as two cores with 24 GiB allow. */
export function suite(quick: boolean): GroupPlan[] {
  const size = (full: number): number => (quick ? Math.max(1_000, Math.round(full / 100)) : full);
  const ratePerSecond = 5_000;
  return [
    group("ycsb-1", {
      durability: "none",
      size: size(1_000_000),
      cells: (["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f", "ycsb-d"] as const).map((workload) => ({
        workload,
      })),
    }),
    group("ycsb-2", {
      durability: "none",
      size: size(1_000_000),
      cells: [
        { workload: "ycsb-a", processes: 2 },
        { workload: "ycsb-c", processes: 2 },
      ],
    }),
    group("ycsb-e", {
      durability: "none",
      size: size(200_000),
      cells: [{ workload: "ycsb-e" }],
    }),
    group("smallbank", {
      durability: "none",
      size: size(1_000_000),
      cells: [
        { workload: "smallbank" },
        { workload: "smallbank", processes: 2 },
        { workload: "smallbank", processes: 4 },
        { workload: "smallbank", perSecond: ratePerSecond },
      ],
    }),
    group("smallbank-sync", {
      durability: "sync",
      size: size(1_000_000),
      cells: [
        { workload: "smallbank", inFlight: 64 },
        { workload: "smallbank", perSecond: ratePerSecond / 5 },
      ],
    }),
    group("tatp", {
      durability: "none",
      size: size(100_000),
      cells: [
        { workload: "tatp" },
        { workload: "tatp", processes: 2 },
        { workload: "tatp", processes: 4 },
      ],
    }),
    group("tpcc", {
      durability: "none",
      size: size(120_000),
      cells: [
        { workload: "tpcc" },
        { workload: "tpcc", processes: 2 },
        { workload: "tpcc-new-order", processes: 2 },
      ],
    }),
    group("tpcc-sync", {
      durability: "sync",
      size: size(120_000),
      cells: [{ workload: "tpcc", inFlight: 64 }],
    }),
    group("retwis", {
      durability: "none",
      size: size(1_000_000),
      cells: [
        { workload: "retwis" },
        { workload: "retwis", processes: 2 },
        { workload: "retwis", processes: 4 },
      ],
    }),
    group("graph", {
      durability: "none",
      size: size(100_000),
      cells: [
        { workload: "tao", processes: 2 },
        { workload: "linkbench", processes: 2 },
      ],
    }),
    group("graph-sync", {
      durability: "sync",
      size: size(100_000),
      cells: [{ workload: "linkbench", inFlight: 64 }],
    }),
    group("objects", {
      durability: "none",
      size: size(1_000_000),
      cells: [
        { workload: "objects-1-0" },
        { workload: "objects-4-0" },
        { workload: "objects-4-2" },
        { workload: "objects-4-2", processes: 2 },
      ],
    }),
  ];
}
