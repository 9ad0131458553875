/**
 * A checkpoint file. All numbers are little-endian, all parts are multiples of eight bytes:
 *
 *   head      HEAD_BYTES: magic and JSON (log/head.ts)
 *   chunks    one after the other, each the content of one block
 *   index     one entry for every block, and for every free unit that was once part of one
 *   trailer   at the very end: when and how far, where the index is, checksums
 *
 * The trailer is written last: a file without a sound one is no checkpoint. The index is what the
 * block table was (memory/blocks.ts), and where the chunks are, so that several threads can load
 * them. In a delta, the index has all blocks too, but only those have a chunk in which something has
 * changed since the checkpoint that it builds on; and the chunk has only that, unless the block
 * was made since: then it is whole.
 *
 * Chunk: a header, then words of the block, then which words they are:
 *    0  u32  magic, "BLCK"
 *    4  u32  unit that the block begins with; units are numbered through all regions
 *    8  u32  size class + 1, and above 16 bits 1 if the chunk is whole
 *   12  u32  first incarnation          16  u32  format epoch
 *   20  u32  bytes of the payload       24  u32  runs
 *   28  u32  CRC-32 of bytes 0 to 27 and of the payload
 *   32  the payload: the words of all runs, then for each run its first word, counted from the
 *       block's, and the number of its words
 * What is in no run is as in a new block: zeroes, and the first incarnation in each cell.
 *
 * Entry of the index:
 *    0  u32  unit
 *    4  u32  size class + 1 (0: the unit is free), and above 16 bits 1 if the chunk is whole
 *    8  u32  first incarnation          12  u32  format epoch
 *   16  f64  since: no record before this epoch is about this block. 0 if it is older than the
 *            checkpoint
 *   24  f64  where the chunk is; 0 if there is none
 *   32  u32  bytes of its payload       36  u32  its CRC-32
 *
 * Trailer:
 *    0  magic, "SITUCEND"
 *    8  f64  start epoch: all that was committed up to it is in the checkpoint
 *   16  f64  end epoch: the log must reach it. No record after it is about what was copied
 *   24  f64  when it was closed, wall clock in ms
 *   32  f64  where the index is         40  u32  entries of the index
 *   44  u32  chunks                     48  u32  CRC-32 of the head
 *   52  u32  CRC-32 of the index
 *   56  f64  the log must reach this epoch; QUIET if it needs no log
 *   64  u32  0                          68  u32  CRC-32 of bytes 0 to 67
 */

import type { Geometry } from "../../memory/control.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";

export const CHECKPOINTS_FOLDER = "checkpoints";
export const CHECKPOINT_MAGIC = "SITUCKP1";
/** 1: an object may be torn, until the records after the start epoch are applied to it. */
export const CHECKPOINT_FORMAT = 2;
export const TORN_FORMAT = 1;
/** While it is being written. */
export const UNFINISHED = ".new";

export type CheckpointKind = "full" | "delta";

/** Where the store's catalogue is. */
export interface CataloguePlace {
  readonly regionId: number;
  readonly word: number;
}

export interface CheckpointHead {
  readonly format: number;
  readonly logId: string;
  readonly kind: CheckpointKind;
  /** The start epoch of the checkpoint that a delta builds on. */
  readonly base: number | null;
  readonly startEpoch: number;
  readonly createdMs: number;
  readonly geometry: Geometry;
  /** How large the store might be then; see LogIdentity. */
  readonly memoryBytes?: number;
  readonly catalogue: CataloguePlace;
}

export const CHUNK_MAGIC = 0x4b434c42;
export const CHUNK_HEADER_BYTES = 32;
export const CHUNK_HEADER_WORDS = CHUNK_HEADER_BYTES / 4;
export const CHUNK_UNIT = 1;
export const CHUNK_SHAPE = 2;
export const CHUNK_FIRST_INCARNATION = 3;
export const CHUNK_FORMAT_EPOCH = 4;
export const CHUNK_PAYLOAD_BYTES = 5;
export const CHUNK_RUNS = 6;
export const CHUNK_CRC = 7;
/** What the checksum of a chunk covers of its header. */
export const CHUNK_CRC_AT = 4 * CHUNK_CRC;

