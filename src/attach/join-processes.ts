/**
 * Joining a store that processes share, or making its memory, under open.lock: creates it, joins what is
 * there, or rebuilds it from disk. Which of the three is found out here. Most processes find memory that
 * needs nothing, and never come here: join-beside.ts.
 */

import { FileLockLeases } from "../engine/leases/file-lock.ts";
import { FolderLock } from "../folder/folder-lock.ts";
import { createMemory, refuseIfNoRoom } from "../folder/memory-creation.ts";
import {
  type FoundMemory,
  identityOfCopy,
  openSealed,
  otherMemory,
  refuseUnlessLogged,
} from "../folder/memory-search.ts";
import { sizeOfNew } from "../folder/memory-size.ts";
import {
  type Identity,
  isCopied,
  memoryFolder,
  newIdentity,
  readIdentity,
  removeMemory,
  withLog,
} from "../folder/store-files.ts";
import { isLogInDoubt, refuseForeignLog, startLogAnew } from "../log/start.ts";
import { bootId } from "../memory/boot.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import { joinMemory } from "../memory/mapped-store.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { sharedBuffers } from "../memory/thread-segments.ts";
import { SituError } from "../runtime/errors.ts";
import { JOURNAL_BYTES, MAX_SLOTS, MIN_MEMORY_BYTES } from "../runtime/limits.ts";
import { inUse, visibleOpeners } from "./alone.ts";
import { type Attached, openExecutor } from "./attached.ts";
import { bringForward } from "./bring-forward.ts";
import { followSize } from "./resize.ts";
import type { StoreSettings } from "./settings.ts";

/** Under open.lock. */
export async function joinProcesses(settings: StoreSettings): Promise<Attached> {
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
    if (!isMemoryDirAsWanted(settings, known)) {
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
  const isElsewhere = !isMemoryDirAsWanted(settings, known);
  if (isElsewhere && (isOfOtherLayout || known.logStarted !== true)) {
    throw hasOtherMemoryDir(settings, known);
  }
  if (isOfOtherLayout) {
    const how = bringForward(settings, known, problem);
    return how === "rebuild" ? createAnew(settings, known) : joinFolder(settings, lock);
  }
  if (problem !== undefined) refuseUnlessLogged(path, known, problem);
  // What is left of it in the old place is of no use to anyone.
  if (isElsewhere) removeMemory(known);
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
    // Loaded when there is something to recover: most who open a store join it.
    const { rebuildMemory } = await import("../log/recovery/rebuild.ts");
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
export function leasesOf(identity: Identity): FileLockLeases {
  return new FileLockLeases(memoryFolder(identity));
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
  if (isLogAsWanted(settings, memory, identity)) {
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

/** Whether the store already is as these settings want it, log or none: one who joins changes nothing. */
export function isLogAsWanted(
  settings: StoreSettings,
  memory: StoreMemory,
  identity: Identity,
): boolean {
  const { isLogged } = memory.control;
  const isWanted = isLogged ? settings.durability !== "none" : !wantsLog(settings);
  return isWanted && !isLogInDoubt(memory, identity);
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

/** Memory stays where it was made, until it is made anew. */
export function isMemoryDirAsWanted(settings: StoreSettings, known: Identity): boolean {
  return !settings.memoryDirGiven || known.memoryDir === settings.memoryDir;
}

/** Memory that is made from the log can be made anywhere. */
function moved(settings: StoreSettings, known: Identity): Identity {
  if (isMemoryDirAsWanted(settings, known)) return known;
  return { ...known, memoryDir: settings.memoryDir };
}

function hasOtherMemoryDir(settings: StoreSettings, known: Identity): SituError {
  return new SituError(
    "SITU_CONFIG",
    `the store at ${settings.path} has its memory in ${known.memoryDir}, not in ` +
      `${settings.memoryDir}: leave memoryDir out, or destroy the store`,
  );
}
