/**
 * A round of the log by one who has committed and waits for the disk. To call the log's writer and to be woken by
 * it takes two switches between threads, and the writer may be stopped. So whoever
 * waits with its thread, and finds that nobody else has anything to be written, does the round itself: under
 * the lock of the log, in the segment that the writer has begun (round-lock.ts). In all other cases it calls the
 * writer, which does one round for all who wait: if others have committed, if somebody has the lock, if the
 * segment has no room left, if the record is large.
 *
 * The steps are those of a round (group-commit.ts), and so are its crash points.
 */

import { RUNNING } from "../engine/durability.ts";
import type { Executor } from "../engine/executor.ts";
import { committingSlot } from "../engine/snapshots/snapshot.ts";
import type { StoreFile, StoreFiles } from "../folder/files.ts";
import { machineMs, wallClockMs } from "../runtime/clock.ts";
import { TimeoutError } from "../runtime/errors.ts";
import { MAX_OWN_ROUND_BYTES, SEGMENT_BYTES } from "../runtime/limits.ts";
import { countBatch } from "./figures.ts";
import { failLog } from "./group-commit.ts";
import { RoundLock } from "./round-lock.ts";
import { batchBytes } from "./segments/format.ts";
import { Packer } from "./segments/packing.ts";
import { segmentName } from "./segments/segments.ts";
import { BatchWriter, mayPass } from "./segments/writer.ts";
import { Tails } from "./tail.ts";

export class OwnRound {
  readonly #executor: Executor;
  readonly #files: StoreFiles;
  readonly #lock: RoundLock;
  readonly #tails: Tails;
  readonly #packer = new Packer();
  readonly #batches: BatchWriter;
  /** The segment that was written to last. */
  #file: StoreFile | undefined;
  #segment = 0;

  constructor(executor: Executor, files: StoreFiles, logId: string) {
    this.#executor = executor;
    this.#files = files;
    this.#lock = new RoundLock(executor);
    this.#tails = new Tails(executor.memory);
    this.#tails.adopt(executor.slot, executor.journal.views);
    this.#batches = new BatchWriter(logId);
  }

  /** Writes what this executor has committed, if it is alone; otherwise nothing is done. */
  try(): void {
    const { durability, slot } = this.#executor;
    if (durability.state !== RUNNING || this.#lock.segment === 0) return;
    if (this.#tails.hasAnyBut(slot) || !this.#lock.tryLock()) return;
    try {
      this.#round();
    } catch (error) {
      // The log's writer will meet it, too, and says so: a full disk, somebody who does not move.
      if (!mayPass(error) && !(error instanceof TimeoutError)) failLog(durability, error);
    } finally {
      this.#tails.leave();
      this.#lock.unlock();
    }
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #round(): void {
    const executor = this.#executor;
    const { durability, epochs, memory, slot } = executor;
    const tails = this.#tails;
    // What was true before the lock may not be any more.
    const segment = this.#lock.segment;
    if (durability.state !== RUNNING || segment === 0) return;
    const nowMs = Math.floor(machineMs()) | 0;
    const last = epochs.current();
    epochs.advance(last);
    if (committingSlot(executor, last, 0) >= 0 || tails.hasAnyBut(slot)) return;
    const after = durability.written;
    tails.gatherOf(slot, after, last);
    const { records, parts } = tails;
    if (records === 0 || tails.hasLarge || tails.bytes > MAX_OWN_ROUND_BYTES) return;
    const packed = this.#packer.pack(parts);
    const isPacked = packed !== undefined;
    const bytes = batchBytes(isPacked ? packed.length : tails.bytes);
    const { used } = this.#lock;
    if (used + bytes > SEGMENT_BYTES) return;
    const file = this.#open(segment);
    if (file === undefined) return;
    const batch = { after, last, records, closedMs: wallClockMs(), isPacked };
    this.#batches.write(file, segment, used, batch, isPacked ? [packed] : parts);
    try {
      file.sync();
    } catch (error) {
      // It must not look passing, even if it is for want of room.
      failLog(durability, error);
      return;
    }
    durability.setWritten(last);
    this.#lock.moveTo(segment, used + bytes);
    countBatch(memory, bytes, records);
    durability.setLoggedUntil(nowMs);
    durability.publish(last, () => tails.release());
  }

  /** Undefined if it cannot be opened: the log's writer has it open. */
  #open(segment: number): StoreFile | undefined {
    if (this.#segment === segment && this.#file !== undefined) return this.#file;
    this.close();
    try {
      this.#file = this.#files.open(segmentName(segment));
    } catch {
      return undefined;
    }
    this.#segment = segment;
    return this.#file;
  }
}
