/** What `db.stats()` tells about a store. */

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

export interface Stats {
  /** Who has the store open. */
  readonly executors: readonly Holder[];
  readonly epoch: number;
  readonly memory: {
    /** What tables, indexes and objects may use: `memoryBytes`. Journals and versions are extra. */
    readonly limitBytes: number;
    /** Of that, what the system has given to the store so far. */
    readonly reservedBytes: number;
    /** Of that, what is not handed to any executor. */
    readonly freeBytes: number;
  };
  readonly snapshots: {
    /** Snapshots that are open, in all processes. */
    readonly open: number;
    readonly oldestMs: number;
    /** Memory that holds versions which only snapshots need. */
    readonly versionBytes: number;
    /** What `versionBytes` can come to, with the rings of the executors that have one. */
    readonly limitBytes: number;
  };
  readonly durability: DurabilityStats;
  readonly tables: readonly TableStats[];
  /** Summed over all executors that the store ever had. */
  readonly counters: Readonly<Record<Counter | "retries", number>>;
  /** Attempts that did not commit, by reason. */
  readonly aborts: Readonly<Record<AbortReason, number>>;
  /** Transactions that ended with an error, by reason. */
  readonly failures: Readonly<Record<FailureReason, number>>;
  /** How long transactions took; of synchronous ones, a sample that stands for all. */
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
