/**
 * Rebuilds the memory of a store, or one part of it, from checkpoints and the log.
 *
 * Checkpoints come first: a full one, then deltas in order. After that come the records later than the
 * last one's start epoch, in the order of the TIDs. Each is applied to those objects whose version is older than
 * its TID: others were copied when the record had been installed (checkpoint/copy.ts). So an object goes through all
 * of its versions from the copied one on, each made of the one before, by changed words or by edits. Three
 * things need more than that:
 *
 * - The header of an array's element is one only as long as the array is there. An entry about an element is
 *   skipped if the cell around it is later than the record: the cell was freed, or filled anew, after it.
 * - In a checkpoint of the format before this one, objects that were changed after its start epoch may be torn. There
 *   all records with changed words are applied, whatever the version: each word ends as the last record that wrote
 *   it left it. Records with edits came after that format, so when they begin, the objects are whole.
 * - A record about an earlier life of the memory that it writes to is skipped: it is earlier than
 *   the epoch since which the memory is what it is (RecoveredBlocks.since). Blocks change their
 *   lives in the log, too: see `#takeBlock`.
 * - A record that allocates a cell clears what it does not write: an object begins with zeroes.
 *
 * Parts: the memory is cut in chunks of 16 units, which no block crosses, and each thread has some of
 * them. All read the whole log and apply what lies in their chunks, in the same order.
 *
 * Nothing is written before it was seen to lie inside of one cell: what was damaged in spite of all
 * checksums is refused, and does not spread.
 */

import { CHANGE_REGION } from "../../engine/changes.ts";
import { applyEdits } from "../../engine/edits.ts";
import {
  CLASS_SHIFT,
  copyWords,
  EDITED,
  RECORD_ENTRY_WORDS,
  RECORD_WORDS,
  REGION_MASK,
} from "../../engine/journal.ts";
import { epochOf, isLater } from "../../engine/tid.ts";
import type { Damage } from "../../folder/files.ts";
import { BLOCK_CELLS, SPAN, UNIT_WORDS } from "../../memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY_HEADER_WORDS,
  HEADER_WORDS,
  INCARNATION,
  INCARNATION_STEP,
  LOCK,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../memory/object.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import type { StoreMemory } from "../../memory/store-memory.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { SIZE_CLASSES } from "../../runtime/limits.ts";
import {
  CHUNK_HEADER_WORDS,
  CHUNK_PAYLOAD_BYTES,
  CHUNK_RUNS,
  CLASS_MASK,
  ENTRY_FIRST_INCARNATION,
  ENTRY_FORMAT_EPOCH,
  ENTRY_SHAPE,
  ENTRY_SINCE_F64,
  ENTRY_UNIT,
  ENTRY_WORDS,
  TORN_FORMAT,
  WHOLE,
} from "../checkpoint/format.ts";
import type { Checkpoint } from "../checkpoint/reader.ts";
import { NO_BLOCK, RecoveredBlocks } from "./blocks.ts";
import { RecordMerge } from "./merge.ts";

const UNIT_SHIFT = Math.log2(UNIT_WORDS);
assert(Number.isInteger(UNIT_SHIFT), "a unit has 2^n words");
const CELL_WORDS = Int32Array.from(CELL_BYTES, (bytes) => bytes / 4);
const BLOCK_WORDS = Int32Array.from(CELL_WORDS, (words, index) => words * BLOCK_CELLS[index]);

export interface ReplayOptions {
  /** Whether a chunk of 16 units, numbered through all regions, is recovered here. */
  readonly isMine: (chunk: number) => boolean;
  /** Records up to this epoch are in the checkpoints. */
  readonly startEpoch: number;
}

export class Replay {
  /** Records that were looked at, of epochs after the start epoch. */
  records = 0;
  /** Entries of theirs that lie in this part and were applied. */
  applied = 0;
  /** Entries that lie elsewhere, or are about earlier lives of the memory. */
  skipped = 0;
  readonly #memory: StoreMemory;
  readonly #blocks: RecoveredBlocks;
  readonly #startEpoch: number;
  readonly #regions: number;
  readonly #unitsPerRegion: number;
  readonly #wordsPerRegion: number;
  readonly #merge = new RecordMerge();
  /** Whether objects may be torn that were changed after the start epoch. */
  #isTorn = false;
  /** The region that was used last. */
  #regionId = -1;
  #i32: Int32Array = new Int32Array(0);

