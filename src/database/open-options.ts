/** The options of `open` for a local store, checked, with defaults filled in. */

import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import type { DurabilityMode, StoreSettings } from "../attach/settings.ts";
import type { MemoryBytes } from "../folder/memory-size.ts";
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
import { refuseBundled } from "../runtime/thread-script.ts";
import type { MigrationProgress } from "../tables/migrations/context.ts";
import type { MigrationStep } from "../tables/migrations/steps.ts";
import type { Table } from "../tables/table.ts";
import { checkSteps } from "./migrate-options.ts";

/** What `open` takes for a store on this machine; docs/OPTIONS.md lists the defaults. */
export interface OpenOptions<Tables extends readonly Table[] = readonly Table[]> {
  /** The folder of the store. All processes that open the same folder share one store. */
  readonly path: string;
  /** The tables that this process uses. A table that the store does not have yet is created. */
  readonly tables?: Tables;
  /**
   * The most memory that rows and indexes may use; memory is taken when it is needed. If the store exists
   * and is smaller, it grows to this size; if it is larger, it stays as it is. "auto" grows when memory runs
   * short, up to half of the machine's or container's memory. Default for a new store: 256 MiB, or less where
   * there is little shared memory, with a warning. See also `db.resize`.
   */
  readonly memoryBytes?: number | "auto";
  /**
   * The folder for the files that processes map into memory; it should be on a file system in memory.
   * Takes effect when the store is created, or rebuilt from its log. Default: SITU_MEMORY_DIR, or /dev/shm.
   */
  readonly memoryDir?: string;
  /**
   * A folder on another disk, for a second copy of the pages of device tables: what is damaged or lost is read from there.
   * Takes effect before the first rows are on the device, and stays; a store has a folder of its own.
   */
  readonly mediaLog?: string;
  /**
   * Who can open the store: all processes of the machine, or only the threads of this process,
   * which needs no native code. Default: "processes" where the system supports it.
   */
  readonly sharing?: "processes" | "threads";
  /**
   * The most memory for old versions of rows that only snapshots still need, in addition to 4 MiB for
   * each thread that writes. When it is full, the oldest snapshots are released. Takes effect only
   * when the store is created. Default: a quarter of the `memoryBytes` that it is created with.
   */
  readonly versionBytes?: number;
  /** How long a snapshot may stay open before it is released. Default: one minute. */
  readonly maxSnapshotMs?: number;
  /**
   * When a commit is on disk. "sync": before it returns. "lazy": at most `lagMs` later. "none": never;
   * the store is gone when the machine stops. A store that was created with "none" has no log; it
   * gets one when a process opens it with "sync" or "lazy" while no other has it open.
   * Default: "lazy", or "none" for a store that was created with "none".
   */
  readonly durability?: DurabilityMode;
  /**
   * How far the log may lag behind in "lazy" mode, in milliseconds. The smallest value of all processes
   * that have the store open applies.
   */
  readonly lagMs?: number;
  /** A checkpoint is written after this time, if anything was committed. Default: five minutes. */
  readonly checkpointMs?: number;
  /** A checkpoint is written after so many bytes of log. Default: 256 MiB. */
  readonly checkpointBytes?: number;
  /**
   * How long log and checkpoints are kept, so that the store can be restored to a point in that time.
   * Default: 0, which keeps only what recovery needs.
   */
  readonly keepLogMs?: number;
  /**
   * Bytes of log that are kept beyond what recovery needs, so that a `watch` can fall behind, or be away, by
   * as much. Default: 0.
   */
  readonly keepLogBytes?: number;
  /** Called with the progress of recovery from disk. Default: prints it if stderr is a terminal. */
  readonly onRecovery?: (progress: RecoveryProgress) => void;
  /**
   * How long transactions retry, and wait for others and for the disk, unless they have a `timeoutMs`
   * of their own. Default: 5 s, but calls that block the event loop (`transactSync`, `get`, `scan`,
   * `count`, `snapshot`) wait for other processes for only 500 ms.
   */
  readonly timeoutMs?: number;
  /**
   * Changes the store's tables to the declared ones before they are opened, where that loses nothing;
   * a list says what else to do, such as `renameField`. Of several processes one does the work, and
   * the others wait. Default: false; tables that differ are refused.
   */
  readonly migrate?: boolean | readonly MigrationStep[];
  /** Called with the progress of a migration, by this process or another one. */
  readonly onMigration?: (progress: MigrationProgress) => void;
}

