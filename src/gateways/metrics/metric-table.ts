/**
 * All metrics that Situ has, one row each: name, type, unit, help, and where the figure comes from. The
 * endpoint writes them from here (families.ts), a gateway's counters get their places from here
 * (command-metrics.ts), and the tables of docs/METRICS.md are checked against it. A metric is added by a
 * row.
 *
 * All but those of the process are sums and states in shared memory, so that one endpoint speaks for all
 * processes that have the store open.
 */

import type { Gauges, LogGauges } from "../../database/local/gauges.ts";
import type { Stats } from "../../database/local/stats.ts";
import {
  ABORT_REASONS,
  ASYNC_TRANSACTIONS,
  COMMAND_TIMES,
  FAILURE_REASONS,
  type Histogram,
  type MetricSums,
  SYNC_TRANSACTIONS,
} from "../../engine/metrics.ts";
import type { ProcessFigures } from "./process-figures.ts";

/** The figures that metrics are made of, all read for one answer. */
export interface Reading {
  readonly stats: Stats;
  readonly sums: MetricSums;
  readonly gauges: Gauges;
  readonly process: ProcessFigures;
  /** The commands of a gateway by their numbers, in lower case; "" for a number that has none. */
  readonly commandNames: readonly string[];
}

/** Undefined: the store has no such thing, so the metric is left out. */
export type Figure = number | Histogram | Readonly<Record<string, number | Histogram>> | undefined;

export type Section =
  | "Transactions"
  | "The store"
  | "The log"
  | "The gateway"
  | "A node of a cluster"
  | "The process that answers";

export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** What is counted; without one, things. The name ends with it, before `_total`. */
  readonly unit?: "seconds" | "bytes" | "epochs";
  readonly section: Section;
  readonly help: string;
  /** When to look into it, for docs/METRICS.md. */
  readonly worry?: string;
  /** A label, and the values that it has if they are known. */
  readonly label?: string;
  readonly values?: readonly string[];
  /** Where the figure comes from: read from the store or the process… */
  readonly read?: (reading: Reading) => Figure;
  /** …or counted by a gateway under this name. */
  readonly counter?: string;
}

/** A figure of the log, for a store that has one. */
function ofLog(read: (log: LogGauges, stats: Stats) => Figure): (reading: Reading) => Figure {
  return ({ gauges: { log }, stats }) => (log === undefined ? undefined : read(log, stats));
}

function byCommand(read: (sums: MetricSums, number: number) => number) {
  return ({ commandNames, sums }: Reading): Figure => {
    const known = [...commandNames.entries()].filter(([, name]) => name !== "");
    if (known.length === 0) return undefined;
    return Object.fromEntries(known.map(([number, name]) => [name, read(sums, number)]));
  };
}

/** rolledBack becomes rolled_back: labels are written as the names of metrics are. */
function labelOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function labelled(counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [labelOf(name), count]));
}

