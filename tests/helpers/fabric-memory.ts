/**
 * The memory of a node for tests of verbs: one region, of shared buffers, with nothing in it. Tests
 * put words and objects where they like.
 */

import { controlBytes, type Geometry } from "../../src/memory/control.ts";
import {
  CONTROL_NAME,
  regionName,
  StoreMemory,
  segmentSizes,
} from "../../src/memory/store-memory.ts";
import { ThreadSegments } from "../../src/memory/thread-segments.ts";
import { SMALL } from "./engine-store.ts";

export interface TestMemory {
  readonly memory: StoreMemory;
  /** Region 0, for a thread that writes to it; none is started without. */
  readonly region?: SharedArrayBuffer;
  close(): void;
}

const GEOMETRY: Geometry = { ...SMALL, slots: 1, regions: 2, chunks: 1 };

export function makeTestMemory(): TestMemory {
  const buffers = new Map<string, SharedArrayBuffer>();
  for (const [name, bytes] of segmentSizes(GEOMETRY)) {
    buffers.set(name, new SharedArrayBuffer(bytes));
  }
  const segments = new ThreadSegments(buffers);
  const control = segments.attach(CONTROL_NAME, controlBytes(GEOMETRY));
  const memory = new StoreMemory(segments, control, GEOMETRY);
  memory.control.format();
  memory.createRegion(0, 0);
  const region = buffers.get(regionName(0));
  if (region === undefined) throw new Error("the geometry has no region 0");
  return { memory, region, close: () => memory.close() };
}
