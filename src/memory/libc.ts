/**
 * The four calls into libc that Node does not offer: map a file, unmap it, reserve its pages,
 * lock it. Loaded on first use, so that threads-only stores work where FFI is missing.
 */

import { createRequire } from "node:module";
import { SituError } from "../runtime/errors.ts";

interface Koffi {
  load(path: string | null): { func(signature: string): (...args: unknown[]) => unknown };
  view(pointer: unknown, bytes: number): ArrayBuffer;
  errno(): number;
  address(pointer: unknown): bigint;
}

const PROT_READ_WRITE = 1 | 2;
const MAP_SHARED = 1;
const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;
const ENOSPC = 28;
const MAP_FAILED = 0xffffffffffffffffn;

/**
 * A worker thread that is terminated runs no more code, so its mappings stay until the process
 * ends: address space, and the pages of a store that is destroyed meanwhile.
 */
export interface Mapping {
  readonly buffer: ArrayBuffer;
  unmap(): void;
}

export interface Libc {
  map(fd: number, bytes: number): Mapping;
  /** Gives the file its pages now: a full /dev/shm is then an error here, not a SIGBUS later. */
  reserve(fd: number, bytes: number): "ok" | "no space";
  /** Takes the lock of this open file unless somebody has it. The kernel drops it on death. */
  tryLock(fd: number): boolean;
}

let loaded: Libc | undefined;

/** Why this platform cannot share memory between processes, or undefined if it can. */
export function whyNoProcesses(): string | undefined {
  if (process.platform !== "linux" && process.platform !== "darwin") {
    return `sharing memory between processes needs Linux or macOS, this is ${process.platform}`;
  }
  try {
    libc();
    return undefined;
  } catch (error) {
    return `the FFI package koffi cannot be loaded: ${(error as Error).message}`;
  }
}

export function libc(): Libc {
  loaded ??= load();
  return loaded;
}

function load(): Libc {
  const koffi = createRequire(import.meta.url)("koffi") as Koffi;
  const library = koffi.load(null);
  const mmap = library.func("void *mmap(void *, size_t, int, int, int, int64_t)");
  const munmap = library.func("int munmap(void *, size_t)");
  const flock = library.func("int flock(int, int)");
  const fallocate =
    process.platform === "linux"
      ? library.func("int posix_fallocate(int, int64_t, int64_t)")
      : undefined;
  return {
    map(fd, bytes) {
      const pointer = mmap(null, bytes, PROT_READ_WRITE, MAP_SHARED, fd, 0);
      if (koffi.address(pointer) === MAP_FAILED) {
        throw new SituError("SITU_NO_MEMORY", `mmap of ${bytes} bytes failed: ${koffi.errno()}`);
      }
      return {
        buffer: koffi.view(pointer, bytes),
        unmap: () => {
          munmap(pointer, bytes);
        },
      };
    },
    reserve(fd, bytes) {
      const error = fallocate?.(fd, 0, bytes) ?? 0;
      if (error === 0) return "ok";
      if (error === ENOSPC) return "no space";
      throw new SituError("SITU_NO_MEMORY", `reserving ${bytes} bytes failed: errno ${error}`);
    },
    tryLock: (fd) => flock(fd, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) === 0,
  };
}
