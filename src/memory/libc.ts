/**
 * The calls into libc that Node does not offer: map a file, unmap it, reserve its pages, lock it,
 * sleep on a word of mapped memory. Loaded on first use, so that threads-only stores work where FFI is missing.
 */

import { createRequire } from "node:module";
import { SituError } from "../runtime/errors.ts";
import { hugePageBytes } from "./huge-pages.ts";

interface NativeFunction {
  (...args: unknown[]): unknown;
  /** Runs on a thread of Node's pool; the last argument is the callback. */
  async(...args: unknown[]): void;
}

interface Koffi {
  load(path: string | null): { func(signature: string): NativeFunction };
  view(pointer: unknown, bytes: number): ArrayBuffer;
  errno(): number;
  address(pointer: unknown): bigint;
}

const PROT_READ_WRITE = 1 | 2;
const MAP_SHARED = 1;
const PROT_NONE = 0;
const MAP_FIXED = 0x10;
/** MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, on Linux: address space, and nothing else. */
const ADDRESS_SPACE = 0x02 | 0x20 | 0x4000;
/** Of any processor that Situ runs on: what is mapped in parts is a multiple of it. */
const LARGEST_SMALL_PAGE_BYTES = 64 * 1024;
const MADV_HUGEPAGE = 14;
const MADV_COLLAPSE = 25;
const LOCK_SHARED = 1;
const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;
/** EWOULDBLOCK: somebody else has the lock. */
const LOCKED_BY_OTHERS = process.platform === "darwin" ? 35 : 11;
const ENOSPC = 28;
/** FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE */
const PUNCH_HOLE_KEEP_SIZE = 2 | 1;
const MAP_FAILED = 0xffffffffffffffffn;

/**
 * A worker thread that is terminated runs no more code, so its mappings stay until the process
 * ends: address space, and the pages of a store that is destroyed meanwhile.
 */
export interface Mapping {
  readonly buffer: ArrayBuffer;
  /** Where it lies in this process. */
  readonly address: bigint;
  /** Asks for large pages in a part of it (huge-pages.ts); false if there are none. */
  collapse(offset: number, bytes: number): boolean;
  unmap(): void;
}

