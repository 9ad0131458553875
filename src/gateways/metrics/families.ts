/**
 * Which metrics Situ has. All but those of the process are sums and states in shared memory, so that
 * one endpoint speaks for all processes that have the store open: scrape one of them, not each.
 * docs/METRICS.md says what they mean and when to worry; a test holds the page to this file.
 */

import type { LogGauges } from "../../database/local/gauges.ts";
import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import type { Stats } from "../../database/local/stats.ts";
import {
  ASYNC_TRANSACTIONS,
  COMMAND_TIMES,
  type MetricSums,
  SYNC_TRANSACTIONS,
} from "../../engine/metrics.ts";
import { MAX_COMMANDS } from "../../runtime/limits.ts";
import { PrometheusText } from "./prometheus.ts";

/** The commands of a gateway by their numbers, in small letters; "" for a number that has none. */
export type CommandNames = readonly string[];

export function storeMetrics(database: Database, commandNames: CommandNames): PrometheusText {
  const text = new PrometheusText();
  const stats = database.stats();
  const sums = database.metrics.sums();
  const gauges = database.metrics.gauges();
  transactions(text, stats, sums);
  text.one(
    "situ_executors",
    "gauge",
    "Threads and processes with the store open.",
    stats.executors.length,
  );
  text.one("situ_tables", "gauge", "Tables in the store.", stats.tables.length);
  text.one("situ_epoch", "gauge", "The epoch of the store.", stats.epoch);
  memory(text, stats, gauges.journalBytes, gauges.controlBytes);
  snapshots(text, stats);
  if (gauges.log !== undefined) log(text, stats, gauges.log);
  clients(text, sums);
  commands(text, sums, commandNames);
  return text;
}

function transactions(
  text: PrometheusText,
  { counters, aborts, failures }: Stats,
  sums: MetricSums,
): void {
  text.many("situ_commits_total", "counter", "Transactions that committed.", "kind", [
    ["read_write", counters.commits],
    ["read_only", counters.readOnlyCommits],
  ]);
  text.many(
    "situ_aborts_total",
    "counter",
    "Attempts of transactions that did not commit. Most are run again.",
    "reason",
    labelled(aborts),
  );
  text.many(
    "situ_transaction_failures_total",
    "counter",
    "Transactions whose callers got an error.",
    "reason",
    labelled(failures),
  );
  text.one("situ_retries_total", "counter", "Attempts after the first.", counters.retries);
  text.one(
    "situ_turns_total",
    "counter",
    "Times that others waited for a transaction that kept losing against shorter ones.",
    counters.turns,
  );
  text.one(
    "situ_lock_waits_total",
    "counter",
    "Reads that waited for a commit that was being installed.",
    counters.lockWaits,
  );
  text.one(
    "situ_recoveries_total",
    "counter",
    "Dead threads and processes whose work others brought to its end.",
    counters.recoveries,
  );
  text.histogram(
    "situ_transaction_duration_seconds",
    "How long transactions took, retries and waiting for the disk included. Synchronous ones are a sample.",
    [
      { labels: { kind: "sync" }, histogram: sums.histogram(SYNC_TRANSACTIONS) },
      { labels: { kind: "async" }, histogram: sums.histogram(ASYNC_TRANSACTIONS) },
    ],
  );
  text.one("situ_allocations_total", "counter", "Objects allocated.", counters.allocations);
  text.one("situ_frees_total", "counter", "Objects freed.", counters.frees);
  text.one("situ_splits_total", "counter", "Parts of tables and indexes split.", counters.splits);
}

function memory(text: PrometheusText, stats: Stats, journals: number, control: number): void {
  const { limitBytes, reservedBytes, freeBytes } = stats.memory;
  text.one(
    "situ_memory_limit_bytes",
    "gauge",
    "What tables, indexes and objects may use: memoryBytes.",
    limitBytes,
  );
  text.one(
    "situ_memory_reserved_bytes",
    "gauge",
    "Of that, what the system has given to the store.",
    reservedBytes,
  );
  text.many("situ_memory_bytes", "gauge", "Shared memory of the store, by its use.", "use", [
    ["data", reservedBytes - freeBytes],
    ["free", freeBytes],
    ["versions", stats.snapshots.versionBytes],
    ["journals", journals],
    ["control", control],
  ]);
}

function snapshots(text: PrometheusText, { snapshots, counters }: Stats): void {
  text.one("situ_snapshots_open", "gauge", "Snapshots that are open.", snapshots.open);
  text.one(
    "situ_snapshot_oldest_seconds",
    "gauge",
    "How long the oldest snapshot has been open.",
    snapshots.oldestMs / 1e3,
  );
  text.one(
    "situ_version_limit_bytes",
    "gauge",
    "What old versions that snapshots need may use.",
    snapshots.limitBytes,
  );
  text.one("situ_snapshots_total", "counter", "Snapshots taken.", counters.snapshots);
  text.one(
    "situ_snapshots_released_total",
    "counter",
    "Snapshots released because of their age, or for want of room.",
    counters.snapshotsReleased,
  );
  text.one(
    "situ_versions_kept_total",
    "counter",
    "Old versions kept for snapshots.",
    counters.versionsKept,
  );
  text.one(
    "situ_versions_moved_total",
    "counter",
    "Old versions moved out of the ring of their writer.",
    counters.versionsMoved,
  );
}

