/**
 * Free cells in blocks that an executor knows: from its free lists, by sweeping over candidates, or
 * from those that have rested.
 *
 * `#known` holds the cells that are free in memory but spoken for here: handed to a transaction
 * that has not ended, or waiting in a free list. A sweep passes over them. What a list has is looked
 * at again before it is handed out: others may have taken the cell, or given the block back.
 *
 * A freed array needs care: its elements had headers in the middle of the cell, and a transaction
 * that read one may still try to lock it. Such a cell rests until every transaction that was
 * running when it was found has ended, and every snapshot that can still see the array; the same
 * holds for a block that changes its class (closings.ts).
 */

import { CELLS_PER_SEARCH } from "../runtime/limits.ts";
import type { Address } from "./address.ts";
import { addressOf, NO_ADDRESS, wordOf } from "./address.ts";
import { BLOCK_CELLS, BlockTable } from "./blocks.ts";
import type { Candidate, Rotation } from "./candidates.ts";
import { ALLOCATED, ARRAY, INCARNATION, LOCK, VERSION_HIGH, VERSION_LOW } from "./object.ts";
import { loadAcquire } from "./ordering.ts";
import { CELL_BYTES } from "./size-classes.ts";
import { type Slab, type SlabHost, stepOf } from "./slab.ts";
import type { StoreMemory } from "./store-memory.ts";

export class FreeCells {
  /** The incarnation word, and the class, that the cell which was found last was seen with. */
  chosenWord = 0;
  #chosenClass = 0;
  readonly #memory: StoreMemory;
  readonly #blocks: BlockTable;
  readonly #slot: number;
  readonly #host: SlabHost;
  /** With the class of each: an address may be in the list of a class that its memory had before. */
  readonly #known = new Map<Address, number>();

  constructor(memory: StoreMemory, blocks: BlockTable, slot: number, host: SlabHost) {
    this.#memory = memory;
    this.#blocks = blocks;
    this.#slot = slot;
    this.#host = host;
  }

  /** The cell that was found last is handed to a transaction. */
  reserve(cell: Address): void {
    this.#known.set(cell, this.#chosenClass);
  }

  /** Whether a cell that was handed to a transaction had this class then. */
  isReservedIn(cell: Address, sizeClass: number): boolean {
    return this.#known.get(cell) === sizeClass;
  }

  /** The transaction that had the cell has ended. */
  unreserve(cell: Address): void {
    this.#known.delete(cell);
  }

