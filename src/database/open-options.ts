/** What `open` takes, checked, with everything that was left out filled in. */

import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import type { DurabilityMode, StoreSettings } from "../attach/settings.ts";
import type { RecoveryProgress } from "../log/recovery/progress.ts";
import { whyNoProcesses } from "../memory/libc.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import {
  DEFAULT_CHECKPOINT_BYTES,
  DEFAULT_CHECKPOINT_MS,
  DEFAULT_LAG_MS,
  DEFAULT_MAX_SNAPSHOT_MS,
  DEFAULT_SYNC_TIMEOUT_MS,
  DEFAULT_TIMEOUT_MS,
  MAX_BLOCK_UNITS,
  MAX_LAG_MS,
  MAX_OVERFLOW_CHUNKS,
  MAX_REGIONS,
  MAX_TIMEOUT_MS,
  MIN_CHECKPOINT_BYTES,
  MIN_MEMORY_BYTES,
  OVERFLOW_CHUNK_BYTES,
  REGION_BYTES,
  UNIT_BYTES,
} from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import type { Table } from "../tables/table.ts";

export interface OpenOptions {
  /** A folder. Whoever opens the same one joins the same store. */
  readonly path: string;
  readonly tables?: readonly Table[];
  /** The most memory that the store may use. Counts when the store is created. */
  readonly memoryBytes?: number;
  /**
   * Where the mapped files lie: a file system in memory. Counts when the store is created.
   * Default: SITU_MEMORY_DIR, or /dev/shm.
   */
  readonly memoryDir?: string;
  /**
   * Who can open the store: all processes of the machine, or only the threads of this process,
   * which needs no FFI. Default: processes, where the system allows it.
   */
  readonly sharing?: "processes" | "threads";
  /**
   * The most memory for versions that only snapshots still need, beside a ring of 4 MiB for each
   * executor that writes. When it is full, the oldest snapshots are released. Counts when the
   * store is created. Default: a quarter of `memoryBytes`.
   */
  readonly versionBytes?: number;
  /** Snapshots taken here are released after this time. Default: one minute. */
  readonly maxSnapshotMs?: number;
  /**
   * When a commit is on disk. "sync": before it returns. "lazy": at most `lagMs` later. "none": never;
   * the store is gone when the machine stops. A store is created with a log or without; one without
   * gets a log when it is opened with "sync" or "lazy" by one who is alone in it.
   * Default: "lazy", or "none" for a store that was created so.
   */
  readonly durability?: DurabilityMode;
  /** How far the log may lag behind in "lazy". The least that an open process asks for counts. */
  readonly lagMs?: number;
  /** A checkpoint is taken after this time, if anything was written. Default: five minutes. */
  readonly checkpointMs?: number;
  /** A checkpoint is taken after so many bytes of log. Default: 256 MiB. */
  readonly checkpointBytes?: number;
  /**
   * Log and checkpoints are kept for at least this long, to restore the store to a point in that
   * time. Default: 0, only what recovery needs.
   */
  readonly keepLogMs?: number;
  /** Told how far the rebuilding of memory from disk is. Default: a line on a terminal's stderr. */
  readonly onRecovery?: (progress: RecoveryProgress) => void;
  /**
   * How long transactions retry and wait for others, and for the disk, unless they say otherwise.
   * Default: 5 s; but calls that hold the event loop meanwhile (`transactSync`, `get`, `scan`, `count`,
   * `snapshot`) wait for other processes for 500 ms only.
   */
  readonly timeoutMs?: number;
}

/** What `open` was asked for: about the store, and about this process's use of it. */
export interface Settings extends StoreSettings {
  readonly tables: readonly Table[];
  readonly timeoutMs: number;
  /** The same for calls that hold the event loop while they wait. */
  readonly syncTimeoutMs: number;
  readonly maxSnapshotMs: number;
}

const KNOWN = [
  "path",
  "tables",
  "memoryBytes",
  "memoryDir",
  "sharing",
  "timeoutMs",
  "versionBytes",
  "maxSnapshotMs",
  "durability",
  "lagMs",
  "checkpointMs",
  "checkpointBytes",
  "keepLogMs",
  "onRecovery",
];
const MODES: readonly unknown[] = ["sync", "lazy", "none", undefined];
const DEFAULT_MEMORY_BYTES = 256 * 2 ** 20;

function refuse(why: string): never {
  throw new SituError("SITU_CONFIG", `open: ${why}`);
}

export function settingsOf(options: OpenOptions): Settings {
  if (typeof options !== "object" || options === null) refuse('pass { path: "./folder" }');
  refuseUnknownOptions("open", options, KNOWN);
  if (typeof SharedArrayBuffer === "undefined") {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "this process has no SharedArrayBuffer, which Situ's threads share memory by: start Node " +
        "without the flag that disables it",
    );
  }
  const path = folderOf("path", options.path);
  const tables = options.tables ?? [];
  if (!Array.isArray(tables) || tables.some((table) => typeof table?.ordinal !== "number")) {
    refuse("tables is a list of what table() returns");
  }
  const names = tables.map((table) => table.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) refuse(`two tables are called ${twice}`);
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (!isDuration(timeoutMs)) refuse(notADuration("timeoutMs", timeoutMs));
  const { maxSnapshotMs = DEFAULT_MAX_SNAPSHOT_MS } = options;
  if (!isDuration(maxSnapshotMs)) refuse(notADuration("maxSnapshotMs", maxSnapshotMs));
  const memoryBytes = memoryBytesOf(options.memoryBytes ?? DEFAULT_MEMORY_BYTES);
  const sharing = sharingOf(options.sharing);
  return {
    path,
    ...durabilityOf(options, sharing),
    tables,
    memoryBytes,
    versionBytes: versionBytesOf(options.versionBytes, memoryBytes),
    maxSnapshotMs,
    memoryDir: folderOf(
      "memoryDir",
      options.memoryDir ?? process.env.SITU_MEMORY_DIR ?? defaultMemoryDir(),
    ),
    memoryDirGiven: options.memoryDir !== undefined,
    sharing,
    timeoutMs,
    syncTimeoutMs: options.timeoutMs ?? DEFAULT_SYNC_TIMEOUT_MS,
  };
}

