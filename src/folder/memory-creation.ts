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

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bootId } from "../memory/boot.ts";
import { controlBytes, type Geometry, LIMIT_RISES } from "../memory/control.ts";
import { freeBytesOf } from "../memory/free-bytes.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import type { Segments } from "../memory/segments.ts";
import { CONTROL_NAME, StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";
import { uniqueId } from "../runtime/random.ts";
import { refuseUnlessLockable } from "./folder-lock.ts";
import type { MemorySize } from "./memory-size.ts";
import { writeOwner } from "./owner-file.ts";
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
export function createMemory(path: string, given: Identity, size: MemorySize): NewMemory {
  const { geometry, regionLimit, rises } = size;
  removeMemory(given);
  // Without a log the tables on the device were lost with the memory that had led to their pages.
  if (given.logId === undefined) rmSync(join(path, "device"), { recursive: true, force: true });
  const memoryId = uniqueId();
  const memoryBytes = rises ? "auto" : regionLimit * geometry.regionBytes;
  const identity = writeIdentity(path, { ...given, memoryId, memoryBytes });
  const folder = memoryFolder(identity);
  const memory = explained(folder, () => {
    const segments = MappedSegments.make(folder);
    refuseUnlessLockable(folder);
    writeOwner(folder, path);
    const created = createControl(segments, geometry, memoryId, regionLimit);
    if (rises) Atomics.store(created.control.i32, LIMIT_RISES, 1);
    segments.watch(CONTROL_NAME);
    return created;
  });
  memory.path = path;
  return { memory, identity };
}

export function createControl(
  segments: Segments,
  geometry: Geometry,
  memoryId?: string,
  regionLimit = geometry.regions,
): StoreMemory {
  const reservedBytes = controlBytes(geometry, regionLimit);
  const control = segments.create(CONTROL_NAME, controlBytes(geometry), reservedBytes);
  const memory = new StoreMemory(segments, control, geometry);
  memory.control.format(bootId(), memoryId, regionLimit);
  return memory;
}

export function refuseIfNoRoom(memoryDir: string, memoryBytes: number): void {
  if (!existsSync(memoryDir)) {
    throw new SituError("SITU_CONFIG", `memoryDir ${memoryDir} does not exist`);
  }
  const freeBytes = freeBytesOf(memoryDir);
  if (freeBytes >= memoryBytes) return;
  throw new SituError(
    "SITU_NO_MEMORY",
    `no room for ${memoryBytes} bytes in ${memoryDir}, which has ${freeBytes} bytes free: ` +
      `make it larger (mount -o remount,size=…), or choose another memoryDir or fewer memoryBytes`,
  );
}
