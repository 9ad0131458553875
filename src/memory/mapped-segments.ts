import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { SituError } from "../runtime/errors.ts";
import { libc } from "./libc.ts";
import type { Segment, Segments } from "./segments.ts";

/** Segments as files of one folder, mapped by every process and worker thread for itself. */
export class MappedSegments implements Segments {
  readonly place: string;

  constructor(folder: string) {
    this.place = folder;
  }

  has(name: string): boolean {
    return existsSync(join(this.place, name));
  }

  /** The length of a segment's file, before anything of it is mapped. */
  bytesOf(name: string): number {
    return statSync(join(this.place, name)).size;
  }

  create(name: string, bytes: number): Segment {
    const path = join(this.place, name);
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      // Emptied first: what a creator who died left behind must not be taken for zeroes.
      ftruncateSync(fd, 0);
      ftruncateSync(fd, bytes);
      if (libc().reserve(fd, bytes) === "no space") {
        rmSync(path, { force: true });
        throw new SituError(
          "SITU_NO_MEMORY",
          `no room for ${bytes} bytes in ${this.place}: make that file system larger ` +
            `(mount -o remount,size=…), or choose another memoryDir, or a smaller memoryBytes`,
        );
      }
      return this.#map(fd, bytes);
    } finally {
      closeSync(fd);
    }
  }

  attach(name: string, bytes: number): Segment {
    const path = join(this.place, name);
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDWR);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
      throw new SituError("SITU_CORRUPT", `${path} is missing: the store has lost memory`, {
        cause,
      });
    }
    try {
      const found = fstatSync(fd).size;
      if (found !== bytes) {
        throw new SituError(
          "SITU_CORRUPT",
          `${path} has ${found} bytes and should have ${bytes}: it was truncated or replaced`,
        );
      }
      return this.#map(fd, bytes);
    } finally {
      closeSync(fd);
    }
  }

  #map(fd: number, bytes: number): Segment {
    const mapping = libc().map(fd, bytes);
    const { buffer, address } = mapping;
    return { buffer, address, release: () => mapping.unmap() };
  }
}
