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
    return libc().tryLock(this.#file(slot));
  }

  release(slot: number): void {
    libc().unlock(this.#file(slot));
  }

  close(): void {
    for (const fd of this.#files.values()) closeSync(fd);
    this.#files.clear();
  }

  /** Opened once and kept: each instance has files, and therefore locks, of its own. */
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
