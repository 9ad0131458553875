/**
 * INFO: what clients and tools look at, under the names that Redis has for it. Only fields that are
 * true of this server are there. Clients ask for it whenever they connect, so it must be cheap.
 */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import { UNIT_BYTES } from "../../runtime/limits.ts";
import { version } from "../../runtime/version.ts";
import { countKeys } from "./key-count.ts";
import type { Server, ServerFigures } from "./server.ts";

/** The version whose commands, replies and errors these are; clients choose what to use by it. */
export const REDIS_VERSION = "7.0.15";

const SITU_VERSION = version();

type Fields = Readonly<Record<string, string | number>>;
type Section = (server: Server, isInside: boolean) => Fields;

/** What CONFIG RESETSTAT takes away from the figures of this thread. */
const resets = new WeakMap<Server, ServerFigures>();

const SECTIONS: readonly (readonly [name: string, section: Section])[] = [
  ["Server", serverSection],
  ["Clients", clientsSection],
  ["Memory", memorySection],
  ["Persistence", persistenceSection],
  ["Stats", statsSection],
  ["Replication", replicationSection],
  ["CPU", cpuSection],
  ["Modules", () => ({})],
  ["Errorstats", () => ({})],
  ["Cluster", () => ({ cluster_enabled: 0 })],
  ["Keyspace", keyspaceSection],
];

/** Names for all sections, or for those that INFO alone shows. */
const ALL = ["all", "everything", "default"];

/** The sections of these names, in lower case, and their order here; without any, all. */
export function infoText(server: Server, wanted: readonly string[], isInside: boolean): string {
  const isAll = wanted.length === 0 || wanted.some((name) => ALL.includes(name));
  const parts: string[] = [];
  for (const [name, section] of SECTIONS) {
    if (!isAll && !wanted.includes(name.toLowerCase())) continue;
    const lines = Object.entries(section(server, isInside)).map(
      ([key, value]) => `${key}:${value}`,
    );
    parts.push([`# ${name}`, ...lines, ""].join("\r\n"));
  }
  return parts.join("\r\n");
}

/** From now on the figures are counted from 0, as INFO on this thread tells them. */
export function resetFigures(server: Server): void {
  resets.set(server, { ...server.figures });
}

function serverSection({ port, threads, startedMs }: Server): Fields {
  const timeMs = wallClockMs();
  const seconds = Math.floor((timeMs - startedMs) / 1000);
  return {
    redis_version: REDIS_VERSION,
    situ_version: SITU_VERSION,
    redis_git_sha1: "00000000",
    redis_git_dirty: 0,
    redis_mode: "standalone",
    os: `${process.platform} ${process.arch}`,
    arch_bits: 64,
    multiplexing_api: "libuv",
    node_version: process.versions.node,
    process_id: process.pid,
    process_supervised: "no",
    tcp_port: port,
    server_time_usec: timeMs * 1000,
    uptime_in_seconds: seconds,
    uptime_in_days: Math.floor(seconds / 86_400),
    io_threads_active: threads > 1 ? 1 : 0,
    situ_threads: threads,
  };
}

function clientsSection({ figures, settings }: Server): Fields {
  return {
    connected_clients: figures.clients,
    cluster_connections: 0,
    maxclients: settings.maxClients,
    blocked_clients: 0,
    tracking_clients: 0,
  };
}

function memorySection({ database }: Server): Fields {
  const { limitBytes, usedBytes } = memoryOf(database);
  return {
    used_memory: usedBytes,
    used_memory_human: human(usedBytes),
    used_memory_rss: process.memoryUsage.rss(),
    maxmemory: limitBytes,
    maxmemory_human: human(limitBytes),
    maxmemory_policy: "noeviction",
    mem_allocator: "situ",
  };
}

/** What the store may use, and what of that is in use. */
export function memoryOf({ executor }: Database): { limitBytes: number; usedBytes: number } {
  const { blocks } = executor.slabs;
  return {
    limitBytes: blocks.limit * UNIT_BYTES,
    usedBytes: (blocks.count - blocks.freeUnits()) * UNIT_BYTES,
  };
}

function persistenceSection({ database }: Server): Fields {
  const { isLogged } = database.executor.durability;
  return {
    loading: 0,
    async_loading: 0,
    rdb_changes_since_last_save: 0,
    rdb_bgsave_in_progress: 0,
    rdb_last_bgsave_status: "ok",
    aof_enabled: isLogged ? 1 : 0,
    aof_rewrite_in_progress: 0,
    aof_rewrite_scheduled: 0,
    aof_last_bgrewrite_status: "ok",
    aof_last_write_status: "ok",
  };
}

function statsSection(server: Server): Fields {
  const { figures } = server;
  const before = resets.get(server);
  const since = (name: keyof ServerFigures): number => figures[name] - (before?.[name] ?? 0);
  return {
    total_connections_received: since("connectionsReceived"),
    total_commands_processed: since("commandsProcessed"),
    total_net_input_bytes: since("bytesReceived"),
    total_net_output_bytes: since("bytesSent"),
    rejected_connections: since("connectionsRejected"),
    expired_keys: since("keysExpired"),
    evicted_keys: 0,
    keyspace_hits: since("keyspaceHits"),
    keyspace_misses: since("keyspaceMisses"),
    pubsub_channels: 0,
    pubsub_patterns: 0,
    total_forks: 0,
  };
}

function replicationSection(): Fields {
  return { role: "master", connected_slaves: 0, master_repl_offset: 0 };
}

function cpuSection(): Fields {
  const { user, system } = process.cpuUsage();
  return {
    used_cpu_sys: (system / 1e6).toFixed(6),
    used_cpu_user: (user / 1e6).toFixed(6),
  };
}

function keyspaceSection(server: Server, isInside: boolean): Fields {
  const { keys, expires } = countKeys(server, isInside);
  return keys === 0 ? {} : { db0: `keys=${keys},expires=${expires},avg_ttl=0` };
}

/** As Redis writes amounts of memory (server.c, bytesToHuman). */
function human(bytes: number): string {
  const units = ["K", "M", "G", "T", "P"];
  if (bytes < 1024) return `${bytes}B`;
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${value.toFixed(2)}${units[unit]}`;
}
