/**
 * Writes a checkpoint while everybody works. Its author calls, in this order,
 *
 *     const writer = new CheckpointWriter(executor, files, options);
 *     S = the epoch; advance it; wait until nobody commits at S or before
 *     writer.begin(S);
 *     while (writer.step()) …    // other work in between: a step copies up to 1 MiB
 *     const E = writer.end();
 *     … wait until the durable epoch is E or later
 *     writer.publish(the last epoch in the log);    // or, at any time before, abandon()
 *
 * All that was committed up to S is in the checkpoint, and some of what was committed later, object by
 * object, but nothing after E: copy.ts says why that is enough, if the log reaches E.
 *
 * A piece of memory may end its life as a block of one class and begin one as another between S and
 * the moment that it is copied. Records after S that are about the earlier life must not be applied
 * to the later one. So the index says since when each unit has been what it is: 0 if its block is
 * the same as before S was taken, for which all blocks are looked at first; else the format epoch,
 * whose upper half follows from that of the present; and a free unit has been free since the epoch in
 * which it was seen to be, for whoever takes it later commits later, and all that was committed in
 * its last life was committed before (memory/blocks.ts). This is exact, as long as a checkpoint
 * takes fewer than 2^32 epochs.
 *
 * Blocks of many units come and go over others of one unit. For the above to hold whatever block a
 * record is about, the units of a group, which no block crosses, are seen and copied at one moment:
 * if anything has changed when the copy is made, it is made anew. It need not be often, for while the
 * writer is inside of `enter` and `leave`, free units may be taken, but no more blocks given back.
 */

import type { Executor } from "../../engine/executor.ts";
import { type StoreFile, type StoreFiles, writeFully } from "../../folder/files.ts";
import { SPAN, UNIT_WORDS, UnitLook } from "../../memory/blocks.ts";
import { assert } from "../../runtime/assert.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { HEAD_BYTES, MAX_BLOCK_UNITS, UNIT_BYTES } from "../../runtime/limits.ts";
import { encodeHead } from "../head.ts";
import { CopyPlan, MAX_RUNS } from "./copy.ts";
import {
  type CataloguePlace,
  CHECKPOINT_FORMAT,
  CHECKPOINT_MAGIC,
  CHECKPOINTS_FOLDER,
  CHUNK_CRC,
  CHUNK_CRC_AT,
  CHUNK_FIRST_INCARNATION,
  CHUNK_FORMAT_EPOCH,
  CHUNK_HEADER_BYTES,
  CHUNK_HEADER_WORDS,
  CHUNK_MAGIC,
  CHUNK_PAYLOAD_BYTES,
  CHUNK_RUNS,
  CHUNK_SHAPE,
  CHUNK_UNIT,
  type CheckpointHead,
  checkpointName,
  encodeTrailer,
  UNFINISHED,
  WHOLE,
} from "./format.ts";
import { IndexTable } from "./index-table.ts";
import { Installs } from "./installs.ts";
import { Lives } from "./lives.ts";
import type { Checkpoint, CheckpointInfo } from "./reader.ts";

const GROUP_UNITS = MAX_BLOCK_UNITS;
/** The file is written in pieces of about this size. */
const PIECE_BYTES = 1 << 20;
/** And synced after so many, so that no sync takes long: the log waits for the same disk. */
const SYNC_BYTES = 4 << 20;
const OUT_WORDS = PIECE_BYTES / 4 + GROUP_UNITS * (CHUNK_HEADER_WORDS + UNIT_WORDS) + 2 * MAX_RUNS;

export interface CheckpointOptions {
  readonly logId: string;
  readonly catalogue: CataloguePlace;
  /** The checkpoint that a delta builds on; without it the checkpoint is full. */
  readonly base?: Checkpoint | undefined;
  /** How long it waits for one who is installing a commit and does not move; then a step may be tried again. */
  readonly patienceMs?: number;
}

/** A unit of the group that is being copied, and where the copy of its block lies in `#out`. */
class Copied {
  readonly look = new UnitLook();
  isWhole = false;
  runs = 0;
  at = 0;
  end = 0;
}

export class CheckpointWriter {
  readonly #executor: Executor;
  readonly #files: StoreFiles;
  readonly #options: CheckpointOptions;
  /** The blocks before the start epoch, and the epoch then. */
  readonly #before: Lives;
  readonly #lookedAt: number;
  /** The blocks of the base. */
  readonly #base: Lives | undefined;
  readonly #index = new IndexTable();
  readonly #plan: CopyPlan;
  readonly #group = Array.from({ length: GROUP_UNITS }, () => new Copied());
  readonly #again = new UnitLook();
  readonly #out = new Int32Array(OUT_WORDS);
  readonly #outBytes = new Uint8Array(this.#out.buffer);
  /** Words of `#out` that are not in the file yet, and where they go. */
  #outWords = 0;
  #place = HEAD_BYTES;
  #synced = HEAD_BYTES;
  #file: StoreFile | undefined;
  #head: CheckpointHead | undefined;
  #headCrc = 0;
  /** The next unit to look at, and the units that there are, as far as known. */
  #unit = 0;
  #units = 0;
  #chunks = 0;
  #endEpoch = -1;