/** Checked options: of the store, and of this process. */
export interface Settings extends StoreSettings {
  readonly tables: readonly Table[];
  readonly timeoutMs: number;
  /** The same for calls that block the event loop. */
  readonly syncTimeoutMs: number;
  readonly maxSnapshotMs: number;
  /** The folder of the media log, if the caller has named one. */
  readonly mediaLog?: string | undefined;
  /** The steps of a migration, if there is to be one. */
  readonly migrate?: readonly MigrationStep[] | undefined;
  readonly onMigration?: ((progress: MigrationProgress) => void) | undefined;
}

const KNOWN = [
  "path",
  "tables",
  "memoryBytes",
  "memoryDir",
  "mediaLog",
  "sharing",
  "timeoutMs",
  "versionBytes",
  "maxSnapshotMs",
  "durability",
  "lagMs",
  "checkpointMs",
  "checkpointBytes",
  "keepLogMs",
  "keepLogBytes",
  "onRecovery",
  "migrate",
  "onMigration",
];
const MODES: readonly unknown[] = ["sync", "lazy", "none", undefined];

function refuse(why: string): never {
  throw new SituError("SITU_CONFIG", `open: ${why}`);
}

export function settingsOf(options: OpenOptions): Settings {
  if (typeof options !== "object" || options === null) refuse('pass { path: "./folder" }');
  refuseUnknownOptions("open", options, KNOWN);
  refuseBundled();
  if (typeof SharedArrayBuffer === "undefined") {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "this process has no SharedArrayBuffer, which Situ needs: start Node without the flag that " +
        "disables it",
    );
  }
  const path = folderOf("path", options.path);
  const tables = options.tables ?? [];
  if (!Array.isArray(tables) || tables.some((table) => typeof table?.ordinal !== "number")) {
    refuse("tables must be a list of what table() returns");
  }
  const names = tables.map((table) => table.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) refuse(`two tables are named ${twice}`);
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (!isDuration(timeoutMs)) refuse(notADuration("timeoutMs", timeoutMs));
  const { maxSnapshotMs = DEFAULT_MAX_SNAPSHOT_MS } = options;
  if (!isDuration(maxSnapshotMs)) refuse(notADuration("maxSnapshotMs", maxSnapshotMs));
  const { memoryBytes } = options;
  const sharing = sharingOf(options.sharing);
  return {
    path,
    ...durabilityOf(options, sharing),
    tables,
    memoryBytes: memoryBytes === undefined ? undefined : memoryBytesOf("open", memoryBytes),
    versionBytes: versionBytesOf(options.versionBytes),
    maxSnapshotMs,
    memoryDir: folderOf(
      "memoryDir",
      options.memoryDir ?? process.env.SITU_MEMORY_DIR ?? defaultMemoryDir(),
    ),
    mediaLog: options.mediaLog === undefined ? undefined : folderOf("mediaLog", options.mediaLog),
    memoryDirGiven: options.memoryDir !== undefined,
    sharing,
    timeoutMs,
    syncTimeoutMs: options.timeoutMs ?? DEFAULT_SYNC_TIMEOUT_MS,
    ...migrationOf(options),
  };
}

function migrationOf({ migrate = false, onMigration }: OpenOptions) {
  if (onMigration !== undefined && typeof onMigration !== "function") {
    refuse("onMigration must be a function; it is called with the progress of a migration");
  }
  if (migrate === false) return {};
  if (migrate !== true) checkSteps("open, migrate", migrate);
  return { migrate: migrate === true ? [] : migrate, onMigration };
}

/** The path of a folder that a caller gives, as an absolute path. */
export function folderOf(name: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw new SituError(
      "SITU_CONFIG",
      `${name} must be the path of a folder, as a string, not ${show(value)}`,
    );
  }
  if (value.includes("\0")) {
    throw new SituError(
      "SITU_CONFIG",
      `${name} contains a NUL character, which file names cannot have`,
    );
  }
  try {
    return resolve(value);
  } catch (cause) {
    throw new SituError(
      "SITU_CONFIG",
      `${name} ${show(value)} is relative, and the working directory of this process was removed: use an absolute path`,
      { cause },
    );
  }
}

