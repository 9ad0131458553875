import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { libc } from "../../memory/libc.ts";
import type { Leases } from "./leases.ts";

/**
 * One lock file per slot. flock belongs to the open file, so two worker threads of one process
 * exclude each other too. Node closes the files that a worker opened when the worker ends, also
 * by terminate(), and the kernel closes those of a process: both drop the lock.
 */
export class FileLockLeases implements Leases {
  readonly #folder: string;
  readonly #files = new Map<number, number>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  tryAcquire(slot: number): boolean {
    if (libc().tryLock(this.#file(slot))) return true;
    this.#forget(slot);
    return false;
  }

  /** Closing the file gives the lock back. */
  release(slot: number): void {
    this.#forget(slot);
  }

  close(): void {
    for (const fd of this.#files.values()) closeSync(fd);
    this.#files.clear();
  }

  #forget(slot: number): void {
    const fd = this.#files.get(slot);
    if (fd === undefined) return;
    this.#files.delete(slot);
    closeSync(fd);
  }

  /** Each instance opens the files, and therefore holds the locks, for itself. */
  #file(slot: number): number {
    let fd = this.#files.get(slot);
    if (fd === undefined) {
      const path = join(this.#folder, `slot-${slot}.lock`);
      fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
      this.#files.set(slot, fd);
    }
    return fd;
  }
}