export interface Libc {
  map(fd: number, bytes: number): Mapping;
  /** Gives the file its pages now: a full /dev/shm is then an error here, not a SIGBUS later. */
  reserve(fd: number, bytes: number): "ok" | "no space";
  /** Takes the pages from the file again, if the system can; it keeps its length and reads as zeroes. */
  vacate(fd: number, bytes: number): void;
  /**
   * Takes the exclusive lock of this open file unless somebody else holds it. The kernel drops it when
   * the last descriptor of the open file is closed, so also on death. SITU_UNSUPPORTED where the file
   * system has no locks.
   */
  tryLock(fd: number): boolean;
  /** The same for a lock that many can hold at once, while nobody holds the exclusive one. */
  tryLockShared(fd: number): boolean;
  /** Another number for an open file or socket, to be closed on its own; -1 if none is to be had. */
  duplicate(fd: number): number;
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

/** Sleeping on a word of mapped memory, in whatever processes it is mapped. */
export interface Futex {
  wait(address: bigint, value: number, ms: number): void;
  waitAsync(address: bigint, value: number, ms: number): Promise<void>;
  wake(address: bigint): void;
  /** Lets others run who wait for this processor: for one who looks again and again. */
  yield(): void;
}

/** The number of the system call, which is all that differs. */
const FUTEX_CALL: Readonly<Record<string, number>> = { x64: 202, arm64: 98 };
const FUTEX_WAIT = 0;
const FUTEX_WAKE = 1;
const EVERYBODY = 0x7fffffff;

let foundFutex: Futex | undefined;

/** Undefined where the system has none. */
export function futex(): Futex | undefined {
  const call = FUTEX_CALL[process.arch];
  if (process.platform !== "linux" || call === undefined) return undefined;
  foundFutex ??= loadFutex(call);
  return foundFutex;
}

function loadFutex(call: number): Futex {
  const library = loadKoffi().load(null);
  const syscall = library.func("long syscall(long, void *, int, int, void *, void *, int)");
  const schedYield = library.func("int sched_yield()");
  const timespec = (ms: number): BigInt64Array => {
    const seconds = Math.floor(ms / 1e3);
    return new BigInt64Array([BigInt(seconds), BigInt(Math.floor((ms - seconds * 1e3) * 1e6))]);
  };
  return {
    wait(address, value, ms) {
      syscall(call, address, FUTEX_WAIT, value, timespec(ms), null, 0);
    },
    waitAsync(address, value, ms) {
      return new Promise((resolve) => {
        const time = timespec(ms);
        // The closure keeps the time alive, for the thread that reads it.
        const done = (): void => resolve(void time);
        syscall.async(call, address, FUTEX_WAIT, value, time, null, 0, done);
      });
    },
    yield() {
      schedYield();
    },
    wake(address) {
      syscall(call, address, FUTEX_WAKE, EVERYBODY, null, null, 0);
    },
  };
}

/** Time since the machine started, its sleep included. */
const BOOT_TIME_CLOCK: Readonly<Record<string, number>> = { linux: 7, darwin: 6 };

/** A clock that goes on while the machine sleeps, in milliseconds; undefined where there is none. */
export function bootTimeClock(): (() => number) | undefined {
  const clock = BOOT_TIME_CLOCK[process.platform];
  if (clock === undefined) return undefined;
  let clockGettime: NativeFunction;
  try {
    clockGettime = loadKoffi().load(null).func("int clock_gettime(int, void *)");
  } catch {
    return undefined;
  }
  // struct timespec: seconds and nanoseconds, 64 bits each, both of which are small enough.
  const time = new Uint32Array(4);
  const read = (): number => {
    const error = clockGettime(clock, time);
    return error === 0 ? (time[1] * 2 ** 32 + time[0]) * 1e3 + time[2] / 1e6 : Number.NaN;
  };
  return Number.isNaN(read()) ? undefined : read;
}

/** SCHED_RR | SCHED_RESET_ON_FORK: threads that this one starts are ordinary ones. */
const REAL_TIME = 2 | 0x40000000;

/**
 * Has Linux run this thread before all ordinary ones; says whether it does, for not everybody may ask for
 * it. A thread's nice value would not do: it counts only among processes of one session.
 */
export function becomeRealTime(): boolean {
  try {
    const library = loadKoffi().load(null);
    const self = library.func("uintptr_t pthread_self()");
    const schedule = library.func("int pthread_setschedparam(uintptr_t, int, void *)");
    // struct sched_param: the lowest of the real-time priorities, which is above all others.
    return schedule(self(), REAL_TIME, new Int32Array([1])) === 0;
  } catch {
    return false;
  }
}

function loadKoffi(): Koffi {
  return createRequire(import.meta.url)("koffi") as Koffi;
}

function load(): Libc {
  const koffi = loadKoffi();
  const library = koffi.load(null);
  const mmap = library.func("void *mmap(void *, size_t, int, int, int, int64_t)");
  const munmap = library.func("int munmap(void *, size_t)");
  const dup = library.func("int dup(int)");
  const flock = library.func("int flock(int, int)");
  const fallocate =
    process.platform === "linux"
      ? library.func("int posix_fallocate(int, int64_t, int64_t)")
      : undefined;
  const fallocateWith =
    process.platform === "linux"
      ? library.func("int fallocate(int, int, int64_t, int64_t)")
      : undefined;
  const madvise =
    process.platform === "linux" ? library.func("int madvise(void *, size_t, int)") : undefined;
  /** Free address space that begins at a multiple of the large page; null if any place will do. */
  const placeFor = (bytes: number): bigint | null => {
    const pageBytes = hugePageBytes();
    if (pageBytes === 0 || bytes < pageBytes || bytes % LARGEST_SMALL_PAGE_BYTES !== 0) return null;
    const first = koffi.address(mmap(null, bytes + pageBytes, PROT_NONE, ADDRESS_SPACE, -1, 0));
    if (first === MAP_FAILED) return null;
    // What is left over on both sides is given back: together, one large page.
    const before = Number(-first & BigInt(pageBytes - 1));
    const place = first + BigInt(before);
    if (before > 0) munmap(first, before);
    if (before < pageBytes) munmap(place + BigInt(bytes), pageBytes - before);
    return place;
  };
  const tryFlock = (fd: number, kind: number): boolean => {
    if (flock(fd, kind | LOCK_NON_BLOCKING) === 0) return true;
    const errno = koffi.errno();
    if (errno === LOCKED_BY_OTHERS) return false;
    throw new SituError(
      "SITU_UNSUPPORTED",
      `the file system does not support file locks (flock failed with errno ${errno}): ` +
        `put the store on a local disk`,
    );
  };
  return {
    map(fd, bytes) {
      const place = placeFor(bytes);
      const flags = place === null ? MAP_SHARED : MAP_SHARED | MAP_FIXED;
      const pointer = mmap(place, bytes, PROT_READ_WRITE, flags, fd, 0);
      const address = koffi.address(pointer);
      if (address === MAP_FAILED) {
        const errno = koffi.errno();
        if (place !== null) munmap(place, bytes);
        throw new SituError("SITU_NO_MEMORY", `mmap of ${bytes} bytes failed: ${errno}`);
      }
      // Where the system is set up to give large pages to those who ask, it gives them by and by.
      if (place !== null) madvise?.(address, bytes, MADV_HUGEPAGE);
      return {
        buffer: koffi.view(pointer, bytes),
        address,
        collapse: (offset, length) =>
          madvise?.(address + BigInt(offset), length, MADV_COLLAPSE) === 0,
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
    vacate(fd, bytes) {
      // Where the system or the file system cannot do this, the memory stays with the file.
      fallocateWith?.(fd, PUNCH_HOLE_KEEP_SIZE, 0, bytes);
    },
    duplicate: (fd) => dup(fd) as number,
    tryLock: (fd) => tryFlock(fd, LOCK_EXCLUSIVE),
    tryLockShared: (fd) => tryFlock(fd, LOCK_SHARED),
  };
}
