/**
 * The files of a folder, through the file system: for the log, the checkpoints and their tools.
 *
 * A new file gets its room at once, as the file system allows: so a full disk is met where nobody
 * waits, and `fdatasync` of a block that was never written before has no length and little else to
 * update (measured here on ext4: 75 µs, against 110 to 130 µs for a file that grows). It is a new
 * file also where one of that name existed: who reads the old one goes on reading it.
 */

import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  read,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
  write,
  writeSync,
  writevSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { libc } from "../memory/libc.ts";
import { noProgress, type StoreFile, type StoreFiles } from "./files.ts";

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
/** The least that systems take in one call (IOV_MAX). */
const MAX_PARTS = 1_024;
/** Zeroes that are written at a time where room cannot be reserved otherwise. */
const ZERO_BYTES = 1 << 20;
const ENOSPC = 28;

const readLater = promisify(read);
const writeLater = promisify(write);
const syncLater = promisify(fdatasync);

export class NodeFiles implements StoreFiles {
  readonly place: string;

  constructor(folder: string) {
    this.place = folder;
  }

  create(name: string, bytes: number): StoreFile {
    const path = this.#path(name);
    this.#expectRoom(path, bytes);
    rmSync(path, { force: true });
    const { O_RDWR, O_CREAT, O_EXCL } = constants;
    const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL, FILE_MODE);
    try {
      if (bytes > 0) reserve(fd, bytes, path);
    } catch (error) {
      closeSync(fd);
      rmSync(path, { force: true });
      throw error;
    }
    return new NodeFile(name, fd);
  }

  open(name: string, readOnly = false): StoreFile {
    const flags = readOnly ? constants.O_RDONLY : constants.O_RDWR;
    return new NodeFile(name, openSync(this.#path(name), flags));
  }

  has(name: string): boolean {
    return existsSync(this.#path(name));
  }

  list(folder: string): string[] {
    try {
      const entries = readdirSync(this.#path(folder), { withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name)
        .sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }

  makeFolder(folder: string): void {
    makeFolders(this.#path(folder), FOLDER_MODE);
  }

  rename(from: string, to: string): void {
    renameSync(this.#path(from), this.#path(to));
  }

  remove(name: string): void {
    unlinkSync(this.#path(name));
  }

  syncFolder(folder: string): void {
    const fd = openSync(this.#path(folder), constants.O_RDONLY);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  #path(name: string): string {
    return join(this.place, name);
  }

  /** Asked first, for a reservation that fails may have filled the disk for others meanwhile. */
  #expectRoom(path: string, bytes: number): void {
    const { bfree, blocks, bsize } = statfsSync(this.place);
    // Some file systems do not say.
    if (blocks > 0 && bytes > bfree * bsize) throw noSpace(path, bytes);
  }
}

class NodeFile implements StoreFile {
  readonly name: string;
  readonly #fd: number;

  constructor(name: string, fd: number) {
    this.name = name;
    this.#fd = fd;
  }

  write(parts: readonly Uint8Array[], at: number): number {
    const taken = parts.length > MAX_PARTS ? parts.slice(0, MAX_PARTS) : parts;
    return writevSync(this.#fd, taken, at);
  }

  read(into: Uint8Array, at: number): number {
    let done = 0;
    while (done < into.length) {
      const bytes = readSync(this.#fd, into, done, into.length - done, at + done);
      if (bytes === 0) break;
      done += bytes;
    }
    return done;
  }

  async writeLater(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const left = bytes.length - done;
      const { bytesWritten } = await writeLater(this.#fd, bytes, done, left, at + done);
      if (bytesWritten === 0) throw noProgress(this);
      done += bytesWritten;
    }
  }

  async readLater(into: Uint8Array, at: number): Promise<number> {
    let done = 0;
    while (done < into.length) {
      const left = into.length - done;
      const { bytesRead } = await readLater(this.#fd, into, done, left, at + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return done;
  }

  sync(): void {
    fdatasyncSync(this.#fd);
  }

  syncLater(): Promise<void> {
    return syncLater(this.#fd);
  }

  size(): number {
    return fstatSync(this.#fd).size;
  }

  truncate(bytes: number): void {
    ftruncateSync(this.#fd, bytes);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/**
 * Makes a folder and those above it, if they are not there. As `mkdir` with `recursive`, which in Node
 * never returns where a folder cannot be made in one that exists (/proc).
 */
export function makeFolders(path: string, mode: number): void {
  for (let failed = tryFolder(path, mode); failed !== undefined; failed = tryFolder(path, mode)) {
    const above = dirname(path);
    if (existsSync(above)) throw failed;
    makeFolders(above, mode);
  }
}

/** What is wrong, if it may be that a folder above is missing. */
function tryFolder(path: string, mode: number): NodeJS.ErrnoException | undefined {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return error as NodeJS.ErrnoException;
    const isThere = code === "EEXIST" && statSync(path, { throwIfNoEntry: false })?.isDirectory();
    if (isThere !== true) throw error;
  }
  return undefined;
}

function reserve(fd: number, bytes: number, path: string): void {
  if (process.platform === "linux") {
    let result: "ok" | "no space" | undefined;
    try {
      result = libc().reserve(fd, bytes);
    } catch {
      // No FFI here, or a file system that cannot: zeroes take the room as well.
    }
    if (result === "ok") return;
    if (result === "no space") throw noSpace(path, bytes);
  }
  const zeroes = Buffer.alloc(Math.min(bytes, ZERO_BYTES));
  for (let at = 0; at < bytes; ) {
    at += writeSync(fd, zeroes, 0, Math.min(zeroes.length, bytes - at), at);
  }
}

function noSpace(path: string, bytes: number): NodeJS.ErrnoException {
  const error = new Error(`ENOSPC: no space left on device, ${bytes} bytes for '${path}'`);
  return Object.assign(error, { code: "ENOSPC", errno: -ENOSPC, syscall: "fallocate", path });
}
