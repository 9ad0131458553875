/** What `open` takes, checked, with everything that was left out filled in. */

import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { whyNoProcesses } from "../memory/libc.ts";
import { SituError } from "../runtime/errors.ts";
import {
  DEFAULT_TIMEOUT_MS,
  MAX_BLOCK_UNITS,
  MAX_REGIONS,
  MAX_TIMEOUT_MS,
  MIN_MEMORY_BYTES,
  REGION_BYTES,
  UNIT_BYTES,
} from "../runtime/limits.ts";
import type { Table } from "./table.ts";

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
  /** How long transactions retry and wait for others, unless they say otherwise. */
  readonly timeoutMs?: number;
}

export interface Settings {
  readonly path: string;
  readonly tables: readonly Table[];
  readonly memoryBytes: number;
  readonly memoryDir: string;
  /** Whether the caller named the folder, and not the environment or the default. */
  readonly memoryDirGiven: boolean;
  readonly sharing: "processes" | "threads";
  readonly timeoutMs: number;
}

const KNOWN = ["path", "tables", "memoryBytes", "memoryDir", "sharing", "timeoutMs"];
const DEFAULT_MEMORY_BYTES = 256 * 2 ** 20;

function refuse(why: string): never {
  throw new SituError("SITU_CONFIG", `open: ${why}`);
}

export function settingsOf(options: OpenOptions): Settings {
  if (typeof options !== "object" || options === null) refuse('pass { path: "./folder" }');
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) refuse(`unknown option ${name}; there are ${KNOWN.join(", ")}`);
  }
  if (typeof options.path !== "string" || options.path === "") {
    throw new SituError("SITU_CONFIG", "path is the name of a folder");
  }
  const tables = options.tables ?? [];
  if (!Array.isArray(tables) || tables.some((table) => typeof table?.ordinal !== "number")) {
    refuse("tables is a list of what table() returns");
  }
  const names = tables.map((table) => table.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) refuse(`two tables are called ${twice}`);
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS)) refuse(`timeoutMs cannot be ${timeoutMs}`);
  return {
    path: resolve(options.path),
    tables,
    memoryBytes: memoryBytesOf(options.memoryBytes ?? DEFAULT_MEMORY_BYTES),
    memoryDir: resolve(options.memoryDir ?? process.env.SITU_MEMORY_DIR ?? defaultMemoryDir()),
    memoryDirGiven: options.memoryDir !== undefined,
    sharing: sharingOf(options.sharing),
    timeoutMs,
  };
}

function memoryBytesOf(bytes: number): number {
  const most = MAX_REGIONS * REGION_BYTES;
  if (!Number.isSafeInteger(bytes) || bytes < MIN_MEMORY_BYTES || bytes > most) {
    refuse(`memoryBytes is a whole number from ${MIN_MEMORY_BYTES} to ${most}, not ${bytes}`);
  }
  const grain = UNIT_BYTES * MAX_BLOCK_UNITS;
  return Math.ceil(bytes / grain) * grain;
}

function sharingOf(wanted: OpenOptions["sharing"]): "processes" | "threads" {
  if (wanted === "threads") return wanted;
  if (wanted !== undefined && wanted !== "processes") {
    refuse(`sharing is "processes" or "threads", not ${JSON.stringify(wanted)}`);
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
  return existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
}
