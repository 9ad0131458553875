/**
 * From settings to an executor: creates the memory of a store, joins what is there, or rebuilds it
 * from disk. Which of the three is found out, under the lock of the store's folder.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { Executor } from "../engine/executor.ts";
import { DescriptorLeases } from "../engine/leases/descriptor.ts";
import { FileLockLeases } from "../engine/leases/file-lock.ts";
import type { Leases } from "../engine/leases/leases.ts";
import { sealMemory } from "../engine/seal.ts";
import { FolderLock } from "../folder/folder-lock.ts";
import { createControl, createMemory, refuseIfNoRoom } from "../folder/memory-creation.ts";
import {
  type FoundMemory,
  identityOfCopy,
  openSealed,
  otherMemory,
  refuseUnlessLogged,
} from "../folder/memory-search.ts";
import { type MemorySize, sizeOfNew, sizeOfThreads } from "../folder/memory-size.ts";
import {
  explained,
  type Identity,
  isCopied,
  makeFolder,
  memoryFolder,
  newIdentity,
  readIdentity,
  removeMemory,
  withLog,
  withOpenLock,
} from "../folder/store-files.ts";
import { type Recovered, rebuildMemory } from "../log/recovery/rebuild.ts";
import { isLogInDoubt, refuseForeignLog, startLogAnew } from "../log/start.ts";
import { bootId } from "../memory/boot.ts";
import { type Geometry, readGeometry } from "../memory/control.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import { joinMemory } from "../memory/mapped-store.ts";
import { CONTROL_NAME, StoreMemory, segmentSizes } from "../memory/store-memory.ts";
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
  MIN_MEMORY_BYTES,
  SWEPT_SLOTS,
  THREAD_JOURNAL_BYTES,
} from "../runtime/limits.ts";
import { bringForward } from "./bring-forward.ts";
import { type Opener, openersIn, openersOf } from "./openers.ts";
import { followSize } from "./resize.ts";
import type { StoreSettings } from "./settings.ts";

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
  /** The lock of the store's folder, to be shared with others once the store is made. */
  readonly lock?: FolderLock;
}

/** Runs `use` with an executor, before anyone else can join a store that is being created. */
export async function attach<T>(
  settings: StoreSettings,
  use: (attached: Attached) => T,
): Promise<T> {
  if (settings.sharing === "threads") return guarded(joinProcessThreads(settings), use);
  makeFolder(settings.path);
  return withOpenLock(settings.path, async () => guarded(await joinProcesses(settings), use));
}

