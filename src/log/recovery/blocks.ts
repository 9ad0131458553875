/**
 * The block table of a store that is being recovered, as far as one thread has to do with it: which
 * blocks there are, and since when. It begins with what checkpoints say and goes through the lives of
 * the memory as the log tells them: a block is made by the first record that allocates a cell in it.
 * That blocks were given back is not in the log; it shows when a record takes the memory for
 * another class, or for cells with later incarnations than these can have. The log then has freed
 * every cell of the old block.
 *
 * The words of the control segment are written at the end, when all blocks are orphans.
 */

import {
  BLOCK_CELLS,
  BlockTable,
  incarnationAfter,
  SPAN,
  UNIT_WORDS,
} from "../../memory/blocks.ts";
import { ALLOCATED, INCARNATION } from "../../memory/object.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import type { StoreMemory } from "../../memory/store-memory.ts";
import { assert } from "../../runtime/assert.ts";
import { MAX_BLOCK_UNITS } from "../../runtime/limits.ts";

export const NO_BLOCK = -1;

function longer<T extends Int32Array | Uint8Array | Float64Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** A block is named by its first unit; units are numbered through all regions. */
export class RecoveredBlocks {
  /** For each unit, the block that it is part of, or NO_BLOCK. */
  blockOf = new Int32Array(0);
  /** For each block, by its first unit. */
  classOf = new Uint8Array(0);
  /** For each unit: no record before this epoch is about what it is now. */
  since = new Float64Array(0);
  /** Whether a unit is recovered here. */
  isMine = new Uint8Array(0);
  readonly #memory: StoreMemory;
  readonly #unitsPerRegion: number;
  readonly #isMineOf: (chunk: number) => boolean;
  #firstIncarnation = new Int32Array(0);
  #formatEpoch = new Int32Array(0);

  constructor(memory: StoreMemory, isMine: (chunk: number) => boolean) {
    const { unitsPerRegion, regionLimit } = memory.control;
    assert(unitsPerRegion % MAX_BLOCK_UNITS === 0, "no block crosses a part");
    this.#memory = memory;
    this.#unitsPerRegion = unitsPerRegion;
    this.#isMineOf = isMine;
    this.reach(regionLimit);
  }

  /** Makes place for so many regions: the log may speak of more than the store was to have. */
  reach(regions: number): void {
    const before = this.blockOf.length;
    const units = regions * this.#unitsPerRegion;
    if (units <= before) return;
    if (regions > this.#memory.control.regionLimit) this.#memory.reserveUnits(regions);
    this.blockOf = longer(this.blockOf, new Int32Array(units).fill(NO_BLOCK));
    this.classOf = longer(this.classOf, new Uint8Array(units));
    this.since = longer(this.since, new Float64Array(units));
    this.isMine = longer(this.isMine, new Uint8Array(units));
    this.#firstIncarnation = longer(this.#firstIncarnation, new Int32Array(units));
    this.#formatEpoch = longer(this.#formatEpoch, new Int32Array(units));
    for (let unit = before; unit < units; unit += MAX_BLOCK_UNITS) {
      if (!this.#isMineOf(unit / MAX_BLOCK_UNITS)) continue;
      this.isMine.fill(1, unit, unit + MAX_BLOCK_UNITS);
    }
  }

  /** Whether the block is in this life, as a checkpoint names it. */
  isSame(block: number, sizeClass: number, firstIncarnation: number, formatEpoch: number): boolean {
    return (
      this.blockOf[block] === block &&
      this.classOf[block] === sizeClass &&
      this.#firstIncarnation[block] === firstIncarnation &&
      this.#formatEpoch[block] === formatEpoch
    );
  }

  /** Makes a block, in place of whatever was there. All its cells are free. */
  make(
    block: number,
    sizeClass: number,
    firstIncarnation: number,
    formatEpoch: number,
    since: number,
  ): void {
    const end = block + SPAN[sizeClass];
    let isUsed = false;
    for (let unit = block; unit < end; unit++) {
      isUsed ||= this.#firstIncarnation[unit] !== 0 || this.blockOf[unit] !== NO_BLOCK;
      this.#unmake(unit);
    }
    this.blockOf.fill(block, block, end);
    this.classOf[block] = sizeClass;
    this.since.fill(since, block, end);
    this.#firstIncarnation.fill(firstIncarnation, block, end);
    this.#formatEpoch.fill(formatEpoch, block, end);
    const { i32 } = this.#memory.ensureRegion(Math.floor(block / this.#unitsPerRegion));
    const first = this.firstWordOf(block);
    if (isUsed) i32.fill(0, first, first + SPAN[sizeClass] * UNIT_WORDS);
    if (firstIncarnation === 0) return;
    const words = CELL_BYTES[sizeClass] / 4;
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      i32[first + index * words + INCARNATION] = firstIncarnation;
    }
  }

  /** Notes that a unit is free, but was not always. */
  makeFree(unit: number, firstIncarnation: number, since: number): void {
    this.#unmake(unit);
    this.#firstIncarnation[unit] = firstIncarnation;
    this.since[unit] = since;
  }

  /** Whether all blocks that have one of these units are empty, as those must be that give way. */
  areEmpty(from: number, units: number): boolean {
    for (let unit = from; unit < from + units; unit++) {
      const block = this.blockOf[unit];
      if (block !== NO_BLOCK && this.#highestIfEmpty(block) < 0) return false;
    }
    return true;
  }

  firstWordOf(block: number): number {
    return (block % this.#unitsPerRegion) * UNIT_WORDS;
  }

  /** Writes the units of this part to the control segment; all blocks are orphans. */
  publish(): void {
    const table = new BlockTable(this.#memory);
    const units = this.blockOf.length;
    for (let unit = 0; unit < units; ) {
      const isBlock = this.blockOf[unit] === unit;
      const firstIncarnation = this.#firstIncarnation[unit];
      if (isBlock) {
        const sizeClass = this.classOf[unit];
        table.restore(unit, sizeClass, firstIncarnation, this.#formatEpoch[unit]);
      } else if (firstIncarnation !== 0) {
        table.restoreFree(unit, firstIncarnation);
      }
      unit += isBlock ? SPAN[this.classOf[unit]] : 1;
    }
  }

  /** The block that has this unit ceases to be one, and its memory goes on where it ended. */
  #unmake(unit: number): void {
    const block = this.blockOf[unit];
    if (block === NO_BLOCK) return;
    const end = block + SPAN[this.classOf[block]];
    const next = incarnationAfter(Math.max(0, this.#highestIfEmpty(block)));
    this.blockOf.fill(NO_BLOCK, block, end);
    this.#firstIncarnation.fill(next, block, end);
  }

  /** The highest incarnation of an empty block's cells; -1 if a cell is in use. */
  #highestIfEmpty(block: number): number {
    const { i32 } = this.#memory.ensureRegion(Math.floor(block / this.#unitsPerRegion));
    const sizeClass = this.classOf[block];
    const words = CELL_BYTES[sizeClass] / 4;
    const first = this.firstWordOf(block);
    let highest = 0;
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      const word = i32[first + index * words + INCARNATION];
      if ((word & ALLOCATED) !== 0) return -1;
      if (word >>> 0 > highest) highest = word >>> 0;
    }
    return highest;
  }
}