  constructor(memory: StoreMemory, options: ReplayOptions) {
    this.#memory = memory;
    this.#blocks = new RecoveredBlocks(memory, options.isMine);
    this.#startEpoch = options.startEpoch;
    this.#regions = memory.control.geometry.regions;
    this.#unitsPerRegion = memory.control.unitsPerRegion;
    this.#wordsPerRegion = memory.control.geometry.regionBytes / 4;
  }

  /**
   * Loads what a checkpoint has of this part: first a full one, then its deltas in order. Says what
   * is wrong with it, if anything is: the memory is then to be thrown away. `onBytes` is told how
   * many bytes of chunks have been passed, those of other parts included.
   */
  load(checkpoint: Checkpoint, onBytes?: (bytes: number) => void): Damage | undefined {
    const { words, f64, entries, info } = checkpoint;
    const blocks = this.#blocks;
    const units = this.#regions * this.#unitsPerRegion;
    const wrong = (what: string): Damage => ({ file: info.name, offset: 0, what });
    // A delta has all that was changed after the start epoch of the one before it.
    this.#isTorn = info.format === TORN_FORMAT;
    if (info.geometry.regionBytes !== this.#memory.control.geometry.regionBytes) {
      return wrong("it is of a store with regions of another size");
    }
    for (let entry = 0; entry < entries; entry++) {
      const at = entry * ENTRY_WORDS;
      const unit = words[at + ENTRY_UNIT];
      if (unit >= units) return wrong(`the store cannot have a unit ${unit}`);
      if (unit >= blocks.isMine.length) blocks.reach(Math.floor(unit / this.#unitsPerRegion) + 1);
      const bytes = checkpoint.chunkBytesOf(entry);
      if (bytes > 0) onBytes?.(bytes);
      if (blocks.isMine[unit] === 0) continue;
      const sizeClass = (words[at + ENTRY_SHAPE] & CLASS_MASK) - 1;
      const firstIncarnation = words[at + ENTRY_FIRST_INCARNATION];
      const formatEpoch = words[at + ENTRY_FORMAT_EPOCH];
      const since = f64[at / 2 + ENTRY_SINCE_F64];
      if (sizeClass < 0) {
        blocks.makeFree(unit, firstIncarnation, since);
        continue;
      }
      if (unit % SPAN[sizeClass] !== 0) return wrong(`no such block can begin with unit ${unit}`);
      if ((words[at + ENTRY_SHAPE] & WHOLE) !== 0) {
        blocks.make(unit, sizeClass, firstIncarnation, formatEpoch, since);
      } else if (!blocks.isSame(unit, sizeClass, firstIncarnation, formatEpoch)) {
        return wrong("it does not build on the checkpoint that was loaded before it");
      } else {
        blocks.since.fill(since, unit, unit + SPAN[sizeClass]);
      }
      if (bytes === 0) continue;
      const damage = checkpoint.readChunk(entry);
      if (damage !== undefined) return damage;
      if (!this.#loadRuns(checkpoint.chunk, unit, sizeClass)) {
        return wrong(`the chunk of unit ${unit} has words that its block has not`);
      }
    }
    return undefined;
  }

  /** Applies the records of a batch, which are in no order but for those of one slot. */
  applyBatch(words: Int32Array): void {
    const merge = this.#merge;
    merge.begin(words);
    if (merge.isOrdered) {
      for (let at = 0; at < words.length; ) at = this.applyRecord(words, at);
      return;
    }
    for (let at = merge.next(); at >= 0; at = merge.next()) this.applyRecord(words, at);
  }

  /** Applies one record; they must come in the order of their TIDs. Returns where the next is. */
  applyRecord(words: Int32Array, recordAt: number): number {
    const end = recordAt + words[recordAt];
    if (!(end >= recordAt + RECORD_WORDS && end <= words.length)) {
      throw corrupt(words, recordAt, "its length is impossible");
    }
    const entries = words[recordAt + 1];
    const high = words[recordAt + 2];
    const low = words[recordAt + 3];
    const epoch = epochOf(high, low);
    if (epoch <= this.#startEpoch) return end;
    this.records++;
    const blocks = this.#blocks;
    let applied = 0;
    let at = recordAt + RECORD_WORDS;
    for (let entry = 0; entry < entries; entry++) {
      const data = at + RECORD_ENTRY_WORDS;
      if (data > end) throw corrupt(words, recordAt, "its entries are longer than itself");
      const regionId = words[at] & REGION_MASK;
      const word = words[at + 1];
      const changed = words[at + 4];
      if (!(changed >= 0 && changed <= end - data)) {
        throw corrupt(words, recordAt, "the length of an entry is impossible");
      }
      if (words[at] === CHANGE_REGION) {
        // What a transaction did to rows is told to those who watch a table: memory has it already.
        at = data + changed;
        continue;
      }
      if (!(regionId < this.#regions && word >= 0 && word < this.#wordsPerRegion)) {
        throw corrupt(words, recordAt, `the store has no word ${word} of region ${regionId}`);
      }
      const unit = regionId * this.#unitsPerRegion + (word >>> UNIT_SHIFT);
      if (unit >= blocks.isMine.length) blocks.reach(regionId + 1);
      if (blocks.isMine[unit] !== 0 && epoch >= blocks.since[unit]) {
        if (this.#applyEntry(words, recordAt, at, unit, epoch)) applied++;
      }
      at = data + changed;
    }
    if (at !== end || entries < 0) throw corrupt(words, recordAt, "its length is wrong");
    this.applied += applied;
    this.skipped += entries - applied;
    return end;
  }

  /** All is loaded and applied: the blocks of this part are anyone's. */
  finish(): void {
    this.#blocks.publish();
  }

  #applyEntry(
    words: Int32Array,
    recordAt: number,
    entryAt: number,
    unit: number,
    epoch: number,
  ): boolean {
    const blocks = this.#blocks;
    const newClass = (words[entryAt] >>> CLASS_SHIFT) - 1;
    const regionId = words[entryAt] & REGION_MASK;
    const word = words[entryAt + 1];
    const incarnation = words[entryAt + 2];
    const isEdited = words[entryAt + 3] === EDITED;
    const from = isEdited ? 0 : words[entryAt + 3];
    const changed = isEdited ? 0 : words[entryAt + 4];
    if (regionId !== this.#regionId) this.#useRegion(regionId);
    const i32 = this.#i32;
    let block = blocks.blockOf[unit];
    if (newClass >= 0 && (block === NO_BLOCK || blocks.classOf[block] !== newClass)) {
      block = this.#takeBlock(words, recordAt, unit, newClass, incarnation, epoch);
    } else if (block === NO_BLOCK) {
      throw corrupt(words, recordAt, `there is no block at word ${word} of region ${regionId}`);
    }
    const sizeClass = blocks.classOf[block];
    const cellWords = CELL_WORDS[sizeClass];
    const inBlock = word - ((block % this.#unitsPerRegion) << UNIT_SHIFT);
    const inCell = inBlock % cellWords;
    const cellEnd = word - inCell + cellWords;
    const target = word + HEADER_WORDS + from;
    const fits =
      inBlock < BLOCK_WORDS[sizeClass] &&
      from >= 0 &&
      target + changed <= cellEnd &&
      (inCell === 0 || (inCell >= ARRAY_HEADER_WORDS && newClass < 0));
    if (!fits) {
      const place = `word ${word} of region ${regionId}`;
      throw corrupt(
        words,
        recordAt,
        `no object at ${place} has words ${from} to ${from + changed}`,
      );
    }
    if (!this.#isDue(words, recordAt, word, inCell, isEdited)) return false;
    if (newClass >= 0) {
      // Later than this cell can have got in its life: the block is another one by now.
      const later = startOf(incarnation) - (i32[word + INCARNATION] & -INCARNATION_STEP);
      if ((later | 0) > 0) this.#renewBlock(block, sizeClass, incarnation, epoch);
      if (from > 0) i32.fill(0, word + HEADER_WORDS, target);
      if (target + changed < cellEnd) i32.fill(0, target + changed, cellEnd);
    }
    const data = entryAt + RECORD_ENTRY_WORDS;
    if (isEdited) {
      const end = data + words[entryAt + 4];
      const fault = applyEdits(words, data, end, i32, target, cellEnd - target);
      if (fault !== undefined) throw corrupt(words, recordAt, fault);
    } else {
      copyWords(words, data, i32, target, changed);
    }
    i32[word + LOCK] = 0;
    i32[word + INCARNATION] = incarnation;
    i32[word + VERSION_HIGH] = words[recordAt + 2];
    i32[word + VERSION_LOW] = words[recordAt + 3];
    return true;
  }

  /** Whether a record is later than what it would be applied to. */
  #isDue(
    words: Int32Array,
    recordAt: number,
    word: number,
    inCell: number,
    isEdited: boolean,
  ): boolean {
    if (this.#isTorn && !isEdited) return true;
    const i32 = this.#i32;
    const high = words[recordAt + 2];
    const low = words[recordAt + 3];
    const cell = word - inCell;
    if (inCell > 0 && isLater(i32[cell + VERSION_HIGH], i32[cell + VERSION_LOW], high, low)) {
      return false;
    }
    return isLater(high, low, i32[word + VERSION_HIGH], i32[word + VERSION_LOW]);
  }

  #useRegion(regionId: number): void {
    this.#i32 = this.#memory.ensureRegion(regionId).i32;
    this.#regionId = regionId;
  }

  /** A record allocates a cell where no block of its class is: the first that we hear of a new one. */
  #takeBlock(
    words: Int32Array,
    recordAt: number,
    unit: number,
    sizeClass: number,
    incarnation: number,
    epoch: number,
  ): number {
    if (sizeClass >= SIZE_CLASSES) {
      throw corrupt(words, recordAt, `there is no size class ${sizeClass}`);
    }
    const block = unit - (unit % SPAN[sizeClass]);
    if (!this.#blocks.areEmpty(block, SPAN[sizeClass])) {
      throw corrupt(words, recordAt, `it takes unit ${unit} for another class, which is in use`);
    }
    this.#blocks.make(block, sizeClass, startOf(incarnation), epoch | 0, epoch);
    return block;
  }

  /** The block was given back and made again for the same class. */
  #renewBlock(block: number, sizeClass: number, incarnation: number, epoch: number): void {
    if (!this.#blocks.areEmpty(block, SPAN[sizeClass])) return;
    this.#blocks.make(block, sizeClass, startOf(incarnation), epoch | 0, epoch);
  }

  /** False if a run does not lie in its block. */
  #loadRuns(chunk: Int32Array, block: number, sizeClass: number): boolean {
    this.#useRegion(Math.floor(block / this.#unitsPerRegion));
    const i32 = this.#i32;
    const first = this.#blocks.firstWordOf(block);
    const runs = chunk[CHUNK_RUNS];
    const end = CHUNK_HEADER_WORDS + chunk[CHUNK_PAYLOAD_BYTES] / 4;
    const table = end - 2 * runs;
    let at = CHUNK_HEADER_WORDS;
    for (let run = 0; run < runs; run++) {
      const start = chunk[table + 2 * run];
      const length = chunk[table + 2 * run + 1];
      if (!(start >= 0 && length > 0 && start + length <= BLOCK_WORDS[sizeClass])) return false;
      if (at + length > table) return false;
      copyWords(chunk, at, i32, first + start, length);
      at += length;
    }
    return at === table;
  }
}

/** The incarnation that a new cell had before the commit; it may have been freed by the same. */
function startOf(incarnation: number): number {
  const counter = incarnation & -INCARNATION_STEP;
  return (incarnation & ALLOCATED) !== 0 ? counter : (counter - INCARNATION_STEP) | 0;
}

function corrupt(words: Int32Array, recordAt: number, what: string): SituError {
  const epoch = epochOf(words[recordAt + 2], words[recordAt + 3]);
  return new SituError(
    "SITU_CORRUPT",
    `the log has a record that cannot be, at word ${recordAt} of its batch, epoch ${epoch}: ${what}`,
  );
}