  /** Keeps a cell that was freed here for the next who needs one. */
  keep(slab: Slab, cell: Address, sizeClass: number): void {
    if (this.#known.get(cell) === sizeClass) return;
    this.#known.set(cell, sizeClass);
    slab.freeCells.push(cell);
  }

  clear(): void {
    this.#known.clear();
  }

  /** The newest cell of the free list that is free indeed. */
  listed(slab: Slab, sizeClass: number): Address {
    for (;;) {
      const cell = slab.freeCells.pop();
      if (cell === undefined) return NO_ADDRESS;
      if (this.#isFree(cell, sizeClass)) return cell;
      this.#unknow(cell, sizeClass);
    }
  }

  /** The newest free cells are the likeliest to be close; a longer search costs more than it gains. */
  listedBetween(slab: Slab, sizeClass: number, start: number, end: number): Address {
    const { freeCells } = slab;
    const last = Math.max(0, freeCells.length - CELLS_PER_SEARCH);
    for (let index = freeCells.length - 1; index >= last; index--) {
      const cell = freeCells[index];
      if (cell < start || cell >= end) continue;
      freeCells.splice(index, 1);
      if (this.#isFree(cell, sizeClass)) return cell;
      this.#unknow(cell, sizeClass);
    }
    return NO_ADDRESS;
  }

  /** Whether a cell that was free, and no array, is so still. Leaves its word in `chosenWord`. */
  #isFree(cell: Address, sizeClass: number): boolean {
    if (this.#blocks.find(cell) < 0 || !BlockTable.isOpen(this.#blocks.state, sizeClass))
      return false;
    const { i32 } = this.#memory.regionOf(cell);
    const at = wordOf(cell);
    this.#choose(loadAcquire(i32, at + INCARNATION), sizeClass);
    return (this.chosenWord & (ALLOCATED | ARRAY)) === 0 && loadAcquire(i32, at + LOCK) === 0;
  }

  /** A free cell of the blocks of a rotation. */
  inCandidates(slab: Slab, rotation: Rotation, sizeClass: number): Address {
    while (rotation.blocks.length > 0) {
      const cell = this.sweep(slab, rotation.current, sizeClass);
      if (cell !== NO_ADDRESS) return cell;
    }
    return NO_ADDRESS;
  }

  /** The next free cell of a block. If it has none the block is no candidate any more. */
  sweep(slab: Slab, candidate: Candidate, sizeClass: number): Address {
    const { block } = candidate;
    const blocks = this.#blocks;
    if (!BlockTable.isOpen(blocks.stateOf(block), sizeClass)) {
      this.#drop(slab, candidate);
      return NO_ADDRESS;
    }
    const region = this.#memory.region(candidate.regionId);
    const words = CELL_BYTES[sizeClass] / 4;
    const cells = BLOCK_CELLS[sizeClass];
    const first = blocks.firstWordOf(block);
    for (let round = 0; round < 2; round++) {
      while (candidate.left > 0) {
        const index = candidate.cursor;
        candidate.left--;
        candidate.cursor = (index + candidate.step) % cells;
        const at = first + index * words;
        const word = loadAcquire(region.i32, at + INCARNATION);
        // Still locked: its version is not there yet. It will be counted as freed, and found.
        if ((word & ALLOCATED) !== 0 || loadAcquire(region.i32, at + LOCK) !== 0) continue;
        const cell = addressOf(candidate.regionId, at);
        if (this.#known.get(cell) === sizeClass) {
          candidate.isPassedOver = true;
          continue;
        }
        if ((word & ARRAY) === 0) {
          this.#choose(word, sizeClass);
          return cell;
        }
        candidate.isPassedOver = true;
        this.#known.set(cell, sizeClass);
        const high = region.i32[at + VERSION_HIGH];
        const low = region.i32[at + VERSION_LOW];
        slab.resting.push({ cell, word, since: this.#host.mark(), high, low });
      }
      const frees = blocks.frees(block);
      if (frees === candidate.frees) break;
      this.#beginRound(candidate, cells, frees);
    }
    if (candidate.left === 0 && !candidate.isPassedOver) blocks.foundFull(block, candidate.frees);
    this.#drop(slab, candidate);
    return NO_ADDRESS;
  }

  #beginRound(candidate: Candidate, cells: number, frees: number): void {
    candidate.left = cells;
    candidate.frees = frees;
    candidate.isPassedOver = false;
  }

  /** The oldest resting cell, if its time is over. */
  rested(slab: Slab, sizeClass: number): Address {
    while (this.hasRested(slab)) {
      const { cell, word } = slab.resting.shift()!;
      const { i32 } = this.#memory.regionOf(cell);
      const isOpen =
        this.#blocks.find(cell) >= 0 && BlockTable.isOpen(this.#blocks.state, sizeClass);
      // Another may have used it meanwhile: then this is an other life of the cell.
      if (isOpen && loadAcquire(i32, wordOf(cell) + INCARNATION) === word) {
        this.#choose(word, sizeClass);
        return cell;
      }
      this.#unknow(cell, sizeClass);
    }
    return NO_ADDRESS;
  }

  #choose(word: number, sizeClass: number): void {
    this.chosenWord = word;
    this.#chosenClass = sizeClass;
  }

  #unknow(cell: Address, sizeClass: number): void {
    if (this.#known.get(cell) === sizeClass) this.#known.delete(cell);
  }

  /** Whether the oldest resting cell may be used again. */
  hasRested(slab: Slab): boolean {
    const [oldest] = slab.resting;
    if (oldest === undefined || !this.#host.isPast(oldest.since)) return false;
    return !this.#host.isSeen(oldest.high, oldest.low);
  }

  /** Makes a block a candidate. */
  note(slab: Slab, sizeClass: number, block: number, isNew: boolean): Candidate {
    const known = slab.candidates.find(block);
    if (known !== undefined) return known;
    const cells = BLOCK_CELLS[sizeClass];
    const frees = this.#blocks.frees(block);
    // Where everyone allocates, each looks at the cells in another order.
    const isMine = block === slab.preferred;
    const candidate = {
      block,
      regionId: this.#blocks.regionIdOf(block),
      cursor: isMine ? 0 : (this.#slot * 31) % cells,
      step: isMine ? 1 : stepOf(this.#slot, cells),
      left: cells,
      frees,
      isPassedOver: false,
    };
    slab.candidates.add(candidate, isNew);
    return candidate;
  }

  #drop(slab: Slab, candidate: Candidate): void {
    slab.candidates.remove(candidate);
    if (slab.preferred === candidate.block) this.leave(slab);
  }

  /** Leaves the block that was preferred to everyone. */
  leave(slab: Slab): void {
    this.#blocks.share(slab.preferred, this.#slot);
    slab.preferred = -1;
  }

  /** A block of the class is given back: nothing of it is known any more. */
  forget(slab: Slab, block: number, sizeClass: number): void {
    const start = this.#blocks.cellAt(block, 0, sizeClass);
    const end = start + BLOCK_CELLS[sizeClass] * CELL_BYTES[sizeClass];
    const isElsewhere = (cell: Address): boolean => {
      if (cell < start || cell >= end) return true;
      this.#unknow(cell, sizeClass);
      return false;
    };
    const candidate = slab.candidates.find(block);
    if (candidate !== undefined) slab.candidates.remove(candidate);
    if (slab.preferred === block) slab.preferred = -1;
    const kept = slab.freeCells.filter(isElsewhere);
    slab.freeCells.length = 0;
    for (const cell of kept) slab.freeCells.push(cell);
    slab.resting = slab.resting.filter(({ cell }) => isElsewhere(cell));
  }

  /** Blocks in which a transaction of this executor that has not ended holds a cell. */
  reservedBlocks(slabs: readonly (Slab | undefined)[]): Set<number> {
    const waiting = new Set<Address>();
    for (const slab of slabs) {
      if (slab === undefined) continue;
      for (const cell of slab.freeCells) waiting.add(cell);
      for (const { cell } of slab.resting) waiting.add(cell);
    }
    const reserved = new Set<number>();
    for (const cell of this.#known.keys()) {
      if (!waiting.has(cell)) reserved.add(this.#blocks.blockOf(cell));
    }
    return reserved;
  }
}
