import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  type Stats,
} from "node:fs";
import { join } from "node:path";
import { nowMs } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { HUGE_PAGES_MS } from "../runtime/limits.ts";
import { freeBytesOf } from "./free-bytes.ts";
import { fillWithHugePages, hugePageBytes, wholePages } from "./huge-pages.ts";
import { libc, type Mapping } from "./libc.ts";
import { refuseForeign } from "./ownership.ts";
import { RemovalWatch } from "./removal-watch.ts";
import type { Segment, Segments } from "./segments.ts";

const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/**
 * Segments as files of one folder, mapped by every process and worker thread for itself. Each file is
 * looked at after it was opened and before it is mapped: see ownership.ts.
 */
export class MappedSegments implements Segments {
  readonly place: string;
  #watch: RemovalWatch | undefined;

  constructor(folder: string) {
    this.place = folder;
  }

  /** A new folder, which must not be there yet: nobody else can have made what is in it. */
  static make(folder: string): MappedSegments {
    try {
      mkdirSync(folder, { mode: FOLDER_MODE });
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
      throw new SituError("SITU_PERMISSION", `${folder} was made by somebody else`, { cause });
    }
    const segments = new MappedSegments(folder);
    segments.checkFolder();
    return segments;
  }

  /** False if the folder is not there; SITU_PERMISSION if it is another user's. */
  checkFolder(): boolean {
    const stats = lstatSync(this.place, { throwIfNoEntry: false });
    if (stats === undefined) return false;
    refuseForeign(this.place, stats, "folder");
    return true;
  }

  has(name: string): boolean {
    return existsSync(join(this.place, name));
  }

  list(): string[] {
    return readdirSync(this.place);
  }

  /** The length of a segment's file, before anything of it is mapped. */
  bytesOf(name: string): number {
    const path = join(this.place, name);
    const stats = lstatSync(path);
    refuseForeign(path, stats, "file");
    return stats.size;
  }

  /** From here on `isLost` tells whether files were removed. `name` is one that stays the same file. */
  watch(name: string): void {
    const { ino } = lstatSync(join(this.place, name));
    this.#watch = new RemovalWatch(this.place, name, ino);
  }

  isLost(expected: () => readonly string[]): boolean {
    return this.#watch?.isLost(expected) ?? false;
  }

  create(name: string, bytes: number, reservedBytes = bytes, patienceMs = HUGE_PAGES_MS): Segment {
    const path = join(this.place, name);
    const fd = this.#open(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    try {
      refuseForeign(path, fstatSync(fd), "file");
      // Asked first: reserving pages until none is left takes long, and takes them from others.
      if (freeBytesOf(this.place) < reservedBytes) throw this.#noRoom(reservedBytes);
      // Emptied first: what a creator who died left behind must not be taken for zeroes.
      ftruncateSync(fd, 0);
      ftruncateSync(fd, bytes);
      const mapping = libc().map(fd, bytes);
      let isRefused = false;
      const collapse = (offset: number, length: number): boolean => {
        isRefused = !mapping.collapse(offset, length);
        return !isRefused;
      };
      let largeBytes: number;
      try {
        largeBytes = fillWithHugePages(fd, reservedBytes, collapse, patienceMs);
        if (libc().reserve(fd, reservedBytes) === "no space") {
          // Not removed: a file that disappears is taken for a loss of memory (removal-watch.ts).
          ftruncateSync(fd, 0);
          throw this.#noRoom(reservedBytes);
        }
      } catch (error) {
        mapping.unmap();
        throw error;
      }
      const segment = segmentOf(mapping);
      if (!isRefused && patienceMs < HUGE_PAGES_MS) {
        segment.improve = (endMs) => {
          largeBytes = improved(mapping, largeBytes, wholePages(reservedBytes), endMs);
          return largeBytes < wholePages(reservedBytes);
        };
      }
      return segment;
    } finally {
      closeSync(fd);
    }
  }

  reserve(name: string, bytes: number): void {
    const fd = this.#open(join(this.place, name), O_RDWR | O_NOFOLLOW);
    try {
      if (libc().reserve(fd, bytes) === "no space") throw this.#noRoom(bytes);
    } finally {
      closeSync(fd);
    }
  }

  vacate(name: string): void {
    const fd = this.#open(join(this.place, name), O_RDWR | O_NOFOLLOW);
    try {
      libc().vacate(fd, fstatSync(fd).size);
    } finally {
      closeSync(fd);
    }
  }

  attach(name: string, bytes: number): Segment {
    const path = join(this.place, name);
    let fd: number;
    try {
      fd = this.#open(path, O_RDWR | O_NOFOLLOW);
    } catch (cause) {
      if (!(cause instanceof SituError) || cause.code !== "SITU_MEMORY_LOST") throw cause;
      throw new SituError("SITU_CORRUPT", `${path} is missing: the store has lost memory`, {
        cause,
      });
    }
    try {
      const stats: Stats = fstatSync(fd);
      refuseForeign(path, stats, "file");
      if (stats.size !== bytes) {
        throw new SituError(
          "SITU_CORRUPT",
          `${path} has ${stats.size} bytes and should have ${bytes}: it was truncated or replaced`,
        );
      }
      return segmentOf(libc().map(fd, bytes));
    } finally {
      closeSync(fd);
    }
  }

  #noRoom(bytes: number): SituError {
    return new SituError(
      "SITU_NO_MEMORY",
      `no room for ${bytes} bytes in ${this.place}: make that file system larger ` +
        `(mount -o remount,size=…), or choose another memoryDir, or a smaller memoryBytes`,
    );
  }

  /** The file stays: one that disappears is taken for a loss of memory (removal-watch.ts). */
  empty(name: string): void {
    const path = join(this.place, name);
    const fd = this.#open(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    try {
      refuseForeign(path, fstatSync(fd), "file");
      ftruncateSync(fd, 0);
    } finally {
      closeSync(fd);
    }
  }

  #open(path: string, flags: number): number {
    try {
      return openSync(path, flags, FILE_MODE);
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (code === "ELOOP") {
        throw new SituError("SITU_PERMISSION", `${path} is a symbolic link`, { cause });
      }
      if (code === "ENOENT") {
        throw new SituError(
          "SITU_MEMORY_LOST",
          `${path} cannot be made or opened: the memory of the store was removed while it was open`,
          { cause },
        );
      }
      throw cause;
    }
  }
}

function segmentOf(mapping: Mapping): Segment {
  const { buffer, address } = mapping;
  return { buffer, address, release: () => mapping.unmap() };
}

/** Asks for more large pages behind the first ones; how many bytes need not be asked for any more. */
function improved(mapping: Mapping, from: number, whole: number, endMs: number): number {
  for (let at = from; at < whole; at += hugePageBytes()) {
    if (at > from && nowMs() >= endMs) return at;
    if (!mapping.collapse(at, hugePageBytes())) return whole;
  }
  return whole;
}
