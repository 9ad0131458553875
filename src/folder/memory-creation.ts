/**
 * Making the memory of a store, by one who has the store's folder to itself (folder-lock.ts):
 *
 *   1. What is left of earlier memory is removed.
 *   2. store.json names the new memory, by an id that is made for it.
 *   3. The memory's folder is made, which must not be there yet; in it the control segment.
 *   4. The memory is filled: with an empty catalogue, or from the log.
 *   5. It is published. Only from here on can anyone join it.
 *
 * Whoever dies in between leaves a store.json that names memory that is not there or not published,
 * with nobody in it: the next one begins again at 1.
 */

import { existsSync, statfsSync } from "node:fs";
import { bootId } from "../memory/boot.ts";
import { controlBytes, type Geometry } from "../memory/control.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import type { Segments } from "../memory/segments.ts";
import { CONTROL_NAME, StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";
import {
  MAX_BLOCK_UNITS,
  OVERFLOW_CHUNK_BYTES,
  REGION_BYTES,
  UNIT_BYTES,
  VERSION_RING_BYTES,
} from "../runtime/limits.ts";
import { uniqueId } from "../runtime/random.ts";
import { refuseUnlessLockable } from "./folder-lock.ts";
import {
  explained,
  type Identity,
  memoryFolder,
  removeMemory,
  writeIdentity,
} from "./store-files.ts";

/** Memory that is not published yet, and what store.json now says of it. */
export interface NewMemory {
  readonly memory: StoreMemory;
  readonly identity: Identity;
}

/** Steps 1 to 3. */
export function createMemory(path: string, given: Identity, geometry: Geometry): NewMemory {
  removeMemory(given);
  const memoryId = uniqueId();
  const identity = writeIdentity(path, { ...given, memoryId });
  const folder = memoryFolder(identity);
  const memory = explained(folder, () => {
    const segments = MappedSegments.make(folder);
    refuseUnlessLockable(folder);
    const created = createControl(segments, geometry, memoryId);
    segments.watch(CONTROL_NAME);
    return created;
  });
  return { memory, identity };
}

export function createControl(
  segments: Segments,
  geometry: Geometry,
  memoryId?: string,
): StoreMemory {
  const control = segments.create(CONTROL_NAME, controlBytes(geometry));
  const memory = new StoreMemory(segments, control, geometry);
  memory.control.format(bootId(), memoryId);
  return memory;
}

export function refuseIfNoRoom(memoryDir: string, memoryBytes: number): void {
  if (!existsSync(memoryDir)) {
    throw new SituError("SITU_CONFIG", `memoryDir ${memoryDir} does not exist`);
  }
  const { bavail, bsize } = statfsSync(memoryDir);
  if (bavail * bsize >= memoryBytes) return;
  throw new SituError(
    "SITU_NO_MEMORY",
    `memoryBytes is ${memoryBytes} and ${memoryDir} has ${bavail * bsize} bytes free: ` +
      `make it larger (mount -o remount,size=…), or choose another memoryDir or fewer memoryBytes`,
  );
}

export function geometryOf(
  settings: { readonly memoryBytes: number; readonly versionBytes: number },
  slots: number,
  journalBytes: number,
): Geometry {
  const { memoryBytes, versionBytes } = settings;
  const regions = Math.ceil(memoryBytes / REGION_BYTES);
  // Equal regions that together have what was asked for, rounded down to whole blocks.
  const grain = UNIT_BYTES * MAX_BLOCK_UNITS;
  const regionBytes = Math.floor(memoryBytes / regions / grain) * grain;
  return {
    slots,
    journalBytes,
    regionBytes,
    regions,
    ringBytes: VERSION_RING_BYTES,
    chunkBytes: OVERFLOW_CHUNK_BYTES,
    chunks: Math.ceil(versionBytes / OVERFLOW_CHUNK_BYTES),
  };
}
