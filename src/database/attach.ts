/**
 * From settings to an executor: creates the memory of a store, or joins what is there. Whether
 * there is memory to join is found out, under the lock of the store's folder.
 */

import { existsSync, mkdirSync, rmSync, statfsSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { Executor } from "../engine/executor.ts";
import { DescriptorLeases } from "../engine/leases/descriptor.ts";
import { FileLockLeases } from "../engine/leases/file-lock.ts";
import type { Leases } from "../engine/leases/leases.ts";
import { holderOf, isClaimed } from "../engine/slot.ts";
import {
  CONTROL_PREFIX_BYTES,
  controlBytes,
  type Geometry,
  isComplete,
  readGeometry,
} from "../memory/control.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import { CONTROL_NAME, regionName, StoreMemory, segmentSizes } from "../memory/region.ts";
import type { Segments } from "../memory/segments.ts";
import {
  type SegmentBuffers,
  shareBuffers,
  sharedBuffers,
  ThreadSegments,
} from "../memory/thread-segments.ts";
import { SituError } from "../runtime/errors.ts";
import {
  JOURNAL_BYTES,
  MAX_BLOCK_UNITS,
  MAX_SLOTS,
  MAX_THREAD_SLOTS,
  OVERFLOW_CHUNK_BYTES,
  REGION_BYTES,
  THREAD_JOURNAL_BYTES,
  UNIT_BYTES,
  VERSION_RING_BYTES,
} from "../runtime/limits.ts";
import type { Settings } from "./options.ts";
import {
  explained,
  type Identity,
  makeFolder,
  memoryFolder,
  readIdentity,
  withOpenLock,
  writeIdentity,
} from "./store-files.ts";

const LEASES_NAME = "leases";

/** An executor at work in a store, and whether the store is new. */
export interface Attached {
  readonly executor: Executor;
  /** The caller makes the catalogue, then publishes the store. */
  readonly fresh: boolean;
}

/** Runs `use` with an executor, before anyone else can join a store that is being created. */
export async function attach<T>(settings: Settings, use: (attached: Attached) => T): Promise<T> {
  if (settings.sharing === "threads") return guarded(joinProcessThreads(settings), use);
  makeFolder(settings.path);
  return withOpenLock(settings.path, () => guarded(joinProcesses(settings), use));
}

function guarded<T>(attached: Attached, use: (attached: Attached) => T): T {
  try {
    attached.executor.sweep();
    return use(attached);
  } catch (error) {
    attached.executor.close();
    throw error;
  }
}

function attached(memory: StoreMemory, leases: Leases, fresh: boolean): Attached {
  try {
    return { executor: explained("the slots", () => Executor.open(memory, leases)), fresh };
  } catch (error) {
    leases.close();
    memory.close();
    throw error;
  }
}

function joinProcesses(settings: Settings): Attached {
  if (sharedBuffers(settings.path) !== undefined) {
    throw new SituError(
      "SITU_CONFIG",
      `${settings.path} is open among the threads of this process only: open it with ` +
        `sharing: "threads"`,
    );
  }
  const known = readIdentity(settings.path);
  if (known === undefined) refuseIfNoRoom(settings.memoryDir, settings.memoryBytes);
  const identity = known ?? writeIdentity(settings.path, settings.memoryDir);
  if (settings.memoryDirGiven && identity.memoryDir !== settings.memoryDir) {
    throw new SituError(
      "SITU_CONFIG",
      `the store at ${settings.path} has its memory in ${identity.memoryDir}, not in ` +
        `${settings.memoryDir}: leave memoryDir out, or destroy the store`,
    );
  }
  const folder = memoryFolder(identity);
  const segments = new MappedSegments(folder);
  const found = explained(folder, () => findControl(segments));
  const memory = explained(folder, () => found ?? createMemory(segments, settings, identity));
  return attached(memory, new FileLockLeases(folder), found === undefined);
}

/** Joins memory that is complete; undefined if there is none, or its creator died over it. */
function findControl(segments: MappedSegments): StoreMemory | undefined {
  if (!segments.has(CONTROL_NAME)) return undefined;
  const bytes = segments.bytesOf(CONTROL_NAME);
  // Its creator died before it had a length; nothing else was made before it.
  if (bytes === 0 && !segments.has(regionName(0))) return undefined;
  if (bytes < CONTROL_PREFIX_BYTES) {
    throw new SituError("SITU_CORRUPT", `${segments.place}/control has only ${bytes} bytes`);
  }
  const control = segments.attach(CONTROL_NAME, bytes);
  const prefix = new Int32Array(control.buffer, 0, CONTROL_PREFIX_BYTES / 4);
  try {
    if (!isComplete(prefix)) {
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
    const memory = new StoreMemory(segments, control, geometry);
    checkRegions(memory, segments);
    return memory;
  } catch (error) {
    control.release();
    throw error;
  }
}

/** A truncated region is found here, and not as a bus error in the middle of a transaction. */
function checkRegions(memory: StoreMemory, segments: MappedSegments): void {
  const { regions, regionBytes } = memory.control.geometry;
  for (let id = 0; id < regions && memory.isReady(id); id++) {
    const name = regionName(id);
    const bytes = segments.has(name) ? segments.bytesOf(name) : 0;
    if (bytes === regionBytes) continue;
    throw new SituError(
      "SITU_CORRUPT",
      `${segments.place}/${name} has ${bytes} bytes and should have ${regionBytes}: ` +
        `it was truncated or removed while the store was not open`,
    );
  }
}

function createMemory(
  segments: MappedSegments,
  settings: Settings,
  identity: Identity,
): StoreMemory {
  refuseIfNoRoom(identity.memoryDir, settings.memoryBytes);
  rmSync(segments.place, { recursive: true, force: true });
  mkdirSync(segments.place, { recursive: true, mode: 0o700 });
  const geometry = geometryOf(settings, MAX_SLOTS, JOURNAL_BYTES);
  return createControl(segments, geometry);
}

function refuseIfNoRoom(memoryDir: string, memoryBytes: number): void {
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

function geometryOf(settings: Settings, slots: number, journalBytes: number): Geometry {
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

function createControl(segments: Segments, geometry: Geometry): StoreMemory {
  const control = segments.create(CONTROL_NAME, controlBytes(geometry));
  const memory = new StoreMemory(segments, control, geometry);
  memory.control.format();
  return memory;
}

function joinProcessThreads(settings: Settings): Attached {
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
    const geometry = geometryOf(settings, MAX_THREAD_SLOTS, THREAD_JOURNAL_BYTES);
    buffers = shareBuffers(settings.path, threadSizes(geometry));
  }
  const segments = new ThreadSegments(buffers);
  const memory = fresh
    ? createControl(segments, geometryOf(settings, MAX_THREAD_SLOTS, THREAD_JOURNAL_BYTES))
    : joinThreads(segments, buffers);
  const leases = new DescriptorLeases(buffers.get(LEASES_NAME)!);
  return attached(memory, leases, fresh);
}

function joinThreads(segments: ThreadSegments, buffers: SegmentBuffers): StoreMemory {
  const control = buffers.get(CONTROL_NAME)!;
  const geometry = readGeometry(new Int32Array(control), segments.place);
  return new StoreMemory(segments, { buffer: control, release: () => {} }, geometry);
}

function threadSizes(geometry: Geometry): Map<string, number> {
  return segmentSizes(geometry).set(LEASES_NAME, geometry.slots * 8);
}

/** Refuses if an executor of this machine, or a thread of this process, has the store open. */
export function refuseIfInUse(path: string, identity: Identity | undefined): void {
  const buffers = sharedBuffers(path);
  if (buffers !== undefined) {
    const leases = new DescriptorLeases(buffers.get(LEASES_NAME)!);
    refuseIfHeld(path, joinThreads(new ThreadSegments(buffers), buffers), leases);
  }
  if (identity === undefined) return;
  const folder = memoryFolder(identity);
  try {
    const memory = findControl(new MappedSegments(folder));
    if (memory !== undefined) refuseIfHeld(path, memory, new FileLockLeases(folder));
  } catch (error) {
    // A store that is damaged or of another layout can be destroyed all the same.
    const code = error instanceof SituError ? error.code : undefined;
    if (code !== "SITU_CORRUPT" && code !== "SITU_LAYOUT") throw error;
  }
}

/** Asks for the leases of all claimed slots; who cannot get one has found a living executor. */
function refuseIfHeld(path: string, memory: StoreMemory, leases: Leases): void {
  const pids = new Set<number>();
  for (let slot = 0; slot < memory.control.geometry.slots; slot++) {
    if (!isClaimed(memory.control, slot)) continue;
    if (leases.tryAcquire(slot)) leases.release(slot);
    else pids.add(holderOf(memory.control, slot).pid);
  }
  leases.close();
  memory.close();
  if (pids.size === 0) return;
  throw new SituError("SITU_IN_USE", `the store at ${path} is open in process ${[...pids].join()}`);
}