function durabilityOf(options: OpenOptions, sharing: Settings["sharing"]) {
  const { durability, onRecovery } = options;
  if (!MODES.includes(durability)) {
    refuse(`durability must be "sync", "lazy" or "none", not ${show(durability)}`);
  }
  if (sharing === "threads" && durability !== undefined && durability !== "none") {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `durability "${durability}" needs a store that processes share: one that only the threads of ` +
        `this process share ends with it`,
    );
  }
  const { lagMs = DEFAULT_LAG_MS, checkpointMs = DEFAULT_CHECKPOINT_MS } = options;
  const { checkpointBytes = DEFAULT_CHECKPOINT_BYTES, keepLogMs = 0 } = options;
  if (!Number.isInteger(lagMs) || lagMs < 1 || lagMs > MAX_LAG_MS) {
    refuse(
      `lagMs must be a whole number of milliseconds from 1 to ${MAX_LAG_MS}, not ${show(lagMs)}`,
    );
  }
  if (!isDuration(checkpointMs)) refuse(notADuration("checkpointMs", checkpointMs));
  if (keepLogMs !== 0 && !(typeof keepLogMs === "number" && keepLogMs > 0)) {
    refuse(`keepLogMs must be a number of milliseconds, 0 or more, not ${show(keepLogMs)}`);
  }
  const { keepLogBytes = 0 } = options;
  if (!Number.isSafeInteger(keepLogBytes) || keepLogBytes < 0) {
    refuse(`keepLogBytes must be a whole number, 0 or more, not ${show(keepLogBytes)}`);
  }
  if (!Number.isSafeInteger(checkpointBytes) || checkpointBytes < MIN_CHECKPOINT_BYTES) {
    const least = MIN_CHECKPOINT_BYTES;
    refuse(
      `checkpointBytes must be a whole number, at least ${least}, not ${show(checkpointBytes)}`,
    );
  }
  if (onRecovery !== undefined && typeof onRecovery !== "function") {
    refuse("onRecovery must be a function; it is called with the progress of recovery");
  }
  return { durability, lagMs, checkpointMs, checkpointBytes, keepLogMs, keepLogBytes, onRecovery };
}

export function notADuration(name: string, value: unknown): string {
  return `${name} must be a number of milliseconds, above 0 and up to ${MAX_TIMEOUT_MS}, not ${show(value)}`;
}

export function isDuration(ms: unknown): ms is number {
  return typeof ms === "number" && ms > 0 && ms <= MAX_TIMEOUT_MS;
}

/** The size of a store, for `open` and `resize`. */
export function memoryBytesOf(call: string, bytes: unknown): MemoryBytes {
  if (bytes === "auto") return bytes;
  const most = MAX_REGIONS * REGION_BYTES;
  if (!Number.isSafeInteger(bytes) || Number(bytes) < MIN_MEMORY_BYTES || Number(bytes) > most) {
    throw new SituError(
      "SITU_CONFIG",
      `${call}: memoryBytes must be a whole number from ${MIN_MEMORY_BYTES} to ${most} or "auto", ` +
        `not ${show(bytes)}`,
    );
  }
  const grain = UNIT_BYTES * MAX_BLOCK_UNITS;
  return Math.ceil(Number(bytes) / grain) * grain;
}

function versionBytesOf(bytes: number | undefined): number | undefined {
  const most = MAX_OVERFLOW_CHUNKS * OVERFLOW_CHUNK_BYTES;
  if (bytes === undefined) return undefined;
  if (Number.isSafeInteger(bytes) && bytes >= 1 && bytes <= most) return bytes;
  return refuse(`versionBytes must be a whole number from 1 to ${most}, not ${show(bytes)}`);
}

function sharingOf(wanted: OpenOptions["sharing"]): "processes" | "threads" {
  if (wanted === "threads") return wanted;
  if (wanted !== undefined && wanted !== "processes") {
    refuse(`sharing must be "processes" or "threads", not ${show(wanted)}`);
  }
  const why = whyNoProcesses();
  if (why === undefined) return "processes";
  if (wanted === "processes") throw new SituError("SITU_UNSUPPORTED", why);
  process.emitWarning(
    `${why}; the store is shared only by the threads of this process, and ends with it`,
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
