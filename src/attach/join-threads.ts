/** Joining, or making, a store that only the threads of one process share: its memory has no files. */

import { isMainThread } from "node:worker_threads";
import { DescriptorLeases } from "../engine/leases/descriptor.ts";
import { createControl } from "../folder/memory-creation.ts";
import { type MemorySize, sizeOfThreads } from "../folder/memory-size.ts";
import { readIdentity } from "../folder/store-files.ts";
import { type Geometry, readGeometry } from "../memory/control.ts";
import { CONTROL_NAME, StoreMemory, segmentSizes } from "../memory/store-memory.ts";
import {
  type SegmentBuffers,
  shareBuffers,
  sharedBuffers,
  ThreadSegments,
} from "../memory/thread-segments.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_THREAD_SLOTS, THREAD_JOURNAL_BYTES } from "../runtime/limits.ts";
import { inUse } from "./alone.ts";
import { type Attached, openExecutor } from "./attached.ts";
import { openersIn } from "./openers.ts";
import type { StoreSettings } from "./settings.ts";

const LEASES_NAME = "leases";

/** The main thread makes the store; workers that it starts later join. */
export function joinProcessThreads(settings: StoreSettings): Attached {
  let buffers = sharedBuffers(settings.path);
  const fresh = buffers === undefined;
  if (buffers === undefined) {
    if (readIdentity(settings.path) !== undefined) {
      throw new SituError(
        "SITU_CONFIG",
        `${settings.path} is a store that processes share: open it without sharing: "threads"`,
      );
    }
    if (!isMainThread) {
      throw new SituError(
        "SITU_UNSUPPORTED",
        `no thread shares ${settings.path}: where processes cannot share memory, open the store ` +
          `in the main thread before starting workers`,
      );
    }
    const { geometry } = sizeForThreads(settings);
    buffers = shareBuffers(settings.path, threadSizes(geometry));
  }
  const segments = new ThreadSegments(buffers);
  const memory = fresh
    ? createControl(segments, sizeForThreads(settings).geometry)
    : joinThreads(segments, buffers);
  const leases = new DescriptorLeases(buffers.get(LEASES_NAME)!);
  return { executor: openExecutor(memory, leases), fresh };
}

function sizeForThreads(settings: StoreSettings): MemorySize {
  return sizeOfThreads(settings, MAX_THREAD_SLOTS, THREAD_JOURNAL_BYTES);
}

function joinThreads(segments: ThreadSegments, buffers: SegmentBuffers): StoreMemory {
  const control = buffers.get(CONTROL_NAME)!;
  const geometry = readGeometry(new Int32Array(control), segments.place);
  return new StoreMemory(segments, { buffer: control, release: () => {} }, geometry);
}

function threadSizes(geometry: Geometry): Map<string, number> {
  return segmentSizes(geometry).set(LEASES_NAME, geometry.slots * 8);
}

/** Refuses if threads of this process share the store among themselves. */
export function refuseIfInThreads(path: string): void {
  const buffers = sharedBuffers(path);
  if (buffers === undefined) return;
  const leases = new DescriptorLeases(buffers.get(LEASES_NAME)!);
  const openers = openersIn(joinThreads(new ThreadSegments(buffers), buffers), leases);
  if (openers.length > 0) throw inUse(path, openers);
}
