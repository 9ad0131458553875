/**
 * The records of batches that a scan has found. Their checksum is looked at again, because between
 * the scan and now lies a disk; what does not match is refused with its place.
 */

import type { StoreFile, StoreFiles } from "../../folder/files.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { SituError } from "../../runtime/errors.ts";
import { unpack } from "./packing.ts";
import { type LogBatch, readAt } from "./segment-reader.ts";

/** Read at once, so that many small batches do not cost a call each. */
const WINDOW_BYTES = 1 << 20;

/** Reads batch after batch, quickest in their order. One file at a time is open. */
export class PayloadReader {
  readonly #files: StoreFiles;
  #file: StoreFile | undefined;
  #window = Buffer.alloc(0);
  #unpacked: Int32Array = new Int32Array(0);
  /** The part of the file that the window holds. */
  #from = 0;
  #to = 0;

  constructor(files: StoreFiles) {
    this.#files = files;
  }

  /** The words stay as they are until the next call. */
  read(batch: LogBatch): Int32Array {
    const { payloadAt, payloadBytes } = batch;
    const file = this.#fileOf(batch);
    if (payloadAt < this.#from || payloadAt + payloadBytes > this.#to) this.#load(file, batch);
    if (payloadAt + payloadBytes > this.#to) throw damaged(batch, "the file ends within a batch");
    const start = payloadAt - this.#from;
    const payload = this.#window.subarray(start, start + payloadBytes);
    if (crc32(payload) !== batch.payloadCrc) {
      throw damaged(batch, "the checksum of a batch's payload is wrong");
    }
    if (batch.isPacked === true) {
      const words = unpack(payload, this.#unpacked);
      if (words === undefined) throw damaged(batch, "a batch's payload cannot be unpacked");
      if (words.length > this.#unpacked.length) this.#unpacked = words;
      return words;
    }
    return new Int32Array(payload.buffer, payload.byteOffset, payloadBytes / 4);
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #fileOf(batch: LogBatch): StoreFile {
    if (this.#file?.name === batch.file) return this.#file;
    this.close();
    this.#file = this.#files.open(batch.file, true);
    this.#from = 0;
    this.#to = 0;
    return this.#file;
  }

  #load(file: StoreFile, { payloadAt, payloadBytes }: LogBatch): void {
    const bytes = Math.max(payloadBytes, Math.min(file.size(), WINDOW_BYTES));
    // Not from Node's pool, where a place is not at a whole word of its own.
    if (this.#window.length < bytes) this.#window = Buffer.from(new ArrayBuffer(bytes));
    this.#from = payloadAt;
    this.#to = payloadAt + readAt(file, this.#window, payloadAt);
  }
}

/** The records of one batch. */
export function readPayload(files: StoreFiles, batch: LogBatch): Int32Array {
  const reader = new PayloadReader(files);
  try {
    return reader.read(batch).slice();
  } finally {
    reader.close();
  }
}

function damaged({ file, offset }: LogBatch, what: string): SituError {
  return new SituError("SITU_CORRUPT", `${file} is damaged at byte ${offset}: ${what}`);
}
