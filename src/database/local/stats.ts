/** The statistics of a store: `db.stats()`. */

import type { Executor } from "../../engine/executor.ts";
import {
  type AbortReason,
  ASYNC_TRANSACTIONS,
  type FailureReason,
  type Histogram,
  MetricSums,
  SYNC_TRANSACTIONS,
} from "../../engine/metrics.ts";
import { COUNTERS, type Counter, counterSum } from "../../engine/slot.ts";
import type { Holder } from "../../runtime/errors.ts";
import { UNIT_BYTES } from "../../runtime/limits.ts";
import { readCatalogue } from "../../tables/catalogue.ts";
import type { TableStats } from "../../tables/schema.ts";
import type { DatabaseDurability, DurabilityStats } from "./database-durability.ts";

/** What `db.stats()` returns. */
export interface Stats {
  /** The threads that have the store open, in all processes. */
  readonly executors: readonly Holder[];
  /** The current epoch: a counter that orders commits. */
  readonly epoch: number;
  readonly memory: {
    /** What tables, indexes and objects may use: `memoryBytes`. Journals and old versions are extra. */
    readonly limitBytes: number;
    /** Of that, what the store has taken from the system so far. */
    readonly reservedBytes: number;
    /** Of that, what no thread has claimed yet. */
    readonly freeBytes: number;
  };
  readonly snapshots: {
    /** Open snapshots, in all processes. */
    readonly open: number;
    /** The age of the oldest one. */
    readonly oldestMs: number;
    /** Memory of old versions that only snapshots need. */
    readonly versionBytes: number;
    /** The most that `versionBytes` can grow to. */
    readonly limitBytes: number;
  };
  readonly durability: DurabilityStats;
  readonly tables: readonly TableStats[];
  /** Sums over all threads that have ever had the store open. */
  readonly counters: Readonly<Record<Counter | "retries", number>>;
  /** Attempts of transactions that did not commit, by reason. */
  readonly aborts: Readonly<Record<AbortReason, number>>;
  /** Transactions that failed, by reason. */
  readonly failures: Readonly<Record<FailureReason, number>>;
  /** How long transactions took. Synchronous ones are sampled. */
  readonly latency: { readonly sync: Histogram; readonly async: Histogram };
}

/** Of now: the dead are recovered first, and versions that nobody needs given up. */
export function statsOf(executor: Executor, durability: DatabaseDurability): Stats {
  const { versions, memory } = executor;
  const { blocks } = executor.slabs;
  executor.sweep();
  versions.keeper.tick();
  const counted = COUNTERS.map((name) => [name, counterSum(memory.control, name)]);
  const counters = Object.fromEntries(counted) as Record<Counter, number>;
  const sums = new MetricSums(memory.control);
  return {
    executors: executor.holders(),
    epoch: executor.epochs.current(),
    memory: {
      limitBytes: blocks.limit * UNIT_BYTES,
      reservedBytes: blocks.count * UNIT_BYTES,
      freeBytes: blocks.freeUnits() * UNIT_BYTES,
    },
    snapshots: {
      ...versions.registry.summary(),
      versionBytes: versions.keeper.usedBytes(),
      limitBytes: versions.keeper.limitBytes(),
    },
    durability: durability.stats(),
    tables: readCatalogue(executor),
    counters: { ...counters, retries: sums.retries },
    aborts: sums.aborts,
    failures: sums.failures,
    latency: {
      sync: sums.histogram(SYNC_TRANSACTIONS),
      async: sums.histogram(ASYNC_TRANSACTIONS),
    },
  };
}
