/**
 * Joining memory that is there and needs nothing, beside others who do the same: open.lock is held shared, and
 * only until this process has a slot. The invariant:
 *
 *   between the look at store.json and the claimed slot nobody creates, rebuilds, unseals, seals, resizes or
 *   destroys the store, nor gives it a log: all of them hold open.lock alone
 *
 * With the slot claimed, and the folder's lock held shared, this process has the store open like any other.
 * What comes then, opening the tables, is transactions. A death before the slot is claimed leaves nothing: the
 * kernel drops both locks. One after it is that of an executor, which others recover.
 *
 * Whatever is not as it should be is left to those who hold the lock alone (join-processes.ts), who look again
 * at everything: so there is one place that decides what is wrong, and what is done about it.
 */

import { isSealed } from "../engine/seal.ts";
import { FolderLock } from "../folder/folder-lock.ts";
import { findMemory } from "../folder/memory-search.ts";
import { type Identity, isCopied, memoryFolder, readIdentity } from "../folder/store-files.ts";
import { sharedBuffers } from "../memory/thread-segments.ts";
import { type Attached, openExecutor } from "./attached.ts";
import { isLogAsWanted, isMemoryDirAsWanted, leasesOf } from "./join-processes.ts";
import { isSizeAsWanted } from "./resize.ts";
import type { StoreSettings } from "./settings.ts";

/**
 * Before any lock: whether it is worth trying. Of a crowd that meets a sealed store nobody takes the lock
 * shared, which would keep those out who want to unseal it.
 */
export function mayJoinBeside(settings: StoreSettings): boolean {
  const { path, isAlone = false, isNode = false } = settings;
  if (isAlone || isNode || sharedBuffers(path) !== undefined) return false;
  try {
    return isPlain(settings, readIdentity(path));
  } catch {
    // Damage is told by those who look under the lock.
    return false;
  }
}

/** Under open.lock, shared. Undefined if it takes more than joining. */
export async function joinBeside(settings: StoreSettings): Promise<Attached | undefined> {
  const { path } = settings;
  const lock = await FolderLock.enter(path);
  try {
    const attached = joinPlain(settings, lock);
    if (attached === undefined) lock.release();
    return attached;
  } catch (error) {
    lock.release();
    throw error;
  }
}

function joinPlain(settings: StoreSettings, lock: FolderLock): Attached | undefined {
  const { path } = settings;
  const identity = readIdentity(path);
  if (!isPlain(settings, identity)) return undefined;
  const { memory } = findMemory(path, identity);
  if (memory === undefined) return undefined;
  if (!isLogAsWanted(settings, memory, identity) || !isSizeAsWanted(settings, identity, memory)) {
    memory.close();
    return undefined;
  }
  memory.path = path;
  const executor = openExecutor(memory, leasesOf(identity));
  // Held until the executor closes its memory.
  memory.onClose(() => lock.release());
  return { executor, fresh: false, identity, lock };
}

function isPlain(settings: StoreSettings, identity: Identity | undefined): identity is Identity {
  return (
    identity !== undefined &&
    isMemoryDirAsWanted(settings, identity) &&
    !isCopied(settings.path, identity) &&
    !isSealed(memoryFolder(identity))
  );
}
