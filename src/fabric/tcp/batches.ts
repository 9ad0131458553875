/**
 * What leaves a connection is authenticated where there is a secret and no TLS. All frames of one write
 * are a batch, with one tag; a long write is several:
 *
 *   [ length in bytes | tag, 16 bytes | frames, or a part of them ]
 *
 * Frames are an even number of words, so a length is a multiple of 8.
 *
 * The tag also depends on what came before (runtime/tag-stream.ts): nothing can be changed, repeated, left out
 * or put elsewhere. A batch is handed on when all of it has arrived and its tag is right, not before. What
 * can be done to a connection is to end it.
 *
 * Nothing is encrypted: for that there is TLS.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_BATCH_BYTES } from "../../runtime/limits.ts";
import { isProof } from "../../runtime/secret.ts";
import { TAG_BYTES, TagStream } from "../../runtime/tag-stream.ts";

export const BATCH_HEADER_BYTES = 4 + TAG_BYTES;
/** A reader's own memory at first, until a longer batch comes in pieces. */
const OWN_BYTES = 2 * 1024;

export class BatchWriter {
  readonly #tags: TagStream;

  constructor(key: Uint8Array) {
    this.#tags = new TagStream(key);
  }

  /** How many bytes so many become. */
  static bytesFor(bytes: number): number {
    return bytes + Math.ceil(bytes / MAX_BATCH_BYTES) * BATCH_HEADER_BYTES;
  }

  /** Writes all bytes as batches to `out`, which has room for them. */
  write(bytes: Uint8Array, out: Buffer): void {
    const tags = this.#tags;
    let to = 0;
    for (let from = 0; from < bytes.length; from += MAX_BATCH_BYTES) {
      const batch = bytes.subarray(from, from + MAX_BATCH_BYTES);
      tags.next(batch);
      out.writeInt32LE(batch.length, to);
      out.set(tags.tag, to + 4);
      out.set(batch, to + BATCH_HEADER_BYTES);
      to += BATCH_HEADER_BYTES + batch.length;
    }
  }
}

export class BatchReader {
  readonly #tags: TagStream;
  #chunk: Buffer = NOTHING;
  #at = 0;
  /** The beginning of a batch whose rest has not arrived. */
  #begun: Buffer = NOTHING;
  #begunBytes = 0;

  constructor(key: Uint8Array) {
    this.#tags = new TagStream(key);
  }

  /** Takes a chunk. Call `next` until there is nothing more. */
  push(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#at = 0;
  }

  /**
   * What is in the next batch, until the next call; undefined if the rest of it is still to come. Throws
   * SITU_SECRET for what the other end has not sent like this.
   */
  next(): Uint8Array | undefined {
    const chunk = this.#chunk;
    const from = this.#at;
    const there = chunk.length - from;
    if (this.#begunBytes === 0 && there >= BATCH_HEADER_BYTES) {
      const bytes = BATCH_HEADER_BYTES + lengthOf(chunk, from);
      if (there >= bytes) {
        this.#at = from + bytes;
        return this.#checked(chunk, from, bytes);
      }
    }
    if (!this.#gather(BATCH_HEADER_BYTES)) return undefined;
    const bytes = BATCH_HEADER_BYTES + lengthOf(this.#begun, 0);
    if (!this.#gather(bytes)) return undefined;
    this.#begunBytes = 0;
    return this.#checked(this.#begun, 0, bytes);
  }

  /** Moves what the batch that has begun lacks of so many bytes; false if the chunk has less. */
  #gather(bytes: number): boolean {
    const has = this.#begunBytes;
    const more = Math.min(bytes - has, this.#chunk.length - this.#at);
    if (more > 0) {
      if (this.#begun.length < bytes) {
        const most = BATCH_HEADER_BYTES + MAX_BATCH_BYTES;
        const larger = Buffer.allocUnsafeSlow(bytes <= OWN_BYTES ? OWN_BYTES : most);
        larger.set(this.#begun.subarray(0, has));
        this.#begun = larger;
      }
      this.#chunk.copy(this.#begun, has, this.#at, this.#at + more);
      this.#begunBytes = has + more;
      this.#at += more;
    }
    if (this.#at === this.#chunk.length) {
      this.#chunk = NOTHING;
      this.#at = 0;
    }
    return this.#begunBytes >= bytes;
  }

  #checked(memory: Buffer, from: number, bytes: number): Uint8Array {
    const batch = memory.subarray(from + BATCH_HEADER_BYTES, from + bytes);
    this.#tags.next(batch);
    const given = memory.subarray(from + 4, from + BATCH_HEADER_BYTES);
    if (!isProof(given, this.#tags.tag)) throw altered();
    return batch;
  }
}

const NOTHING = Buffer.alloc(0);

function lengthOf(memory: Buffer, at: number): number {
  const length = memory.readInt32LE(at);
  if (length <= 0 || length > MAX_BATCH_BYTES || length % 8 !== 0) throw altered();
  return length;
}

function altered(): SituError {
  return new SituError(
    "SITU_SECRET",
    "bytes of this connection were changed, left out or added on their way",
  );
}