function guarded<T>(attached: Attached, use: (attached: Attached) => T): T {
  try {
    // Some of the dead, if there are many executors: whoever meets another one recovers it, and so do the
    // sweeps in the background. A look at each would make joining dearer with every process that has joined.
    attached.executor.sweepSome(SWEPT_SLOTS);
    const used = use(attached);
    // What was made is published: others may join it.
    attached.lock?.share();
    return used;
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

async function joinProcesses(settings: StoreSettings): Promise<Attached> {
  const { path } = settings;
  if (sharedBuffers(path) !== undefined) {
    throw new SituError(
      "SITU_CONFIG",
      `${path} is open among the threads of this process only: open it with sharing: "threads"`,
    );
  }
  const { isAlone = false, isNode = false } = settings;
  const lock = isNode ? FolderLock.ofNode(path) : await FolderLock.enter(path);
  try {
    if (isAlone && !(await lock.takeAlone())) throw inUse(path, visibleOpeners(path));
    const attached = await joinFolder(settings, lock);
    // Held until the executor closes its memory.
    attached.executor.memory.onClose(() => lock.release());
    return isAlone ? attached : { ...attached, lock };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Joins the memory that store.json names, or makes the store's memory if nobody has it open. */
async function joinFolder(settings: StoreSettings, lock: FolderLock): Promise<Attached> {
  const { path } = settings;
  const known = readIdentity(path);
  if (known === undefined) return createFirst(settings, lock);
  const isCopy = isCopied(path, known);
  const { memory, problem }: FoundMemory = isCopy ? {} : openSealed(path, known);
  if (memory !== undefined) {
    if (isElsewhere(settings, known)) {
      memory.close();
      throw hasOtherMemoryDir(settings, known);
    }
    const attached = joinFound(settings, known, memory);
    try {
      return { ...attached, identity: followSize(settings, attached.identity!, attached.executor) };
    } catch (error) {
      attached.executor.close();
      throw error;
    }
  }
  const isOfOtherLayout = problem?.code === "SITU_LAYOUT";
  if (!(await lock.takeAlone()))
    throw isOfOtherLayout ? problem : otherMemory(path, known, problem);
  // Between the two locks somebody may have been here, should open.lock have been removed.
  if (readIdentity(path)?.memoryId !== known.memoryId) return joinFolder(settings, lock);
  if (isCopy) return createAnew(settings, moved(settings, identityOfCopy(path, known)));
  if (isElsewhere(settings, known) && (isOfOtherLayout || known.logStarted !== true)) {
    throw hasOtherMemoryDir(settings, known);
  }
  if (isOfOtherLayout) {
    const how = bringForward(settings, known, problem);
    return how === "rebuild" ? createAnew(settings, known) : joinFolder(settings, lock);
  }
  if (problem !== undefined) refuseUnlessLogged(path, known, problem);
  // What is left of it in the old place is of no use to anyone.
  if (isElsewhere(settings, known)) removeMemory(known);
  return createAnew(settings, moved(settings, known));
}

/** A folder without a store. */
async function createFirst(settings: StoreSettings, lock: FolderLock): Promise<Attached> {
  const { path } = settings;
  if (!(await lock.takeAlone())) {
    throw new SituError(
      "SITU_IN_USE",
      `${path} has no store.json, and a process has a store open there: close it, or restore the file`,
    );
  }
  if (readIdentity(path) !== undefined) return joinFolder(settings, lock);
  refuseForeignLog(path);
  refuseIfNoRoom(settings.memoryDir, MIN_MEMORY_BYTES);
  const identity = newIdentity(settings.memoryDir);
  return createAnew(settings, settings.durability === "none" ? identity : withLog(identity));
}

/** Makes memory: from the log, or empty. For one who is alone in the store. */
async function createAnew(settings: StoreSettings, known: Identity): Promise<Attached> {
  if (known.logStarted) {
    refuseNone(settings);
    const { memory, identity, recovered } = await rebuildMemory(settings, known);
    return {
      executor: openExecutor(memory, leasesOf(identity)),
      fresh: false,
      identity,
      recovered,
    };
  }
  refuseIfNoRoom(known.memoryDir, MIN_MEMORY_BYTES);
  const { memoryDir, memoryBytes: kept } = known;
  const size = sizeOfNew(settings, memoryDir, kept, MAX_SLOTS, JOURNAL_BYTES);
  refuseIfNoRoom(memoryDir, size.regionLimit * size.geometry.regionBytes);
  const { memory, identity } = createMemory(settings.path, identityAnew(settings, known), size);
  if (identity.logId !== undefined) memory.control.startLog();
  return { executor: openExecutor(memory, leasesOf(identity)), fresh: true, identity };
}

/** The lease files of a store's memory. */
function leasesOf(identity: Identity): FileLockLeases {
  return new FileLockLeases(memoryFolder(identity));
}

/** Leaves checksums of a store that nobody has open any more, for whoever opens it next. */
export async function sealIfLast(path: string, identity: Identity): Promise<void> {
  await withOpenLock(path, () => {
    // Destroyed meanwhile, or rebuilt: then that memory is somebody else's to seal.
    if (readIdentity(path)?.memoryId !== identity.memoryId) return;
    const folder = memoryFolder(identity);
    if (existsSync(join(folder, CONTROL_NAME))) sealMemory(folder, bootId());
  });
}

/** Joins a store whose memory is there. What its dead had begun is ended by whoever meets it. */
function joinFound(settings: StoreSettings, identity: Identity, memory: StoreMemory): Attached {
  const isLogged = memory.control.isLogged;
  try {
    if (isLogged) refuseNone(settings);
  } catch (error) {
    memory.close();
    throw error;
  }
  const leases = leasesOf(identity);
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
    const logged = startLogAnew(settings.path, identity, executor);
    // Its journal was made for a store without a log.
    executor.close();
    const again = joinMemory(new MappedSegments(memoryFolder(identity)), bootId())!;
    return { executor: openExecutor(again, leasesOf(identity)), fresh: false, identity: logged };
  } catch (error) {
    executor.close();
    throw error;
  }
}

/** Memory is gone, and with it a store whose log had not begun: it may have one now, or none. */
function identityAnew(settings: StoreSettings, known: Identity): Identity {
  const { logId, logStarted: _, ...unlogged } = known;
  if (settings.durability === "none") return unlogged;
  return logId === undefined && wantsLog(settings) ? withLog(unlogged) : known;
}

function wantsLog({ durability }: StoreSettings): boolean {
  return durability === "sync" || durability === "lazy";
}

function refuseNone({ durability, path }: StoreSettings): void {
  if (durability !== "none") return;
  throw new SituError(
    "SITU_CONFIG",
    `the store at ${path} has a log, which all of its commits go to: leave durability out, or open ` +
      `a store of its own with durability "none"`,
  );
}

/** Whether the opener wants the memory in another folder than the one where it was. */
function isElsewhere(settings: StoreSettings, known: Identity): boolean {
  return settings.memoryDirGiven && known.memoryDir !== settings.memoryDir;
}

/** Memory that is made from the log can be made anywhere. */
function moved(settings: StoreSettings, known: Identity): Identity {
  return isElsewhere(settings, known) ? { ...known, memoryDir: settings.memoryDir } : known;
}

function hasOtherMemoryDir(settings: StoreSettings, known: Identity): SituError {
  return new SituError(
    "SITU_CONFIG",
    `the store at ${settings.path} has its memory in ${known.memoryDir}, not in ` +
      `${settings.memoryDir}: leave memoryDir out, or destroy the store`,
  );
}

function joinProcessThreads(settings: StoreSettings): Attached {
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

/** Takes the folder's lock alone, for `work`; refuses if anyone has the store open. */
export async function whileAlone<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  const lock = await FolderLock.enter(path);
  try {
    if (!(await lock.takeAlone())) throw inUse(path, visibleOpeners(path));
    return await work();
  } finally {
    lock.release();
  }
}

function inUse(path: string, openers: readonly Opener[]): SituError {
  const commands = new Map(openers.map(({ pid, command }) => [pid, command]));
  const named = [...commands].map(([pid, command]) =>
    command === undefined ? `process ${pid}` : `process ${pid} (${command})`,
  );
  const who = named.length > 0 ? named.join(", ") : "a process that is not visible here";
  return new SituError("SITU_IN_USE", `the store at ${path} is open in ${who}`);
}

function visibleOpeners(path: string): Opener[] {
  try {
    return openersOf(path);
  } catch {
    // It is in use, whatever is the matter with it.
    return [];
  }
}
