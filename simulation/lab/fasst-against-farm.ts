/**
 * Simulated FaSST against simulated FaRM: the messages of both protocols (scripts.ts) on models of the
 * hardware that the papers used (simulation/fabric/hardware.ts), throughput per machine in virtual
 * time. No figure was fitted to the results; where the papers have the result too, it stands beside.
 */

import { pathToFileURL } from "node:url";
import { controlBytes, type Geometry } from "../../src/memory/control.ts";
import { CONTROL_NAME, StoreMemory, segmentSizes } from "../../src/memory/store-memory.ts";
import { ThreadSegments } from "../../src/memory/thread-segments.ts";
import { FARM_2XCX3, FASST_CIB, FASST_CX3 } from "../fabric/hardware.ts";
import { MIXES } from "./mixes.ts";
import { FARM, FASST } from "./scripts.ts";
import { measure, type Throughput } from "./throughput.ts";

export interface LabOptions {
  readonly seed?: number;
  /** Machines of the simulated cluster; 6 if not given. */
  readonly machines?: number;
  /** Transactions of each coroutine before the measurement, and in it; 2 and 3 if not given. */
  readonly warmUp?: number;
  readonly measured?: number;
  /** All of mixes.ts, if not given. */
  readonly workloads?: readonly string[];
}

export interface LabRow {
  readonly workload: string;
  readonly fasst: Throughput;
  readonly farm: Throughput;
  readonly fasstOnCib: Throughput;
  /** FaSST on one CX3 and 8 cores, against FaRM on two and 16. */
  readonly ratio: number;
  readonly paper: {
    readonly fasst?: number;
    readonly farm?: number;
    readonly fasstOnCib?: number;
    readonly ratio?: number;
  };
  /** How the ratios compare: 1 is equal, and always at least 1. */
  readonly factor?: number;
  readonly remark: string;
}

export interface LabResult {
  readonly seed: number;
  readonly machines: number;
  readonly rows: readonly LabRow[];
}

/**
 * FaSST §6.1: FaRM's O(1, 0), from "we expect FaSST to saturate the two ConnectX-3 NICs and outperform
 * FaRM by 2.5x", with 11.0 Mtps on each.
 */
const FARM_ONE_KEY_MTPS = (2 * 11.0) / 2.5;

const PAPER: Readonly<Record<string, LabRow["paper"] & { readonly remark: string }>> = {
  "O(1,0)": {
    fasst: 11.0,
    farm: FARM_ONE_KEY_MTPS,
    fasstOnCib: 32.3,
    ratio: 11.0 / FARM_ONE_KEY_MTPS,
    remark:
      "FaSST §6.1. FaRM is bound by its NICs: 384-byte READs, and queue pairs that miss the cache " +
      "(2·90 of them, all threads sharing; hardware.ts).",
  },
  "O(4,0)": {
    fasstOnCib: 37.9 / 8,
    remark:
      "FaSST §6.1 has 37.9 Mrps on CIB, 8 RPCs each; nothing for FaRM, but expects a larger gap than " +
      "with O(1,0). Here it is smaller: FaRM validates by READs of 16 bytes, which cost its NICs " +
      "little more than half of a lookup's, where FaSST's validation is an RPC like any other.",
  },
  "O(4,2)": {
    fasst: 0.78,
    fasstOnCib: 2.3,
    remark:
      'FaSST §6.1; nothing for FaRM, but "we expect the gap to increase". On CIB inserts at the ' +
      "replicas are slower than lookups; the model has one time for both.",
  },
  TATP: {
    fasstOnCib: 95.7 / 11,
    ratio: 1.87,
    remark:
      "FaSST §6.2: 87 % higher on 50 machines. Both are above the papers' own rates: the model has no " +
      "aborts, no inserts that cost more, and no logging to SSD.",
  },
};

const GEOMETRY: Geometry = {
  slots: 1,
  journalBytes: 64 * 1024,
  regionBytes: 1 << 20,
  regions: 1,
  ringBytes: 64 * 1024,
  chunkBytes: 64 * 1024,
  chunks: 1,
};

/** One empty region that all machines' verbs read: what is in it does not matter. */
function emptyMemory(): StoreMemory {
  const buffers = new Map<string, SharedArrayBuffer>();
  for (const [name, bytes] of segmentSizes(GEOMETRY)) {
    buffers.set(name, new SharedArrayBuffer(bytes));
  }
  const segments = new ThreadSegments(buffers);
  const control = segments.attach(CONTROL_NAME, controlBytes(GEOMETRY));
  const memory = new StoreMemory(segments, control, GEOMETRY);
  memory.control.format();
  memory.createRegion(0, 0);
  return memory;
}

export function compareFasstWithFarm(options: LabOptions = {}): LabResult {
  const { seed = 1, machines = 6, warmUp = 2, measured = 3 } = options;
  const memory = emptyMemory();
  const common = { machines, seed, warmUp, measured, memory };
  const mixes = MIXES.filter(({ name }) => options.workloads?.includes(name) ?? true);
  const rows = mixes.map((mix): LabRow => {
    const fasst = measure({ ...common, mix, hardware: FASST_CX3, protocol: FASST });
    const farm = measure({ ...common, mix, hardware: FARM_2XCX3, protocol: FARM });
    const fasstOnCib = measure({ ...common, mix, hardware: FASST_CIB, protocol: FASST });
    const { remark, ...paper } = PAPER[mix.name];
    const ratio = fasst.mtps / farm.mtps;
    const factor =
      paper.ratio === undefined
        ? {}
        : { factor: Math.max(ratio / paper.ratio, paper.ratio / ratio) };
    return { workload: mix.name, fasst, farm, fasstOnCib, ratio, paper, ...factor, remark };
  });
  memory.close();
  return { seed, machines, rows };
}

/** The rates as a table, the papers' in brackets. */
export function labTable({ rows }: LabResult): string {
  const shown = (mtps: number, paper: number | undefined): string =>
    `${mtps.toFixed(2)}${paper === undefined ? "" : ` (${paper.toFixed(2)})`}`;
  const lines = [
    "Millions of transactions per second and machine, simulated; the papers' figures in brackets",
    "",
    "| workload | FaSST, CX3 | FaRM, 2×CX3 | ratio | FaSST, CIB | RPCs FaSST | verbs + RPCs FaRM |",
    "|---|---|---|---|---|---|---|",
  ];
  for (const { workload, fasst, farm, fasstOnCib, ratio, paper } of rows) {
    const cells = [
      workload,
      shown(fasst.mtps, paper.fasst),
      shown(farm.mtps, paper.farm),
      shown(ratio, paper.ratio),
      shown(fasstOnCib.mtps, paper.fasstOnCib),
      fasst.messagesPerTransaction.toFixed(2),
      `${farm.verbsPerTransaction.toFixed(2)} + ${farm.messagesPerTransaction.toFixed(2)}`,
    ];
    lines.push(`| ${cells.join(" | ")} |`);
  }
  lines.push("");
  for (const { workload, remark } of rows) lines.push(`${workload}: ${remark}`);
  return lines.join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const result = compareFasstWithFarm();
  if (process.argv.includes("--json")) console.log(JSON.stringify(result, undefined, 2));
  else console.log(labTable(result));
}
