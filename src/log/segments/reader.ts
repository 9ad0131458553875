/**
 * Reads the log: what can be recovered from it, where its end was torn, and where it is damaged.
 *
 * Batches follow each other without a gap: each begins after the epoch with which the one before it
 * ends. A segment ends where no sound batch follows.
 *
 *   - In a segment that has a successor, the batches must reach the epoch after which that one
 *     begins; what lies behind is void (segments.ts). If they do not reach it, something is lost.
 *   - In the last segment it is the end of the log. A torn batch there is what a power loss leaves
 *     of a write that nobody was told to be done: it is cut. But the writer starts a batch only when
 *     the one before it is on disk (writer.ts). So if any batch begins further on, or if the segment
 *     was closed in good order, this is no torn end, but damage.
 *
 * The record of the log's end (end.ts) says how far the log must reach at least, and memories.ts tells
 * whether it was written by one memory at a time.
 *
 * Damage is never passed over: what lies behind it is not read. The exception is a part that the
 * caller has no need of, because it has a checkpoint of it; such damage is told aside.
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";
import { isDamage } from "../head.ts";
import { damageOfLogEnd, END_NAME, type LogEnd, readLogEnd, shownWriters } from "./end.ts";
import { saltOf } from "./format.ts";
import { writersDamage } from "./memories.ts";
import { endOf, type Flaw, isFlaw, type LogBatch, SegmentReader } from "./segment-reader.ts";
import {
  begunSegments,
  firstNeeded,
  hasHead,
  type LogSegment,
  type SegmentFile,
  segmentName,
} from "./segments.ts";

export interface LogScan {
  /** All segments whose heads are sound, also those before the epoch that was asked for. */
  readonly segments: readonly LogSegment[];
  /** A file that was to become the next segment, and did not. */
  readonly unfinished: readonly string[];
  /** The batches after the epoch that was asked for, in order, without a gap. */
  readonly batches: readonly LogBatch[];
  /** The log is whole up to here; with damage, up to the damage. */
  readonly lastEpoch: number;
  /** Where a torn batch was cut off the end, and what was wrong with it. */
  readonly cut: Damage | undefined;
  /** What keeps the log from being read to its end. */
  readonly damage: readonly Damage[];
  /** Damage in what need not be read. */
  readonly aside: readonly Damage[];
}

/** Everything after an epoch. It must be at or after the beginning of the oldest segment. */
export function scanLog(files: StoreFiles, fromEpoch: number): LogScan {
  // First: what comes later only adds to what it says.
  const end = readLogEnd(files);
  const { segments: all, unfinished } = begunSegments(files);
  const walk = new Walk(files, fromEpoch);
  walk.read(all);
  walk.compare(all, end);
  const { batches, lastEpoch, cut, damage, aside } = walk;
  return { segments: all.filter(hasHead), unfinished, batches, lastEpoch, cut, damage, aside };
}

class Walk {
  readonly batches: LogBatch[] = [];
  readonly damage: Damage[] = [];
  readonly aside: Damage[] = [];
  cut: Damage | undefined;
  lastEpoch = 0;
  readonly #files: StoreFiles;
  readonly #fromEpoch: number;
  /** Where the batches of the last segment end. */
  #endOffset = 0;

  constructor(files: StoreFiles, fromEpoch: number) {
    this.#files = files;
    this.#fromEpoch = fromEpoch;
  }

