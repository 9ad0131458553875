/**
 * Reads one segment through a window of bounded size, however long its batches are: a batch at a
 * place, with both its checksums; or the next place where one begins.
 */

import type { StoreFile } from "../../folder/files.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  BATCH_HEADER_BYTES,
  type BatchHeader,
  batchBytes,
  decodeBatchHeader,
  hasBatchMagic,
} from "./format.ts";

const WINDOW_BYTES = 1 << 20;
/** Batches begin at multiples of this. */
const STEP_BYTES = 8;

/** A batch and where it lies. */
export interface LogBatch extends BatchHeader {
  readonly file: string;
  readonly offset: number;
  readonly payloadAt: number;
}

/** No sound batch lies here. `header` is there if only the payload is wrong. */
export interface Flaw {
  readonly offset: number;
  readonly what: string;
  readonly header: LogBatch | undefined;
}

export function isFlaw(found: LogBatch | Flaw): found is Flaw {
  return "what" in found;
}

/** Where the next batch of the segment begins. */
export function endOf(batch: LogBatch): number {
  return batch.offset + batchBytes(batch.payloadBytes);
}

export class SegmentReader {
  readonly name: string;
  readonly #file: StoreFile;
  readonly #number: number;
  readonly #salt: number | undefined;
  readonly #window: Buffer;
  /** The part of the file that the window holds. */
  #from = 0;
  #to = 0;
  #bytes: number;

  /** Without a salt (format.ts) a batch is known by its payload's checksum alone. */
  constructor(file: StoreFile, number: number, salt: number | undefined) {
    this.name = file.name;
    this.#file = file;
    this.#number = number;
    this.#salt = salt;
    this.#bytes = file.size();
    this.#window = Buffer.alloc(Math.min(this.#bytes, WINDOW_BYTES));
  }

  /** The length of the file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Reads anew what may have been written meanwhile. */
  refresh(): void {
    this.#to = this.#from;
  }

  /** The batch at a place, if all of it is sound. */
  batchAt(offset: number): LogBatch | Flaw {
    const header = this.#headerAt(offset);
    if (typeof header === "string") return { offset, what: header, header: undefined };
    if (this.#crc(header.payloadAt, header.payloadBytes) === header.payloadCrc) return header;
    return { offset, what: "the checksum of a batch's payload is wrong", header };
  }

  /**
   * The first place from `offset` on where a batch begins whose last epoch is later than `epoch`.
   * Its header is sound; its payload need not be, unless the header's checksum cannot be told.
   */
  findBatch(offset: number, epoch: number): LogBatch | undefined {
    let at = Math.ceil(offset / STEP_BYTES) * STEP_BYTES;
    while (at + BATCH_HEADER_BYTES <= this.bytes) {
      const start = this.#load(at, BATCH_HEADER_BYTES);
      if (start < 0) break;
      const steps = Math.floor((this.#to - at - BATCH_HEADER_BYTES) / STEP_BYTES) + 1;
      let step = 0;
      while (step < steps && !hasBatchMagic(this.#window, start + step * STEP_BYTES)) step++;
      at += step * STEP_BYTES;
      if (step === steps) continue;
      const found = this.#candidate(at, epoch);
      if (found !== undefined) return found;
      at += STEP_BYTES;
    }
    return undefined;
  }

  /** Whether nothing but zeroes lies from a place on: reserved, and not written yet. */
  isZeroFrom(offset: number): boolean {
    for (let at = offset; at < this.bytes; at = this.#to) {
      const start = this.#load(at, 1);
      if (start < 0) break;
      const end = this.#to - this.#from;
      for (let i = start; i < end; i++) if (this.#window[i] !== 0) return false;
    }
    return true;
  }

  #candidate(offset: number, epoch: number): LogBatch | undefined {
    const header = this.#headerAt(offset);
    if (typeof header === "string" || header.last <= epoch) return undefined;
    if (this.#salt !== undefined) return header;
    const found = this.batchAt(offset);
    return isFlaw(found) ? undefined : found;
  }

  #headerAt(offset: number): LogBatch | string {
    if (offset >= this.bytes) return "the segment ends here";
    if (offset + BATCH_HEADER_BYTES > this.bytes) return "the file ends within a batch's header";
    const at = this.#load(offset, BATCH_HEADER_BYTES);
    if (at < 0) return "the file was shortened";
    const header = decodeBatchHeader(this.#window, at, this.#number, this.#salt);
    if (typeof header === "string") return header;
    if (offset + batchBytes(header.payloadBytes) > this.bytes)
      return "the file ends within a batch";
    const payloadAt = offset + BATCH_HEADER_BYTES;
    return { file: this.name, offset, payloadAt, ...header };
  }

  #crc(from: number, bytes: number): number {
    let crc = 0;
    const to = from + bytes;
    for (let at = from; at < to; ) {
      const start = this.#load(at, 1);
      if (start < 0) return -1;
      const piece = this.#window.subarray(start, start + Math.min(to, this.#to) - at);
      crc = crc32(piece, crc);
      at += piece.length;
    }
    return crc;
  }

  /**
   * Has these bytes of the file in the window, and says where; -1 if they are there no more, because
   * the writer has left the segment and given back what it did not use.
   */
  #load(offset: number, bytes: number): number {
    if (offset < this.#from || offset + bytes > this.#to) {
      const found = readAt(this.#file, this.#window, offset);
      this.#from = offset;
      this.#to = offset + found;
      if (found < bytes) {
        this.#bytes = Math.min(this.#bytes, this.#to);
        return -1;
      }
    }
    return offset - this.#from;
  }
}

/** Reads as much as there is; what the disk cannot give back is told with its place. */
export function readAt(file: StoreFile, into: Uint8Array, offset: number): number {
  try {
    return file.read(into, offset);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EIO") throw cause;
    throw new SituError(
      "SITU_CORRUPT",
      `${file.name} cannot be read at byte ${offset}: ${(cause as Error).message}`,
      { cause },
    );
  }
}
