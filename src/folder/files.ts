/**
 * The seam between Situ and the disk: files of one folder, by name, with the few calls that the log
 * and the checkpoints need. Behind it lie the file system (node-files.ts) and, in tests, a disk
 * that loses power, tears blocks, flips bits and fills up (simulation/faulty-files.ts). All calls are
 * synchronous: they are made by threads that have nothing else to do.
 *
 * What a crash leaves: bytes written before a `sync` that returned are there; others may be there, in
 * any subset of blocks. A file that was created, renamed or removed is so for certain only after
 * `syncFolder`. Failures are thrown as the system's errors, with their `code` (ENOSPC, EIO, …).
 */

export interface StoreFile {
  readonly name: string;
  /** Writes some bytes from the front of the parts, and says how many: see `writeFully`. */
  write(parts: readonly Uint8Array[], at: number): number;
  /** Writes all bytes without holding the thread, where the file system can. */
  writeLater?(bytes: Uint8Array, at: number): Promise<void>;
  /** Fills `into` from a place in the file; says how many bytes there were before its end. */
  read(into: Uint8Array, at: number): number;
  /** The same without holding the thread, where the file system can. */
  readLater?(into: Uint8Array, at: number): Promise<number>;
  /** Returns when all that was written is on disk (fdatasync). */
  sync(): void;
  /** The same without holding the thread, where the file system can. */
  syncLater?(): Promise<void>;
  size(): number;
  truncate(bytes: number): void;
  close(): void;
}

export interface StoreFiles {
  /** The folder, for messages. */
  readonly place: string;
  /**
   * A new file of so many zero bytes for which the disk has room (ENOSPC otherwise), in the place
   * of what had the name before.
   */
  create(name: string, bytes: number): StoreFile;
  /** For reading, and unless `readOnly` for writing. ENOENT if it is not there. */
  open(name: string, readOnly?: boolean): StoreFile;
  has(name: string): boolean;
  /** Names of the files in a folder, sorted; none if the folder is not there. */
  list(folder: string): string[];
  makeFolder(folder: string): void;
  /** Within its folder, in the place of what had the name before: at once, or not at all. */
  rename(from: string, to: string): void;
  /** ENOENT if it is not there. Who has it open goes on reading it. */
  remove(name: string): void;
  /** Makes creations, renames and removals in a folder lasting. "" is the place itself. */
  syncFolder(folder: string): void;
}

/** Damage that was found on disk: never read as data, always told with its place. */
export interface Damage {
  readonly file: string;
  readonly offset: number;
  readonly what: string;
}

/** Writes all bytes, however short the single writes turn out. Returns how many they were. */
export function writeFully(file: StoreFile, parts: readonly Uint8Array[], at: number): number {
  let left = parts;
  let done = 0;
  for (;;) {
    while (left.length > 0 && left[0].length === 0) left = left.slice(1);
    if (left.length === 0) return done;
    const written = file.write(left, at + done);
    if (written <= 0) throw noProgress(file);
    done += written;
    left = without(left, written);
  }
}

function without(parts: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let first = 0;
  let skip = bytes;
  while (first < parts.length && skip >= parts[first].length) skip -= parts[first++].length;
  const left = parts.slice(first);
  if (skip > 0) left[0] = left[0].subarray(skip);
  return left;
}

/** The error for a disk that takes nothing and says nothing. */
export function noProgress(file: StoreFile): NodeJS.ErrnoException {
  return Object.assign(new Error(`nothing could be written to ${file.name}`), { code: "EIO" });
}
