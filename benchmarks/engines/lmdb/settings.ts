// How lmdb is opened, by durability. Page: github.com/kriszyp/lmdb-js, README.md, "DB Options",
// "LMDB Flags", "Overlapping Sync Options", "Shared Structures", "Caching".
import { rmSync } from "node:fs";
import { diskFolder } from "../../durable/disk.ts";
import { temporaryFolder } from "../../harness/resources.ts";
import type { Durability, StartOptions } from "../engine.ts";
import type { DatabaseOptions, EnvironmentOptions } from "./module.ts";

const MEMORY_FOLDER = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
/** Address space, not memory. Pages of a tree filled at random are two thirds full, and a change
 * copies its pages; small rows take several times their user data. */
const MAP_BYTES_PER_BYTE = 8;
const LEAST_MAP_BYTES = 2 ** 30;
/** Two for a table with an index, four tables at most; the default of 12 would do, too. */
const MAX_DATABASES = 12;

export function folderFor(durability: Durability): { path: string; remove(): void } {
  const path = temporaryFolder(durability === "none" ? MEMORY_FOLDER : diskFolder());
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function environmentOptions(
  path: string,
  { durability, bytes }: StartOptions,
): EnvironmentOptions {
  const common = {
    path,
    mapSize: LEAST_MAP_BYTES + Math.ceil(bytes / 2 ** 20) * 2 ** 20 * MAP_BYTES_PER_BYTE,
    maxDbs: MAX_DATABASES,
    // "If you do not need to worry about unauthorized access …, this is recommended."
    noMemInit: true,
  };
  // "Combined with noSync, normal reads/writes/transactions involve virtually zero explicit I/O
  // calls": measured, a change costs a third of what it does without the write map.
  if (durability === "none") return { ...common, noSync: true, useWritemap: true };
  // "lazy": one sync for a commit instead of two; "this optimization maintains database integrity,
  // but a system crash may undo the last committed transaction" (lmdb.h, MDB_NOMETASYNC). With
  // `overlappingSync` a promise is kept before the sync, but the next commit waits for it: measured
  // slower one by one, and as quick with 64 in flight. `noSync` could leave a broken file behind.
  return { ...common, overlappingSync: false, noMetaSync: durability === "lazy" };
}

/**
 * Shared structures are "highly recommended when storing structured objects with similar object
 * structures": measured, a read of ten fields takes 0.7 times as long as without, and as with JSON.
 * No `cache`: it is each process's own, so a read could miss what another process has committed;
 * with `validated` reads are right and up to a third quicker, but changes take half as long again.
 */
export function tableOptions(name: string): DatabaseOptions {
  return { name, encoding: "msgpack", sharedStructuresKey: Symbol.for("structures") };
}

/** From a value of a unique index to the key of its row. */
export function indexOptions(name: string): DatabaseOptions {
  return { name, encoding: "ordered-binary" };
}
