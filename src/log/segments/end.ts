/**
 * The record of the log's end, in the file log/end: what must be there, whatever else is.
 *
 *   number   a segment of this number exists, with its head
 *   epoch    the log reaches this epoch
 *   bytes    the length of that segment, if its writer closed it; null while it is being written
 *
 * Without it, a last segment that was removed, emptied or cut behind a batch looks like a log that
 * ended earlier. All three are lower bounds. They are written when a segment has got its head, before
 * its first batch (once per 16 MiB), and when the writer closes the log; a commit costs nothing. So
 * nothing has to be taken back after a crash, either: the log may have got further than the record
 * says, but never less far. What was written since the record after an unclean end is a matter of the
 * checksums, as before: only the last batch may be torn.
 *
 * Crash points. The order is always: the segment's head is synced; the record is synced; the first
 * batch is written. A crash before the record leaves a segment without batches that the record does not
 * know: it does no harm. On closing: the batches are synced; the record is synced; the file is cut to
 * its length. A file that is shorter than the room reserved for it, and that no record calls closed,
 * was cut by somebody else.
 *
 * The file has two places of HEAD_BYTES, in blocks of their own, written in turn and told apart by
 * a sequence number: a record that was torn leaves the one before it. It is made under another name and
 * renamed, so that there is always one that can be read.
 *
 * The record also names the memory that writes the log, and each writer looks at it before it
 * replaces it. If it finds there a memory that is neither its own nor one that its own was rebuilt
 * from, two memories write one log (memories.ts). It then records that instead; from there on nobody writes the
 * log and nobody calls it sound.
 */

import { OTHER_WRITER_ERRNO } from "../../engine/durability.ts";
import { type Damage, type StoreFile, type StoreFiles, writeFully } from "../../folder/files.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { SituError } from "../../runtime/errors.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";
import { decodeHead, encodeHead, isDamage } from "../head.ts";

export const END_NAME = "log/end";
const UNFINISHED_NAME = "log/end.new";
const LOG_FOLDER = "log";
const MAGIC = "SITUEND1";
/** The two places lie in different blocks of the disk. */
const PLACES = [0, 4_096] as const;
const FILE_BYTES = 8_192;
const CRC_AT = HEAD_BYTES - 4;

export interface LogEnd {
  readonly logId: string;
  /** The memory whose commits the segment holds. */
  readonly memoryId?: string | undefined;
  readonly number: number;
  readonly epoch: number;
  readonly bytes: number | null;
  /** Two memories that have written this log at the same time. */
  readonly writers?: readonly string[];
}

/** Who is about to write: see LogIdentity. */
export interface LogMemory {
  readonly logId: string;
  readonly memoryId?: string | undefined;
  readonly origin?: number | undefined;
}

interface Found {
  readonly end: LogEnd;
  readonly sequence: number;
  readonly place: number;
}

/** The record; what is wrong with it; or undefined if there is none, as in older logs. */
export function readLogEnd(files: StoreFiles): LogEnd | Damage | undefined {
  try {
    return readOrFail(files);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EIO") throw error;
    return { file: END_NAME, offset: 0, what: "the disk does not give it back" };
  }
}

function readOrFail(files: StoreFiles): LogEnd | Damage | undefined {
  const file = openEnd(files, true);
  if (file === undefined) return undefined;
  try {
    const found = newest(file);
    return isDamage(found) ? found : found.end;
  } finally {
    file.close();
  }
}

/** What is wrong with one of its two places. After a crash one may be torn; otherwise it is damage. */
export function damageOfLogEnd(files: StoreFiles): Damage | undefined {
  const file = openEnd(files, true);
  if (file === undefined) return undefined;
  try {
    return readPlaces(file).damage;
  } finally {
    file.close();
  }
}

/**
 * Replaces the record, unless another memory has written to the log. Returns when it is on disk. `sync`
 * runs the steps after whose failure nobody knows which record is there.
 */
export function writeLogEnd(
  files: StoreFiles,
  end: LogEnd,
  memory: LogMemory,
  sync: (work: () => void) => void = (work) => work(),
): void {
  const other = otherWriter(readOrFail(files), memory);
  if (other === undefined) {
    replace(files, end, sync);
    return;
  }
  const writers = other.writers ?? [other.memoryId!, memory.memoryId!];
  if (other.writers === undefined) replace(files, { ...other, writers }, sync);
  throw twoWriters(files, writers);
}

