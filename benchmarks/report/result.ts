// What a run of the suite found: all that the pages show is computed from this. results.json is it.
import type { Share } from "../../workloads/workload.ts";
import type { Durability, EngineName } from "../engines/engine.ts";
import type { Summary } from "../harness/statistics.ts";

export const resultVersion = 1;

export interface SuiteResult {
  readonly version: typeof resultVersion;
  /** ISO 8601, when the run began. */
  readonly date: string;
  readonly seconds: number;
  readonly quick: boolean;
  readonly seed: number;
  /** Lines that describe the machine: processor, cores, memory, system, Node, load. */
  readonly machine: readonly string[];
  /** The commit that was measured, with "+" if files had changed; "" outside of a clone. */
  readonly commit: string;
  readonly engines: readonly EngineVersion[];
  readonly cells: readonly Cell[];
  readonly bars: readonly BarResult[];
}

export interface EngineVersion {
  readonly engine: EngineName;
  /** As people write it: "PostgreSQL". */
  readonly title: string;
  /** Undefined: it could not be had, and `missing` says why. */
  readonly version?: string;
  readonly missing?: string;
}

/** One comparison: a workload under the same conditions for all engines. */
export interface Cell {
  /** "smallbank-memory-2", unique. */
  readonly id: string;
  readonly workload: string;
  /** For people: "SmallBank, two processes, in memory". */
  readonly title: string;
  readonly scale: string;
  readonly source: string;
  readonly mix: readonly Share[];
  readonly durability: Durability;
  readonly processes: number;
  readonly load: Load;
  readonly rounds: number;
  readonly roundMs: number;
  readonly entries: readonly Entry[];
  /** What a reader should know about this comparison. */
  readonly notes: readonly string[];
}

/**
 * Closed: so many in flight in each process, the next one when one has ended; without a number,
 * every engine as many as it is quickest with. Open: begun at a rate, come what may.
 */
export type Load =
  | { readonly kind: "closed"; readonly inFlight?: number }
  | { readonly kind: "open"; readonly perSecond: number };

export interface Entry {
  readonly engine: EngineName;
  /** Undefined values: this engine was not measured here, and `missing` says why. */
  readonly missing?: string;
  readonly settings?: string;
  /** Transactions per second of all processes, one value per round. */
  readonly perSecond?: readonly number[];
  readonly throughput?: Summary;
  /** In flight in each process: engines that run one after the other have 1. */
  readonly inFlight?: number;
  readonly latency?: Latency;
  /** Attempts undone by conflicts, per transaction. */
  readonly retriesPerTransaction?: number;
  /** Part of the transactions that a rule of the benchmark refused. */
  readonly refusedPart?: number;
  /** Open loop: part of the intended transactions that could not begin for the limit of those open. */
  readonly droppedPart?: number;
  /** Sentences about what did not hold; empty: the invariant held. */
  readonly problems?: readonly string[];
}

/** In nanoseconds. Open loop: from the intended start. */
export interface Latency {
  readonly count: number;
  readonly mean: number;
  readonly max: number;
  /** Ascending in both; enough of them for a curve from 0 to 99.99 and beyond. */
  readonly percentiles: readonly { readonly percent: number; readonly nanoseconds: number }[];
}

/** A claim of the project: Situ against the best peer of a cell. */
export interface BarResult {
  readonly cell: string;
  readonly title: string;
  readonly atLeast: number;
  /** `ratio` says how many times shorter this percentile is. Default: how many times the throughput. */
  readonly measure?: "p99";
  /** Undefined: not measured, for `missing`. */
  readonly ratio?: number;
  readonly spread?: { readonly min: number; readonly max: number };
  readonly met?: boolean;
  readonly best?: EngineName;
  readonly missing?: string;
}
