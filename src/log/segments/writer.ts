/**
 * Writes the log. What makes it safe is an order of steps that readers rely on (reader.ts):
 *
 *   - A batch is written only when the one before it is synced. So after a power loss one batch at
 *     most is torn, the last one; anything wrong before another batch is damage.
 *   - A segment's head is written when all earlier batches are synced, and is itself synced before
 *     the first batch comes. So a segment without a head holds none, and a head that says
 *     `afterEpoch` promises what is on disk.
 *   - The record of the log's end (end.ts) names the segment before its first batch comes, and says how
 *     long it is before it is cut to its length.
 *   - A batch that could not be written (the disk is full) leaves the writer where it was: the next
 *     attempt overwrites it, in the same place.
 *
 * After any other failure nobody knows what is on disk: a second fsync may return although the first
 * one has dropped what it was to write. So the writer then refuses all further work with the
 * first error. Whoever takes over begins a segment of its own.
 */

import { type StoreFile, type StoreFiles, writeFully } from "../../folder/files.ts";
import { assert } from "../../runtime/assert.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { HEAD_BYTES, SEGMENT_BYTES } from "../../runtime/limits.ts";
import { beginLogEnd, refuseOtherWriter, writeLogEnd } from "./end.ts";
import {
  BATCH_HEADER_BYTES,
  type BatchContent,
  batchBytes,
  encodeBatchHeader,
  saltOf,
} from "./format.ts";
import { encodeSegmentHead, LOG_FOLDER, type LogIdentity, segmentName } from "./segments.ts";

/** From this part of a segment on, the next one is made ahead of need. */
const PREPARE_FROM = 1 / 4;
/** What lies between a payload and the next multiple of eight bytes. */
const PADDING = Buffer.alloc(4);

const FULL = ["ENOSPC", "EDQUOT"];
/** The process, or the machine, has no file descriptors left at the moment. */
const NO_DESCRIPTORS = ["EMFILE", "ENFILE"];
const EIO = 5;

/** Whether the same may succeed later, and nothing was lost by the attempt. */
export function mayPass(error: unknown): boolean {
  return hasCode(error, FULL) || hasCode(error, NO_DESCRIPTORS);
}

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? "");
}

export class LogWriter {
  readonly #files: StoreFiles;
  readonly #identity: LogIdentity;
  readonly #salt: number;
  readonly #segmentBytes: number;
  readonly #header = Buffer.alloc(BATCH_HEADER_BYTES);
  #number: number;
  /** The segment that is being written, its length, and how much of it is used. */
  #file: StoreFile;
  #bytes: number;
  #used = HEAD_BYTES;
  #lastEpoch: number;
  #isSynced = true;
  /** The next segment, without its head. */
  #next: StoreFile | undefined;
  #failure: unknown;
  #isClosed = false;
  /** Whether the log is begun anew: then nothing of an earlier one is read or written any more. */
  #isNew: boolean;

