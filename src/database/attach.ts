/**
 * From settings to an executor: creates the memory of a store, joins what is there, or rebuilds it
 * from disk. Which of the three is found out, under the lock of the store's folder.
 */

import { isMainThread } from "node:worker_threads";
import { Executor } from "../engine/executor.ts";
import { DescriptorLeases } from "../engine/leases/descriptor.ts";
import { FileLockLeases } from "../engine/leases/file-lock.ts";
import type { Leases } from "../engine/leases/leases.ts";
import { holderOf, isClaimed } from "../engine/slot.ts";
import { bootId } from "../memory/boot.ts";
import { type Geometry, readGeometry } from "../memory/control.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import { joinMemory } from "../memory/mapped-store.ts";
import { CONTROL_NAME, StoreMemory, segmentSizes } from "../memory/region.ts";
import {
  type SegmentBuffers,
  shareBuffers,
  sharedBuffers,
  ThreadSegments,
} from "../memory/thread-segments.ts";
import { SituError } from "../runtime/errors.ts";
import {
  JOURNAL_BYTES,
  MAX_SLOTS,
  MAX_THREAD_SLOTS,
  THREAD_JOURNAL_BYTES,
} from "../runtime/limits.ts";
import {
  isLogInDoubt,
  type Recovered,
  recoverMemory,
  refuseForeignLog,
  startLogAnew,
} from "./logged-store.ts";
import { createControl, createMemory, geometryOf, refuseIfNoRoom } from "./memory-creation.ts";
import type { Settings } from "./options.ts";
import {
  explained,
  type Identity,
  makeFolder,
  memoryFolder,
  newIdentity,
  readIdentity,
  refuseIfServed,
  withLog,
  withOpenLock,
  writeIdentity,
} from "./store-files.ts";

const LEASES_NAME = "leases";

/** An executor at work in a store. */
export interface Attached {
  readonly executor: Executor;
  /** The store is new: the caller makes the catalogue, then publishes the store. */
  readonly fresh: boolean;
  /** Of a store that processes share. */
  readonly identity?: Identity;
  /** What was found on disk, if memory had to be rebuilt. */
  readonly recovered?: Recovered;
}

/** Runs `use` with an executor, before anyone else can join a store that is being created. */
export async function attach<T>(settings: Settings, use: (attached: Attached) => T): Promise<T> {
  if (settings.sharing === "threads") return guarded(joinProcessThreads(settings), use);
  makeFolder(settings.path);
  if (settings.isNode !== true) refuseIfServed(settings.path);
  return withOpenLock(settings.path, async () => guarded(await joinProcesses(settings), use));
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

function openExecutor(memory: StoreMemory, leases: Leases): Executor {
  try {
    return explained("the slots", () => Executor.open(memory, leases));
  } catch (error) {
    leases.close();
    memory.close();
    throw error;
  }
}

async function joinProcesses(settings: Settings): Promise<Attached> {
  if (sharedBuffers(settings.path) !== undefined) {
    throw new SituError(
      "SITU_CONFIG",
      `${settings.path} is open among the threads of this process only: open it with ` +
        `sharing: "threads"`,
    );
  }
  const known = identityFor(settings);
  const folder = memoryFolder(known);
  const segments = new MappedSegments(folder);
  const found = explained(folder, () => joinMemory(segments, bootId()));
  if (found !== undefined) return joinFound(settings, known, found);
  if (known.logStarted) refuseNone(settings);
  const identity = known.logStarted ? known : identityAnew(settings, known);
  if (identity.logStarted) {
    const { memory, recovered } = await recoverMemory(settings, identity, segments);
    const executor = openExecutor(memory, new FileLockLeases(folder));
    return { executor, fresh: false, identity, recovered };
  }
  refuseIfNoRoom(identity.memoryDir, settings.memoryBytes);
  const geometry = geometryOf(settings, MAX_SLOTS, JOURNAL_BYTES);
  const memory = explained(folder, () => createMemory(segments, geometry));
  if (identity.logId !== undefined) memory.control.startLog();
  const executor = openExecutor(memory, new FileLockLeases(folder));
  return { executor, fresh: true, identity };
}

/** Joins a store whose memory is there. What its dead had begun is ended by whoever meets it. */
function joinFound(settings: Settings, identity: Identity, memory: StoreMemory): Attached {
  const isLogged = memory.control.isLogged;
  try {
    if (isLogged) refuseNone(settings);
  } catch (error) {
    memory.close();
    throw error;
  }
  const leases = new FileLockLeases(memoryFolder(identity));
  if ((isLogged || !wantsLog(settings)) && !isLogInDoubt(memory, identity)) {
    return { executor: openExecutor(memory, leases), fresh: false, identity };
  }
  // It gets a log, or a new one in the place of one that has failed, by one who is alone in it.
  const executor = openExecutor(memory, leases);
  try {
    executor.sweep();
    const others = executor.holders().filter(({ slot }) => slot !== executor.slot);
    if (others.length > 0) {
      if (isLogged) return { executor, fresh: false, identity };
      const pids = others.map(({ pid }) => pid).join();
      throw new SituError(
        "SITU_IN_USE",
        `the store at ${settings.path} is open without a log in process ${pids}: close it there, ` +
          `then it can be opened with durability "${settings.durability}", or leave durability out here`,
      );
    }
    const logged = startLogAnew(settings, identity, executor);
    // Its journal was made for a store without a log.
    executor.close();
    const again = joinMemory(new MappedSegments(memoryFolder(identity)), bootId())!;
    const own = openExecutor(again, new FileLockLeases(memoryFolder(identity)));
    return { executor: own, fresh: false, identity: logged };
  } catch (error) {
    executor.close();
    throw error;
  }
}

/** Memory is gone, and with it a store whose log had not begun: it may have one now, or none. */
function identityAnew(settings: Settings, known: Identity): Identity {
  const { logId, logStarted: _, ...unlogged } = known;
  if (logId === undefined && wantsLog(settings)) {
    return writeIdentity(settings.path, withLog(unlogged));
  }
  if (logId === undefined || settings.durability !== "none") return known;
  return writeIdentity(settings.path, unlogged);
}

function wantsLog({ durability }: Settings): boolean {
  return durability === "sync" || durability === "lazy";
}

function refuseNone({ durability, path }: Settings): void {
  if (durability !== "none") return;
  throw new SituError(
    "SITU_CONFIG",
    `the store at ${path} has a log, which all of its commits go to: leave durability out, or open ` +
      `a store of its own with durability "none"`,
  );
}

function identityFor(settings: Settings): Identity {
  const known = readIdentity(settings.path);
  if (known === undefined) {
    refuseForeignLog(settings.path);
    refuseIfNoRoom(settings.memoryDir, settings.memoryBytes);
    const fresh = newIdentity(settings.memoryDir);
    const identity = settings.durability === "none" ? fresh : withLog(fresh);
    return writeIdentity(settings.path, identity);
  }
  if (settings.memoryDirGiven && known.memoryDir !== settings.memoryDir) {
    throw new SituError(
      "SITU_CONFIG",
      `the store at ${settings.path} has its memory in ${known.memoryDir}, not in ` +
        `${settings.memoryDir}: leave memoryDir out, or destroy the store`,
    );
  }
  return known;
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
  return { executor: openExecutor(memory, leases), fresh };
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
    const memory = joinMemory(new MappedSegments(folder), bootId());
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
