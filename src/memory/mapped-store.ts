/** Joining the memory of a store that others, or earlier ones, have made: the files of one folder. */

import { SituError } from "../runtime/errors.ts";
import {
  CONTROL_PREFIX_BYTES,
  controlBytes,
  isComplete,
  isOfBoot,
  layoutOf,
  MEMORY_LOST,
  readGeometry,
} from "./control.ts";
import type { MappedSegments } from "./mapped-segments.ts";
import { CONTROL_NAME, regionName, StoreMemory } from "./store-memory.ts";

/**
 * Joins memory that is complete and of this run of the machine. Undefined if there is none: its
 * creator died over it, or it is what a reboot left on a disk.
 *
 * Memory that cannot be used is refused: with SITU_PERMISSION what another user made or may write to,
 * with SITU_MEMORY_LOST what has another id than the one given, or lacks files that it had.
 */
export function joinMemory(
  segments: MappedSegments,
  boot: Int32Array,
  memoryId?: string,
): StoreMemory | undefined {
  const memory = join(segments, boot, true);
  if (memory === undefined) return undefined;
  try {
    refuseIfLost(memory, segments, memoryId);
    segments.watch(CONTROL_NAME);
    checkRegions(memory, segments);
    return memory;
  } catch (error) {
    memory.close();
    throw error;
  }
}

/** The same for one who helps to make it. */
export function joinUnpublished(segments: MappedSegments, boot: Int32Array): StoreMemory {
  const memory = join(segments, boot, false);
  if (memory === undefined) throw new SituError("SITU_CORRUPT", `${segments.place} is gone`);
  return memory;
}

function join(
  segments: MappedSegments,
  boot: Int32Array,
  mustBeComplete: boolean,
): StoreMemory | undefined {
  if (!segments.checkFolder() || !segments.has(CONTROL_NAME)) return undefined;
  const bytes = segments.bytesOf(CONTROL_NAME);
  // Its creator died before it had a length; nothing else was made before it.
  if (bytes === 0 && !segments.has(regionName(0))) return undefined;
  if (bytes < CONTROL_PREFIX_BYTES) {
    throw new SituError("SITU_CORRUPT", `${segments.place}/control has only ${bytes} bytes`);
  }
  const control = segments.attach(CONTROL_NAME, bytes);
  const prefix = new Int32Array(control.buffer, 0, CONTROL_PREFIX_BYTES / 4);
  try {
    if (mustBeComplete && !isComplete(prefix)) {
      control.release();
      return undefined;
    }
    // First, whatever layout it has: what a reboot left is no memory.
    if (layoutOf(prefix) !== undefined && !isOfBoot(prefix, boot)) {
      control.release();
      return undefined;
    }
    const geometry = readGeometry(prefix, segments.place);
    if (controlBytes(geometry) !== bytes) {
      throw new SituError(
        "SITU_CORRUPT",
        `${segments.place}/control has ${bytes} bytes and should have ${controlBytes(geometry)}`,
      );
    }
    return new StoreMemory(segments, control, geometry);
  } catch (error) {
    control.release();
    throw error;
  }
}

function refuseIfLost(
  memory: StoreMemory,
  segments: MappedSegments,
  memoryId: string | undefined,
): void {
  const { control } = memory;
  const { place } = segments;
  if (memoryId !== undefined && control.memoryId !== memoryId) {
    throw new SituError("SITU_MEMORY_LOST", `${place} has the memory of another store`);
  }
  // In this order: others create files meanwhile, which must not count as missing.
  const existing = memory.existing();
  const names = new Set(segments.list());
  const missing = existing.filter((name) => !names.has(name));
  if (missing.length > 0) {
    throw new SituError("SITU_MEMORY_LOST", `${place} lacks ${missing[0]}: the file was removed`);
  }
  if (Atomics.load(control.i32, MEMORY_LOST) === 0) return;
  throw new SituError("SITU_MEMORY_LOST", `files were removed from ${place} while it was in use`);
}

/** A truncated region is found here, and not as a bus error in the middle of a transaction. */
function checkRegions(memory: StoreMemory, segments: MappedSegments): void {
  const { regions, regionBytes } = memory.control.geometry;
  for (let id = 0; id < regions && memory.isReady(id); id++) {
    const name = regionName(id);
    const bytes = segments.bytesOf(name);
    if (bytes === regionBytes) continue;
    throw new SituError(
      "SITU_CORRUPT",
      `${segments.place}/${name} has ${bytes} bytes and should have ${regionBytes}: ` +
        `it was truncated while the store was not open`,
    );
  }
}