  /**
   * Begins the segment of this number (`nextSegment`), for what comes after an epoch: the last one
   * of a batch in the log, so that the batches here follow it without a gap. Unless it follows
   * nothing: then what lies in earlier segments is void.
   */
  constructor(
    files: StoreFiles,
    identity: LogIdentity,
    number: number,
    afterEpoch: number,
    createdMs: number,
    segmentBytes = SEGMENT_BYTES,
    follows = true,
  ) {
    this.#files = files;
    this.#identity = identity;
    this.#salt = saltOf(identity.logId);
    this.#segmentBytes = segmentBytes;
    this.#number = number;
    this.#lastEpoch = afterEpoch;
    this.#bytes = segmentBytes;
    this.#isNew = !follows;
    refuseOtherWriter(files, identity, this.#isNew);
    if (follows) this.#syncPrevious();
    files.makeFolder(LOG_FOLDER);
    this.#syncFolder("");
    this.#file = this.#create(number, segmentBytes);
    this.#begin(this.#file, number, segmentBytes, createdMs);
  }

  /** Where the next batch goes. */
  get position(): { readonly number: number; readonly bytes: number } {
    return { number: this.#number, bytes: this.#used };
  }

  /** The last epoch of the last batch. */
  get lastEpoch(): number {
    return this.#lastEpoch;
  }

  /** The error after which nothing is written any more. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Writes a batch, to be synced. Says how many bytes the log has grown by. */
  append(batch: BatchContent, parts: readonly Uint8Array[]): number {
    this.#refuse();
    assert(batch.after === this.#lastEpoch, "a batch follows the one before it");
    assert(batch.last > batch.after, "a batch is about some epochs");
    let payloadBytes = 0;
    for (const part of parts) payloadBytes += part.length;
    const bytes = batchBytes(payloadBytes);
    return this.#orFail(() => {
      this.#syncBatches();
      if (this.#used + bytes > this.#bytes) this.#rotate(bytes, batch.closedMs);
      let payloadCrc = 0;
      for (const part of parts) payloadCrc = crc32(part, payloadCrc);
      const header = { ...batch, number: this.#number, payloadBytes, payloadCrc };
      encodeBatchHeader(this.#header, header, this.#salt);
      // A part of no bytes would be a call of its own.
      const padding = (payloadBytes & 4) === 0 ? [] : [PADDING];
      writeFully(this.#file, [this.#header, ...parts, ...padding], this.#used);
      this.#used += bytes;
      this.#lastEpoch = batch.last;
      this.#isSynced = false;
      return bytes;
    });
  }

  /** Returns when all batches are on disk. */
  sync(): void {
    this.#refuse();
    this.#syncBatches();
  }

  /** Makes the next segment if it will be needed soon. To be called when nobody waits. */
  prepare(): void {
    this.#refuse();
    if (this.#next !== undefined || this.#used < this.#bytes * PREPARE_FROM) return;
    this.#orFail(() => {
      refuseOtherWriter(this.#files, this.#identity);
      const next = this.#create(this.#number + 1, this.#segmentBytes);
      // Its room is then lasting as well: what is left for later is to write the head.
      this.#syncNew(next);
      this.#next = next;
    });
  }

  /** Leaves the log in good order: what was appended is synced, room not used is given back. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      if (this.#failure !== undefined) return;
      this.#syncBatches();
      this.#writeEnd(this.#number, this.#used);
      this.#file.truncate(this.#used);
      this.#file.sync();
      if (this.#next !== undefined) this.#files.remove(segmentName(this.#number + 1));
    } finally {
      this.#file.close();
      this.#next?.close();
    }
  }

  /** Leaves a segment that a batch does not fit for one that it does. */
  #rotate(bytes: number, createdMs: number): void {
    const number = this.#number + 1;
    const segmentBytes = Math.max(this.#segmentBytes, HEAD_BYTES + bytes);
    let next = this.#next;
    this.#next = undefined;
    if (next !== undefined && segmentBytes > this.#segmentBytes) {
      next.close();
      next = undefined;
    }
    refuseOtherWriter(this.#files, this.#identity);
    next ??= this.#create(number, segmentBytes);
    this.#begin(next, number, segmentBytes, createdMs);
    const left = this.#file;
    const leftBytes = this.#used;
    this.#file = next;
    this.#number = number;
    this.#bytes = segmentBytes;
    this.#used = HEAD_BYTES;
    try {
      left.truncate(leftBytes);
    } finally {
      left.close();
    }
  }

  #create(number: number, bytes: number): StoreFile {
    const file = this.#files.create(segmentName(number), bytes);
    try {
      this.#syncFolder(LOG_FOLDER);
    } catch (error) {
      file.close();
      throw error;
    }
    return file;
  }

  /** Makes a file a segment that follows what has been written. If it cannot, the file goes. */
  #begin(file: StoreFile, number: number, bytes: number, createdMs: number): void {
    const afterEpoch = this.#lastEpoch;
    const head = encodeSegmentHead({ ...this.#identity, number, afterEpoch, createdMs, bytes });
    try {
      writeFully(file, [head], 0);
    } catch (error) {
      this.#giveUp(file, error);
    }
    this.#syncNew(file);
    try {
      this.#writeEnd(number, null);
    } catch (error) {
      this.#giveUp(file, error);
    }
  }

  /**
   * The writer goes on in the segment before, so this one must not come back with a power loss: its
   * head would make void what is written there from now on.
   */
  #giveUp(file: StoreFile, error: unknown): never {
    file.close();
    if (mayPass(error)) {
      this.#files.remove(file.name);
      try {
        this.#files.syncFolder(LOG_FOLDER);
      } catch (failure) {
        throw this.#final(failure);
      }
    }
    throw error;
  }

  /** Before the first batch of a segment, and when the log is closed. */
  #writeEnd(number: number, bytes: number | null): void {
    const { logId, memoryId } = this.#identity;
    const end = { logId, memoryId, number, epoch: this.#lastEpoch, bytes };
    const final = (sync: () => void): void => {
      try {
        sync();
      } catch (error) {
        throw this.#final(error);
      }
    };
    if (this.#isNew) beginLogEnd(this.#files, end, final);
    else writeLogEnd(this.#files, end, this.#identity, final);
    this.#isNew = false;
  }

  /**
   * Somebody who died may have left the segment before with batches that are not synced. If they
   * were read, and this log goes on from there, they must be on disk before it says so.
   */
  #syncPrevious(): void {
    const name = segmentName(this.#number - 1);
    if (!this.#files.has(name)) return;
    const file = this.#files.open(name);
    this.#syncNew(file);
    file.close();
  }

  #syncBatches(): void {
    if (this.#isSynced) return;
    try {
      this.#file.sync();
    } catch (error) {
      throw this.#final(error);
    }
    this.#isSynced = true;
  }

  /** Syncs a file that is not the writer's own yet, and is closed if it cannot. */
  #syncNew(file: StoreFile): void {
    try {
      file.sync();
    } catch (error) {
      file.close();
      throw this.#final(error);
    }
  }

  #syncFolder(folder: string): void {
    try {
      this.#files.syncFolder(folder);
    } catch (error) {
      // A folder is opened to be synced: that may have been all that failed.
      throw hasCode(error, NO_DESCRIPTORS) ? error : this.#final(error);
    }
  }

  /** A sync that failed is final, also if it is for want of room: it must not look passing. */
  #final(error: unknown): unknown {
    this.#failure ??= mayPass(error)
      ? Object.assign(new Error("the log could not be synced", { cause: error }), {
          code: "EIO",
          errno: -EIO,
        })
      : error;
    return this.#failure;
  }

  #orFail<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      if (!mayPass(error)) this.#failure ??= error;
      throw error;
    }
  }

  #refuse(): void {
    assert(!this.#isClosed, "a log that was closed is not written");
    if (this.#failure !== undefined) throw this.#failure;
  }
}
