/**
 * Follows the log while it is written: batch after batch, each only when it is durable. It reads the segment
 * files and needs nothing from their writer, which may be in another process, change, or die.
 *
 * What it relies on: a batch that ends at or before the durable epoch was synced before that epoch was
 * published, and counts for ever (../group-commit.ts). So it never reads a batch that is being written.
 * A dead writer may have left one that is void: its records come again in the next segment, whose head
 * says after which epoch it counts (../segments/segments.ts). The durable epoch reaches the void batch only when
 * that head is on disk. So the follower looks for the head first, each time that the durable epoch
 * has moved, and reads its segment up to there and no further.
 *
 * Segments are removed after checkpoints. The one that is being read is held open; one that is gone
 * before it was begun is a gap, told with SITU_GAP.
 */

import type { StoreFile, StoreFiles } from "../../folder/files.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { SituError } from "../../runtime/errors.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";
import { BATCH_HEADER_BYTES, batchBytes, decodeBatchHeader, saltOf } from "../segments/format.ts";
import { unpack } from "../segments/packing.ts";
import { readAt } from "../segments/segment-reader.ts";
import {
  hasHead,
  listSegments,
  readSegmentHead,
  type SegmentHead,
  segmentName,
} from "../segments/segments.ts";
import { epochIn, type Position, UNNAMED } from "./position.ts";

export interface FollowedBatch {
  /** Its records; they stay as they are until the next call. */
  readonly words: Int32Array;
  readonly memoryId: string;
  readonly last: number;
  /** When it was closed, wall clock in ms. */
  readonly closedMs: number;
}

export class LogFollower {
  readonly #files: StoreFiles;
  readonly #header = Buffer.alloc(BATCH_HEADER_BYTES);
  #unpacked: Int32Array = new Int32Array(0);
  #payload = Buffer.alloc(0);
  #file: StoreFile | undefined;
  #head: SegmentHead | undefined;
  #salt = 0;
  #offset = 0;
  /** The last epoch of the last batch that was read. */
  epoch = 0;
  /** Up to this durable epoch there is nothing more. */
  #searched = -1;
  /** After which epoch the next segment counts, as of a durable epoch; infinite if it is not begun. */
  #limit = Number.POSITIVE_INFINITY;
  #limitAsOf = -1;

  constructor(files: StoreFiles) {
    this.#files = files;
  }

  /** The memory that wrote the segment that is being read; undefined before there is one. */
  get memoryId(): string | undefined {
    return this.#head === undefined ? undefined : memoryOf(this.#head);
  }

