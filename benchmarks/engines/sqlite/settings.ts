// How SQLite is opened, by durability. Pages: sqlite.org/wal.html, sqlite.org/pragma.html,
// better-sqlite3's docs/performance.md ("it's generally important to set the WAL pragma").
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Table } from "situ";
import { diskFolder } from "../../durable/disk.ts";
import { temporaryFolder } from "../../harness/resources.ts";
import type { StartOptions } from "../engine.ts";
import { declaredBytes } from "../tables.ts";

const MEMORY_FOLDER = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
export const IN_MEMORY = ":memory:";

/** No other process can open a database in memory. The first worker loads and runs. */
export function isPrivate({ durability, processes }: StartOptions): boolean {
  return durability === "none" && processes === 1;
}

export function pathFor(options: StartOptions): { path: string; remove(): void } {
  if (isPrivate(options)) return { path: IN_MEMORY, remove: () => undefined };
  const folder = temporaryFolder(options.durability === "none" ? MEMORY_FOLDER : diskFolder());
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  return { path: join(folder, "bench.sqlite"), remove };
}

/** In "FULL" the log is synced at each commit; in "NORMAL" at checkpoints (pragma.html#synchronous). */
const synchronous = { none: "OFF", lazy: "NORMAL", sync: "FULL" } as const;

/** All rows, their indexes and room for more: nothing has to be read from the file again. */
const CACHE_BYTES_PER_BYTE = 4;
const LEAST_CACHE_BYTES = 64 * 2 ** 20;

export function pragmasFor(options: StartOptions): readonly string[] {
  // A journal in memory rather than none: without one a transaction could not be rolled back.
  if (isPrivate(options)) {
    return ["journal_mode = MEMORY", "synchronous = OFF", "temp_store = MEMORY", exclusive];
  }
  const bytes = Math.max(LEAST_CACHE_BYTES, options.bytes * CACHE_BYTES_PER_BYTE);
  return [
    // Before the first access: then the index of the log needs no shared memory (wal.html §8).
    ...(options.processes === 1 ? [exclusive] : []),
    "journal_mode = WAL",
    `synchronous = ${synchronous[options.durability]}`,
    "temp_store = MEMORY",
    `cache_size = ${-Math.ceil(bytes / 1024)}`,
    // Pages that another process has made stale in the cache are read without a system call.
    `mmap_size = ${bytes}`,
  ];
}

const PAGE_BYTES = 4_096;
const LARGE_PAGE_BYTES = 16_384;

/**
 * The default; but a table that is scanned lies in the tree of its key, where a row of more than a
 * quarter of a page spills into others (fileformat2.html §1.6). Measured, scans of YCSB-E take 0.6
 * times as long with these pages, point reads as long; changes half as long again, as each writes
 * whole pages. So they are for large rows only.
 */
export function pageBytes(tables: readonly Table[]): number {
  const isSpilled = (table: Table): boolean =>
    table.ordered && declaredBytes(table) >= PAGE_BYTES / 4;
  return tables.some(isSpilled) ? LARGE_PAGE_BYTES : PAGE_BYTES;
}

const exclusive = "locking_mode = EXCLUSIVE";

export function describeSettings(options: StartOptions): string {
  const place = isPrivate(options)
    ? ":memory:"
    : options.durability === "none"
      ? "file in /dev/shm"
      : "file on disk";
  const pragmas = pragmasFor(options)
    .filter((each) => !/cache_size|mmap_size|temp_store/.test(each))
    .join(", ");
  const waiting = options.processes === 1 ? "" : "; busy timeout 5 s";
  return `${place}; ${pragmas}; cache for all rows; one after the other; BEGIN IMMEDIATE${waiting}`;
}
