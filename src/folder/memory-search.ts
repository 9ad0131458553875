/**
 * The memory that store.json names: whether it is there, whether it may be joined, and what is to be
 * done if not. It is joined only if it is this user's own, has the recorded id, and is whole.
 *
 *   not there, not finished, or of an earlier run of the machine    rebuilt from the log, or empty
 *   another user's, or without files that it had                    rebuilt; refused without a log
 *   changed since it was sealed (engine/seal.ts)                    rebuilt; refused without a log
 *   of another layout                                               see attach/bring-forward.ts
 *   not there or not usable, and somebody has the store open        refused: see folder-lock.ts
 *   named by a copy of store.json                                   the original's; never joined
 */

import { lstatSync, statSync } from "node:fs";
import { join } from "node:path";
import { breakSeal, checkSeal, type SealDamage } from "../engine/seal.ts";
import { bootId } from "../memory/boot.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import { joinMemory } from "../memory/mapped-store.ts";
import { isOwnFolder } from "../memory/ownership.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";
import { uniqueId } from "../runtime/random.ts";
import { explained, type Identity, memoryFolder } from "./store-files.ts";

export interface FoundMemory {
  readonly memory?: StoreMemory;
  /** Why what is there under the memory's name is not joined. */
  readonly problem?: SituError;
}

export function findMemory(path: string, identity: Identity): FoundMemory {
  const folder = memoryFolder(identity);
  const segments = new MappedSegments(folder);
  try {
    const memory = explained(folder, () => joinMemory(segments, bootId(), identity.memoryId));
    return memory === undefined ? {} : { memory };
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    if (error.code === "SITU_PERMISSION") {
      refuseOwners(path, folder);
      return { problem: error };
    }
    if (error.code === "SITU_MEMORY_LOST" || error.code === "SITU_LAYOUT")
      return { problem: error };
    throw error;
  }
}

/** The same for one who opens the store: first the seal is checked, if there is one, and broken. */
export function openSealed(path: string, identity: Identity): FoundMemory {
  const folder = memoryFolder(identity);
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats !== undefined && isOwnFolder(stats)) {
    const damage = explained(folder, () => checkSeal(folder, bootId()));
    if (damage !== undefined) return { problem: damaged(path, folder, damage) };
    explained(folder, () => breakSeal(folder));
  }
  return findMemory(path, identity);
}

function damaged(path: string, folder: string, { file, offset, what }: SealDamage): SituError {
  return new SituError(
    "SITU_CORRUPT",
    `the memory of the store at ${path} was damaged while it was closed: ${join(folder, file)}, byte ` +
      `${offset}: ${what}`,
  );
}

/** Memory of the user who owns the store is not foreign: this process runs as somebody else. */
function refuseOwners(path: string, folder: string): void {
  const owner = statSync(join(path, "store.json"), { throwIfNoEntry: false })?.uid;
  const memoryOwner = statSync(folder, { throwIfNoEntry: false })?.uid;
  if (owner === undefined || owner !== memoryOwner || owner === process.geteuid?.()) return;
  throw new SituError(
    "SITU_PERMISSION",
    `the store at ${path} and its memory belong to user ${owner}: open the store as that user`,
  );
}

/** Memory cannot be used: refuses, unless the store has a log to be rebuilt from; then it warns. */
export function refuseUnlessLogged(path: string, identity: Identity, problem: SituError): void {
  if (!identity.logStarted) {
    throw new SituError(
      problem.code,
      `${problem.message}. The store at ${path} has no log that it could be rebuilt from: destroy() ` +
        `it to start an empty one`,
      { cause: problem },
    );
  }
  process.emitWarning(`${problem.message}; ${path} is rebuilt from its log`, {
    code: problem.code === "SITU_CORRUPT" ? "SITU_DAMAGED" : problem.code,
  });
}

/**
 * What a copy of a store is from now on: a store of its own, with the log up to where it was copied and
 * no memory yet. Without a log there is nothing that it could be made of.
 */
export function identityOfCopy(path: string, original: Identity): Identity {
  const { memoryId: _, folder: __, ...others } = original;
  if (original.logStarted !== true) refuseIfOnlyInMemory(path, original);
  return { ...others, id: uniqueId() };
}

function refuseIfOnlyInMemory(path: string, original: Identity): void {
  const { memory, problem } = findMemory(path, original);
  memory?.close();
  if (memory === undefined && problem === undefined) return;
  throw new SituError(
    "SITU_OTHER_MEMORY",
    `${path} is a copy of a store without a log, or was moved to another file system. Its rows are only ` +
      `in memory (${memoryFolder(original)}), which belongs to the original folder. To start an empty ` +
      `store here, destroy() this one; to copy a store with its rows, give it a log and use backup(). ` +
      `If the original folder is gone and this one takes its place, remove "folder" from its store.json`,
  );
}

/** Somebody has the store open, and the memory that it has is not the one that is seen here. */
export function otherMemory(path: string, identity: Identity, problem?: SituError): SituError {
  const { message: why } = problem ?? { message: `${memoryFolder(identity)} is not there` };
  return new SituError(
    "SITU_OTHER_MEMORY",
    `the store at ${path} is open in a process whose memory this one does not see: ${why}. Processes ` +
      `that share a store must see the same ${identity.memoryDir}. In containers, share /dev/shm ` +
      `(docker run --ipc=host, or --ipc=container:NAME, and a --shm-size that holds the store), or create the ` +
      `store with a memoryDir on a volume in memory that all of them mount. If its memory was removed ` +
      `while it was open, close it everywhere; the next open rebuilds it from its log`,
    { cause: problem },
  );
}