/** The name of a folder that a caller gives, as a full path. */
export function folderOf(name: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw new SituError(
      "SITU_CONFIG",
      `${name} is the name of a folder, as a string, not ${show(value)}`,
    );
  }
  if (value.includes("\0")) {
    throw new SituError("SITU_CONFIG", `${name} has a NUL character, which no file name can have`);
  }
  try {
    return resolve(value);
  } catch (cause) {
    throw new SituError(
      "SITU_CONFIG",
      `${name} ${show(value)} is relative, and this process's working folder is gone: use a full path`,
      { cause },
    );
  }
}

function durabilityOf(options: OpenOptions, sharing: Settings["sharing"]) {
  const { durability, onRecovery } = options;
  if (!MODES.includes(durability)) {
    refuse(`durability is "sync", "lazy" or "none", not ${show(durability)}`);
  }
  if (sharing === "threads" && durability !== undefined && durability !== "none") {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `durability "${durability}" needs a store that processes share: one that only the threads of ` +
        `a process share ends with it`,
    );
  }
  const { lagMs = DEFAULT_LAG_MS, checkpointMs = DEFAULT_CHECKPOINT_MS } = options;
  const { checkpointBytes = DEFAULT_CHECKPOINT_BYTES, keepLogMs = 0 } = options;
  if (!Number.isInteger(lagMs) || lagMs < 1 || lagMs > MAX_LAG_MS) {
    refuse(`lagMs is a whole number of milliseconds from 1 to ${MAX_LAG_MS}, not ${show(lagMs)}`);
  }
  if (!isDuration(checkpointMs)) refuse(notADuration("checkpointMs", checkpointMs));
  if (keepLogMs !== 0 && !(typeof keepLogMs === "number" && keepLogMs > 0)) {
    refuse(`keepLogMs is a number of milliseconds, 0 or more, not ${show(keepLogMs)}`);
  }
  if (!Number.isSafeInteger(checkpointBytes) || checkpointBytes < MIN_CHECKPOINT_BYTES) {
    const least = MIN_CHECKPOINT_BYTES;
    refuse(`checkpointBytes is a whole number from ${least} on, not ${show(checkpointBytes)}`);
  }
  if (onRecovery !== undefined && typeof onRecovery !== "function") {
    refuse("onRecovery is a function that is told how far recovery is");
  }
  return { durability, lagMs, checkpointMs, checkpointBytes, keepLogMs, onRecovery };
}

export function notADuration(name: string, value: unknown): string {
  return `${name} is a number of milliseconds, above 0 and up to ${MAX_TIMEOUT_MS}, not ${show(value)}`;
}

export function isDuration(ms: unknown): ms is number {
  return typeof ms === "number" && ms > 0 && ms <= MAX_TIMEOUT_MS;
}

function memoryBytesOf(bytes: number): number {
  const most = MAX_REGIONS * REGION_BYTES;
  if (!Number.isSafeInteger(bytes) || bytes < MIN_MEMORY_BYTES || bytes > most) {
    refuse(`memoryBytes is a whole number from ${MIN_MEMORY_BYTES} to ${most}, not ${show(bytes)}`);
  }
  const grain = UNIT_BYTES * MAX_BLOCK_UNITS;
  return Math.ceil(bytes / grain) * grain;
}

function versionBytesOf(bytes: number | undefined, memoryBytes: number): number {
  const most = MAX_OVERFLOW_CHUNKS * OVERFLOW_CHUNK_BYTES;
  if (bytes === undefined) return Math.min(memoryBytes / 4, most);
  if (Number.isSafeInteger(bytes) && bytes >= 1 && bytes <= most) return bytes;
  return refuse(`versionBytes is a whole number from 1 to ${most}, not ${show(bytes)}`);
}

function sharingOf(wanted: OpenOptions["sharing"]): "processes" | "threads" {
  if (wanted === "threads") return wanted;
  if (wanted !== undefined && wanted !== "processes") {
    refuse(`sharing is "processes" or "threads", not ${show(wanted)}`);
  }
  const why = whyNoProcesses();
  if (why === undefined) return "processes";
  if (wanted === "processes") throw new SituError("SITU_UNSUPPORTED", why);
  process.emitWarning(
    `${why}; the store is shared by the threads of this process only, and ends with it`,
    { code: "SITU_THREADS_ONLY" },
  );
  return "threads";
}

function defaultMemoryDir(): string {
  try {
    return existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  } catch {
    // Node's permission model forbids the question: whoever uses the folder is told so.
    return "/dev/shm";
  }
}
