/**
 * How large memory is made: its geometry, which stays, and the limit that it begins with, which `resize`
 * changes. The geometry has room for more regions than the limit allows.
 *
 * The size that was asked for is kept. Where none was asked for, and the file system of the memory is small
 * (Docker gives a container 64 MB), half of what is free is used, in small regions, with a warning.
 */

import { totalmem } from "node:os";
import { automaticMostBytes } from "../memory/automatic-limit.ts";
import type { Geometry } from "../memory/control.ts";
import { freeBytesOf } from "../memory/free-bytes.ts";
import {
  DEFAULT_MEMORY_BYTES,
  MAX_AUTO_THREAD_BYTES,
  MAX_BLOCK_UNITS,
  MAX_OVERFLOW_CHUNKS,
  MAX_REGIONS,
  MIN_MEMORY_BYTES,
  MIN_ROOM_TO_GROW_BYTES,
  OVERFLOW_CHUNK_BYTES,
  REGION_BYTES,
  ROOM_TO_GROW_BYTES,
  ROOM_TO_GROW_SHARE,
  SMALL_REGION_BYTES,
  SPARE_MEMORY_BYTES,
  UNIT_BYTES,
  VERSION_RING_BYTES,
} from "../runtime/limits.ts";
import { shownSize } from "../runtime/units.ts";

/** What `open` takes as memoryBytes. */
export type MemoryBytes = number | "auto";

export interface MemorySize {
  readonly geometry: Geometry;
  /** Regions that may exist at first. */
  readonly regionLimit: number;
  /** Whether the limit rises by itself. */
  readonly rises: boolean;
}

export interface SizeSettings {
  readonly path: string;
  readonly memoryBytes: MemoryBytes | undefined;
  readonly versionBytes: number | undefined;
}

const GRAIN_BYTES = UNIT_BYTES * MAX_BLOCK_UNITS;

/** The size of new memory in a folder. `kept` is what the store had before its memory was gone. */
export function sizeOfNew(
  settings: SizeSettings,
  memoryDir: string,
  kept: MemoryBytes | undefined,
  slots: number,
  journalBytes: number,
): MemorySize {
  const wanted = settings.memoryBytes ?? kept;
  const rises = wanted === "auto";
  // It begins with one region, and grows from there.
  const most = rises ? REGION_BYTES : (wanted ?? DEFAULT_MEMORY_BYTES);
  const bytes =
    typeof wanted === "number" ? wanted : fitting(settings.path, memoryDir, most, rises);
  const regionBytes = bytes < most ? SMALL_REGION_BYTES : REGION_BYTES;
  const geometry = geometryOf(
    { ...settings, memoryBytes: bytes },
    slots,
    journalBytes,
    regionBytes,
  );
  return { geometry: withRoom(geometry), regionLimit: geometry.regions, rises };
}

/** What fits where little memory is free; says so. */
function fitting(path: string, memoryDir: string, most: number, rises: boolean): number {
  const freeBytes = freeBytesOf(memoryDir);
  if (freeBytes >= most + SPARE_MEMORY_BYTES) return most;
  const half = Math.floor(freeBytes / 2 / SMALL_REGION_BYTES) * SMALL_REGION_BYTES;
  const bytes = Math.max(MIN_MEMORY_BYTES, Math.min(most, half));
  if (bytes === most || rises) return bytes;
  process.emitWarning(
    `${memoryDir} has ${shownSize(freeBytes)} free, so the store at ${path} is created with ` +
      `${shownSize(bytes)} for rows instead of ${shownSize(most)}. Give it more shared memory ` +
      `(docker run --shm-size=1g, or mount -o remount,size=1g ${memoryDir}), then run ` +
      `"situ resize --path ${path} --memory ${shownSize(most).replace(" ", "")}"; or set memoryBytes`,
    { code: "SITU_SMALL_MEMORY" },
  );
  return bytes;
}

/** The size of memory that only the threads of one process share: it cannot grow. */
export function sizeOfThreads(
  settings: SizeSettings,
  slots: number,
  journalBytes: number,
): MemorySize {
  const { memoryBytes = DEFAULT_MEMORY_BYTES } = settings;
  const most = Math.min(automaticMostBytes(), MAX_AUTO_THREAD_BYTES);
  const bytes = memoryBytes === "auto" ? wholeGrains(most) : memoryBytes;
  const geometry = geometryOf({ ...settings, memoryBytes: bytes }, slots, journalBytes);
  return { geometry, regionLimit: geometry.regions, rises: false };
}

function wholeGrains(bytes: number): number {
  return Math.max(MIN_MEMORY_BYTES, Math.floor(bytes / GRAIN_BYTES) * GRAIN_BYTES);
}

/**
 * The size of memory that is rebuilt: regions as they were, and the limit that the store had. `recorded` is
 * what the log and the checkpoints say of it, for a store.json that says nothing.
 */
export function sizeOfRebuilt(
  wanted: MemoryBytes | undefined,
  kept: MemoryBytes | undefined,
  geometry: Geometry,
  recordedBytes: number | undefined,
): MemorySize {
  const { regionBytes } = geometry;
  const recorded = recordedBytes ?? geometry.regions * regionBytes;
  const rises = (wanted ?? kept) === "auto";
  const had = typeof kept === "number" ? kept : rises ? regionBytes : recorded;
  const bytes = typeof wanted === "number" ? Math.max(wanted, had) : had;
  const room = withRoom(geometry);
  const regionLimit = Math.min(Math.max(1, Math.ceil(bytes / regionBytes)), room.regions);
  return { geometry: room, regionLimit, rises };
}

/** Equal regions that together have what was asked for, rounded down to whole blocks. */
export function geometryOf(
  settings: { readonly memoryBytes: number; readonly versionBytes: number | undefined },
  slots: number,
  journalBytes: number,
  mostRegionBytes = REGION_BYTES,
): Geometry {
  const { memoryBytes } = settings;
  const most = MAX_OVERFLOW_CHUNKS * OVERFLOW_CHUNK_BYTES;
  const versionBytes = settings.versionBytes ?? Math.min(memoryBytes / 4, most);
  const regions = Math.ceil(memoryBytes / mostRegionBytes);
  return {
    slots,
    journalBytes,
    regionBytes: Math.floor(memoryBytes / regions / GRAIN_BYTES) * GRAIN_BYTES,
    regions,
    ringBytes: VERSION_RING_BYTES,
    chunkBytes: OVERFLOW_CHUNK_BYTES,
    chunks: Math.ceil(versionBytes / OVERFLOW_CHUNK_BYTES),
  };
}

/** Not what a container may use: that can be raised while the store is in memory. */
function roomBytes(): number {
  const wanted = ROOM_TO_GROW_SHARE * totalmem();
  return Math.min(Math.max(wanted, MIN_ROOM_TO_GROW_BYTES), ROOM_TO_GROW_BYTES);
}

/** The same with room for more regions. */
function withRoom(geometry: Geometry): Geometry {
  const room = Math.ceil(roomBytes() / geometry.regionBytes);
  const regions = Math.min(MAX_REGIONS, Math.max(room, 2 * geometry.regions));
  return { ...geometry, regions: Math.max(regions, geometry.regions) };
}
