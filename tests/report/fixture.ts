// A result as the suite writes it: six engines of which one is missing, fourteen cells, a missed
// bar, a bar that was not measured, and peers that win. All from a seed, so that tests can say what
// they expect.
import type { Durability, EngineName } from "../../benchmarks/engines/engine.ts";
import { summarize } from "../../benchmarks/harness/statistics.ts";
import type {
  BarResult,
  Cell,
  EngineVersion,
  Entry,
  Latency,
  Load,
  SuiteResult,
} from "../../benchmarks/report/result.ts";

const rounds = 5;

const engines: readonly EngineVersion[] = [
  { engine: "situ", title: "Situ", version: "0.1.0" },
  { engine: "cluster", title: "Situ cluster", version: "0.1.0" },
  { engine: "lmdb", title: "lmdb", missing: "lmdb: Cannot find module 'lmdb'" },
  { engine: "sqlite", title: "SQLite", version: "better-sqlite3 12.2.0, SQLite 3.50.1" },
  { engine: "redis", title: "Redis", version: "7.0.15" },
  { engine: "postgres", title: "PostgreSQL", version: "15.14" },
];

const settings: Readonly<Record<EngineName, string>> = {
  situ: "memory in /dev/shm, transactSync",
  cluster: "three nodes on loopback, two backups, rpc",
  lmdb: "mapSize 4 GiB, noSync",
  sqlite: "journal_mode=WAL, synchronous=OFF, mmap_size=1 GiB",
  redis: "ioredis, enableAutoPipelining, Lua scripts, save ''",
  postgres: "pg pool of 8, prepared statements, serializable",
};

interface Shape {
  readonly workload: string;
  readonly title: string;
  readonly durability?: Durability;
  readonly processes: number;
  readonly open?: number;
  readonly inFlight?: number;
  /** Median transactions per second by engine. */
  readonly rates: Partial<Record<EngineName, number>>;
  readonly notes?: readonly string[];
}

const shapes: readonly Shape[] = [
  {
    workload: "ycsb-b",
    title: "YCSB-B, one process",
    processes: 1,
    rates: { situ: 342_000, sqlite: 131_000, redis: 61_000, postgres: 17_400 },
  },
  {
    workload: "ycsb-c",
    title: "YCSB-C, one process",
    processes: 1,
    rates: { situ: 398_000, sqlite: 118_000, redis: 64_000, postgres: 18_900 },
  },
  {
    workload: "ycsb-a",
    title: "YCSB-A, one process",
    processes: 1,
    rates: { situ: 290_000, cluster: 21_000, sqlite: 58_000, redis: 59_000, postgres: 9_800 },
  },
  {
    workload: "ycsb-a",
    title: "YCSB-A, two processes",
    processes: 2,
    rates: { situ: 533_000, cluster: 30_500, sqlite: 39_000, redis: 82_000, postgres: 13_400 },
  },
  {
    workload: "ycsb-a",
    title: "YCSB-A, four processes",
    processes: 4,
    rates: { situ: 561_000, cluster: 31_000, sqlite: 21_000, redis: 88_000, postgres: 14_100 },
    notes: ["Four processes share two cores."],
  },
  {
    workload: "ycsb-e",
    title: "YCSB-E, one process",
    processes: 1,
    rates: { situ: 9_100, sqlite: 9_900, redis: 1_450, postgres: 3_100 },
  },
  {
    workload: "smallbank",
    title: "SmallBank, one process, in memory",
    processes: 1,
    rates: { situ: 760_000, cluster: 24_000, sqlite: 71_000, redis: 58_000, postgres: 6_900 },
  },
  {
    workload: "smallbank",
    title: "SmallBank, two processes, in memory",
    processes: 2,
    rates: { situ: 1_310_000, cluster: 33_000, sqlite: 44_000, redis: 79_000, postgres: 8_800 },
  },
  {
    workload: "smallbank",
    title: "SmallBank, sync, 64 in flight",
    durability: "sync",
    processes: 1,
    inFlight: 64,
    rates: { situ: 41_000, postgres: 5_300 },
    notes: ["One log device for both; PostgreSQL commits in groups."],
  },
  {
    workload: "smallbank",
    title: "SmallBank, two processes, in memory, open loop",
    processes: 2,
    open: 20_000,
    rates: { situ: 20_000, cluster: 19_950, sqlite: 19_990, redis: 20_000, postgres: 8_100 },
  },
  {
    workload: "tatp",
    title: "TATP, two processes, in memory",
    processes: 2,
    rates: { situ: 1_050_000, sqlite: 62_000, redis: 91_000, postgres: 16_200 },
  },
  {
    workload: "tatp",
    title: "TATP, two processes, in memory, open loop",
    processes: 2,
    open: 12_000,
    rates: { situ: 12_000, sqlite: 12_000, redis: 12_000, postgres: 11_990 },
  },
  {
    workload: "retwis",
    title: "Retwis, two processes, in memory",
    processes: 2,
    rates: { situ: 402_000, sqlite: 31_000, redis: 54_000, postgres: 7_700 },
  },
  {
    workload: "objects-4-2",
    title: "O(4, 2), two processes, in memory",
    processes: 2,
    rates: { situ: 610_000, cluster: 27_000, sqlite: 40_000, redis: 66_000, postgres: 7_100 },
  },
];