  constructor(executor: Executor, files: StoreFiles, options: CheckpointOptions) {
    this.#executor = executor;
    this.#files = files;
    this.#options = options;
    this.#plan = new CopyPlan(new Installs(executor, options.patienceMs));
    const { blocks } = executor.slabs;
    assert(executor.memory.control.unitsPerRegion % GROUP_UNITS === 0, "regions are whole groups");
    this.#lookedAt = executor.epochs.current();
    this.#before = Lives.now(blocks);
    this.#base = options.base === undefined ? undefined : Lives.of(options.base, blocks);
  }

  /** Bytes that the checkpoint has so far. */
  get bytes(): number {
    return this.#place + 4 * this.#outWords;
  }

  /** Begins the file. All that was committed up to the start epoch is installed. */
  begin(startEpoch: number): void {
    const { logId, catalogue, base } = this.#options;
    const { blocks } = this.#executor.slabs;
    assert(startEpoch >= this.#lookedAt, "the blocks are looked at before the start epoch");
    assert(base === undefined || base.info.startEpoch < startEpoch, "a delta follows its base");
    this.#head = {
      format: CHECKPOINT_FORMAT,
      logId,
      kind: base === undefined ? "full" : "delta",
      base: base?.info.startEpoch ?? null,
      startEpoch,
      createdMs: wallClockMs(),
      geometry: this.#executor.memory.control.geometry,
      memoryBytes: blocks.limit * UNIT_BYTES,
      catalogue,
    };
    const head = encodeHead(CHECKPOINT_MAGIC, this.#head);
    this.#headCrc = crc32(head);
    this.#files.makeFolder(CHECKPOINTS_FOLDER);
    this.#file = this.#files.create(this.#name + UNFINISHED, 0);
    writeFully(this.#file, [head], 0);
  }

  /** Copies the next group of units. False if there is none left. */
  step(): boolean {
    assert(this.#file !== undefined && this.#endEpoch < 0, "a checkpoint is under way");
    const executor = this.#executor;
    // Regions may have been created meanwhile.
    if (this.#unit >= this.#units) this.#units = executor.slabs.blocks.count;
    if (this.#unit >= this.#units) return false;
    const entered = executor.enter();
    let epoch: number;
    try {
      do epoch = this.#copyGroup(this.#unit);
      while (epoch < 0);
    } finally {
      executor.leave(entered);
    }
    this.#keepGroup(this.#unit, epoch);
    this.#unit += GROUP_UNITS;
    if (4 * this.#outWords >= PIECE_BYTES) this.#flush();
    return true;
  }

  /** All is copied. Returns the end epoch: what was committed later is not in the checkpoint. */
  end(): number {
    this.#endEpoch = this.#executor.mark();
    this.#flush();
    return this.#endEpoch;
  }

  /**
   * Makes it a checkpoint, now that the log has all that was committed up to the end epoch. If that
   * is nothing after some earlier epoch, the log ends there, and needs to reach no further:
   * `written` says where it ends. One who is alone in the store, and was from before the start epoch
   * on, has copied nothing that a log would have to complete: QUIET.
   */
  publish(written = this.#endEpoch): CheckpointInfo {
    const file = this.#file!;
    const head = this.#head!;
    const endEpoch = this.#endEpoch;
    const logEpoch = Math.min(endEpoch, written);
    const closedMs = wallClockMs();
    const index = this.#index.bytes;
    const trailer = encodeTrailer({
      startEpoch: head.startEpoch,
      endEpoch,
      logEpoch,
      closedMs,
      indexAt: this.#place,
      entries: this.#index.entries,
      chunks: this.#chunks,
      headCrc: this.#headCrc,
      indexCrc: crc32(index),
    });
    this.#place += writeFully(file, [index, trailer], this.#place);
    file.sync();
    file.close();
    this.#file = undefined;
    const name = this.#name;
    this.#files.rename(name + UNFINISHED, name);
    this.#files.syncFolder(CHECKPOINTS_FOLDER);
    // The folder itself may be new.
    this.#files.syncFolder("");
    const { createdMs: _, ...said } = head;
    return { ...said, name, endEpoch, logEpoch, closedMs, bytes: this.#place };
  }

  /** Gives it up. */
  abandon(): void {
    this.#file?.close();
    this.#file = undefined;
    if (this.#head === undefined) return;
    const name = this.#name + UNFINISHED;
    if (this.#files.has(name)) this.#files.remove(name);
  }

  get #name(): string {
    return checkpointName(this.#head!.startEpoch, this.#head!.kind);
  }

  #flush(): void {
    const file = this.#file!;
    const bytes = 4 * this.#outWords;
    if (bytes > 0) writeFully(file, [this.#outBytes.subarray(0, bytes)], this.#place);
    this.#place += bytes;
    this.#outWords = 0;
    if (this.#place - this.#synced < SYNC_BYTES) return;
    file.sync();
    this.#synced = this.#place;
  }

  /** Copies the blocks of a group to `#out`. An epoch of that moment, or -1 if there was none. */
  #copyGroup(start: number): number {
    const { slabs, epochs } = this.#executor;
    const { blocks } = slabs;
    const group = this.#group;
    for (let i = 0; i < GROUP_UNITS; i++) blocks.look(start + i, group[i].look);
    const epoch = epochs.current();
    let at = this.#outWords;
    let problem: string | undefined;
    for (let i = 0; i < GROUP_UNITS; ) {
      const copied = group[i];
      const { sizeClass } = copied.look;
      if (sizeClass >= 0) {
        at = this.#copyBlock(start + i, copied, at);
        problem ??= this.#plan.problem;
      }
      i += sizeClass < 0 ? 1 : SPAN[sizeClass];
    }
    for (let i = 0; i < GROUP_UNITS; i++) {
      blocks.look(start + i, this.#again);
      if (!group[i].look.isSame(this.#again)) return -1;
    }
    if (problem !== undefined) {
      const region = `region ${blocks.regionIdOf(start)}`;
      throw new SituError(
        "SITU_CORRUPT",
        `the store's memory was overwritten: ${problem} of ${region}`,
      );
    }
    return epoch;
  }

  #copyBlock(block: number, copied: Copied, at: number): number {
    const { memory, slabs } = this.#executor;
    const { sizeClass } = copied.look;
    const { i32 } = memory.region(slabs.blocks.regionIdOf(block));
    const first = slabs.blocks.firstWordOf(block);
    const plan = this.#plan;
    copied.isWhole = this.#base === undefined || !this.#base.isSame(block, copied.look);
    if (copied.isWhole) plan.planWhole(i32, first, sizeClass);
    else plan.planChanges(i32, first, sizeClass, this.#options.base!.info.startEpoch);
    copied.runs = plan.runs;
    copied.at = at;
    copied.end = plan.runs === 0 ? at : plan.copy(i32, first, this.#out, at + CHUNK_HEADER_WORDS);
    return copied.end;
  }

  /** The copy of a group counts: headers, checksums, and the index. */
  #keepGroup(start: number, epoch: number): void {
    for (let i = 0; i < GROUP_UNITS; ) {
      const { look } = this.#group[i];
      if (look.sizeClass >= 0) {
        this.#keepBlock(start + i, this.#group[i]);
        i += SPAN[look.sizeClass];
        continue;
      }
      // Never used: then there is no earlier life to tell from the next one.
      if (look.firstIncarnation !== 0) {
        this.#index.addFree(start + i, look.firstIncarnation, epoch);
      }
      i++;
    }
  }

  #keepBlock(unit: number, copied: Copied): void {
    const { look, isWhole, runs, at, end } = copied;
    const { sizeClass, firstIncarnation, formatEpoch } = look;
    const shape = (sizeClass + 1) | (isWhole ? WHOLE : 0);
    const since = this.#before.isSameBlock(unit, look) ? 0 : this.#epochOf(formatEpoch);
    if (runs === 0) {
      this.#index.add(unit, shape, firstIncarnation, formatEpoch, since, 0, 0, 0);
      return;
    }
    const payloadBytes = 4 * (end - at) - CHUNK_HEADER_BYTES;
    const out = this.#out;
    out[at] = CHUNK_MAGIC;
    out[at + CHUNK_UNIT] = unit;
    out[at + CHUNK_SHAPE] = shape;
    out[at + CHUNK_FIRST_INCARNATION] = firstIncarnation;
    out[at + CHUNK_FORMAT_EPOCH] = formatEpoch;
    out[at + CHUNK_PAYLOAD_BYTES] = payloadBytes;
    out[at + CHUNK_RUNS] = runs;
    const header = crc32(this.#outBytes.subarray(4 * at, 4 * at + CHUNK_CRC_AT));
    const payload = this.#outBytes.subarray(4 * at + CHUNK_HEADER_BYTES, 4 * end);
    const crc = crc32(payload, header);
    out[at + CHUNK_CRC] = crc;
    const place = this.#place + 4 * at;
    this.#index.add(unit, shape, firstIncarnation, formatEpoch, since, place, payloadBytes, crc);
    this.#outWords = end;
    this.#chunks++;
  }

  /** The epoch of which these are the low 32 bits; 0 if it is not later than the first look. */
  #epochOf(low: number): number {
    const epoch = this.#lookedAt + ((low - (this.#lookedAt | 0)) >>> 0);
    return epoch <= this.#executor.epochs.current() ? epoch : 0;
  }
}

/** Removes what checkpoints that were cut short have left. */
export function removeUnfinished(files: StoreFiles): void {
  for (const name of files.list(CHECKPOINTS_FOLDER)) {
    if (name.endsWith(UNFINISHED)) files.remove(`${CHECKPOINTS_FOLDER}/${name}`);
  }
}
