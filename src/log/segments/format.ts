/**
 * A batch in the log: what was committed in some epochs, whole, under two checksums. It begins at a
 * multiple of eight bytes; all numbers are little-endian:
 *
 *    0  u32  magic, "BTCH"              4  u32  number of the segment
 *    8  u32  bytes of the payload      12  u32  records in it
 *   16  u64  after this epoch…         24  u64  …up to this one
 *   32  f64  when it was closed, wall clock in ms
 *   40  u32  CRC-32 of the payload     44  u32  CRC-32 of bytes 0 to 43, of this log
 *   48  the payload: records as in the journals (engine/journal.ts), without their redo words, back to back,
 *       whole words, or packed (packing.ts) if the magic is "BTCP"; then zeroes up to a multiple of eight bytes
 *
 * The checksum of the header starts from that of the log's id. So a batch of another log, say one
 * that a user keeps as a value in a row, is never taken for one of this log, wherever it lies.
 */

import { crc32 } from "../../runtime/checksum.ts";
import { SituError } from "../../runtime/errors.ts";

const MAGIC = 0x48435442;
/** "BTCP": the payload is packed. */
const PACKED_MAGIC = 0x50435442;
export const BATCH_HEADER_BYTES = 48;
const NUMBER_AT = 4;
const PAYLOAD_BYTES_AT = 8;
const RECORDS_AT = 12;
const AFTER_AT = 16;
const LAST_AT = 24;
const CLOSED_AT = 32;
const PAYLOAD_CRC_AT = 40;
const HEADER_CRC_AT = 44;

/** An epoch has 44 bits (engine/tid.ts). */
const EPOCH_HIGH_LIMIT = 1 << 12;
const MAX_PAYLOAD_BYTES = 0xffff_fffc;
/** The shortest record: its header. */
const MIN_RECORD_WORDS = 4;

/** What a batch is about: the records of all epochs after `after`, up to `last`. */
export interface BatchContent {
  readonly after: number;
  readonly last: number;
  readonly records: number;
  readonly closedMs: number;
  /** Whether the payload is packed (packing.ts). */
  readonly isPacked?: boolean;
}

export interface BatchHeader extends BatchContent {
  /** Of the segment. */
  readonly number: number;
  readonly payloadBytes: number;
  readonly payloadCrc: number;
}

/** Where the checksums of a log's batch headers start from. */
export function saltOf(logId: string): number {
  return crc32(logId);
}

/** Bytes that a batch takes in its segment, with its header and the zeroes at its end. */
export function batchBytes(payloadBytes: number): number {
  return BATCH_HEADER_BYTES + payloadBytes + (payloadBytes & 4);
}

export function encodeBatchHeader(into: Buffer, header: BatchHeader, salt: number): void {
  const { payloadBytes } = header;
  if (payloadBytes % 4 !== 0 || payloadBytes > MAX_PAYLOAD_BYTES) {
    throw new RangeError(`a batch cannot have ${payloadBytes} bytes`);
  }
  into.writeUInt32LE(header.isPacked === true ? PACKED_MAGIC : MAGIC, 0);
  into.writeUInt32LE(header.number, NUMBER_AT);
  into.writeUInt32LE(payloadBytes, PAYLOAD_BYTES_AT);
  into.writeUInt32LE(header.records, RECORDS_AT);
  writeEpoch(into, header.after, AFTER_AT);
  writeEpoch(into, header.last, LAST_AT);
  into.writeDoubleLE(header.closedMs, CLOSED_AT);
  into.writeUInt32LE(header.payloadCrc, PAYLOAD_CRC_AT);
  into.writeUInt32LE(crc32(into.subarray(0, HEADER_CRC_AT), salt), HEADER_CRC_AT);
}

/** Whether the first bytes are those of a batch; quick, for a search. */
export function hasBatchMagic(bytes: Buffer, at: number): boolean {
  const magic = bytes.readUInt32LE(at);
  return magic === MAGIC || magic === PACKED_MAGIC;
}

/**
 * The header of a batch of this segment, or what is wrong with it. Without a salt (the head of the
 * segment is lost, and the id of the log with it) its checksum is not looked at.
 */
export function decodeBatchHeader(
  bytes: Buffer,
  at: number,
  number: number,
  salt: number | undefined,
): BatchHeader | string {
  if (!hasBatchMagic(bytes, at)) return "no batch begins here";
  if (salt !== undefined) {
    const found = crc32(bytes.subarray(at, at + HEADER_CRC_AT), salt);
    if (found !== bytes.readUInt32LE(at + HEADER_CRC_AT)) {
      return "the checksum of a batch's header is wrong";
    }
  }
  const header = {
    number: bytes.readUInt32LE(at + NUMBER_AT),
    payloadBytes: bytes.readUInt32LE(at + PAYLOAD_BYTES_AT),
    records: bytes.readUInt32LE(at + RECORDS_AT),
    after: readEpoch(bytes, at + AFTER_AT),
    last: readEpoch(bytes, at + LAST_AT),
    closedMs: bytes.readDoubleLE(at + CLOSED_AT),
    ...(bytes.readUInt32LE(at) === PACKED_MAGIC && { isPacked: true }),
    payloadCrc: bytes.readUInt32LE(at + PAYLOAD_CRC_AT),
  };
  if (header.number !== number) return `the batch belongs to segment ${header.number}`;
  // NaN, for an epoch that cannot be, is not less than anything.
  const isPossible = header.payloadBytes % 4 === 0 && header.after < header.last;
  return isPossible ? header : "the header of a batch is impossible";
}

/** Calls `visit` with the place of each record in a payload, and its length in words. */
export function forEachRecord(
  words: Int32Array,
  visit: (at: number, length: number) => void,
): void {
  let at = 0;
  while (at < words.length) {
    const length = words[at];
    if (length < MIN_RECORD_WORDS || length > words.length - at) {
      throw new SituError(
        "SITU_CORRUPT",
        `a batch holds a record of ${length} words at its word ${at}, of ${words.length}`,
      );
    }
    visit(at, length);
    at += length;
  }
}

function writeEpoch(into: Buffer, epoch: number, at: number): void {
  into.writeUInt32LE(epoch % 2 ** 32, at);
  into.writeUInt32LE(Math.floor(epoch / 2 ** 32), at + 4);
}

function readEpoch(from: Buffer, at: number): number {
  const high = from.readUInt32LE(at + 4);
  return high < EPOCH_HIGH_LIMIT ? high * 2 ** 32 + from.readUInt32LE(at) : Number.NaN;
}
