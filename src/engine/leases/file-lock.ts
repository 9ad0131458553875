import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { libc } from "../../memory/libc.ts";
import { SituError } from "../../runtime/errors.ts";
import type { SlotId } from "../slot.ts";
import type { Leases } from "./leases.ts";

const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;

/**
 * One lock file per slot. flock belongs to the open file, so two worker threads of one process
 * exclude each other too. Node closes the files that a worker opened when the worker ends, also
 * by terminate(), and the kernel closes those of a process: both drop the lock.
 *
 * A claimed slot has a lock file. If it is missing, somebody removed it, and its owner may hold the lock
 * of the removed file: making a new one would declare a living executor dead. So the file is only ever
 * made for a slot that nobody claims.
 */
export class FileLockLeases implements Leases {
  readonly #folder: string;
  readonly #files = new Map<number, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  tryAcquire(slot: SlotId, isNew = false): boolean {
    const fd = this.#file(slot, isNew);
    if (fd === undefined) return false;
    if (libc().tryLock(fd)) return true;
    this.#forget(slot);
    return false;
  }

  /** Closing the file gives the lock back. */
  release(slot: SlotId): void {
    this.#forget(slot);
  }

  close(): void {
    for (const fd of this.#files.values()) closeSync(fd);
    this.#files.clear();
  }

  #forget(slot: SlotId): void {
    const fd = this.#files.get(slot);
    if (fd === undefined) return;
    this.#files.delete(slot);
    closeSync(fd);
  }

  /** Each instance opens the files, and therefore holds the locks, for itself. */
  #file(slot: SlotId, isNew: boolean): number | undefined {
    const known = this.#files.get(slot);
    if (known !== undefined) return known;
    const path = join(this.#folder, `slot-${slot}.lock`);
    try {
      const fd = openSync(path, O_RDWR | O_NOFOLLOW | (isNew ? O_CREAT : 0), 0o600);
      this.#files.set(slot, fd);
      return fd;
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
      if (!isNew) return undefined;
      throw new SituError("SITU_MEMORY_LOST", `${this.#folder} was removed`, { cause });
    }
  }
}