function log(text: PrometheusText, { durability }: Stats, gauges: LogGauges): void {
  const { state, lastCheckpoint: last } = durability;
  text.many("situ_log_state", "gauge", "1 for the state that the log is in.", "state", [
    ["running", state === "running" ? 1 : 0],
    ["disk_full", state === "disk full" ? 1 : 0],
    ["failed", state === "failed" ? 1 : 0],
    ["memory_lost", state === "memory lost" ? 1 : 0],
  ]);
  text.one(
    "situ_log_writer_up",
    "gauge",
    "1 if somebody writes the log.",
    gauges.hasWriter ? 1 : 0,
  );
  text.one(
    "situ_durable_epoch",
    "gauge",
    "All up to this epoch is on disk.",
    durability.durableEpoch,
  );
  text.one(
    "situ_log_lag_epochs",
    "gauge",
    "Epochs by which the disk is behind; 0 if all that was committed is on disk.",
    gauges.lagEpochs,
  );
  text.one(
    "situ_log_lag_bytes",
    "gauge",
    "What was committed and is not known to be on disk.",
    gauges.lagBytes,
  );
  text.one("situ_log_bytes_total", "counter", "Bytes written to the log.", durability.logBytes);
  text.one("situ_log_batches_total", "counter", "Batches written to the log.", durability.batches);
  text.one("situ_log_records_total", "counter", "Commits written to the log.", durability.records);
  text.one("situ_checkpoints_total", "counter", "Checkpoints taken.", durability.checkpoints);
  text.one(
    "situ_checkpoint_failures_total",
    "counter",
    "Checkpoints that could not be written.",
    gauges.failedCheckpoints,
  );
  text.one(
    "situ_checkpoint_last_timestamp_seconds",
    "gauge",
    "When the last checkpoint was begun, in seconds since 1970; 0 if there was none.",
    gauges.checkpointAtMs / 1e3,
  );
  text.one(
    "situ_checkpoint_last_duration_seconds",
    "gauge",
    "How long the last checkpoint took.",
    (last?.ms ?? 0) / 1e3,
  );
  text.one("situ_checkpoint_last_bytes", "gauge", "Size of the last checkpoint.", last?.bytes ?? 0);
}

function clients(text: PrometheusText, { clients, gateway }: MetricSums): void {
  text.one("situ_clients", "gauge", "Clients that are connected to gateways.", clients);
  text.one(
    "situ_connections_received_total",
    "counter",
    "Connections that gateways were asked for.",
    gateway.connectionsReceived,
  );
  text.one(
    "situ_connections_rejected_total",
    "counter",
    "Connections refused because there were too many.",
    gateway.connectionsRejected,
  );
  text.one(
    "situ_received_bytes_total",
    "counter",
    "Bytes that clients sent to gateways.",
    gateway.bytesReceived,
  );
  text.one(
    "situ_sent_bytes_total",
    "counter",
    "Bytes that gateways sent to clients.",
    gateway.bytesSent,
  );
  text.one("situ_keys_expired_total", "counter", "Keys whose time was over.", gateway.keysExpired);
  text.one(
    "situ_keyspace_hits_total",
    "counter",
    "Keys that were read and there.",
    gateway.keyspaceHits,
  );
  text.one(
    "situ_keyspace_misses_total",
    "counter",
    "Keys that were read and not there.",
    gateway.keyspaceMisses,
  );
}

function commands(text: PrometheusText, sums: MetricSums, names: CommandNames): void {
  if (names.length > MAX_COMMANDS) {
    throw new RangeError(`${names.length} commands, and there is room for ${MAX_COMMANDS}`);
  }
  text.histogram(
    "situ_command_duration_seconds",
    "How long the commands of clients took, from the request to the reply.",
    [{ labels: {}, histogram: sums.histogram(COMMAND_TIMES) }],
  );
  if (names.length === 0) return;
  const known = [...names.entries()].filter(([, name]) => name !== "");
  text.many(
    "situ_commands_total",
    "counter",
    "Commands that clients sent.",
    "command",
    known.map(([number, name]) => [name, sums.callsOf(number)]),
  );
  text.many(
    "situ_command_failures_total",
    "counter",
    "Commands that were answered with an error.",
    "command",
    known.map(([number, name]) => [name, sums.failuresOf(number)]),
  );
}

/** rolledBack becomes rolled_back: labels are written as the names of metrics are. */
function labelled(counts: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(counts).map(([name, count]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    count,
  ]);
}
