/**
 * Who has a store open is known from the store's folder. Everyone who has it open holds the folder's
 * lock shared (flock on the folder itself), for as long as that lasts; the kernel drops it with the
 * process, however that ends. The lock belongs to the folder's inode, so it is seen across containers,
 * whatever mounts, memory or process ids they share; and there is no lock file that could be removed.
 *
 * Whoever creates, rebuilds or removes the store's memory holds the lock alone. Hence the invariant:
 *
 *   while anyone has the store open, the memory named in store.json is the one that they have
 *
 * A process that does not find that memory therefore knows that it sees another memory than those who
 * live in the store, if it cannot get the lock alone.
 *
 * flock goes from shared to exclusive and back by giving the lock up in between. All who change their
 * lock hold open.lock meanwhile (store-files.ts), so nobody else can take it there.
 *
 * A node of a cluster holds the lock alone for as long as it runs: whoever else wrote to its store would
 * leave the copies at other nodes behind. Its other threads join without a lock of their own.
 */

import { closeSync, constants, openSync } from "node:fs";
import { libc } from "../memory/libc.ts";
import { nowMs, sleep } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { FOLDER_PATIENCE_MS } from "../runtime/limits.ts";
import { explained } from "./store-files.ts";

const LOOK_MS = 5;

export class FolderLock {
  readonly #path: string;
  #fd: number | undefined;

  private constructor(path: string, fd: number | undefined) {
    this.#path = path;
    this.#fd = fd;
  }

  /**
   * Takes the lock shared. To be called under open.lock, as `takeAlone` and `share`; so one who holds it
   * alone is a node, which may be on its way out.
   */
  static async enter(path: string): Promise<FolderLock> {
    const fd = openFolder(path);
    try {
      if (!(await patiently(() => libc().tryLockShared(fd)))) throw servedByNode(path);
      refuseUnlessLocked(path);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    return new FolderLock(path, fd);
  }

  /** For a thread of a node: another one of its process holds the lock, alone and for longer. */
  static ofNode(path: string): FolderLock {
    return new FolderLock(path, undefined);
  }

  /**
   * Takes the lock alone; false if others have the store open. Waits a moment for those who are on
   * their way out.
   */
  async takeAlone(): Promise<boolean> {
    const fd = this.#fd;
    if (fd === undefined) return false;
    if (await patiently(() => libc().tryLock(fd))) return true;
    // A failed attempt may have cost the shared lock: see above.
    libc().tryLockShared(fd);
    return false;
  }

  /** Lets others in again; they find the store as it is now. */
  share(): void {
    if (this.#fd === undefined || libc().tryLockShared(this.#fd)) return;
    throw new SituError("SITU_IN_USE", `the lock of ${this.#path} was taken by another process`);
  }

  release(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Looks again and again, for a moment. */
async function patiently(tryLock: () => boolean): Promise<boolean> {
  const startMs = nowMs();
  while (!tryLock()) {
    if (nowMs() - startMs > FOLDER_PATIENCE_MS) return false;
    await sleep(LOOK_MS);
  }
  return true;
}

function servedByNode(path: string): SituError {
  return new SituError(
    "SITU_IN_USE",
    `a node of a cluster serves the store at ${path} and has it to itself while it runs: ` +
      `use open({ connect: ["host:port"] }), or stop the node`,
  );
}

/** The same for a folder whose lock nobody holds: that of new memory. */
export function refuseUnlessLockable(path: string): void {
  const fd = openFolder(path);
  try {
    libc().tryLock(fd);
    refuseUnlessLocked(path);
  } finally {
    closeSync(fd);
  }
}

/**
 * On some file systems (network and FUSE mounts) every attempt to lock succeeds. Nothing would keep two
 * memories of one store apart there. For one who holds the lock of the folder.
 */
function refuseUnlessLocked(path: string): void {
  const fd = openFolder(path);
  try {
    if (!libc().tryLock(fd)) return;
  } finally {
    closeSync(fd);
  }
  throw new SituError(
    "SITU_UNSUPPORTED",
    `file locks have no effect in ${path}, so Situ cannot tell which processes have the store open: ` +
      `use a local file system (not a network or FUSE mount that ignores flock)`,
  );
}

function openFolder(path: string): number {
  return explained(path, () => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY));
}