  /** Begins with the oldest segment. */
  seekStart(): void {
    const [first] = listSegments(this.#files).filter(hasHead);
    if (first !== undefined) this.#begin(first.number);
  }

  /**
   * Begins with the segment that a position lies in, or fails if the log has not all that follows it.
   * `current` is the memory that the store has now. `reach` is how far the log goes: the last epoch that
   * the position can be of, if its memory is the last that has written.
   */
  seek(position: Position, current: string, reach: (memoryId: string) => number): void {
    const epoch = epochIn(position);
    const segments = listSegments(this.#files).filter(hasHead);
    const own = segments.filter(({ head }) => memoryOf(head) === position.memoryId);
    if (own.length === 0 && position.memoryId === current && epoch <= reach(current)) {
      // It has written nothing yet.
      this.seekEnd(epoch);
      return;
    }
    const from = own.findLast(({ head }) => head.afterEpoch <= epoch);
    if (from === undefined) throw gap("the log no longer has what follows it");
    const next = segments.find(({ number }) => number > own.at(-1)!.number);
    const end = next?.head.afterEpoch ?? reach(position.memoryId);
    if (epoch > end) throw gap("the store was restored to an earlier state since then");
    this.#begin(from.number);
  }

  /** Before the log has its first segment, or that of this memory: begins with what is written next. */
  seekEnd(epoch: number): void {
    const segments = listSegments(this.#files).filter(hasHead);
    const from = segments.findLast(({ head }) => head.afterEpoch <= epoch);
    if (from !== undefined) this.#begin(from.number);
  }

  /** The next batch up to the durable epoch, or undefined: there is none yet. */
  next(durable: number): FollowedBatch | undefined {
    // All up to the durable epoch is in the files: what was not found will not be, before it moves.
    if (durable === this.#searched) return undefined;
    if (this.#head === undefined) this.seekStart();
    while (this.#head !== undefined && this.epoch < durable) {
      if (this.#limitAsOf !== durable) this.#look(this.#head, durable);
      if (this.epoch < this.#limit) {
        const batch = this.#batch(durable);
        if (batch !== undefined) return batch;
        // A segment may be begun before all that came before it is told to be durable.
        if (this.#limit > durable) break;
        throw damaged(this.#file!, this.#offset, `no batch follows epoch ${this.epoch}`);
      }
      if (this.#limit < this.epoch) {
        const next = segmentName(this.#head.number + 1);
        throw damaged(this.#file!, this.#offset, `${next} begins before its end`);
      }
      this.#begin(this.#head.number + 1);
    }
    this.#searched = durable;
    return undefined;
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #batch(durable: number): FollowedBatch | undefined {
    const file = this.#file!;
    const head = this.#head!;
    if (readAt(file, this.#header, this.#offset) < BATCH_HEADER_BYTES) return undefined;
    const found = decodeBatchHeader(this.#header, 0, head.number, this.#salt);
    // Not yet written, or what a writer left that died before it counted.
    if (typeof found === "string" || found.last > durable) return undefined;
    if (found.after !== this.epoch) return undefined;
    const { payloadBytes } = found;
    if (this.#payload.length < payloadBytes) {
      // Not from Node's pool, where a place is not at a whole word of its own.
      this.#payload = Buffer.from(new ArrayBuffer(payloadBytes));
    }
    const payload = this.#payload.subarray(0, payloadBytes);
    const read = readAt(file, payload, this.#offset + BATCH_HEADER_BYTES);
    if (read < payloadBytes || crc32(payload) !== found.payloadCrc) {
      throw damaged(file, this.#offset, "the checksum of a batch's payload is wrong");
    }
    const words = this.#wordsOf(payload, found.isPacked === true);
    this.#offset += batchBytes(payloadBytes);
    this.epoch = found.last;
    return {
      words,
      memoryId: memoryOf(head),
      last: found.last,
      closedMs: found.closedMs,
    };
  }

  #wordsOf(payload: Buffer, isPacked: boolean): Int32Array {
    if (!isPacked) return new Int32Array(payload.buffer, payload.byteOffset, payload.length / 4);
    const words = unpack(payload, this.#unpacked);
    if (words === undefined) {
      throw damaged(this.#file!, this.#offset, "a batch's payload cannot be unpacked");
    }
    if (words.length > this.#unpacked.length) this.#unpacked = words;
    return words;
  }

  /** Looks whether the next segment has been begun, and after which epoch it counts. */
  #look({ number, logId }: SegmentHead, durable: number): void {
    const next = this.#headOf(number + 1);
    this.#limitAsOf = durable;
    this.#limit = Number.POSITIVE_INFINITY;
    if (next === "not begun") return;
    if (next === "gone") {
      // The writer leaves no numbers out, so a later one means that this one was removed.
      const all = listSegments(this.#files);
      if (!all.some((each) => each.number > number + 1 && hasHead(each))) return;
      throw gap("the log was removed before it was read: the reader was too slow");
    }
    if (next.logId !== logId) throw gap("the log was begun anew");
    this.#limit = next.afterEpoch;
  }

  #headOf(number: number): SegmentHead | "gone" | "not begun" {
    const name = segmentName(number);
    if (!this.#files.has(name)) return "gone";
    let file: StoreFile;
    try {
      file = this.#files.open(name, true);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return "gone";
      throw error;
    }
    try {
      const head = readSegmentHead(file, number);
      return "what" in head ? "not begun" : head;
    } finally {
      file.close();
    }
  }

  #begin(number: number): void {
    let file: StoreFile;
    try {
      file = this.#files.open(segmentName(number), true);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      throw gap("the log was removed before it was read: the reader was too slow");
    }
    const head = readSegmentHead(file, number);
    if ("what" in head) {
      file.close();
      throw damaged(file, head.offset, head.what);
    }
    this.close();
    this.#file = file;
    this.#head = head;
    this.#salt = saltOf(head.logId);
    this.#offset = HEAD_BYTES;
    this.#limitAsOf = -1;
    this.epoch = head.afterEpoch;
  }
}

function memoryOf({ memoryId }: Pick<SegmentHead, "memoryId">): string {
  return memoryId ?? UNNAMED;
}

/** The error for a position after which something is missing. */
export function gap(why: string): SituError {
  return new SituError(
    "SITU_GAP",
    `the watch cannot go on from its position: ${why}. Read the table anew, and watch it from "now"; ` +
      `keepLogBytes and keepLogMs of open keep more of the log`,
  );
}

function damaged({ name }: StoreFile, offset: number, what: string): SituError {
  return new SituError("SITU_CORRUPT", `${name} is damaged at byte ${offset}: ${what}`);
}