const texts: Readonly<Record<string, Pick<Cell, "scale" | "source" | "mix">>> = {
  ycsb: {
    scale: "1,000,000 records of 1 KB in ten fields, zipfian 0.99, scrambled",
    source: "Cooper et al., SoCC 2010, §4; YCSB's workloads/workload[a-f]",
    mix: [
      { name: "read", percent: 50 },
      { name: "update", percent: 50 },
    ],
  },
  smallbank: {
    scale: "100,000 accounts, 90 % of the requests to 4 % of them",
    source: "Alomari et al., ICDE 2008; mix of FaSST §6.2",
    mix: [
      { name: "amalgamate", percent: 15 },
      { name: "balance", percent: 15 },
      { name: "depositChecking", percent: 15 },
      { name: "sendPayment", percent: 25 },
      { name: "transactSavings", percent: 15 },
      { name: "writeCheck", percent: 15 },
    ],
  },
  tatp: {
    scale: "100,000 subscribers, non-uniform keys",
    source: "TATP Benchmark Description 1.0, IBM 2009, §2 and §3",
    mix: [
      { name: "getSubscriberData", percent: 35 },
      { name: "getNewDestination", percent: 10 },
      { name: "getAccessData", percent: 35 },
      { name: "updateSubscriberData", percent: 2 },
      { name: "updateLocation", percent: 14 },
      { name: "insertCallForwarding", percent: 2 },
      { name: "deleteCallForwarding", percent: 2 },
    ],
  },
  retwis: {
    scale: "1,000,000 keys, values of 64 bytes, zipf 0.5",
    source: "Xenic §5.4; TAPIR, table 2",
    mix: [
      { name: "addUser", percent: 5 },
      { name: "follow", percent: 15 },
      { name: "postTweet", percent: 30 },
      { name: "loadTimeline", percent: 50 },
    ],
  },
  objects: {
    scale: "1,000,000 objects of 40 bytes, uniform",
    source: "FaSST §6.1",
    mix: [{ name: "access", percent: 100 }],
  },
};

const mixes: Readonly<Record<string, Cell["mix"]>> = {
  "ycsb-b": [
    { name: "read", percent: 95 },
    { name: "update", percent: 5 },
  ],
  "ycsb-c": [{ name: "read", percent: 100 }],
  "ycsb-e": [
    { name: "scan", percent: 95 },
    { name: "insert", percent: 5 },
  ],
};

export function fixtureResult(): SuiteResult {
  const cells = shapes.map(cellFrom);
  return {
    version: 1,
    date: "2026-11-15T15:04:05.000Z",
    seconds: 1_312,
    quick: false,
    seed: 42,
    machine: [
      "Intel(R) Xeon(R) Processor @ 2.70GHz, 2 cores, 8 GiB, x64",
      "Linux 6.1.0, Node v20.20.2, load before the start 0.12",
    ],
    commit: "7bcefa9+",
    engines,
    cells,
    bars: barsOf(cells),
  };
}

function cellFrom(shape: Shape): Cell {
  const durability = shape.durability ?? "none";
  const { workload, processes, open, rates } = shape;
  const load: Load =
    open === undefined
      ? { kind: "closed", inFlight: shape.inFlight ?? 16 }
      : { kind: "open", perSecond: open };
  const present = engines.filter(
    ({ engine }) => rates[engine] !== undefined || (engine === "lmdb" && durability === "none"),
  );
  return {
    id: `${workload}-${durability}-${processes}${open === undefined ? "" : "-open"}`,
    workload,
    title: shape.title,
    ...texts[workload.replace(/-.*/, "")],
    ...(mixes[workload] && { mix: mixes[workload] }),
    durability,
    processes,
    load,
    rounds,
    roundMs: 2_000,
    entries: present.map(({ engine, missing }) =>
      missing === undefined ? entryOf(shape, engine) : { engine, missing },
    ),
    notes: shape.notes ?? [],
  };
}

