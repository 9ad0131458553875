/** Making the memory of a store: its geometry from what was asked for, and its control segment. */

import { existsSync, mkdirSync, rmSync, statfsSync } from "node:fs";
import { bootId } from "../memory/boot.ts";
import { controlBytes, type Geometry } from "../memory/control.ts";
import type { MappedSegments } from "../memory/mapped-segments.ts";
import { CONTROL_NAME, StoreMemory } from "../memory/region.ts";
import type { Segments } from "../memory/segments.ts";
import { SituError } from "../runtime/errors.ts";
import {
  MAX_BLOCK_UNITS,
  OVERFLOW_CHUNK_BYTES,
  REGION_BYTES,
  UNIT_BYTES,
  VERSION_RING_BYTES,
} from "../runtime/limits.ts";
import type { Settings } from "./options.ts";

/** Memory that is not published yet, in the place of what a dead creator or a reboot left. */
export function createMemory(segments: MappedSegments, geometry: Geometry): StoreMemory {
  rmSync(segments.place, { recursive: true, force: true });
  mkdirSync(segments.place, { recursive: true, mode: 0o700 });
  return createControl(segments, geometry);
}

export function createControl(segments: Segments, geometry: Geometry): StoreMemory {
  const control = segments.create(CONTROL_NAME, controlBytes(geometry));
  const memory = new StoreMemory(segments, control, geometry);
  memory.control.format(bootId());
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

export function geometryOf(settings: Settings, slots: number, journalBytes: number): Geometry {
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