  read(all: readonly SegmentFile[]): void {
    const first = firstNeeded(all, this.#fromEpoch);
    if (first < 0) {
      this.#missBeginning(all);
      return;
    }
    this.lastEpoch = (all[first] as LogSegment).head.afterEpoch;
    for (let i = first; i < all.length && this.damage.length === 0; i++) {
      const segment = all[i] as LogSegment;
      const next = all[i + 1];
      const hole = next === undefined ? undefined : holeBetween(segment, next);
      this.#readSegment(segment, hole === undefined ? all.slice(i + 1) : []);
      if (hole === undefined) continue;
      this.damage.push(hole);
      this.cut = undefined;
    }
  }

  /** Compares what was read with what must be there. */
  compare(all: readonly SegmentFile[], end: LogEnd | Damage | undefined): void {
    this.damage.unshift(...writersDamage(this.#files, all));
    if (end === undefined) {
      this.#missEnd(all);
      return;
    }
    if (isDamage(end)) {
      this.damage.push(end);
      return;
    }
    const last = all.at(-1);
    if (last !== undefined && hasHead(last) && last.head.logId !== end.logId) return;
    if (end.writers !== undefined) this.#damaged(END_NAME, 0, shownWriters(end.writers));
    if (this.damage.length > 0) return;
    if (last === undefined || last.number < end.number) this.#missLast(end);
    else if (this.lastEpoch < end.epoch) {
      const closed = end.bytes === null ? "" : `, and was closed after ${end.bytes} bytes`;
      this.#damaged(
        segmentName(end.number),
        Math.min(this.#endOffset, last.bytes),
        `the log ends here with epoch ${this.lastEpoch}; it had reached epoch ${end.epoch}${closed}`,
      );
    } else if (last.number === end.number && end.bytes === null && hasHead(last)) {
      this.#expectWhole(last, end);
    }
    if (this.damage.length > 0) this.cut = undefined;
  }

  #missLast({ number, epoch, bytes }: LogEnd): void {
    const name = segmentName(number);
    const was = bytes === null ? "" : `, up to epoch ${epoch} in ${bytes} bytes`;
    const what = this.#files.has(name)
      ? "the segment has lost its head and all of its batches"
      : "the segment is missing";
    this.#damaged(name, 0, `${what}: the log reached it${was}`);
  }

  /** A segment that nobody has closed has all the room that was reserved for it. */
  #expectWhole({ name, bytes, head }: LogSegment, end: LogEnd): void {
    if (bytes >= head.bytes) return;
    // Unless it was closed since: the record is written before the file is cut.
    if (JSON.stringify(readLogEnd(this.#files)) !== JSON.stringify(end)) return;
    // Or the record that called it closed was damaged: a record that was torn is older than the cut.
    const flaw = damageOfLogEnd(this.#files);
    if (flaw !== undefined) this.damage.push(flaw);
    else this.#damaged(name, bytes, `the file was cut to ${bytes} bytes, of ${head.bytes}`);
  }

  /** Logs of older versions have no record of their end; those of this one do, if they have batches. */
  #missEnd(all: readonly SegmentFile[]): void {
    const isOlder = all.every(
      (each) =>
        !hasHead(each) || each.head.memoryId === undefined || !hasFirstBatch(this.#files, each),
    );
    // Also for one that has been begun meanwhile.
    if (isOlder || readLogEnd(this.#files) !== undefined) return;
    this.#damaged(END_NAME, 0, "the record of the log's end is missing");
  }

  #missBeginning(all: readonly SegmentFile[]): void {
    const first = all[0];
    if (first === undefined) {
      if (this.#fromEpoch > 0) this.#damaged(segmentName(1), 0, "the log is missing");
    } else if (!hasHead(first)) {
      this.damage.push(headDamage(first));
    } else {
      const { afterEpoch } = first.head;
      this.#damaged(
        segmentName(Math.max(first.number - 1, 1)),
        0,
        `the log begins after epoch ${afterEpoch}, and is needed from ${this.#fromEpoch} on`,
      );
    }
  }

  /** Reads a segment up to where its successors begin, or to its end. */
  #readSegment(segment: LogSegment, successors: readonly SegmentFile[]): void {
    // One that begins before another that it follows makes all of that void.
    const starts = successors.filter(hasHead).map(({ head }) => head.afterEpoch);
    const end = Math.min(...starts);
    if (this.lastEpoch >= end) return;
    const file = this.#files.open(segment.name, true);
    try {
      const reader = new SegmentReader(file, segment.number, saltOf(segment.head.logId));
      if (successors.length === 0) this.#readToEnd(reader, segment);
      else this.#readUpTo(reader, end);
    } finally {
      file.close();
    }
  }

  #readUpTo(reader: SegmentReader, end: number): void {
    const flaw = this.#take(reader, HEAD_BYTES, end);
    if (flaw === undefined) return;
    const lost = `epochs after ${this.lastEpoch} up to ${end} are lost`;
    this.#damaged(reader.name, flaw.offset, `${flaw.what}: ${lost}`);
  }

  #readToEnd(reader: SegmentReader, segment: LogSegment): void {
    let offset = HEAD_BYTES;
    for (;;) {
      const flaw = this.#take(reader, offset, Number.POSITIVE_INFINITY);
      if (flaw === undefined) return;
      this.#endOffset = flaw.offset;
      const from = flaw.header === undefined ? flaw.offset : endOf(flaw.header);
      const later = reader.findBatch(from, this.lastEpoch);
      const isSuspect = later !== undefined || reader.bytes < segment.head.bytes;
      if (!isSuspect || !this.#isThereNow(reader, flaw)) {
        this.#judgeEnd(reader, segment, flaw, later);
        return;
      }
      offset = flaw.offset;
    }
  }

  /** Takes batches up to an epoch; stops at the first one that is not sound, and returns it. */
  #take(reader: SegmentReader, from: number, end: number): Flaw | undefined {
    let offset = from;
    while (this.lastEpoch < end) {
      const found = reader.batchAt(offset);
      const flaw = isFlaw(found) ? found : this.#outOfOrder(found, end);
      if (flaw === undefined) {
        const batch = found as LogBatch;
        if (batch.last > this.#fromEpoch) this.batches.push(batch);
        this.lastEpoch = batch.last;
        offset = endOf(batch);
        continue;
      }
      const behind = this.#behind(reader, flaw);
      if (behind === undefined) return flaw;
      this.aside.push({ file: reader.name, offset: flaw.offset, what: flaw.what });
      this.lastEpoch = behind.epoch;
      offset = behind.offset;
    }
    return undefined;
  }

  #outOfOrder(batch: LogBatch, end: number): Flaw | undefined {
    const { offset, after, last } = batch;
    const flaw = (what: string): Flaw => ({ offset, what, header: undefined });
    if (after !== this.lastEpoch) {
      return flaw(
        `a batch follows epoch ${after}, and the one before it ends with ${this.lastEpoch}`,
      );
    }
    return last > end ? flaw(`a batch ends with epoch ${last}`) : undefined;
  }

  /** Where to go on behind a flaw, if all that was lost by it is not needed. */
  #behind(reader: SegmentReader, flaw: Flaw): { epoch: number; offset: number } | undefined {
    const { header } = flaw;
    if (this.lastEpoch >= this.#fromEpoch) return undefined;
    if (header !== undefined && header.after === this.lastEpoch) {
      if (header.last > this.#fromEpoch) return undefined;
      return { epoch: header.last, offset: endOf(header) };
    }
    const found = reader.findBatch(flaw.offset, this.lastEpoch);
    if (found === undefined || found.after > this.#fromEpoch) return undefined;
    return found.after > this.lastEpoch ? { epoch: found.after, offset: found.offset } : undefined;
  }

  /** Whether a batch was just being written when it was read first. */
  #isThereNow(reader: SegmentReader, flaw: Flaw): boolean {
    reader.refresh();
    const found = reader.batchAt(flaw.offset);
    return !isFlaw(found) && found.after === this.lastEpoch;
  }

  /**
   * Whether what follows the last sound batch is room not used, a torn batch, or damage. `later` is
   * a batch at this place or behind it with epochs that the log has not reached.
   */
  #judgeEnd(
    reader: SegmentReader,
    { name, head }: LogSegment,
    { offset, what }: Flaw,
    later: LogBatch | undefined,
  ): void {
    if (offset >= reader.bytes) return;
    const wasClosed = reader.bytes < head.bytes;
    if (later !== undefined && later.offset > offset) {
      this.#damaged(name, offset, `${what}, and another begins at byte ${later.offset}`);
    } else if (later !== undefined || wasClosed) {
      this.#damaged(name, offset, what);
    } else if (!reader.isZeroFrom(offset)) {
      this.cut = { file: name, offset, what };
    }
  }

  #damaged(file: string, offset: number, what: string): void {
    this.damage.push({ file, offset, what });
  }
}

function hasFirstBatch(files: StoreFiles, segment: LogSegment): boolean {
  const file = files.open(segment.name, true);
  try {
    const reader = new SegmentReader(file, segment.number, saltOf(segment.head.logId));
    return !isFlaw(reader.batchAt(HEAD_BYTES));
  } finally {
    file.close();
  }
}

/** Why a segment's successor cannot be read as such. */
function holeBetween({ number, head }: LogSegment, next: SegmentFile): Damage | undefined {
  if (next.number !== number + 1) {
    return { file: segmentName(number + 1), offset: 0, what: "the segment is missing" };
  }
  if (!hasHead(next)) return headDamage(next);
  if (next.head.logId === head.logId) return undefined;
  return { file: next.name, offset: 0, what: "it is a segment of another log" };
}

function headDamage({ head }: SegmentFile): Damage {
  const { file, offset, what } = head as Damage;
  return { file, offset, what };
}