/** The first record of a log that is begun anew: in a file of its own, whatever the disk does to the old. */
export function beginLogEnd(
  files: StoreFiles,
  end: LogEnd,
  sync: (work: () => void) => void,
): void {
  create(files, end, sync);
}

/**
 * Refuses if another memory has written to the log since this one was made. A record that the disk does
 * not give back may name one, so that is a failure; unless the log is begun anew, and the record with it.
 */
export function refuseOtherWriter(files: StoreFiles, memory: LogMemory, isNew = false): void {
  const other = otherWriter(isNew ? readLogEnd(files) : readOrFail(files), memory);
  if (other === undefined) return;
  throw twoWriters(files, other.writers ?? [other.memoryId!, memory.memoryId!]);
}

/** What the record tells of another writer. One that is damaged is written anew. */
function otherWriter(found: LogEnd | Damage | undefined, memory: LogMemory): LogEnd | undefined {
  if (found === undefined || isDamage(found) || found.logId !== memory.logId) return undefined;
  if (found.writers !== undefined) return found;
  const { memoryId, number } = found;
  if (memoryId === undefined || memory.memoryId === undefined) return undefined;
  // A record of an earlier memory stands until this one writes its first segment.
  const isMine = memoryId === memory.memoryId || number <= (memory.origin ?? 0);
  return isMine ? undefined : found;
}

function replace(files: StoreFiles, end: LogEnd, sync: (work: () => void) => void): void {
  const file = openEnd(files, false);
  if (file === undefined) {
    create(files, end, sync);
    return;
  }
  try {
    const found = newest(file);
    const [sequence, place] = isDamage(found) ? [0, 1] : [found.sequence, found.place];
    writeFully(file, [encode(end, sequence + 1)], PLACES[1 - place]);
    sync(() => file.sync());
  } finally {
    file.close();
  }
}

function create(files: StoreFiles, end: LogEnd, sync: (work: () => void) => void): void {
  const file = files.create(UNFINISHED_NAME, FILE_BYTES);
  try {
    writeFully(file, [encode(end, 1)], PLACES[0]);
    sync(() => file.sync());
  } finally {
    file.close();
  }
  sync(() => {
    files.rename(UNFINISHED_NAME, END_NAME);
    files.syncFolder(LOG_FOLDER);
  });
}

/** Its last word is a checksum of all before it: a write that failed half-way is not taken for one. */
function encode(end: LogEnd, sequence: number): Buffer {
  const head = encodeHead(MAGIC, { sequence, ...end });
  head.writeUInt32LE(crc32(head.subarray(0, CRC_AT)), CRC_AT);
  return head;
}

function decode(bytes: Buffer, file: string): object | Damage {
  const content = decodeHead(MAGIC, bytes, file);
  if (isDamage(content) || crc32(bytes.subarray(0, CRC_AT)) === bytes.readUInt32LE(CRC_AT)) {
    return content;
  }
  return { file, offset: 0, what: "the checksum of a record of the log's end is wrong" };
}

function newest(file: StoreFile): Found | Damage {
  const { found, damage } = readPlaces(file);
  return found ?? damage!;
}

function readPlaces(file: StoreFile): { found: Found | undefined; damage: Damage | undefined } {
  let found: Found | undefined;
  let damage: Damage | undefined;
  const bytes = Buffer.alloc(HEAD_BYTES);
  for (let place = 0; place < PLACES.length; place++) {
    const length = file.read(bytes, PLACES[place]);
    const content = decode(bytes.subarray(0, length), file.name);
    if (isDamage(content)) {
      damage ??= { ...content, offset: PLACES[place] + content.offset };
      continue;
    }
    const { sequence, ...end } = content as LogEnd & { sequence: number };
    if (found === undefined || sequence > found.sequence) found = { end, sequence, place };
  }
  return { found, damage };
}

function openEnd(files: StoreFiles, readOnly: boolean): StoreFile | undefined {
  try {
    return files.open(END_NAME, readOnly);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export function shownWriters(writers: readonly string[]): string {
  return `two memories of the store (${writers.join(" and ")}) have written this log at once`;
}

function twoWriters(files: StoreFiles, writers: readonly string[]): SituError {
  const error = new SituError(
    "SITU_CORRUPT",
    `${files.place}/${END_NAME}: ${shownWriters(writers)}, so what either of them has written may be lost. ` +
      `Restore the store from a backup, or to a point in time before that`,
  );
  return Object.assign(error, { errno: OTHER_WRITER_ERRNO });
}