export const METRICS = [
  {
    name: "situ_commits_total",
    type: "counter",
    section: "Transactions",
    help: "Committed transactions, including Situ's own, such as splits of tables.",
    worry: "it stops while clients wait",
    label: "kind",
    values: ["read_write", "read_only"],
    read: ({ stats: { counters } }) => ({
      read_write: counters.commits,
      read_only: counters.readOnlyCommits,
    }),
  },
  {
    name: "situ_aborts_total",
    type: "counter",
    section: "Transactions",
    help: "Attempts that did not commit. Most of them are retried.",
    worry: "`lock` and `validation` together exceed a tenth of the commits",
    label: "reason",
    values: ABORT_REASONS.map(labelOf),
    read: ({ stats }) => labelled(stats.aborts),
  },
  {
    name: "situ_transaction_failures_total",
    type: "counter",
    section: "Transactions",
    help: "Transactions that failed with an error.",
    worry: "anything but `rolled_back` grows",
    label: "reason",
    values: FAILURE_REASONS.map(labelOf),
    read: ({ stats }) => labelled(stats.failures),
  },
  {
    name: "situ_retries_total",
    type: "counter",
    section: "Transactions",
    help: "Attempts after the first one of a transaction.",
    worry: "it grows faster than commits: a hot row",
    read: ({ stats }) => stats.counters.retries,
  },
  {
    name: "situ_starved_total",
    type: "counter",
    section: "Transactions",
    help: "Times that the others waited, for up to half their time-outs, for a transaction that kept losing to shorter ones.",
    worry: "it grows steadily: large transactions on rows that change all the time",
    read: ({ stats }) => stats.counters.starved,
  },
  {
    name: "situ_lock_waits_total",
    type: "counter",
    section: "Transactions",
    help: "Reads that waited for a commit in progress.",
    worry: "thousands per second: a hot row, or more threads than cores",
    read: ({ stats }) => stats.counters.lockWaits,
  },
  {
    name: "situ_recoveries_total",
    type: "counter",
    section: "Transactions",
    help: "Dead threads and processes whose unfinished commits others completed or rolled back.",
    worry: "it grows: something crashes",
    read: ({ stats }) => stats.counters.recoveries,
  },
  {
    name: "situ_transaction_duration_seconds",
    type: "histogram",
    unit: "seconds",
    section: "Transactions",
    help: "Duration of transactions, including retries and waiting for the disk. Synchronous ones are sampled.",
    worry: "its p99 approaches your `timeoutMs`",
    label: "kind",
    values: ["sync", "async"],
    read: ({ sums }) => ({
      sync: sums.histogram(SYNC_TRANSACTIONS),
      async: sums.histogram(ASYNC_TRANSACTIONS),
    }),
  },
  {
    name: "situ_allocations_total",
    type: "counter",
    section: "Transactions",
    help: "Objects allocated: buckets, rows stored outside of them, tree nodes, and your own.",
    read: ({ stats }) => stats.counters.allocations,
  },
  {
    name: "situ_frees_total",
    type: "counter",
    section: "Transactions",
    help: "Objects freed.",
    read: ({ stats }) => stats.counters.frees,
  },
  {
    name: "situ_splits_total",
    type: "counter",
    section: "Transactions",
    help: "Splits of growing tables and indexes.",
    read: ({ stats }) => stats.counters.splits,
  },
  {
    name: "situ_executors",
    type: "gauge",
    section: "The store",
    help: "Threads and processes that have the store open.",
    worry: "it approaches 255",
    read: ({ stats }) => stats.executors.length,
  },
  {
    name: "situ_tables",
    type: "gauge",
    section: "The store",
    help: "Tables in the store, at most 256.",
    read: ({ stats }) => stats.tables.length,
  },
  {
    name: "situ_epoch",
    type: "gauge",
    section: "The store",
    help: "The current epoch. It grows with time and with work.",
    read: ({ stats }) => stats.epoch,
  },
  {
    name: "situ_memory_limit_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The store",
    help: "The most that tables, indexes and objects may use: memoryBytes.",
    read: ({ stats }) => stats.memory.limitBytes,
  },
  {
    name: "situ_memory_reserved_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The store",
    help: "The part of that limit that the operating system has allocated so far.",
    read: ({ stats }) => stats.memory.reservedBytes,
  },
  {
    name: "situ_memory_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The store",
    help: "Shared memory of the store by use.",
    worry: "`data` approaches the limit: transactions then fail with SITU_FULL",
    label: "use",
    values: ["data", "free", "versions", "journals", "control"],
    read: ({ stats: { memory, snapshots }, gauges }) => ({
      data: memory.reservedBytes - memory.freeBytes,
      free: memory.freeBytes,
      versions: snapshots.versionBytes,
      journals: gauges.journalBytes,
      control: gauges.controlBytes,
    }),
  },
  {
    name: "situ_version_limit_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The store",
    help: "The most that old versions kept for snapshots may use.",
    worry: '`situ_memory_bytes{use="versions"}` approaches it: snapshots are then released',
    read: ({ stats }) => stats.snapshots.limitBytes,
  },
  {
    name: "situ_snapshots_open",
    type: "gauge",
    section: "The store",
    help: "Open snapshots.",
    worry: "it only grows: somebody does not close them",
    read: ({ stats }) => stats.snapshots.open,
  },
  {
    name: "situ_snapshot_oldest_seconds",
    type: "gauge",
    unit: "seconds",
    section: "The store",
    help: "Age of the oldest open snapshot.",
    worry: "it approaches `maxSnapshotMs`",
    read: ({ stats }) => stats.snapshots.oldestMs / 1e3,
  },
  {
    name: "situ_snapshots_total",
    type: "counter",
    section: "The store",
    help: "Snapshots taken.",
    read: ({ stats }) => stats.counters.snapshots,
  },
  {
    name: "situ_snapshots_released_total",
    type: "counter",
    section: "The store",
    help: "Snapshots released because of their age or for lack of memory; their readers got SITU_SNAPSHOT_TOO_OLD.",
    worry: "it grows",
    read: ({ stats }) => stats.counters.snapshotsReleased,
  },
  {
    name: "situ_versions_kept_total",
    type: "counter",
    section: "The store",
    help: "Old versions kept for snapshots.",
    read: ({ stats }) => stats.counters.versionsKept,
  },
  {
    name: "situ_versions_moved_total",
    type: "counter",
    section: "The store",
    help: "Old versions that outlived their writer's ring buffer and were moved to the overflow area.",
    read: ({ stats }) => stats.counters.versionsMoved,
  },
  {
    name: "situ_log_state",
    type: "gauge",
    section: "The log",
    help: "1 for the state that the log is in, 0 for the others.",
    worry: "it is not `running`: see [what to do](DURABILITY.md)",
    label: "state",
    values: ["running", "disk_full", "failed", "memory_lost"],
    read: ofLog((_log, { durability: { state } }) => ({
      running: state === "running" ? 1 : 0,
      disk_full: state === "disk full" ? 1 : 0,
      failed: state === "failed" ? 1 : 0,
      memory_lost: state === "memory lost" ? 1 : 0,
    })),
  },
  {
    name: "situ_log_writer_up",
    type: "gauge",
    section: "The log",
    help: "1 if a process is writing the log. It is 0 for some milliseconds while another one takes over.",
    worry: "it stays 0",
    read: ofLog((log) => (log.hasWriter ? 1 : 0)),
  },
  {
    name: "situ_durable_epoch",
    type: "gauge",
    section: "The log",
    help: "Everything committed up to this epoch is on disk.",
    read: ofLog((_log, { durability }) => durability.durableEpoch),
  },
  {
    name: "situ_log_lag_epochs",
    type: "gauge",
    unit: "epochs",
    section: "The log",
    help: "Epochs by which the disk lags behind; 0 if everything committed is on disk.",
    worry: "it only grows",
    read: ofLog((log) => log.lagEpochs),
  },
  {
    name: "situ_log_lag_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The log",
    help: "Committed data that is not known to be on disk.",
    worry: "it approaches 4 MiB per writer: commits then wait for the log",
    read: ofLog((log) => log.lagBytes),
  },
  {
    name: "situ_log_bytes_total",
    type: "counter",
    unit: "bytes",
    section: "The log",
    help: "Bytes written to the log.",
    read: ofLog((_log, { durability }) => durability.logBytes),
  },
  {
    name: "situ_log_batches_total",
    type: "counter",
    section: "The log",
    help: "Batches written to the log, with one sync each.",
    read: ofLog((_log, { durability }) => durability.batches),
  },
  {
    name: "situ_log_records_total",
    type: "counter",
    section: "The log",
    help: "Commits written to the log.",
    read: ofLog((_log, { durability }) => durability.records),
  },
  {
    name: "situ_checkpoints_total",
    type: "counter",
    section: "The log",
    help: "Checkpoints taken.",
    read: ofLog((_log, { durability }) => durability.checkpoints),
  },
  {
    name: "situ_checkpoint_failures_total",
    type: "counter",
    section: "The log",
    help: "Checkpoints that could not be written.",
    worry: "it grows: the log is kept, and recovery takes longer",
    read: ofLog((log) => log.failedCheckpoints),
  },
  {
    name: "situ_checkpoint_last_timestamp_seconds",
    type: "gauge",
    unit: "seconds",
    section: "The log",
    help: "Unix time at which the last checkpoint began; 0 if there was none.",
    worry: "it is hours ago while the log grows",
    read: ofLog((log) => log.checkpointAtMs / 1e3),
  },
  {
    name: "situ_checkpoint_last_duration_seconds",
    type: "gauge",
    unit: "seconds",
    section: "The log",
    help: "Duration of the last checkpoint.",
    read: ofLog((_log, { durability }) => (durability.lastCheckpoint?.ms ?? 0) / 1e3),
  },
  {
    name: "situ_checkpoint_last_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The log",
    help: "Size of the last checkpoint.",
    read: ofLog((_log, { durability }) => durability.lastCheckpoint?.bytes ?? 0),
  },
  {
    name: "situ_clients",
    type: "gauge",
    section: "The gateway",
    help: "Connected clients.",
    worry: "it approaches `maxClients`",
    read: ({ sums }) => sums.clients,
  },
  {
    name: "situ_connections_received_total",
    type: "counter",
    section: "The gateway",
    help: "Connections accepted from clients.",
    worry: "it grows much faster than commands: clients do not reuse connections",
    counter: "connectionsReceived",
  },
  {
    name: "situ_connections_rejected_total",
    type: "counter",
    section: "The gateway",
    help: "Connections refused because there were too many.",
    worry: "it grows",
    counter: "connectionsRejected",
  },
  {
    name: "situ_received_bytes_total",
    type: "counter",
    unit: "bytes",
    section: "The gateway",
    help: "Bytes received from clients.",
    counter: "bytesReceived",
  },
  {
    name: "situ_sent_bytes_total",
    type: "counter",
    unit: "bytes",
    section: "The gateway",
    help: "Bytes sent to clients.",
    counter: "bytesSent",
  },
  {
    name: "situ_keys_expired_total",
    type: "counter",
    section: "The gateway",
    help: "Keys removed because they expired.",
    counter: "keysExpired",
  },
  {
    name: "situ_keyspace_hits_total",
    type: "counter",
    section: "The gateway",
    help: "Lookups of keys that exist.",
    counter: "keyspaceHits",
  },
  {
    name: "situ_keyspace_misses_total",
    type: "counter",
    section: "The gateway",
    help: "Lookups of keys that do not exist.",
    counter: "keyspaceMisses",
  },
  {
    name: "situ_commands_total",
    type: "counter",
    section: "The gateway",
    help: "Commands executed.",
    label: "command",
    read: byCommand((sums, number) => sums.callsOf(number)),
  },
  {
    name: "situ_command_failures_total",
    type: "counter",
    section: "The gateway",
    help: "Commands that were answered with an error.",
    worry: "it grows",
    label: "command",
    read: byCommand((sums, number) => sums.failuresOf(number)),
  },
  {
    name: "situ_command_duration_seconds",
    type: "histogram",
    unit: "seconds",
    section: "The gateway",
    help: "Time from request to reply; the commands of a pipeline share its time.",
    read: ({ sums }) => sums.histogram(COMMAND_TIMES),
  },
  {
    name: "process_cpu_seconds_total",
    type: "counter",
    unit: "seconds",
    section: "The process that answers",
    help: "CPU time, of all threads.",
    read: ({ process }) => process.cpuSeconds,
  },
  {
    name: "process_resident_memory_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The process that answers",
    help: "Resident memory, including the shared memory that the process has touched.",
    read: ({ process }) => process.residentBytes,
  },
  {
    name: "process_start_time_seconds",
    type: "gauge",
    unit: "seconds",
    section: "The process that answers",
    help: "Unix time at which the process started.",
    read: ({ process }) => process.startSeconds,
  },
  {
    name: "nodejs_heap_size_used_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The process that answers",
    help: "JavaScript heap in use.",
    worry: "it only grows",
    read: ({ process }) => process.heapUsedBytes,
  },
  {
    name: "nodejs_heap_size_total_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The process that answers",
    help: "JavaScript heap reserved.",
    read: ({ process }) => process.heapTotalBytes,
  },
  {
    name: "nodejs_external_memory_bytes",
    type: "gauge",
    unit: "bytes",
    section: "The process that answers",
    help: "Memory of objects outside the JavaScript heap.",
    read: ({ process }) => process.externalBytes,
  },
  {
    name: "nodejs_eventloop_lag_seconds",
    type: "gauge",
    unit: "seconds",
    section: "The process that answers",
    help: "Mean delay of timers since the last scrape.",
    read: ({ process }) => process.meanLagSeconds,
  },
  {
    name: "nodejs_eventloop_lag_p99_seconds",
    type: "gauge",
    unit: "seconds",
    section: "The process that answers",
    help: "99th percentile of the delay of timers since the last scrape.",
    worry: "it exceeds what a client may wait",
    read: ({ process }) => process.p99LagSeconds,
  },
  {
    name: "nodejs_eventloop_lag_max_seconds",
    type: "gauge",
    unit: "seconds",
    section: "The process that answers",
    help: "Longest delay of a timer since the last scrape.",
    read: ({ process }) => process.maxLagSeconds,
  },
] as const satisfies readonly Metric[];