/** Engines in the process run one transaction after the other, servers have many in flight. */
function entryOf(shape: Shape, engine: EngineName): Entry {
  const rate = shape.rates[engine] ?? 0;
  const { processes, open } = shape;
  const noise = open === undefined ? 0.03 : 0.001;
  const perSecond = Array.from(
    { length: rounds },
    (_, round) => rate * (1 + noise * Math.sin(round * 2.3 + engine.length)),
  );
  const isServer = engine === "redis" || engine === "postgres" || engine === "cluster";
  const inFlight = shape.durability === "sync" ? 64 : isServer ? 16 : 1;
  const nanoseconds = open === undefined ? (1e9 * inFlight * processes) / rate : 1e9 / rate / 3;
  const behind = open !== undefined && rate < open * 0.99;
  const slow = { situ: 1, cluster: 3, lmdb: 1, sqlite: 2.2, redis: 4, postgres: 9 }[engine];
  return {
    engine,
    settings: settings[engine],
    perSecond,
    throughput: summarize(perSecond),
    inFlight,
    latency: latencyOf(open === undefined ? nanoseconds : 1_500 * slow ** 2, behind ? 400 : slow),
    retriesPerTransaction: isServer ? 0.0004 : 0.0031,
    refusedPart: shape.workload === "smallbank" ? 0.021 : 0,
    ...(open === undefined ? {} : { droppedPart: behind ? 1 - rate / open : 0 }),
    problems: [],
  };
}

/** A body around the median, and a tail that grows with every nine. */
function latencyOf(median: number, tail: number): Latency {
  const percents = [
    0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.75, 99.9, 99.95, 99.99, 99.999, 100,
  ];
  const value = (percent: number): number => {
    const nines = percent >= 100 ? 6 : -Math.log10(1 - percent / 100);
    return Math.round(median * (0.7 + nines) * (1 + tail * 0.05 * nines ** 2));
  };
  const percentiles = percents.map((percent) => ({ percent, nanoseconds: value(percent) }));
  return { count: 1_250_000, mean: median * 1.2, max: value(100), percentiles };
}

function barsOf(cells: readonly Cell[]): BarResult[] {
  const bars: readonly (readonly [string, string, number])[] = [
    ["ycsb-b-none-1", "YCSB-B, 1 KB rows, one process", 3],
    ["ycsb-c-none-1", "YCSB-C, 1 KB rows, one process", 3],
    ["ycsb-a-none-2", "YCSB-A, two processes", 5],
    ["smallbank-none-2", "SmallBank, two processes, in memory", 10],
    ["tatp-none-2", "TATP, two processes, in memory", 10],
    ["smallbank-sync-1", "SmallBank, sync, 64 in flight", 5],
  ];
  const measured = bars.map(([id, title, atLeast]): BarResult => {
    const cell = cells.find((candidate) => candidate.id === id)!;
    const [situ, ...peers] = cell.entries.filter(
      ({ engine, throughput }) => engine !== "cluster" && throughput !== undefined,
    );
    peers.sort((left, right) => right.throughput!.median - left.throughput!.median);
    const ratios = situ.perSecond!.map((rate, round) => rate / peers[0].perSecond![round]);
    const { median, min, max } = summarize(ratios);
    return {
      cell: id,
      title,
      atLeast,
      ratio: median,
      spread: { min, max },
      met: median >= atLeast,
      best: peers[0].engine,
    };
  });
  return [
    ...measured,
    {
      cell: "retwis-none-2",
      title: "Retwis, two processes, in memory",
      atLeast: 5,
      missing: "lmdb was not measured",
    },
  ];
}

export function cellOf(id: string, result: SuiteResult = fixtureResult()): Cell {
  const cell = result.cells.find((candidate) => candidate.id === id);
  if (cell === undefined) throw new RangeError(`the fixture has no cell ${id}`);
  return cell;
}

/** The fixture with one cell changed. */
export function changedCell(id: string, change: (cell: Cell) => Cell): SuiteResult {
  const result = fixtureResult();
  const changed = change(cellOf(id, result));
  return { ...result, cells: result.cells.map((cell) => (cell.id === id ? changed : cell)) };
}

/** The fixture with one entry changed. */
export function changedEntry(
  id: string,
  engine: EngineName,
  change: (entry: Entry) => Entry,
): SuiteResult {
  return changedCell(id, (cell) => ({
    ...cell,
    entries: cell.entries.map((entry) => (entry.engine === engine ? change(entry) : entry)),
  }));
}

/** All engines are nearly equal, so all their lines and labels want the same place. */
export function closeRace(): SuiteResult {
  const result = fixtureResult();
  const cells = result.cells.map((cell) => {
    const [{ perSecond = [], throughput, latency }] = cell.entries;
    return {
      ...cell,
      title: `${cell.title}, with a title that goes on and on`,
      entries: cell.entries.map((entry): Entry => {
        if (entry.missing !== undefined || throughput === undefined) return entry;
        return { ...entry, perSecond, throughput, ...(latency && { latency }) };
      }),
    };
  });
  const bars = result.bars.map((bar, index) => ({
    ...bar,
    title: `${bar.title}, with a title that goes on`,
    ...(bar.ratio !== undefined && { ratio: 0.9 + index / 10, met: false }),
  }));
  return { ...result, cells, bars };
}