/** In the word that begins with the class: the chunk is all that its block has. */
export const WHOLE = 1 << 16;
export const CLASS_MASK = 0xffff;

export const ENTRY_BYTES = 40;
export const ENTRY_WORDS = ENTRY_BYTES / 4;
export const ENTRY_UNIT = 0;
export const ENTRY_SHAPE = 1;
export const ENTRY_FIRST_INCARNATION = 2;
export const ENTRY_FORMAT_EPOCH = 3;
/** In words of eight bytes. */
export const ENTRY_SINCE_F64 = 2;
export const ENTRY_PLACE_F64 = 3;
export const ENTRY_PAYLOAD_BYTES = 8;
export const ENTRY_CRC = 9;

export const TRAILER_BYTES = 72;
const TRAILER_MAGIC = "SITUCEND";
const TRAILER_CRC_AT = 68;
/** In the place of the epoch that the log must reach: whoever made it was alone in the store. */
export const QUIET = -1;

export interface Trailer {
  readonly startEpoch: number;
  readonly endEpoch: number;
  readonly logEpoch: number;
  readonly closedMs: number;
  readonly indexAt: number;
  readonly entries: number;
  readonly chunks: number;
  readonly headCrc: number;
  readonly indexCrc: number;
}

export function encodeTrailer(trailer: Trailer): Buffer {
  const bytes = Buffer.alloc(TRAILER_BYTES);
  bytes.write(TRAILER_MAGIC, 0, "latin1");
  bytes.writeDoubleLE(trailer.startEpoch, 8);
  bytes.writeDoubleLE(trailer.endEpoch, 16);
  bytes.writeDoubleLE(trailer.closedMs, 24);
  bytes.writeDoubleLE(trailer.indexAt, 32);
  bytes.writeUInt32LE(trailer.entries, 40);
  bytes.writeUInt32LE(trailer.chunks, 44);
  bytes.writeUInt32LE(trailer.headCrc, 48);
  bytes.writeUInt32LE(trailer.indexCrc, 52);
  bytes.writeDoubleLE(trailer.logEpoch, 56);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, TRAILER_CRC_AT)), TRAILER_CRC_AT);
  return bytes;
}

/** The trailer of a file of this length, or what is wrong with it. */
export function decodeTrailer(bytes: Buffer, fileBytes: number): Trailer | string {
  if (bytes.toString("latin1", 0, 8) !== TRAILER_MAGIC)
    return "it has no trailer: it was not finished";
  if (crc32(bytes.subarray(0, TRAILER_CRC_AT)) !== bytes.readUInt32LE(TRAILER_CRC_AT)) {
    return "the checksum of its trailer is wrong";
  }
  const trailer = {
    startEpoch: bytes.readDoubleLE(8),
    endEpoch: bytes.readDoubleLE(16),
    closedMs: bytes.readDoubleLE(24),
    indexAt: bytes.readDoubleLE(32),
    entries: bytes.readUInt32LE(40),
    chunks: bytes.readUInt32LE(44),
    headCrc: bytes.readUInt32LE(48),
    indexCrc: bytes.readUInt32LE(52),
    logEpoch: bytes.readDoubleLE(56),
  };
  const end = trailer.indexAt + trailer.entries * ENTRY_BYTES + TRAILER_BYTES;
  if (end !== fileBytes || !(trailer.indexAt >= HEAD_BYTES) || trailer.indexAt % 8 !== 0) {
    return "its length is not what its trailer says";
  }
  return trailer;
}

/** Padded, so that names sort as epochs do. */
const EPOCH_DIGITS = 16;
const NAME = /^(\d{16})\.(full|delta)$/;

/** The name of a checkpoint in the store's folder. */
export function checkpointName(startEpoch: number, kind: CheckpointKind): string {
  const epoch = String(startEpoch).padStart(EPOCH_DIGITS, "0");
  return `${CHECKPOINTS_FOLDER}/${epoch}.${kind}`;
}

/** What the name of a file in the checkpoints' folder says, or undefined if it is none. */
export function parseName(name: string): { startEpoch: number; kind: CheckpointKind } | undefined {
  const match = NAME.exec(name);
  if (match === null) return undefined;
  return { startEpoch: Number(match[1]), kind: match[2] as CheckpointKind };
}
